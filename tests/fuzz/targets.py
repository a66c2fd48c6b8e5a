"""Every entry that takes a file, or arrays, that are not ours: one function of bytes each.

The documented exceptions of an entry are those of its line in `ENTRIES`, and no others.
"""

import hashlib
import io
import json
import sqlite3
import zipfile

from fuzz import fitting, seeds
from fuzz.guard import Entry
from fuzz.mutation import as_json, mutated, mutated_tree, safetensors_bytes
from isrlearn.exceptions import (
    DataError,
    FeatureFileError,
    ModelFileError,
    StoreError,
    TrainingError,
)

TABLE = {"label": "kind", "environment": "site"}
STATEMENTS = (
    "CREATE TRIGGER t AFTER INSERT ON results BEGIN DELETE FROM results; END",
    "CREATE VIEW v AS SELECT * FROM results",
    "ALTER TABLE results RENAME TO old",
    "ALTER TABLE results ADD COLUMN more TEXT",
    "ALTER TABLE results DROP COLUMN seconds",
    "DROP TABLE results",
    "CREATE TABLE other (x)",
    "CREATE VIEW results AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c) "
    "SELECT n AS job, n AS example FROM c",
    "UPDATE results SET seed = x'00ff', error_test = 'much'",
    "UPDATE results SET example = NULL, n_environments = 1e300",
    "UPDATE results SET hyperparameters = zeroblob(3000000)",
    "UPDATE results SET method = CAST(x'ff' AS TEXT)",
    "DELETE FROM results",
    "CREATE INDEX i ON results (abs(error_test))",
    "PRAGMA user_version = 99",
    "PRAGMA application_id = 0",
    "PRAGMA journal_mode = WAL",
    "PRAGMA encoding = 'UTF-16'",
    "CREATE VIRTUAL TABLE f USING fts5(x)",
)


# --- archives of arrays


def npz_bytes(source):
    kind = source.below(4)
    if kind == 0:
        return source.rest()
    if kind == 1:
        return mutated(seeds.npz(), source)
    known = seeds.npy_members()
    names = list(known)
    file = io.BytesIO()
    method = source.one_of((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(file, "w", method) as archive:
        for name in source.one_of((("features", "labels", "environments"), ("features",), names)):
            data = known[source.one_of([name, *(n for n in names if n.startswith(name))])]
            if source.below(3) == 2:
                data = mutated(data, source, known[source.one_of(names)], most=3)
            ending = source.one_of((".npy", ".npy", ".npy", "", ".pkl"))
            archive.writestr(source.one_of(("", "", "", "", "../", "/")) + name + ending, data)
    return mutated(file.getvalue(), source, most=1) if kind == 3 else file.getvalue()


def safetensors_file(source):
    header, body = seeds.safetensors()
    kind = source.below(4)
    if kind == 0:
        return source.rest()
    if kind == 1:
        return mutated(safetensors_bytes(as_json(header), body, source), source)
    changed = as_json(mutated_tree(header, source))
    if kind == 3:
        changed = mutated(changed, source, most=2)
    return safetensors_bytes(changed, mutated(body, source, most=2), source)


def read(suffix, make, **names):
    from isrlearn.io import read_data

    def run(source, folder):
        path = folder / f"rows{suffix}"
        path.write_bytes(make(source))
        data = read_data(path, **names)
        data.check_for_fit()
        return data

    return run


def read_in_chunks(suffix, make, **names):
    from isrlearn.io import open_rows

    def run(source, folder):
        path = folder / f"rows{suffix}"
        path.write_bytes(make(source))
        consume(open_rows(path, **names))

    return run


def consume(rows):
    return rows.total(len_of)


def len_of(rows):
    return len(rows.X)


# --- tables


def csv_bytes(source):
    if source.below(4) == 0:
        return source.rest()
    text = seeds.CSV.replace(b",", source.one_of((b",", b",", b";", b"\t")))
    return mutated(text, source, seeds.CSV)


def parquet_bytes(source):
    kind = source.below(8)
    if kind == 0:
        return source.rest()
    data = source.one_of(seeds.parquets())
    if kind < 4:  # the metadata stand at the end
        length = int.from_bytes(data[-8:-4], "little")
        head, tail = data[: -8 - length], data[-8 - length : -8]
        changed = mutated(tail, source, most=3)
        return head + changed + len(changed).to_bytes(4, "little") + b"PAR1"
    return mutated(data, source, most=4)


# --- folders


def write(folder, files):
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def features_in(source, folder):
    files = dict(seeds.feature_folder())
    manifest = json.loads(files["manifest.json"])
    for place, name in enumerate(n for n in sorted(files) if n.endswith(".safetensors")):
        if source.below(3) == 2:
            header, body = seeds.split_safetensors(files[name])
            changed = as_json(mutated_tree(header, source))
            files[name] = safetensors_bytes(changed, mutated(body, source, most=1), source)
        digest = hashlib.sha256(files[name]).hexdigest()
        if source.below(8):
            manifest = _with_digest(manifest, place, digest)
    kind = source.below(4)
    if kind == 1:
        manifest = mutated_tree(manifest, source)
    files["manifest.json"] = as_json(manifest)
    if kind == 2:
        files["manifest.json"] = mutated(files["manifest.json"], source)
    if kind == 3 and source.below(4) == 3:
        files["manifest.json"] = source.rest()
    write(folder, files)


def _with_digest(manifest, place, digest):
    """Put a hash in place, wherever this protocol keeps it."""
    shard = manifest["shards"][place]
    return json.loads(json.dumps(manifest).replace(shard["sha256"], digest))


def read_feature_folder(source, folder):
    from isrlearn.io import FeatureFile

    features_in(source, folder)
    FeatureFile.open(folder).read()


def read_feature_data(source, folder):
    from isrlearn.io import read_data

    features_in(source, folder)
    read_data(folder).check_for_fit()


def read_feature_chunks(source, folder):
    from isrlearn.io import open_rows

    features_in(source, folder)
    consume(open_rows(folder))


def layout(read_it, files):
    def run(source, folder):
        changed = {
            name: mutated(data, source) if source.below(2) else data for name, data in files.items()
        }
        if source.below(4) == 3:
            changed["split.npz"] = npz_bytes(source)
        write(folder, changed)
        read_it(folder)

    return run


def waterbirds(folder):
    from isrlearn.datasets import read_waterbirds

    return read_waterbirds(folder)


def celeba(folder):
    from isrlearn.datasets import read_celeba

    return read_celeba(folder)


def multinli(folder):
    from isrlearn.datasets import read_multinli

    return read_multinli(folder)


def own_table(folder):
    from isrlearn.datasets import read_table

    return read_table(folder / "rows.csv")


def any_layout(source, folder):
    layouts = ((celeba, seeds.CELEBA), (celeba, seeds.CELEBA_TEXT), (waterbirds, seeds.WATERBIRDS))
    layouts += ((own_table, seeds.TABLE),)
    return layout(*source.one_of(layouts))(source, folder)


def multinli_layout(source, folder):
    files = dict(seeds.MULTINLI)
    if source.below(2):  # then the split is looked for in an archive
        del files["metadata_random.csv"]
    return layout(multinli, files)(source, folder)


def waterbirds_tar(source, folder):
    import tarfile

    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, data in seeds.WATERBIRDS.items():
            member = tarfile.TarInfo(f"waterbird/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    (folder / "birds.tar").write_bytes(mutated(file.getvalue()[:5120], source))
    waterbirds(folder / "birds.tar")


def frozen(source, folder):
    from isrlearn.reproduce.frozen import read_frozen

    (folder / "rows.npz").write_bytes(npz_bytes(source))
    read_frozen(folder / "rows.npz")


# --- what the commands wrote


def model_file(source, folder):
    from isrlearn.io import LinearModel

    header, card, body = seeds.model()
    path = folder / "model.safetensors"
    kind = source.below(4)
    if kind == 0:
        path.write_bytes(source.rest())
    else:
        text = as_json(mutated_tree(card, source)).decode("utf-8", "surrogatepass")
        if kind == 3:
            text = mutated(text.encode(errors="replace"), source, most=2).decode(errors="replace")
            header = mutated_tree(header, source)
        whole = {"__metadata__": {"isrlearn": text}, **header} if isinstance(header, dict) else {}
        body = mutated(body, source, most=1)
        path.write_bytes(mutated(safetensors_bytes(as_json(whole), body, source), source, most=1))
    model = LinearModel.load(path)
    model.predict(seeds.FEATURES[:, :1] * [[1.0] * len(model.fill)])


def store_file(source, folder):
    from isrlearn.benchmark import Store

    path = folder / "store.sqlite"
    kind = source.below(4)
    if kind == 0:
        path.write_bytes(source.rest())
    else:
        path.write_bytes(seeds.store())
    if kind >= 2:
        with sqlite3.connect(path) as connection:
            for _ in range(1 + source.below(3)):
                try:
                    connection.execute(source.one_of(STATEMENTS))
                except sqlite3.Error:
                    break
        connection.close()
    if kind in (1, 3):
        path.write_bytes(mutated(path.read_bytes(), source, most=3))
    from isrlearn.benchmark.summary import frame_of, mean_errors

    store = Store(path).check()
    store.records()
    store.finished()
    if source.below(8) == 0:
        mean_errors(frame_of(store))


def report_file(source, folder):
    from isrlearn.reporting import Report

    (folder / "result.json").write_bytes(json_bytes(seeds.report(), source))
    report = Report.load(folder)
    return report.html if source.below(4) == 0 else report


def json_bytes(tree, source):
    kind = source.below(4)
    if kind == 0:
        return source.rest()
    if kind == 1:
        return mutated(as_json(tree), source)
    changed = as_json(mutated_tree(tree, source))
    return mutated(changed, source, most=1) if kind == 3 else changed


def schema(source, folder):
    from isrlearn.io import Schema

    _, card, _ = seeds.model()
    found = Schema.from_json(mutated_tree(card["schema"], source))
    assert Schema.from_json(found.to_json()) == found


def network_card(source, folder):
    from isrlearn.networks._saved import read_card

    (folder / "network.json").write_bytes(json_bytes(seeds.CARD, source))
    card = read_card(folder)
    card.save(folder, replacing=True)
    assert read_card(folder) == card


def training_summary(source, folder):
    from isrlearn.networks._records import training_of
    from isrlearn.networks._settings import TrainingSettings
    from isrlearn.networks._training import _differences, _read_summary

    (folder / "training.json").write_bytes(json_bytes(seeds.SUMMARY, source))
    notes = _read_summary(folder / "training.json")
    _differences(notes["run"], seeds.SUMMARY["run"])
    training_of(TrainingSettings(), notes["epochs"])


def checkpoint(source, folder):
    from isrlearn.networks._checkpoints import load_tensors

    header, body = seeds.checkpoint()
    path = folder / "checkpoint.safetensors"
    if source.below(4) == 0:
        path.write_bytes(source.rest())
    else:
        notes = json_bytes(json.loads(header["__metadata__"]["isrlearn"]), source)
        text = notes.decode("utf-8", "replace")
        changed = mutated_tree({**header, "__metadata__": {"isrlearn": text}}, source)
        body = mutated(body, source, most=1)
        path.write_bytes(safetensors_bytes(as_json(changed), body, source))
    load_tensors(path)


def plan(source, folder):
    from isrlearn.reproduce.plans import read_plan

    raw = source.below(4) == 0
    (folder / "own.toml").write_bytes(source.rest() if raw else mutated(seeds.PLAN, source))
    read_plan(folder / "own.toml").digest()


def kept_result(source, folder):
    from isrlearn.reproduce.results import kept

    (folder / "r.json").write_bytes(json_bytes({"identity": {"seed": 1}, "outcomes": []}, source))
    assert kept(folder / "r.json", {"seed": 1}, dict)["identity"] == {"seed": 1}


def resumed_file(source, folder):
    from isrlearn._resume import _load

    kind = source.below(3)
    path = folder / "sum.npz"
    if kind == 0:
        path.write_bytes(npz_bytes(source))
    elif kind == 1:
        path.write_bytes(mutated(seeds.resumed(), source))
    else:
        path.write_bytes(_with_check(source))
    _load(path)


def _with_check(source):
    """Arrays of a sum, some changed, with the right check over them."""
    import numpy as np

    from isrlearn._resume import _check

    with np.load(io.BytesIO(seeds.resumed())) as found:
        arrays = fitting.changed_arrays(dict(found), source)
    arrays.pop("check", None)
    arrays = {name: value for name, value in arrays.items() if value.dtype != object}
    file = io.BytesIO()
    np.savez(file, check=np.array(_check(arrays)), **arrays)
    return file.getvalue()


OWN_FORMATS = (
    Entry("FeatureFile", read_feature_folder, (FeatureFileError,)),
    Entry("LinearModel", model_file, (ModelFileError,)),
)
"""Not among `ENTRIES` while these formats change."""

ARRAYS = (DataError,)
FOLDERS = (DataError, FeatureFileError)
ENTRIES = {
    entry.name: entry
    for entry in (
        Entry("read npz", read(".npz", npz_bytes), ARRAYS),
        Entry("read safetensors", read(".safetensors", safetensors_file), ARRAYS),
        Entry("read csv", read(".csv", csv_bytes, **TABLE), ARRAYS),
        Entry("read tsv", read(".tsv", csv_bytes, **TABLE), ARRAYS),
        Entry("read parquet", read(".parquet", parquet_bytes, **TABLE), ARRAYS),
        Entry("read feature folder", read_feature_data, FOLDERS),
        Entry("chunks of npz", read_in_chunks(".npz", npz_bytes), ARRAYS),
        Entry("chunks of safetensors", read_in_chunks(".safetensors", safetensors_file), ARRAYS),
        Entry("chunks of parquet", read_in_chunks(".parquet", parquet_bytes, **TABLE), ARRAYS),
        Entry("chunks of feature folder", read_feature_chunks, FOLDERS),
        Entry("Store", store_file, (StoreError,)),
        Entry("Report", report_file, (ValueError,)),
        Entry("Schema", schema, (DataError,)),
        Entry("network card", network_card, (TrainingError,)),
        Entry("training summary", training_summary, (TrainingError,)),
        Entry("checkpoint", checkpoint, (TrainingError,)),
        Entry("training plan", plan, (ValueError, TypeError)),
        Entry("kept result", kept_result, ()),
        Entry("Resumed", resumed_file, ()),
        Entry("Subspace.from_arrays", fitting.subspace_arrays, (ValueError, TypeError)),
        Entry("CellMoments.from_arrays", fitting.moment_arrays, (ValueError, TypeError)),
        Entry("layouts", any_layout, ARRAYS),
        Entry("MultiNLI", multinli_layout, ARRAYS),
        Entry("Waterbirds tar", waterbirds_tar, ARRAYS),
        Entry("frozen features", frozen, (FeatureFileError,)),
        *(Entry(f"fit {n}", run, (ValueError, TypeError)) for n, run in fitting.FITS.items()),
    )
}
