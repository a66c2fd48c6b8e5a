"""What the fuzz targets found once, each as small as it could be made."""

import re
import warnings

import numpy as np
import pytest

import isrlearn
from isrlearn import ISR, ISRClassifier, ISRMean, ISRRegressor
from isrlearn.exceptions import (
    DataError,
    FeatureFileError,
    ModelFileError,
    StoreError,
    TrainingError,
)
from isrlearn.io import FeatureFile, Schema, open_rows, read_data
from isrlearn.moments import CellMoments
from isrlearn.moments._evidence import covariance_evidence, given_classes
from isrlearn.subspace import Subspace


@pytest.fixture
def rows(random):
    X = random.normal(size=(40, 3))
    return X, np.arange(40) % 2, np.arange(40) // 20


def test_labels_of_more_than_64_bits_are_refused(rows):
    X, y, e = rows
    for labels in ([10**30 + int(label) for label in e], [2**63 * (-1) ** int(v) for v in e]):
        with pytest.raises(TypeError, match="environments has whole numbers of more than 64 bits"):
            ISRMean().fit(X, y, environments=labels)


@pytest.mark.parametrize("weight", [5e-324, 1e-200, 1e200, 1e308])
def test_weights_whose_products_are_no_numbers_are_refused(rows, weight):
    X, y, e = rows
    weights = np.where(np.arange(40) == 7, weight, 1.0)
    with pytest.raises(ValueError, match="sample_weight goes from .* within a factor"):
        ISRClassifier().fit(X, y, environments=e, sample_weight=weights)


def test_a_cell_that_lost_its_weight_says_nothing_of_covariances(rows):
    """Where one weight is far above all others, sums in float32 leave cells of weight zero."""
    cond = given_classes(CellMoments.from_rows(*rows))
    kept = np.array([1.0, 1.0, 1.0, 0.0])
    lost = cond._replace(grams=cond.grams * kept[:, None, None], freedom=cond.freedom * kept)
    assert np.isfinite(covariance_evidence(lost)).all()


def test_infinities_of_both_signs_are_refused_without_a_warning(rows):
    X, y, e = rows
    X[3, 1], X[4, 1] = np.inf, -np.inf
    for estimator in (ISRMean(), ISRClassifier()):
        with pytest.raises(ValueError, match="infinity in column"):
            estimator.fit(X, y, environments=e)
    weights = np.where(np.arange(40) < 2, [np.inf, -np.inf] * 20, 1.0)
    with pytest.raises(ValueError, match="sample_weight contains NaN or infinity"):
        ISRMean().fit(np.zeros((40, 2)), y, environments=e, sample_weight=weights)


def test_features_whose_squares_overflow_are_refused_by_the_head(rows):
    X, y, _ = rows
    X[0, 0] = 1e160
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", isrlearn.exceptions.SingleEnvironmentWarning)
        with pytest.raises(ValueError, match="squares of it overflow: scale"):
            ISRClassifier().fit(X, y)


SUBSPACE = Subspace.orthogonal(np.array([[1.0, 0.0]]), centre=np.zeros(2)).to_arrays()


@pytest.mark.parametrize("name", SUBSPACE)
def test_a_saved_subspace_that_lacks_an_array_is_refused(name):
    arrays = {key: value for key, value in SUBSPACE.items() if key != name}
    with pytest.raises(ValueError, match=f"lacks {name}"):
        Subspace.from_arrays(arrays)


@pytest.mark.parametrize(
    ("name", "value"),
    [("directions", [[1e200, 0.0]]), ("centre", [1j, 0]), ("spectrum", ["a", "b"]), ("scale", [0])],
)
def test_a_saved_subspace_of_other_values_is_refused(name, value):
    with pytest.raises(ValueError, match=name):
        Subspace.from_arrays(SUBSPACE | {name: np.array(value)})


def saved_moments():
    X = np.arange(8.0).reshape(4, 2)
    return CellMoments.from_rows(X, ["a", "b"] * 2, [0, 0, 1, 1]).to_arrays()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("protocol", 99),
        ("class_index", [0, 0, 1, 2]),
        ("class_index", [0.0, 0.0, 1.0, 1.0]),
        ("environment_index", [0, 1, 0]),
        ("environment_index", [1, 0, 0, 1]),
        ("counts", [-1, 1, 1, 1]),
        ("weights", [0.0, 1.0, 1.0, 1.0]),
        ("weights", [1e308] * 4),
        ("means", [[1.0, 2.0]] * 3),
        ("means", [[np.nan, 2.0]] * 4),
        ("scatters", np.zeros((4, 2, 3))),
        ("scatters", np.full((4, 2, 2), 1e308)),
        ("classes", ["b", "a"]),
        ("classes", "a"),
        ("largest", [1.0]),
        ("precision", -1.0),
    ],
)
def test_saved_moments_that_do_not_fit_together_are_refused(name, value):
    with pytest.raises(ValueError, match="protocol|cells|moments|shape|finite|whole|class"):
        CellMoments.from_arrays(saved_moments() | {name: np.array(value)})


def test_saved_moments_without_scatters_are_read():
    arrays = saved_moments()
    del arrays["scatters"]
    assert CellMoments.from_arrays(arrays).scatters is None


def test_a_schema_of_very_many_columns_is_read_at_once():
    """Each name was counted among all the others."""
    written = Schema.of_array(10**5, "labels", ("environments",)).to_json()
    assert len(Schema.from_json(written).columns) == 10**5


def test_an_array_without_the_ending_of_arrays_is_found(tmp_path):
    import zipfile

    np.savez(tmp_path / "a.npz", features=np.eye(4), labels=[0, 0, 1, 1], environments=[0, 1] * 2)
    with (
        zipfile.ZipFile(tmp_path / "a.npz") as old,
        zipfile.ZipFile(tmp_path / "b.npz", "w") as new,
    ):
        for name in old.namelist():
            new.writestr(name.removesuffix(".npy"), old.read(name))
    assert len(read_data(tmp_path / "b.npz")) == 4
    assert open_rows(tmp_path / "b.npz").n_rows == 4


@pytest.mark.parametrize("code", [0x110000, 2**32 - 1, 0xD800])
@pytest.mark.parametrize("order", "<>")
def test_numbers_of_no_character_are_refused(tmp_path, order, code):
    """NumPy makes strings of them that break Python: SystemError in casefold."""
    labels = np.array([97, 98, 97, code], dtype=f"{order}u4").view(f"{order}U1")
    arrays = {"features": np.eye(4), "environments": [0, 1, 0, 1]}
    np.savez(tmp_path / "rows.npz", labels=labels, **arrays)
    for read in (read_data, open_rows):
        with pytest.raises(DataError, match="labels holds what are no characters"):
            read(tmp_path / "rows.npz")


def test_a_long_text_in_every_row_is_looked_at_once(tmp_path):
    """By rows, these would be 10 GB of text to look through."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    n = 10**5
    long = pa.DictionaryArray.from_arrays(np.arange(n, dtype=np.int32) % 2, ["x" * n, "y" * n])
    columns = {"size": np.arange(n) % 7, "long": long, "site": np.arange(n) % 3}
    parquet.write_table(pa.table(columns | {"kind": np.arange(n) % 2}), tmp_path / "t.parquet")
    data = read_data(tmp_path / "t.parquet", label="kind", environment="site")
    assert data.features.shape == (n, 3)


@pytest.mark.parametrize("text", ['""', '""\n', '" "\n\n', "\ufeff\n"])
def test_quotation_marks_alone_are_no_table(tmp_path, text):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="is empty"):
        read_data(tmp_path / "t.csv", label="kind", environment="site")


SENTENCES = "gold_label\tsentence1\tsentence2\n"


def test_sentences_without_a_gold_label_are_refused(tmp_path):
    (tmp_path / "train.tsv").write_text(SENTENCES + "-\tIt rains.\tIt pours.\n")
    with pytest.raises(DataError, match="no pair of sentences with a gold label"):
        isrlearn.datasets.read_multinli(tmp_path)


def test_a_damaged_archive_of_a_split_is_named(tmp_path):
    (tmp_path / "train.tsv").write_text(SENTENCES + "neutral\tIt rains.\tIt pours.\n")
    (tmp_path / "split.npz").write_bytes(b"")
    with pytest.raises(DataError, match=re.escape(str(tmp_path / "split.npz"))):
        isrlearn.datasets.read_multinli(tmp_path)


def test_a_table_in_a_tar_file_must_be_text(tmp_path):
    import io
    import tarfile

    with tarfile.open(tmp_path / "birds.tar", "w") as archive:
        member = tarfile.TarInfo("birds/metadata.csv")
        member.size = 1
        archive.addfile(member, io.BytesIO(b"\xff"))
    with pytest.raises(DataError, match="metadata.csv is not UTF-8"):
        isrlearn.datasets.read_waterbirds(tmp_path / "birds.tar")


def test_a_store_with_names_that_are_no_text_is_refused(tmp_path):
    from isrlearn.benchmark import Store

    store = Store(tmp_path / "s.sqlite").create()
    data = store.path.read_bytes()
    assert data.count(b"hyperparameters") == 1
    store.path.write_bytes(data.replace(b"hyperparameters", b"hyperparam\xde\xff\xfe\xfd\xfc"))
    with pytest.raises(StoreError, match="cannot be used"):
        store.check()


# --- networks


@pytest.mark.parametrize(
    "card",
    [
        b"\xff",
        b'{"protocol": 1, "backbone": 5, "classes": ["a"], "environments": ["b"]}',
        b'{"protocol": 1, "backbone": "bert", "classes": "ab", "environments": ["b"]}',
        b'{"protocol": 1, "backbone": "bert", "classes": [1], "environments": ["b"]}',
        b'{"protocol": 1, "backbone": "bert", "classes": [], "environments": [], "inputs": []}',
    ],
)
def test_a_card_of_other_types_is_refused(tmp_path, card):
    pytest.importorskip("torch")
    from isrlearn.networks import load_network

    (tmp_path / "network.json").write_bytes(card)
    with pytest.raises(TrainingError, match="network.json is damaged"):
        load_network(tmp_path)


EPOCH = '{"epoch": 1, "loss": 1, "average": 1'


@pytest.mark.parametrize(
    "summary",
    [
        '{"run": {"settings": {}}, "epochs": []}',
        '{"run": {"settings": {}}, "epochs": [{"epoch": 1}]}',
        '{"run": {"settings": {}}, "epochs": 3}',
        '{"run": {"settings": 3}, "epochs": [' + EPOCH + ', "worst_group": 1}]}',
        '{"run": {"settings": {}}, "epochs": [' + EPOCH + ', "worst_group": "a"}]}',
        '{"run": [], "epochs": []}',
    ],
)
def test_a_summary_of_other_types_is_refused(tmp_path, summary):
    pytest.importorskip("torch")
    from isrlearn.networks._training import _read_summary

    (tmp_path / "training.json").write_text(summary)
    with pytest.raises(TrainingError, match="is damaged .*remove it"):
        _read_summary(tmp_path / "training.json")


@pytest.mark.parametrize("data", [b"", b"PK\5\6" + bytes(18)])
def test_an_archive_without_arrays_holds_no_frozen_features(tmp_path, data):
    pytest.importorskip("torch")
    from isrlearn.reproduce.frozen import read_frozen

    (tmp_path / "rows.npz").write_bytes(data)
    with pytest.raises(FeatureFileError, match="must hold the arrays"):
        read_frozen(tmp_path / "rows.npz")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("features", np.full((6, 2), 1e300)),
        ("features", np.full((6, 2), np.nan)),
        ("features", np.full((6, 2), "a")),
        ("features", np.zeros(6)),
        ("labels", np.array(3)),
        ("environments", np.zeros((6, 1))),
    ],
)
def test_frozen_features_must_be_finite_rows(tmp_path, name, value):
    pytest.importorskip("torch")
    from isrlearn.reproduce.frozen import read_frozen

    codes = np.arange(6)
    arrays = {"features": np.eye(6), "labels": codes % 2, "environments": codes % 2}
    np.savez(tmp_path / "rows.npz", **(arrays | {"split": codes // 2, name: value}))
    with pytest.raises(FeatureFileError, match="features must"):
        read_frozen(tmp_path / "rows.npz")


def test_a_result_that_is_nested_too_deep_is_made_anew(tmp_path):
    pytest.importorskip("torch")
    from isrlearn.reproduce.results import kept

    (tmp_path / "r.json").write_text("[" * 10**5)
    assert kept(tmp_path / "r.json", {"seed": 1}, lambda: {"a": 2})["a"] == 2


@pytest.mark.parametrize("read", [0, 30, 50])
def test_a_file_with_other_rows_than_it_claims_is_damaged(rows, tmp_path, read):
    """A damaged parquet file claimed six rows and gave none."""
    from dataclasses import replace

    from isrlearn.io._open import open_file
    from isrlearn.io._roles import asked_for

    X, y, e = rows
    np.savez(tmp_path / "rows.npz", features=X, labels=y, environments=e)
    file = open_file(tmp_path / "rows.npz", asked_for(None, (), None, ()))
    parts = [np.ones((10, 3))] * (read // 10)
    file = replace(file, reader=replace(file.reader, chunks=lambda first: iter(parts)))
    with pytest.raises(DataError, match=f"{read} rows of features were read, and .* has 40"):
        ISRMean(1).fit(file.rows())


@pytest.mark.parametrize(
    "change",
    [
        lambda plain: plain["shards"][0].update(bytes=float("inf")),
        lambda plain: plain["kinds"]["features"].update(shape=[float("inf")]),
        lambda plain: plain["kinds"]["features"].update(shape=[-2]),
        lambda plain: plain["kinds"]["features"].update(dtype="a"),
        lambda plain: plain["kinds"]["features"].update(dtype=["f8"]),
    ],
)
def test_a_manifest_with_no_size_or_type_is_damaged(tmp_path, change):
    pytest.importorskip("safetensors")
    from hostile_files import feature_folder

    from isrlearn._json import read_json
    from isrlearn._seal import write_sealed

    manifest = feature_folder(tmp_path / "features") / "manifest.json"
    plain = read_json(manifest)
    change(plain)
    write_sealed(manifest, {k: v for k, v in plain.items() if k not in ("seal", "sealed")})
    with pytest.raises(FeatureFileError, match=r"manifest\.json is damaged"):
        FeatureFile.open(manifest.parent)


def test_an_estimator_in_a_zip_of_another_version_is_refused(tmp_path):
    pytest.importorskip("skops", exc_type=ImportError)
    isrlearn.save(ISRMean(1), tmp_path / "m.skops")
    data = bytearray((tmp_path / "m.skops").read_bytes())
    data[data.index(b"PK\x01\x02") + 6] = 148
    (tmp_path / "m.skops").write_bytes(data)
    with pytest.raises(ModelFileError, match="zip file version"):
        isrlearn.load(tmp_path / "m.skops")


@pytest.mark.parametrize("functional", [[1.0, 1.0], [1e39, 1.0]])
def test_a_removal_in_single_precision_may_pass_beyond_its_range(functional):
    """What is removed of a row fits into float32, a number on the way did not."""
    far = float(np.float32(1e30))
    removed = Subspace(
        directions=[[0.0, 1.0]], functionals=[functional], centre=[far, 0.0], spectrum=[1.0, 0.0]
    )
    found = removed.project(np.array([[far, 2.0], [far, 3e38]], dtype=np.float32))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.array([[far, 0.0], [far, 0.0]], dtype=np.float32))


def test_a_light_row_far_beyond_the_means_overflows_nowhere(rows):
    """Its square did where rounding errors are estimated, with a warning of NumPy."""
    X, y, e = rows
    X[0, 0], weights = 1e160, np.r_[1e-40, np.ones(39)]
    with pytest.raises(ValueError, match="no direction is identified"):  # no digits are left
        ISRMean(1).fit(X, y, environments=e, sample_weight=weights)


@pytest.mark.parametrize("rank_test", ["permutation", "moments"])
@pytest.mark.parametrize("heavy", [1e39, 1e99])
def test_weights_beyond_single_precision_are_permuted_in_double(rows, rank_test, heavy):
    """Sums over permuted rows are single, where they fit."""
    X, y, e = rows
    weights = np.where(np.arange(40) % 5 == 0, heavy, 1.0)
    isr = ISR(rank_test=rank_test, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", isrlearn.exceptions.PrecisionWarning)
        found = isr.fit(X, y, environments=e, sample_weight=weights)
    assert found.n_spurious_ < 3


@pytest.mark.parametrize("isr", [ISR(1), ISRRegressor(ISR(1))], ids=["classes", "response"])
@pytest.mark.parametrize("weight", [1e-298, 1e-20, 1e149])
def test_the_unit_of_weights_announces_no_loss_of_digits(random, isr, weight):
    """Rounding errors were set against the weights as if these were numbers of rows."""
    X = random.normal(size=(60, 2)) * 1e-3 + 1e4  # suspicious, and right to five digits
    X[:30, 0] += 0.01
    y, e = np.arange(60) % 2, np.arange(60) // 30
    found = isr.fit(X, y, environments=e, sample_weight=np.full(60, weight))
    np.testing.assert_allclose(np.abs(found.subspace_.directions[0]), [1, 0], atol=0.2)


def test_codes_of_texts_that_are_not_there_are_damage(tmp_path):
    """Three texts have the codes 0, 1, 2 in two bits each, and the file says 3."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"site": list("abcabcab"), "kind": list("xyxyxyxy"), "a": np.arange(8.0)}
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table(columns), path, compression="none")
    codes, wrong = b"\x02\x03\x24\x49", b"\x02\x03\xff\xff"
    data = path.read_bytes()
    assert data.count(codes) == 1
    assert read_data(path, label="kind", environment="site").features.shape == (8, 1)
    path.write_bytes(data.replace(codes, wrong))
    for read in (read_data, open_rows):
        with pytest.raises(DataError, match="cannot be read as parquet"):
            read(path, label="kind", environment="site")
