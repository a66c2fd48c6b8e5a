"""Files that are opened to be read in chunks hold what `read_data` reads at once."""

import zipfile

import numpy as np
import pytest

from isrlearn import ISRClassifier, ISRMean
from isrlearn.exceptions import DataError, FeatureFileError
from isrlearn.io import Features, FeatureWriter, open_rows, read_data
from isrlearn.io._open import open_file
from isrlearn.io._roles import asked_for
from isrlearn.rows import _source

pa = pytest.importorskip("pyarrow")
pytest.importorskip("safetensors")

from feature_support import write_first_protocol  # noqa: E402
from pyarrow import parquet  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

NAMES = {"label": "kind", "environment": "site"}
ARRAYS = ["stored", "compressed", "safetensors", "folder"]
TABLES = ["parquet"]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """A few rows make a chunk."""
    monkeypatch.setattr(_source, "CHUNK_BYTES", 500)


def draw(random, n_rows=None, n_features=3):
    """Arrays of a file, with a label and a known environment in most rows."""
    n_rows = n_rows or int(random.integers(60, 110))
    return {
        "features": 10 * random.normal(size=(n_rows, n_features)),
        "labels": np.arange(n_rows) % 2,
        "environments": random.integers(-1, 3, n_rows),
    }


def split_of(random, arrays):
    split = random.integers(0, 3, len(arrays["labels"]))
    split[: len(split) // 3] = 0
    return random.permutation(split)


def write_folder(random, folder, arrays):
    """Shards of unequal length."""
    n_rows = len(arrays["labels"])
    at = np.sort(random.choice(np.arange(1, n_rows), 5, replace=False))
    with FeatureWriter(folder, {"of": "a test"}, rows_per_shard=1) as writer:
        for rows in np.split(np.arange(n_rows), at):
            writer.add(Features(**{name: array[rows] for name, array in arrays.items()}))
    return folder


def write(random, folder, kind, arrays):
    if kind == "folder":
        return write_folder(random, folder / "features", arrays)
    ending = "safetensors" if kind == "safetensors" else "npz"
    path = folder / f"rows.{ending}"
    save = {"stored": np.savez, "compressed": np.savez_compressed}.get(kind)
    if save is None:
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path)
    else:
        save(path, **arrays)
    return path


def draw_table(random, n_rows=None):
    n_rows = n_rows or int(random.integers(60, 110))
    return {
        "size": random.normal(size=n_rows),
        "count": random.integers(0, 50, n_rows),
        "seen": random.integers(0, 2, n_rows).astype(bool),
        "kind": random.permutation(np.array(["gull", "tern"])[np.arange(n_rows) % 2]),
        "site": random.permutation(np.array(["north", "south", "west"])[np.arange(n_rows) % 3]),
    }


def write_table(path, columns, rows_per_group=17):
    parquet.write_table(pa.table(columns), path, row_group_size=rows_per_group)
    return path


def chunks_of(path, **how):
    return list(open_rows(path, **how).chunks())


def joined(chunks):
    return (
        np.concatenate([chunk.X for chunk in chunks]),
        np.concatenate([np.asarray(chunk.y) for chunk in chunks]),
        np.concatenate([np.asarray(chunk.environments, dtype=object) for chunk in chunks]),
    )


def assert_as_read(path, *, n_chunks=2, **how):
    """The chunks are the rows that `read_data` says to train on, value by value."""
    data, chunks = read_data(path, **how), chunks_of(path, **how)
    train = slice(None) if data.split is None else data.split == 0
    X, y, environments = joined(chunks)
    assert len(chunks) >= n_chunks
    np.testing.assert_array_equal(X, data.features[train])
    assert y.tolist() == data.labels[train].tolist()
    assert environments.tolist() == data.environments[train].tolist()
    rows = open_rows(path, **how)
    assert (rows.n_rows, rows.n_features) == X.shape
    assert all(chunk.sample_weight is None for chunk in chunks)
    return data, chunks


# --- archives


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("kind", ["stored", "compressed", "safetensors", "folder"])
def test_chunks_of_an_archive_are_its_rows(random, tmp_path, kind, split):
    arrays = draw(random, n_rows=83)
    if split:
        arrays["split"] = split_of(random, arrays)
    path = write(random, tmp_path, kind, arrays)
    data, chunks = assert_as_read(path, n_chunks=4)
    X, y, environments = joined(chunks)
    train = slice(None) if not split else arrays["split"] == 0
    np.testing.assert_array_equal(X, arrays["features"][train])
    np.testing.assert_array_equal(y, arrays["labels"][train])
    known = [None if e < 0 else e for e in arrays["environments"][train].tolist()]
    assert environments.tolist() == known
    assert open_rows(path).feature_names is None


def test_rows_without_a_label_are_left_out_of_every_part(random, tmp_path):
    arrays = draw(random)
    arrays["split"] = split_of(random, arrays)
    gone = random.random(len(arrays["labels"])) < 0.3
    arrays["labels"] = np.where(gone, np.nan, arrays["labels"])
    np.savez(tmp_path / "rows.npz", **arrays)
    assert_as_read(tmp_path / "rows.npz")
    file = open_file(tmp_path / "rows.npz", asked_for(None, (), None, ()))
    for part in range(3):
        kept = ~gone & (arrays["split"] == part)
        assert file.n_rows(part) == kept.sum()
        X = joined(list(file.rows(part).chunks()))[0]
        np.testing.assert_array_equal(X, arrays["features"][kept])


@pytest.mark.parametrize("kind", ["stored", "safetensors"])
def test_rows_that_fill_their_chunks_are_read(random, tmp_path, kind):
    """Twelve rows of five numbers of eight bytes are 480 of 500 bytes."""
    arrays = draw(random, n_rows=12 * 6, n_features=5)
    path = write(random, tmp_path, kind, arrays)
    _, chunks = assert_as_read(path)
    assert [len(chunk.X) for chunk in chunks] == [12] * 6


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i2", "i8", "u1", "?", ">f4"])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_numbers_of_any_type_become_floats(random, tmp_path, dtype, save):
    arrays = draw(random)
    arrays["features"] = np.abs(arrays["features"]).astype(dtype)
    save(tmp_path / "rows.npz", **arrays)
    data, chunks = assert_as_read(tmp_path / "rows.npz", n_chunks=1)
    narrow = np.float32 if dtype in ("f2", "f4") else np.float64
    assert {chunk.X.dtype for chunk in chunks} == {np.dtype(narrow)}


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", *(kind for kind in ("i4", "?"))])
def test_tensors_of_any_type_become_floats(random, tmp_path, dtype):
    itemsize = np.dtype(dtype).itemsize
    n_rows = 3 * (500 // (5 * itemsize))  # full chunks
    arrays = draw(random, n_rows=n_rows, n_features=5)
    arrays["features"] = arrays["features"].astype(dtype)
    path = write(random, tmp_path, "safetensors", arrays)
    _, chunks = assert_as_read(path)
    narrow = np.float32 if dtype in ("f2", "f4") else np.float64
    assert {chunk.X.dtype for chunk in chunks} == {np.dtype(narrow)}


@pytest.mark.parametrize("dtype", ["f2", "f4"])
def test_shards_of_any_type_become_floats(random, tmp_path, dtype):
    arrays = draw(random)
    arrays["features"] = arrays["features"].astype(dtype)
    path = write_folder(random, tmp_path / "features", arrays)
    _, chunks = assert_as_read(path)
    assert len(chunks) == 6
    assert {chunk.X.dtype for chunk in chunks} == {np.dtype(np.float32)}


@pytest.mark.parametrize(
    "labels",
    [
        lambda codes: np.array(["gull", "a tern"])[codes],
        lambda codes: codes.astype(float),
        lambda codes: codes.astype(bool),
        lambda codes: np.where(np.arange(len(codes)) % 7 == 3, np.nan, codes),
        lambda codes: np.array(["007", "7"])[codes],
        lambda codes: np.array([" blank ", "?"])[codes * (np.arange(len(codes)) % 5 == 1)],
        lambda codes: codes.astype(np.uint8) + 200,
    ],
    ids=["text", "float", "bool", "gaps", "names", "blanks", "byte"],
)
def test_labels_mean_what_they_mean_to_read_data(random, tmp_path, labels):
    arrays = draw(random)
    arrays["labels"] = labels(arrays["labels"])
    np.savez(tmp_path / "rows.npz", **arrays)
    assert_as_read(tmp_path / "rows.npz")


def test_labels_of_bytes_are_text(random, tmp_path):
    arrays = draw(random)
    arrays["labels"] = np.array([b"gull", b"tern"])[arrays["labels"]]
    np.savez(tmp_path / "rows.npz", **arrays)
    assert_as_read(tmp_path / "rows.npz")


@pytest.mark.parametrize(
    "environments",
    [
        lambda codes: np.array(["lab", "-1", "the field", "nan"])[codes + 1],
        lambda codes: codes.astype(float),
        lambda codes: np.where(codes == 2, np.nan, codes),
        lambda codes: np.full(len(codes), -1),
    ],
    ids=["text", "float", "gaps", "none known"],
)
def test_the_environment_minus_one_is_unknown(random, tmp_path, environments):
    arrays = draw(random)
    arrays["environments"] = environments(arrays["environments"])
    np.savez(tmp_path / "rows.npz", **arrays)
    data, _ = assert_as_read(tmp_path / "rows.npz")
    assert None in data.environments.tolist()
    file = open_file(tmp_path / "rows.npz", asked_for(None, (), None, ()))
    unknown = sum(e is None for e in data.environments.tolist())
    assert any(f"environment of {unknown} of" in note for note in file.notes)


def test_other_arrays_can_be_named(random, tmp_path):
    arrays = draw(random)
    n_rows = len(arrays["labels"])
    arrays |= {
        "colours": np.array(["red", "blue"])[random.integers(0, 2, n_rows)],
        "days": random.integers(-1, 2, n_rows),
        "part": np.array(["train", "val", "test", "train"])[np.arange(n_rows) % 4],
    }
    np.savez(tmp_path / "rows.npz", **arrays)
    how = {"label": "colours", "environment": ["environments", "days"], "split": "part"}
    data, chunks = assert_as_read(tmp_path / "rows.npz", **how)
    assert any("×" in str(e) for e in joined(chunks)[2])


# --- tables


@pytest.mark.parametrize("split", [None, "text", "number"])
def test_chunks_of_a_table_are_its_rows(random, tmp_path, split):
    columns = draw_table(random)
    n_rows = len(columns["kind"])
    columns["note"] = np.array([f"text {i}" for i in range(n_rows)])
    if split is not None:
        columns["split"] = split_of(random, {"labels": columns["kind"]})
    if split == "text":
        columns["split"] = np.array(["train", "val", "test"])[columns["split"]]
    path = write_table(tmp_path / "birds.parquet", columns)
    assert parquet.ParquetFile(path).num_row_groups > 3
    data, chunks = assert_as_read(path, **NAMES)
    assert open_rows(path, **NAMES).feature_names == ("size", "count", "seen")
    assert data.schema.feature_names == ("size", "count", "seen")
    assert {chunk.X.dtype for chunk in chunks} == {np.dtype(np.float64)}
    file = open_file(path, asked_for("kind", "site", None, ()))
    assert any("left out 'note': text is not encoded" in note for note in file.notes)


@pytest.mark.parametrize("rows_per_group", [1, 7, 20, 21, 1000])
def test_groups_of_rows_make_no_difference(random, tmp_path, rows_per_group):
    columns = draw_table(random, n_rows=100)
    path = write_table(tmp_path / "birds.parquet", columns, rows_per_group)
    _, chunks = assert_as_read(path, **NAMES)
    assert [len(chunk.X) for chunk in chunks] == [20] * 5  # 500 bytes, three numbers of eight


def test_columns_of_single_precision_stay_so(random, tmp_path):
    n_rows = 90
    columns = {name: random.normal(size=n_rows).astype(np.float32) for name in "abc"}
    columns |= {name: draw_table(random, n_rows)[name] for name in ("kind", "site")}
    path = write_table(tmp_path / "birds.parquet", columns)
    _, chunks = assert_as_read(path, **NAMES)
    assert {chunk.X.dtype for chunk in chunks} == {np.dtype(np.float32)}
    assert len(chunks[0].X) == 500 // 12


def test_two_columns_of_environments_are_crossed(random, tmp_path):
    columns = draw_table(random)
    n_rows = len(columns["kind"])
    columns["day"] = pa.array(
        [None if random.random() < 0.2 else int(random.integers(3)) for _ in range(n_rows)]
    )
    path = write_table(tmp_path / "birds.parquet", columns)
    how = {"label": "kind", "environment": ["site", "day"]}
    _, chunks = assert_as_read(path, **how)
    days = columns["day"].to_pylist()
    expected = [
        None if day is None else f"{site} × {day}"
        for site, day in zip(columns["site"], days, strict=True)
    ]
    assert joined(chunks)[2].tolist() == expected
    assert open_rows(path, **how).n_features == 3


def test_minus_one_is_an_environment_of_a_table(random, tmp_path):
    columns = draw_table(random)
    columns["site"] = random.integers(-1, 2, len(columns["kind"]))
    path = write_table(tmp_path / "birds.parquet", columns)
    _, chunks = assert_as_read(path, **NAMES)
    assert -1 in joined(chunks)[2].tolist()


def test_gaps_of_a_table_are_gaps(random, tmp_path):
    columns = draw_table(random)
    n_rows = len(columns["kind"])
    for name in columns:
        values = columns[name].tolist()
        gone = random.random(n_rows) < 0.2
        columns[name] = pa.array(
            [None if gap else value for gap, value in zip(gone, values, strict=True)]
        )
    path = write_table(tmp_path / "birds.parquet", columns)
    data, chunks = assert_as_read(path, **NAMES)
    assert len(data) == n_rows - columns["kind"].null_count
    assert np.isnan(joined(chunks)[0]).any(axis=0).all()
    file = open_file(path, asked_for("kind", "site", None, ()))
    assert any("they have no label" in note for note in file.notes)


@pytest.mark.parametrize(
    "values",
    [
        lambda codes: codes + 3,
        lambda codes: codes.astype(bool),
        lambda codes: codes / 2,
        lambda codes: pa.array(np.array(["gull", "tern"])[codes]).dictionary_encode(),
        lambda codes: np.array(["2020-01-01", "2021-02-03"], "M8[D]")[codes],
    ],
    ids=["number", "bool", "fraction", "category", "date"],
)
def test_labels_and_environments_of_a_table_have_many_types(random, tmp_path, values):
    columns = draw_table(random)
    n_rows = len(columns["kind"])
    columns["kind"] = values(random.permutation(np.arange(n_rows) % 2))
    columns["site"] = values(random.permutation(np.arange(n_rows) % 2))
    assert_as_read(write_table(tmp_path / "birds.parquet", columns), **NAMES)


def test_columns_can_be_left_out(random, tmp_path):
    path = write_table(tmp_path / "birds.parquet", draw_table(random))
    assert_as_read(path, drop=["count"], **NAMES)
    assert open_rows(path, drop="count", **NAMES).feature_names == ("size", "seen")


def test_an_index_is_no_feature(random, tmp_path):
    columns = draw_table(random)
    columns["__index_level_0__"] = random.permutation(len(columns["kind"]))
    assert_as_read(write_table(tmp_path / "birds.parquet", columns), **NAMES)


def test_blanks_around_the_names_of_columns_do_not_count(random, tmp_path):
    columns = draw_table(random)
    columns = {f" {name} ": values for name, values in columns.items()}
    assert_as_read(write_table(tmp_path / "birds.parquet", columns), **NAMES)


# --- parts of a file


def written(random, tmp_path, kind, split, n_rows=100):
    """A file of some kind that is cut in at least four chunks, opened."""
    if kind == "parquet":
        columns = draw_table(random, n_rows)
        if split:
            columns["split"] = split_of(random, {"labels": columns["kind"]})
        path = write_table(tmp_path / "birds.parquet", columns)
        return open_file(path, asked_for("kind", "site", None, ()))
    arrays = draw(random, n_rows)  # full chunks
    if split:
        arrays["split"] = split_of(random, arrays)
    path = write(random, tmp_path, kind, arrays)
    return open_file(path, asked_for(None, (), None, ()))


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("kind", ARRAYS + TABLES)
def test_ranges_of_chunks_part_the_rows(random, tmp_path, kind, split):
    file = written(random, tmp_path, kind, split)
    whole = list(file.rows().chunks())
    assert file.n_chunks == len(whole) >= 4
    at = np.sort(random.choice(np.arange(1, file.n_chunks), 2, replace=False)).tolist()
    ranges = zip([0, *at], [*at, None], strict=True)
    parts = [list(file.rows(among=own).chunks()) for own in ranges]
    assert [len(part) for part in parts] == [at[0], at[1] - at[0], len(whole) - at[1]]
    for found, expected in zip(joined(sum(parts, [])), joined(whole), strict=True):
        assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("kind", ARRAYS + TABLES)
def test_parts_of_the_split_are_those_of_read_data(random, tmp_path, kind):
    file = written(random, tmp_path, kind, split=True)
    data = read_data(file.reader.path, **(NAMES if kind == "parquet" else {}))
    for part in range(3):
        X, y, _ = joined(list(file.rows(part).chunks()))
        np.testing.assert_array_equal(X, data.features[data.split == part])
        assert y.tolist() == data.labels[data.split == part].tolist()
        assert file.n_rows(part) == file.rows(part).n_rows == len(y)


def test_without_a_split_all_rows_are_to_train_on(random, tmp_path):
    file = written(random, tmp_path, "stored", split=False)
    assert [file.n_rows(part) for part in range(3)] == [100, 0, 0]


def test_features_can_be_prepared(random, tmp_path):
    file = written(random, tmp_path, "parquet", split=False)
    rows = file.rows(prepare=lambda X: 2 * X[:, 1:])
    assert rows.n_features == file.reader.n_features - 1
    assert rows.feature_names is None
    expected = 2 * joined(list(file.rows().chunks()))[0][:, 1:]
    np.testing.assert_array_equal(joined(list(rows.chunks()))[0], expected)


@pytest.mark.parametrize("kind", ARRAYS + TABLES)
def test_a_fit_on_a_file_is_that_on_its_rows(random, tmp_path, kind):
    path = written(random, tmp_path, kind, split=True, n_rows=600).reader.path
    how = NAMES if kind == "parquet" else {}
    data, seen = read_data(path, **how), []
    rows = open_rows(path, watch=lambda *progress: seen.append(progress), **how)
    found = ISRClassifier(ISRMean(1)).fit(rows)
    train = data.split == 0
    whole = ISRClassifier(ISRMean(1))
    whole.fit(data.features[train], data.labels[train], environments=data.environments[train])
    a, b = (data.features @ model.coef_.T + model.intercept_ for model in (found, whole))
    np.testing.assert_allclose(a, b, atol=1e-3)
    assert seen[-1] == ("Head", train.sum(), train.sum())
    if kind == "parquet":
        assert found.feature_names_in_.tolist() == ["size", "count", "seen"]


# --- what cannot be read


def archive(drop=None, save=np.savez, **others):
    def write_it(folder):
        arrays = {
            "features": np.arange(12.0).reshape(6, 2),
            "labels": np.array([0, 1, 0, 1, 0, 1]),
            "environments": np.array([0, 0, 1, 1, -1, 0]),
        } | others
        arrays.pop(drop, None)
        path = folder / ("rows.safetensors" if save is save_file else "rows.npz")
        if save is save_file:
            save({name: np.ascontiguousarray(a) for name, a in arrays.items()}, path)
        else:
            save(path, **arrays)
        return path

    return write_it


def table(**columns):
    good = {
        "size": [1.0, 2.0, 3.0, 4.0],
        "kind": ["a", "b", "a", "b"],
        "site": ["n", "n", "s", "s"],
    } | columns
    return lambda folder: write_table(
        folder / "t.parquet", {name: v for name, v in good.items() if v is not None}
    )


def raw(name, data):
    def write_it(folder):
        (folder / name).write_bytes(data)
        return folder / name

    return write_it


def cut_short(write_it, n_bytes):
    def write_less(folder):
        path = write_it(folder)
        path.write_bytes(path.read_bytes()[:-n_bytes])
        return path

    return write_less


def no_array(folder):
    with zipfile.ZipFile(folder / "rows.npz", "w") as file:
        file.writestr("features.npy", b"no array at all")
        file.writestr("labels.npy", b"no array at all")
        file.writestr("environments.npy", b"no array at all")
    return folder / "rows.npz"


def unfinished(folder):
    path = folder / "features"
    with pytest.raises(RuntimeError), FeatureWriter(path, {}, rows_per_shard=1) as writer:
        writer.add(Features(np.eye(2), np.arange(2), np.arange(2)))
        raise RuntimeError
    return path


def ragged_split(folder):
    first = Features(np.eye(2), np.arange(2), np.arange(2), np.zeros(2, int))
    second = Features(np.eye(2), np.arange(2), np.arange(2))
    return write_first_protocol(folder / "features", [first, second])


F = np.arange(12.0).reshape(6, 2)
L = np.array([0, 1, 0, 1, 0, 1])
MALFORMED = {
    "no file": (lambda folder: folder / "no.npz", "does not exist: check the path"),
    "csv": (raw("rows.csv", b"a,b\n1,2\n"), r"ends in '.csv', which cannot be read in chunks"),
    "no ending": (raw("rows", b""), "which cannot be read in chunks: give .npz"),
    "no zip": (raw("rows.npz", b"features"), "no npz file, or is cut short: save it again"),
    "cut npz": (cut_short(archive(), 100), "cut short: save it again"),
    "no features": (archive("features"), "no array 'features', which must have that name"),
    "other name": (archive("features", Features=F), "did you mean 'Features'"),
    "no labels": (archive("labels", label=L), r"no array 'labels' \(named as label\): did you"),
    "no environments": (archive("environments"), "no array 'environments'"),
    "one dimension": (archive(features=F[:, 0]), r"shape \(6,\), expected \(rows, features\)"),
    "three dimensions": (archive(features=F[:, :, None]), r"expected \(rows, features\)"),
    "no columns": (archive(features=F[:, :0]), r"shape \(6, 0\), expected \(rows, features\)"),
    "no rows": (
        archive(features=F[:0], labels=L[:0], environments=L[:0]),
        r"shape \(0, 2\), expected \(rows, features\)",
    ),
    "by columns": (archive(features=np.asfortranarray(F)), "save numpy.ascontiguousarray"),
    "text": (archive(features=F.astype(str)), "numbers are needed"),
    "complex": (archive(features=F.astype(complex)), "complex128, but numbers are needed"),
    "objects": (archive(features=F.astype(object)), "Python objects, which is never"),
    "objects as labels": (archive(labels=L.astype(object)), "Python objects, which is never"),
    "few labels": (archive(labels=L[:5]), "labels has 5 values for 6 rows of features: save"),
    "few environments": (archive(environments=L[:5]), "environments has 5 values for 6 rows"),
    "few splits": (archive(split=L[:5]), "split has 5 values for 6 rows"),
    "no label in any row": (archive(labels=np.full(6, np.nan)), "has no label in any row"),
    "no split": (archive(split=L + 5), "is '5' in row 1: write train, validation or test"),
    "many fractions": (
        archive(features=np.eye(30), labels=np.arange(30) / 7, environments=np.arange(30) % 2),
        "different numbers that are not whole, .* bin it or name another",
    ),
    "no array": (no_array, r"is damaged .*write the file again"),
    "cut tensors": (cut_short(archive(save=save_file), 20), "is damaged .* write the file again"),
    "no tensors": (raw("rows.safetensors", b"\xff" * 99), "is damaged .* write the file again"),
    "empty tensors": (raw("rows.safetensors", b""), "is damaged .* write the file again"),
    "no tensor": (archive("features", save_file), "no array 'features'"),
    "tensor of labels": (archive("labels", save_file), "no array 'labels'"),
    "tensor of one dimension": (archive(save=save_file, features=F[:, 0]), r"shape \(6,\)"),
    "few labels of tensors": (archive(save=save_file, labels=L[:5]), "labels has 5 values for 6"),
    "unfinished folder": (unfinished, "not finished: it has 2 rows so far. Run the command"),
    "split of one shard": (ragged_split, "split has 2 values for 4 rows"),
    "no parquet": (raw("t.parquet", b"PAR1 and no more"), "cannot be read as parquet .*: write"),
    "cut parquet": (cut_short(table(), 20), "cannot be read as parquet .*: write the file again"),
    "no numbers": (table(size=None), "no numeric column left for the features: add one"),
    "no kind": (table(kind=None), r"no column 'kind' \(named as label\)"),
    "no site": (table(site=None, sites=list("nnss")), "did you mean 'sites'"),
    "no kinds": (table(kind=[None] * 4), "has no label in any row"),
    "gap in the split": (table(split=["train", None, "test", "val"]), "is empty in row 2"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_file_gets_a_sentence_of_its_own(tmp_path, case):
    write_it, message = MALFORMED[case]
    path = write_it(tmp_path)
    how = NAMES if path.suffix == ".parquet" else {}
    with pytest.raises(DataError, match=message) as refused:
        open_rows(path, **how)
    text = str(refused.value)
    assert text.startswith(str(path))
    assert "\n" not in text


def test_a_folder_of_other_things_is_refused(random, tmp_path):
    with pytest.raises((DataError, FeatureFileError), match=r"manifest.json"):
        open_rows(tmp_path)
    path = write_folder(random, tmp_path / "features", draw(random))
    shard = path / "shard-00002.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1] + b"x")
    with pytest.raises(FeatureFileError, match="shard-00002.safetensors is damaged"):
        open_rows(path)


def test_a_file_without_rows_to_train_on_is_refused(random, tmp_path):
    arrays = draw(random)
    np.savez(tmp_path / "rows.npz", **arrays, split=np.ones_like(arrays["labels"]))
    with pytest.raises(ValueError, match="no row"):
        ISRMean(1).fit(open_rows(tmp_path / "rows.npz"))


def test_names_that_are_not_there_are_refused(random, tmp_path):
    path = write_table(tmp_path / "birds.parquet", draw_table(random))
    for how, message in [
        ({"label": "kind"}, "environment must name the column"),
        ({"label": "kin", "environment": "site"}, "did you mean 'kind'"),
        ({"label": "kind", "environment": ["site", "dy"]}, "no column 'dy'"),
        ({"label": "kind", "environment": "kind"}, "named as label and environment"),
        ({"drop": "sz", **NAMES}, "no column 'sz'"),
        ({"drop": "kind", **NAMES}, "named as label and is dropped"),
        ({"split": "part", **NAMES}, "no column 'part'"),
    ]:
        with pytest.raises(DataError, match=message):
            open_rows(path, **how)


@pytest.mark.parametrize("kind", ["stored", "compressed", "parquet"])
def test_damage_inside_a_file_is_named(random, tmp_path, kind):
    path = written(random, tmp_path, kind, split=False).reader.path
    data = bytearray(path.read_bytes())
    # Within the features of an archive; all pages of a table, as these have no checksum.
    hurt = slice(4, len(data) // 2) if kind == "parquet" else slice(1000, 1040)
    data[hurt] = bytes(len(data[hurt]))
    path.write_bytes(bytes(data))
    with pytest.raises(DataError, match="damaged|write the file again"):
        chunks_of(path, **(NAMES if kind == "parquet" else {}))


@pytest.mark.parametrize("shape", [(6, 1), (6, 2), ()])
def test_labels_of_other_shapes_are_refused(tmp_path, shape):
    with pytest.raises(DataError, match="one value per row is needed"):
        open_rows(archive(labels=np.resize(L, shape))(tmp_path))


def test_a_column_that_is_there_twice_is_refused(tmp_path):
    columns = [pa.array([1.0, 2.0]), pa.array([1.0, 2.0]), pa.array(["a", "b"]), pa.array([1, 2])]
    parquet.write_table(pa.table(columns, ["x", "x", "kind", "site"]), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="more than once"):
        open_rows(tmp_path / "t.parquet", **NAMES)


@pytest.mark.parametrize("widths", [(3, 2), (3, 0)])
def test_shards_of_other_columns_are_refused(tmp_path, widths):
    features = [np.ones((4, width)) if width else np.ones(4) for width in widths]
    parts = [Features(X, np.arange(4) % 2, np.arange(4) // 2) for X in features]
    write_first_protocol(tmp_path / "features", parts)
    with pytest.raises((DataError, FeatureFileError), match="features"):
        open_rows(tmp_path / "features")
