"""Folders, reports, stores and pictures made to harm: see `test_malicious_files`."""

import os
import sqlite3

import numpy as np
import pytest

pytest.importorskip("safetensors")
pytest.importorskip("pyarrow")

import hostile_files as h  # noqa: E402
from hostile_reading import chunks, data, refused  # noqa: E402

from isrlearn.benchmark import Store  # noqa: E402
from isrlearn.datasets import read_multinli, read_waterbirds  # noqa: E402
from isrlearn.exceptions import (  # noqa: E402
    DataError,
    FeatureFileError,
    ModelFileError,
    StoreError,
)
from isrlearn.io import FeatureFile, load  # noqa: E402
from isrlearn.reporting import Report  # noqa: E402

# --- feature folders


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "..", ".", "", "a/../../b"])
def test_a_shard_outside_the_folder_is_refused(tmp_path, name):
    (tmp_path / "secret").write_bytes(h.honest_tensors())
    folder = h.feature_folder(tmp_path / "features", name=name)
    refused(lambda p: FeatureFile.open(p).read(), folder, FeatureFileError, "outside|not a shard")


@pytest.mark.parametrize("rows", [10**12, 2**70, -1, 1e12, "6", None, [6]])
@pytest.mark.parametrize("read", [data, chunks])
def test_a_manifest_that_claims_other_rows_is_refused(tmp_path, read, rows):
    folder = h.feature_folder(tmp_path / "features", rows=rows)
    if rows is not None:
        refused(read, folder, (FeatureFileError, DataError), "rows")


# --- json


def deep(n):
    return "[" * n + "]" * n


JSON = {
    "deep": (lambda: f'{{"report": {deep(10**5)}}}', "nested too deep"),
    "rather deep": (lambda: f'{{"report": {deep(300)}}}', "nested more than"),
    "deep objects": (lambda: '{"report":' * 10**5, "nested too deep"),
    "huge number": (lambda: '{"report": ' + "9" * 10**6 + "}", "digits|limit"),
    "NaN": (lambda: '{"report": {"protocol": NaN}}', "protocol nan is not"),
    "twice": (lambda: '{"report": 1, "report": {}}', "name 'report' 2 times"),
    "half a character": (lambda: '{"report": "\\ud800"}', "surrogates"),
    "cut": (lambda: '{"report": {"title": "a', "cannot be read"),
    "not UTF-8": (lambda: b'{"report": "\xff"}', "utf-8"),
    "UTF-16": (lambda: '{"report": 1}'.encode("utf-16"), "utf-8"),
}


@pytest.mark.parametrize("case", JSON)
def test_a_hostile_result_is_refused(tmp_path, case):
    make, reason = JSON[case]
    text = make()
    path = tmp_path / "result.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    refused(Report.load, path, ValueError, reason)


@pytest.mark.parametrize("case", JSON)
def test_a_hostile_card_of_a_network_is_refused(tmp_path, case):
    pytest.importorskip("torch")
    from isrlearn.exceptions import TrainingError
    from isrlearn.networks._saved import read_card

    text = JSON[case][0]()
    (tmp_path / "network.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    refused(read_card, tmp_path, TrainingError, "network.json is damaged")


@pytest.mark.parametrize("case", ["deep", "huge number", "twice", "half a character"])
def test_hostile_notes_of_a_checkpoint_are_refused(tmp_path, case):
    pytest.importorskip("torch")
    from isrlearn.exceptions import TrainingError
    from isrlearn.networks._checkpoints import load_tensors

    described = {"__metadata__": {"isrlearn": JSON[case][0]()}}
    (tmp_path / "c.safetensors").write_bytes(h.safetensors(described))
    refused(load_tensors, tmp_path / "c.safetensors", TrainingError, "is damaged")


def test_a_plan_nested_too_deep_is_refused(tmp_path):
    pytest.importorskip("torch")
    from isrlearn.reproduce import read_plan

    (tmp_path / "own.toml").write_text("heads = " + deep(10**4))
    refused(read_plan, tmp_path / "own.toml", ValueError, "is not TOML")


# --- stores


ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c"
STORES = {
    "trigger": ["CREATE TRIGGER t AFTER INSERT ON results BEGIN DELETE FROM results; END"],
    "view": ["CREATE VIEW v AS SELECT * FROM results"],
    "endless view": ["DROP TABLE results", f"CREATE VIEW results AS {ENDLESS}"],
    "other table": ["CREATE TABLE other (x)"],
    "index by a function": ["CREATE INDEX i ON results (hex(method))"],
    "check": [
        "DROP TABLE results",
        "CREATE TABLE results (job, trial, CHECK (length(zeroblob(900000000)) > 0))",
    ],
    "generated": [
        "DROP TABLE results",
        "CREATE TABLE results (job, trial AS (length(zeroblob(900000000))))",
    ],
    "huge value": [
        "INSERT INTO results (job, trial, method) VALUES ('a', 1, hex(zeroblob(2000000)))"
    ],
    "other types": ["INSERT INTO results (job, trial, seed) VALUES ('a', 1, x'00ff')"],
    "text for an error": ["INSERT INTO results (job, trial, error_test) VALUES ('a', 1, 'much')"],
}


@pytest.mark.parametrize("case", STORES)
def test_a_hostile_store_is_refused(tmp_path, case):
    path = h.store(tmp_path, *STORES[case])
    refused(lambda p: Store(p).check().records(), path, StoreError, "cannot be used")


@pytest.fixture
def precious(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious.txt").write_text("the only copy")
    return tmp_path / "mine" / "precious.txt"


def test_sqlite_deletes_what_a_journal_names(tmp_path, precious):
    """Else the test below would show nothing."""
    path = h.store(tmp_path)
    h.hot_journal(path, precious)
    with sqlite3.connect(path) as connection:
        connection.execute("SELECT count(*) FROM results")
    connection.close()
    assert not precious.exists()


@pytest.mark.parametrize("act", ["check", "create", "records", "finished"])
@pytest.mark.parametrize("linked", [False, True])
def test_a_journal_that_names_a_file_deletes_nothing(tmp_path, precious, act, linked):
    path = h.store(tmp_path)
    journal = h.hot_journal(path, precious)
    before = path.read_bytes(), journal.read_bytes()
    if linked:  # SQLite looks beside the file that is meant
        path = tmp_path / "mine" / "link.sqlite"
        path.symlink_to(tmp_path / "s.sqlite")
    reason = f"{journal} names another file.*delete it"
    refused(lambda p: getattr(Store(p), act)(), path, StoreError, reason)
    assert precious.read_text() == "the only copy"
    assert (path.read_bytes(), journal.read_bytes()) == before


@pytest.mark.parametrize("end", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("make", ["link", "dangling link", "pipe", "folder"])
def test_what_is_no_file_beside_a_store_is_refused(tmp_path, precious, end, make):
    path = h.store(tmp_path)
    beside = tmp_path / f"s.sqlite{end}"
    if make == "pipe":
        os.mkfifo(beside)
    elif make == "folder":
        beside.mkdir()
    else:
        beside.symlink_to(precious if make == "link" else tmp_path / "mine" / "new")
    refused(lambda p: Store(p).check(), path, StoreError, f"{beside} is no regular file")
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["precious.txt"]
    assert precious.read_text() == "the only copy"


# --- what is in a folder and is no file


def a_pipe(path):
    os.mkfifo(path)


def an_endless_device(path):
    path.symlink_to("/dev/zero")


def a_link(path):
    path.symlink_to(path.parent.parent / "elsewhere")


@pytest.mark.parametrize("make", [a_pipe, an_endless_device, a_link])
@pytest.mark.parametrize("read", [lambda p: FeatureFile.open(p).read(), data, chunks])
def test_a_shard_that_is_no_file_is_not_read(tmp_path, read, make):
    (tmp_path / "elsewhere").write_bytes(h.honest_tensors())
    folder = h.feature_folder(tmp_path / "features")
    (shard,) = folder.glob("*.safetensors")
    shard.unlink()
    make(shard)
    refused(read, folder, FeatureFileError, "no regular file")


@pytest.mark.parametrize("make", [a_pipe, an_endless_device])
@pytest.mark.parametrize("read", [data, chunks])
@pytest.mark.parametrize("name", ["rows.npz", "rows.safetensors", "rows.parquet", "rows.csv"])
def test_rows_that_are_no_file_are_not_read(tmp_path, make, read, name):
    make(tmp_path / name)
    refused(read, tmp_path / name, DataError, "it is no regular file.*save the rows as a file")


@pytest.mark.parametrize("make", [a_pipe, an_endless_device])
@pytest.mark.parametrize("name", ["model.safetensors", "model.skops"])
def test_a_model_that_is_no_file_is_not_read(tmp_path, make, name):
    pytest.importorskip("skops.io")  # its own memory does not count
    make(tmp_path / name)
    refused(load, tmp_path / name, ModelFileError, "is not there: name")


@pytest.mark.parametrize("make", [a_pipe, an_endless_device])
def test_a_manifest_or_report_that_is_no_file_is_not_read(tmp_path, make):
    for name in ("manifest.json", "result.json"):
        make(tmp_path / name)
    refused(FeatureFile.open, tmp_path, FeatureFileError, "no regular file")
    refused(Report.load, tmp_path, ValueError, "is no file")


@pytest.mark.parametrize("make", [a_pipe, an_endless_device])
def test_a_network_whose_weights_are_no_file_is_not_read(tmp_path, make):
    pytest.importorskip("torch")
    from isrlearn.exceptions import TrainingError
    from isrlearn.networks._checkpoints import load_tensors

    make(tmp_path / "model.safetensors")
    refused(load_tensors, tmp_path / "model.safetensors", TrainingError, "no regular file")


@pytest.mark.parametrize("make", [a_pipe, an_endless_device])
def test_a_layout_whose_files_are_none_is_not_read(tmp_path, make):
    pairs = tmp_path / "pairs"
    pairs.mkdir()
    text = "gold_label\tsentence1\tsentence2\nneutral\tIt rains.\tIt pours.\n"
    (pairs / "train.tsv").write_text(text)
    make(pairs / "split.npz")
    refused(read_multinli, pairs, (DataError, ValueError), "no regular file")
    birds = tmp_path / "birds"
    birds.mkdir()
    make(birds / "metadata.csv")
    refused(read_waterbirds, birds, DataError, "no regular file|has no metadata")
    (birds / "metadata.csv").unlink()
    make(birds / "birds.tar")
    refused(read_waterbirds, birds, DataError, "has no metadata")


def test_a_shard_that_is_named_often_is_refused(tmp_path):
    """Else a manifest of a megabyte makes a thousand copies of a shard."""
    folder = h.feature_folder(tmp_path / "features")
    rewrite_manifest(folder, lambda plain: plain["shards"].extend(plain["shards"] * 999))
    refused(data, folder, FeatureFileError, "names a shard twice")


def rewrite_manifest(folder, change):
    from isrlearn._json import read_json
    from isrlearn._seal import write_sealed

    plain = read_json(folder / "manifest.json")
    change(plain)
    kept = {key: value for key, value in plain.items() if key not in ("seal", "sealed")}
    write_sealed(folder / "manifest.json", kept)


# --- labels


def test_one_long_label_does_not_widen_all_others(tmp_path):
    """20 000 labels in an array of strings as wide as the longest would be ten gigabytes."""
    rows = [f"{i},{'ns'[i % 3 == 0]},{'ab'[i % 2]}" for i in range(20000)]
    rows[5] = "1,n," + "x" * 130_000
    path = tmp_path / "rows.csv"
    path.write_text("size,site,kind\n" + "\n".join(rows))
    refused(data, path, DataError, "130000 characters")


def test_one_long_label_of_a_parquet_file_does_not_widen_all_others(tmp_path):
    import pyarrow as pa

    kinds = ["a", "b"] * 10**4
    kinds[5] = "x" * 10**6
    table = pa.table({"size": np.arange(2e4), "site": ["n", "s", "s", "n"] * 5000, "kind": kinds})
    path = tmp_path / "rows.parquet"
    path.write_bytes(h.parquet(table))
    for read in (data, chunks):
        refused(read, path, DataError, "1000000 characters")


# --- networks


def network_of(folder, weights, **changes):
    """Write a network that is whole, and of which the card says what it wants."""
    torch = pytest.importorskip("torch")
    from isrlearn._seal import write_sealed
    from isrlearn.networks._checkpoints import save_tensors

    card = {"protocol": 2, "backbone": "networks.tiny:backbone", "environments": ["p", "q"]}
    card |= {"classes": ["a", "b"], "inputs": {}}
    folder.mkdir()
    write_sealed(folder / "network.json", card | changes)
    save_tensors(folder / "model.safetensors", {"w": torch.zeros(weights)}, {})
    return folder


NETWORKS = {
    "a class often": ({"classes": ["a"] * 30_000}, "class 'a' is named more than once"),
    "many classes": (
        {"classes": [str(i) for i in range(10**5)]},
        "100000 classes: a network may have 32768 at most",
    ),
    "other classes": (
        {"classes": [str(i) for i in range(30_000)]},
        "has 30000 classes: no layer has as many outputs",
    ),
    "large images": (
        {"backbone": "resnet50", "inputs": {"size": 10**6}},
        "size=1000000: give a whole number from 1 to 4096",
    ),
    "wide margin": (
        {"backbone": "resnet50", "inputs": {"margin": 1e9}},
        r"margin=1000000000.0: give a number from 0.1 to 4.0",
    ),
    "long texts": (
        {"backbone": "bert", "inputs": {"max_length": 10**9}},
        "max_length=1000000000: give a whole number from 1 to 65536",
    ),
}


@pytest.mark.parametrize("case", NETWORKS)
def test_a_network_is_not_built_as_large_as_its_card_says(tmp_path, monkeypatch, case):
    pytest.importorskip("torch")
    from isrlearn.exceptions import TrainingError
    from isrlearn.networks import _saved

    monkeypatch.setattr(_saved, "load_backbone", lambda *_, **__: pytest.fail("it was built"))
    changes, reason = NETWORKS[case]
    folder = network_of(tmp_path / "net", (2, 24), **changes)

    def read(folder):
        return _saved.load_network(folder, trusted=["networks.tiny:backbone"])

    refused(read, folder, TrainingError, reason)


# --- pictures


def picture_of(folder, content):
    (folder / "metadata.csv").write_text("img_filename,y,place,split\ngull.jpg,1,0,0\n")
    (folder / "gull.jpg").write_bytes(content)
    return read_waterbirds(folder)


def test_a_picture_that_another_program_would_draw_is_refused(tmp_path, monkeypatch):
    plugin = pytest.importorskip("PIL.EpsImagePlugin")
    monkeypatch.setattr(plugin, "Ghostscript", lambda *_: pytest.fail("Ghostscript was called"))
    script = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n%%EOF\n"
    birds = picture_of(tmp_path, script)
    with pytest.raises(DataError, match="not a whole image"):
        birds.image(0)


def test_a_picture_of_too_many_pixels_is_refused(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    import io

    file = io.BytesIO()
    Image.new("1", (10_000, 10_000)).save(file, "PNG")
    birds = picture_of(tmp_path, file.getvalue())
    refused(lambda _: birds.image(0), tmp_path / "gull.jpg", DataError, "pixels")


def test_a_picture_that_is_a_pipe_is_not_read(tmp_path):
    pytest.importorskip("PIL")
    birds = picture_of(tmp_path, b"")
    (tmp_path / "gull.jpg").unlink()
    os.mkfifo(tmp_path / "gull.jpg")
    with pytest.raises(DataError, match="no regular file"):
        birds.image(0)
