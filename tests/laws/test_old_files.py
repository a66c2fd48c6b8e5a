"""Files of earlier protocols are read with the right values; those of later ones are refused."""

import json
import shutil
import sqlite3
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import isrlearn
from isrlearn import CellMoments, Report, Subspace
from isrlearn._seal import UNSEALED, seal
from isrlearn.benchmark import Store, grid, run
from isrlearn.exceptions import FeatureFileError, ModelFileError, StoreError, TrainingError

pytest.importorskip("safetensors")

from safetensors import safe_open  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

from isrlearn.io import FeatureFile, Features, FeatureWriter, LinearModel  # noqa: E402

OLD = Path(__file__).parent / "old_files"
MADE_OF = {"layer": "6", "network": "tiny"}


def whole_rows():
    place = np.arange(9)
    values = (np.arange(18, dtype=np.float32) / 4).reshape(9, 2)
    return Features(values, place % 2, place % 3 - 1, place % 3)


def assert_same(found, expected):
    for name, array in expected.arrays().items():
        if name != "environments":
            np.testing.assert_array_equal(found.arrays()[name], array)
    assert found.features.dtype == np.float32


def copied(name, tmp_path):
    source, target = OLD / name, tmp_path / name
    shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    return target


# --- what was written before is read


@pytest.mark.parametrize("protocol", [1, 2])
def test_features(protocol):
    file = FeatureFile.open(OLD / f"features-{protocol}")
    assert file.whole and [len(chunk) for chunk in file.chunks()] == [6, 3]
    assert file.made_of == MADE_OF
    assert_same(file.read(), whole_rows())
    if protocol == 1:
        assert file.read().environments[6:].tolist() == [0, 1, -1]
    else:
        assert file.read().environments.tolist() == [-1, 0, 1] * 3
        assert file.manifest.classes == ("cat", "dog")
        assert file.manifest.environments == ("day", "night")


def test_features_that_an_earlier_version_began_are_gone_on_with(tmp_path):
    folder = copied("features-1", tmp_path)
    path = folder / "manifest.json"
    plain = json.loads(path.read_text())
    path.write_text(json.dumps({**plain, "whole": False, "shards": plain["shards"][:1]}))
    rows = whole_rows()
    last = FeatureFile.open(OLD / "features-1").read()
    with FeatureWriter(folder, MADE_OF, classes=("cat", "dog")) as writer:
        assert writer.n_written == 6 and not writer.whole
        writer.add(Features(**{name: array[6:] for name, array in last.arrays().items()}))
    file = FeatureFile.open(folder)
    assert json.loads(path.read_text())["protocol"] == 2
    assert_same(file.read(), rows)
    np.testing.assert_array_equal(file.read().environments, last.environments)
    assert file.manifest.classes == ("cat", "dog")
    assert [shard.bytes for shard in file.shards] == [
        (folder / shard.name).stat().st_size for shard in file.shards
    ]


def test_rows_of_another_kind_are_not_added_to_what_an_earlier_version_began(tmp_path):
    folder = copied("features-1", tmp_path)
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "whole": False}))
    rows = Features(np.eye(2), np.arange(2), np.arange(2), np.arange(2))
    writer = FeatureWriter(folder, MADE_OF)
    with writer, pytest.raises(FeatureFileError, match="one kind of rows"):
        writer.add(rows)


@pytest.mark.parametrize("protocol", [1, 2])
def test_models(protocol):
    model = isrlearn.load(OLD / f"model-{protocol}.safetensors")
    assert isinstance(model, LinearModel)
    np.testing.assert_array_equal(model.weight, [[1.5, -2.0, 0.25]])
    np.testing.assert_array_equal(model.bias, [0.125])
    np.testing.assert_array_equal(model.fill, [40, 0, 0])
    assert model.classes.tolist() == ["gull", "tern"]
    assert model.made == {"n_spurious": 1, "setting": "ISRMean(1)"}
    assert model.schema.feature_names == ("age", "colour=blue", "colour=red")
    assert (model.schema.label, model.schema.environment) == ("kind", ("site",))
    # 1.5 * 40 + 0.25 + 0.125, for a row whose age is not known
    assert model.decision_function(np.array([[np.nan, 0.0, 1.0]])).tolist() == [60.375]


def test_subspaces():
    with np.load(OLD / "subspace-1.npz") as arrays:
        found = [Subspace.from_arrays(arrays), isrlearn.load(OLD / "subspace-2.safetensors")]
    for subspace in found:
        np.testing.assert_array_equal(subspace.directions, [[0.6, 0.8, 0.0]])
        np.testing.assert_array_equal(subspace.functionals, [[0.6, 0.8, 0.0]])
        np.testing.assert_array_equal(subspace.centre, [1, 2, 3])
        np.testing.assert_array_equal(subspace.spectrum, np.zeros(3))
        assert subspace.scale == 0


def test_moments():
    with np.load(OLD / "moments-1.npz") as arrays:
        moments = CellMoments.from_arrays(dict(arrays))
    assert moments.environments.tolist() == ["field", "lab"]
    assert moments.counts.tolist() == [1, 2]
    np.testing.assert_array_equal(moments.means, [[5, 0], [1, 1]])
    np.testing.assert_array_equal(moments.scatters[1], [[2, 0], [0, 0]])


def test_an_estimator():
    pytest.importorskip("skops", exc_type=ImportError)
    from old_files.make import rows

    X, y, e = rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # another scikit-learn may have written it
        found = isrlearn.load(OLD / "estimator-1.skops")
    assert type(found) is isrlearn.ISRMean and found.n_spurious == 1
    again = isrlearn.ISRMean(1).fit(X, np.array(["gull", "tern"])[y], environments=e)
    np.testing.assert_allclose(found.transform(X), again.transform(X), atol=1e-12)
    assert found.classes_.tolist() == ["gull", "tern"]
    assert found.diagnose().n_spurious == 1


@pytest.mark.parametrize("name", ["store-3.sqlite", "store-3-sealed.sqlite"])
def test_stores_are_read_and_grow(name, tmp_path):
    store = Store(copied(name, tmp_path))
    rows = store.check().records()
    assert [row["method"] for row in rows] == ["isr-mean", "oracle"]
    assert [row["error_test"] for row in rows] == [0.4, 0.0]
    jobs = grid(["oracle", "isr-mean"], ["3"], [2], [0], rows=50)
    assert store.create().finished() == {job.key for job in jobs}
    more = grid(["oracle"], ["3"], [2], [1], rows=50)
    assert run(more, store) == 1
    assert store.check().records()[0] == rows[0]
    assert len(store.records()) == 3
    with sqlite3.connect(store.path) as connection:
        connection.execute("UPDATE results SET error_test = 0.9 WHERE seed = 1")
    connection.close()
    with pytest.raises(StoreError, match="not what was written"):
        store.check()


@pytest.mark.parametrize("protocol", [1, 2])
def test_networks(protocol):
    pytest.importorskip("torch")
    from isrlearn.networks._saved import read_card

    card = read_card(OLD / f"network-{protocol}")
    assert (card.classes, card.environments) == (("cat", "dog"), ("day", "night"))
    assert (card.backbone, card.inputs) == ("networks.tiny:backbone", {})


def test_results():
    page = Report.load(OLD / "result-1.json")
    assert [method.name for method in page.methods][:2] == ["ERM", "ISR"]
    assert [group.size for group in page.groups] == [7, 7, 8, 9]
    assert "<html" in page.html


def test_every_old_file_is_read_here():
    source = Path(__file__).read_text()
    names = [path.name for path in OLD.iterdir() if path.suffix not in (".py", ".md")]
    names = [name for name in names if not name.startswith("__")]
    for name in names:
        stem, _, rest = name.partition("-")
        assert name in source or f'{stem}-{{protocol}}{rest[1:]}"' in source, name


# --- what is written later is refused, and says what to do


def resealed(path, change):
    """Change a json file as a later version would write it."""
    plain = json.loads(path.read_text())
    path.write_text(json.dumps({**change(plain), "seal": UNSEALED}))
    seal(path)


def later(plain):
    return {**plain, "protocol": plain["protocol"] + 1, "more": "than is known"}


NEWER = "newer isrlearn"


def test_features_of_a_later_version_are_refused(tmp_path):
    folder = copied("features-2", tmp_path)
    resealed(folder / "manifest.json", later)
    with pytest.raises(FeatureFileError, match=f"protocol 3.*{NEWER}"):
        FeatureFile.open(folder)
    with pytest.raises(FeatureFileError, match=NEWER):
        FeatureWriter(folder, MADE_OF)


@pytest.mark.parametrize("name", ["model", "subspace"])
def test_models_of_a_later_version_are_refused(name, tmp_path):
    path = copied(f"{name}-2.safetensors", tmp_path)
    with safe_open(path, "np") as file:
        card = json.loads(file.metadata()["isrlearn"])
        arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    card |= {"protocol": 3, "seal": UNSEALED}
    save_file(arrays, path, metadata={"isrlearn": json.dumps(card)})
    seal(path)
    with pytest.raises(ModelFileError, match=f"protocol 3.*{NEWER}"):
        isrlearn.load(path)


def test_an_estimator_of_a_later_version_is_refused(tmp_path):
    pytest.importorskip("skops", exc_type=ImportError)
    path = copied("estimator-1.skops", tmp_path)
    with zipfile.ZipFile(path, "a") as file:
        file.comment = json.dumps({"isrlearn": 2, "seal": UNSEALED}).encode()
    seal(path)
    with pytest.raises(ModelFileError, match=f"protocol 2.*{NEWER}"):
        isrlearn.load(path)


def test_a_store_of_a_later_version_is_refused_and_left_alone(tmp_path):
    path = copied("store-3.sqlite", tmp_path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 4")
    connection.close()
    before = path.read_bytes()
    for use in (Store(path).check, Store(path).create):
        with pytest.raises(StoreError, match=f"protocol 4.*{NEWER}"):
            use()
    assert path.read_bytes() == before


def test_a_network_of_a_later_version_is_refused(tmp_path):
    pytest.importorskip("torch")
    from isrlearn.networks import load_network

    folder = copied("network-2", tmp_path)
    resealed(folder / "network.json", later)
    with pytest.raises(TrainingError, match=f"protocol 3.*{NEWER}"):
        load_network(folder)


def test_a_result_of_a_later_version_is_refused(tmp_path):
    path = copied("result-1.json", tmp_path)
    resealed(path, lambda plain: {**plain, "report": later(plain["report"])})
    with pytest.raises(ValueError, match=f"protocol 2.*{NEWER}"):
        Report.load(path)


def test_arrays_of_a_later_version_are_refused():
    for kind, name in ((Subspace, "subspace-1.npz"), (CellMoments, "moments-1.npz")):
        with np.load(OLD / name) as arrays:
            changed = {**arrays, "protocol": np.array(2)}
        with pytest.raises(ValueError, match=r"protocol 2.*install the version"):
            kind.from_arrays(changed)
