"""Feature files: written chunk by chunk, whole or shorter, never wrong."""

import json
from dataclasses import replace
from operator import attrgetter

import numpy as np
import pytest

pytest.importorskip("safetensors")

from isrlearn._seal import UNSEALED, seal  # noqa: E402
from isrlearn.exceptions import FeatureFileError  # noqa: E402
from isrlearn.io import FeatureFile, Features, FeatureWriter, _features  # noqa: E402


def draw(random, n_rows, split=True):
    codes = [random.integers(-1, 3, n_rows) for _ in range(3)]
    features = random.normal(size=(n_rows, 5)).astype(np.float32)
    return Features(features, abs(codes[0]), codes[1], abs(codes[2]) if split else None)


def part(rows, places):
    return Features(**{name: array[places] for name, array in rows.arrays().items()})


def assert_same(one, other):
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(array, other.arrays()[name])
        assert array.dtype == other.arrays()[name].dtype


@pytest.mark.parametrize("split", [True, False])
def test_what_is_written_is_read(random, tmp_path, split):
    rows = draw(random, 100, split)
    with FeatureWriter(tmp_path, {"m": 1}, rows_per_shard=30) as writer:
        for i in range(0, 100, 7):
            writer.add(part(rows, slice(i, i + 7)))
    found = FeatureFile.open(tmp_path)
    assert_same(found.read(), rows)
    assert len(found) == 100
    assert len(found.shards) > 2


def test_stopped_at_any_chunk_it_goes_on(random, tmp_path):
    rows = draw(random, 100)
    for stop in sorted(random.integers(0, 15, 4).tolist()) + [99]:
        try:
            with FeatureWriter(tmp_path, {}, rows_per_shard=20) as writer:
                begin = writer.n_written
                for count, i in enumerate(range(begin, 100, 7)):
                    if count == stop:
                        raise RuntimeError
                    writer.add(part(rows, slice(i, i + 7)))
        except RuntimeError:
            if writer.n_written:
                with pytest.raises(FeatureFileError, match="not finished"):
                    FeatureFile.open(tmp_path).read()
    assert_same(FeatureFile.open(tmp_path).read(), rows)


def test_ctrl_c_keeps_the_rows_that_are_done(random, tmp_path):
    with pytest.raises(KeyboardInterrupt), FeatureWriter(tmp_path, {}) as writer:
        writer.add(draw(random, 9))
        raise KeyboardInterrupt
    assert FeatureWriter(tmp_path, {}).n_written == 9


@pytest.mark.parametrize("after", ["write_manifest", "FeatureWriter._save"])
def test_ctrl_c_beside_the_manifest_writes_no_row_twice(after, random, tmp_path, monkeypatch):
    """Rows that the manifest lists already are not among those that are still to be written."""
    rows = draw(random, 30)
    real = attrgetter(after)(_features)

    def interrupted(*values):
        real(*values)
        monkeypatch.undo()
        raise KeyboardInterrupt

    def write():
        with FeatureWriter(tmp_path, {}, rows_per_shard=10) as writer:
            for i in range(writer.n_written, 30, 10):
                writer.add(part(rows, slice(i, i + 10)))

    monkeypatch.setattr(f"isrlearn.io._features.{after}", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write()
    write()
    assert_same(FeatureFile.open(tmp_path).read(), rows)


def test_features_of_something_else_are_refused(random, tmp_path):
    with FeatureWriter(tmp_path, {"weights": "a", "data": "x"}) as writer:
        writer.add(draw(random, 3))
    with pytest.raises(FeatureFileError, match=r"something else \(weights differ\)"):
        FeatureWriter(tmp_path, {"weights": "b", "data": "x"})


def test_a_finished_file_takes_no_more_rows(random, tmp_path):
    with FeatureWriter(tmp_path, {}) as writer:
        writer.add(draw(random, 3))
    with pytest.raises(FeatureFileError, match="is finished"):
        FeatureWriter(tmp_path, {}).add(draw(random, 3))


def rewrite(folder, **change):
    """Change a manifest as somebody would who can seal it again."""
    path = folder / "manifest.json"
    plain = json.loads(path.read_text()) | change | {"seal": UNSEALED}
    path.write_text(json.dumps(plain))
    seal(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": 1000}, "1000 rows of .* bytes do not fit"),
        ({"rows": 2}, "not the 2 rows"),
        ({"rows": -1}, "has -1 rows"),
        ({"rows": True}, "has True rows"),
        ({"rows": 10**12, "bytes": 10**18}, "and the manifest says 1000000000000000000"),
        ({"name": "../x"}, "outside the folder"),
        ({"name": "/x"}, "outside the folder"),
    ],
)
def test_a_manifest_that_lies_is_refused(random, tmp_path, change, message):
    with FeatureWriter(tmp_path, {}) as writer:
        writer.add(draw(random, 3))
    (shard,) = json.loads((tmp_path / "manifest.json").read_text())["shards"]
    rewrite(tmp_path, shards=[shard | change])
    with pytest.raises(FeatureFileError, match=message):
        FeatureFile.open(tmp_path).read()


def test_kinds_of_the_manifest_are_those_of_the_shards(random, tmp_path):
    with FeatureWriter(tmp_path, {}) as writer:
        writer.add(draw(random, 3))
    kinds = json.loads((tmp_path / "manifest.json").read_text())["kinds"]
    assert kinds["labels"] == {"dtype": "int64", "shape": []}
    rewrite(tmp_path, kinds=kinds | {"labels": {"dtype": "int32", "shape": []}})
    with pytest.raises(FeatureFileError, match="labels int64 .* the manifest says"):
        FeatureFile.open(tmp_path).read()


def test_any_byte_of_the_manifest_counts(random, tmp_path):
    with FeatureWriter(tmp_path, {"network": "n"}, classes=("cat", "dog")) as writer:
        writer.add(draw(random, 3))
    path = tmp_path / "manifest.json"
    data = path.read_bytes()
    assert FeatureFile.open(tmp_path).manifest.classes == ("cat", "dog")
    for place in random.integers(len(data), size=50):
        changed = bytearray(data)
        changed[place] ^= int(random.integers(1, 256))
        path.write_bytes(changed)
        with pytest.raises(FeatureFileError, match=r"damaged|cannot be used"):
            FeatureFile.open(tmp_path)


def test_a_file_has_one_kind_of_rows(random, tmp_path):
    rows = draw(random, 4)
    with FeatureWriter(tmp_path, {}) as writer:
        writer.add(rows)
        for other in (
            replace(rows, features=rows.features.astype(np.float16)),
            replace(rows, features=rows.features[:, :2]),
            replace(rows, split=None),
        ):
            with pytest.raises(FeatureFileError, match="one kind of rows"):
                writer.add(other)
        for other in (
            replace(rows, labels=rows.labels[:2]),
            replace(rows, labels=rows.labels + 0.5),
            replace(rows, features=rows.features[:, 0]),
        ):
            with pytest.raises(FeatureFileError, match="cannot be added"):
                writer.add(other)
    assert_same(FeatureFile.open(tmp_path).read(), rows)


def test_one_writer_at_a_time(random, tmp_path):
    rows = draw(random, 5)
    with FeatureWriter(tmp_path, {}) as writer:
        with pytest.raises(FeatureFileError, match="another process"), FeatureWriter(tmp_path, {}):
            pass
        writer.add(rows)
    with FeatureWriter(tmp_path, {}) as late:
        assert late.whole and late.n_written == 5
    with pytest.raises(FeatureFileError, match="inside 'with"):
        FeatureWriter(tmp_path / "other", {}).add(rows)


def test_damage_is_named(random, tmp_path):
    with pytest.raises(FeatureFileError, match="not a feature file"):
        FeatureFile.open(tmp_path)
    with FeatureWriter(tmp_path, {}) as writer:
        writer.add(draw(random, 50))
    shard = next(tmp_path.glob("*.safetensors"))
    data = bytearray(shard.read_bytes())
    data[random.integers(len(data))] ^= 0xFF
    shard.write_bytes(data)
    with pytest.raises(FeatureFileError, match="is damaged: its hash"):
        FeatureFile.open(tmp_path).read()
    shard.unlink()
    with pytest.raises(FeatureFileError, match="cannot be read"):
        FeatureFile.open(tmp_path).read()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"protocol": 99}, "protocol 99"),
        ({"shards": [{"name": "../x", "rows": 1, "sha256": ""}]}, "outside the folder"),
        ({"shards": [{"name": "x"}]}, "damaged"),
    ],
)
def test_a_manifest_is_not_trusted(tmp_path, change, message):
    manifest = {"protocol": 1, "made_of": {}, "shards": [], "whole": True} | change
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(FeatureFileError, match=message):
        FeatureFile.open(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(FeatureFileError, match="damaged"):
        FeatureFile.open(tmp_path)


def test_splits_and_unknown_environments(random):
    rows = draw(random, 60)
    assert len(rows.take(1)) == np.sum(rows.split == 1)
    known = rows.known_environments()
    assert all((k is None) == (e < 0) for k, e in zip(known, rows.environments, strict=True))
    with pytest.raises(ValueError, match="no split"):
        draw(random, 3, split=False).take(0)
