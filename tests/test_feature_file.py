"""Feature files: written chunk by chunk, whole or shorter, never wrong."""

import json

import numpy as np
import pytest

pytest.importorskip("safetensors")

from isrlearn.exceptions import FeatureFileError  # noqa: E402
from isrlearn.io import FeatureFile, Features, FeatureWriter  # noqa: E402


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


def test_rows_of_the_manifest_are_those_of_the_shard(random, tmp_path):
    with FeatureWriter(tmp_path, {}) as writer:
        writer.add(draw(random, 3))
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest["shards"][0]["rows"] = 1000
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(FeatureFileError, match="not the 1000 rows"):
        FeatureFile.open(tmp_path).read()


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
