"""A user's file becomes the same rows whichever way it is written."""

import csv
import json
import tempfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from isrlearn import ISRClassifier, ISRMean
from isrlearn.exceptions import DataError
from isrlearn.io import Features, FeatureWriter, Schema, open_rows, read_data

pa = pytest.importorskip("pyarrow")
safetensors = pytest.importorskip("safetensors.numpy")

from pyarrow import parquet  # noqa: E402

NAMES = {"label": "y", "environment": "e"}
BIRDS = {
    "x": [1.5, 2.5, -3.0, 4.0],
    "colour": ["red", "blue", "red", "blue"],
    "e": ["north", "south", None, "north"],
    "y": ["gull", "tern", "gull", "tern"],
}


def write_csv(path, columns, *, separator=",", line_end="\r\n", encoding="utf-8", gap=""):
    rows = zip(*columns.values(), strict=True)
    with path.open("w", newline="", encoding=encoding) as file:
        writer = csv.writer(file, delimiter=separator, lineterminator=line_end)
        writer.writerow(columns)
        writer.writerows([[gap if v is None or v != v else v for v in row] for row in rows])
    return path


def write_parquet(path, columns):
    parquet.write_table(pa.table({name: pa.array(v) for name, v in columns.items()}), path)
    return path


def write_text(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def assert_same(one, other):
    np.testing.assert_array_equal(one.features, other.features)
    np.testing.assert_array_equal(one.labels, other.labels)
    assert one.labels.dtype.kind == other.labels.dtype.kind
    assert one.environments.tolist() == other.environments.tolist()
    assert one.schema.columns == other.schema.columns


# --- laws ---------------------------------------------------------------------------------------

letters = st.characters(categories=["L", "P", "S", "Zs"], include_characters="\n")
# A letter in front: no word is a number, a date or a sign of a missing value.
words = st.text(letters, max_size=6).map(lambda text: f"w{text.strip()}")
numbers = st.floats(allow_infinity=False) | st.none()
names = st.lists(words, min_size=4, max_size=4, unique=True)


@st.composite
def tables(draw):
    n = draw(st.integers(4, 12))
    rows = dict.fromkeys(["min_size", "max_size"], n)
    palette = draw(st.lists(words, min_size=1, max_size=3, unique=True))
    site = st.sampled_from(draw(st.sampled_from([[None, "north", "south"], [None, 0, 1, 2]])))
    classes = st.sampled_from(draw(st.sampled_from([["a", "b c"], [0, 1], [True, False]])))
    values = [
        draw(st.lists(numbers, **rows)),
        draw(st.lists(st.integers(-5, 5) | st.none(), **rows)),
        draw(st.lists(st.sampled_from([*palette, None]), **rows)),
        draw(st.lists(st.booleans(), **rows)),
    ]
    columns = dict(zip(draw(names), values, strict=True))
    columns |= {"place": [float(i) for i in range(n)], "e": draw(st.lists(site, **rows))}
    return columns | {"y": draw(st.lists(classes, **rows))}


@given(tables(), st.sampled_from([",", ";", "\t"]), st.sampled_from(["\r\n", "\n"]))
def test_csv_and_parquet_of_one_table_are_the_same_rows(columns, separator, line_end):
    with tempfile.TemporaryDirectory() as folder:
        one = Path(folder) / "rows.csv"
        write_csv(one, columns, separator=separator, line_end=line_end)
        other = write_parquet(Path(folder) / "rows.parquet", columns)
        from_csv, from_parquet = read_data(one, **NAMES), read_data(other, **NAMES)
    assert_same(from_csv, from_parquet)
    place = from_csv.schema.feature_names.index("place")
    np.testing.assert_array_equal(from_csv.features[:, place], columns["place"])
    assert from_csv.environments.tolist() == columns["e"]
    texts = [str(v) if isinstance(v, bool) else v for v in columns["y"]]
    assert from_csv.labels.tolist() == texts


@given(tables(), st.randoms())
def test_the_order_of_columns_does_not_matter_with_a_schema(columns, shuffler):
    shuffled = list(columns.items())
    shuffler.shuffle(shuffled)
    with tempfile.TemporaryDirectory() as folder:
        first = read_data(write_csv(Path(folder) / "a.csv", columns), **NAMES)
        schema = Schema.from_json(json.loads(json.dumps(first.schema.to_json())))
        again = read_data(write_csv(Path(folder) / "b.csv", dict(shuffled)), schema=schema)
    assert schema == first.schema
    assert_same(first, again)


@given(tables(), st.data())
def test_rows_are_read_one_by_one_as_together_with_a_schema(columns, data):
    n = len(columns["y"])
    rows = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=5))
    taken = {name: [values[i] for i in rows] for name, values in columns.items()}
    with tempfile.TemporaryDirectory() as folder:
        whole = read_data(write_csv(Path(folder) / "a.csv", columns), **NAMES)
        part = read_data(write_csv(Path(folder) / "b.csv", taken), schema=whole.schema)
    np.testing.assert_array_equal(part.features, whole.features[rows])
    assert part.labels.tolist() == whole.labels[rows].tolist()


def test_one_hot_features_are_those_of_pandas(random, tmp_path):
    colours = random.choice(["red", "blue", "dark green", 'a "b"', "é"], 200)
    columns = {
        "colour": colours.tolist(),
        "x": random.normal(size=200).tolist(),
        "y": random.integers(0, 2, 200).tolist(),
        "e": random.integers(0, 3, 200).tolist(),
    }
    data = read_data(write_csv(tmp_path / "a.csv", columns), **NAMES)
    expected = pd.get_dummies(pd.DataFrame(columns)[["colour", "x"]], prefix_sep="=")
    np.testing.assert_array_equal(data.features, expected[list(data.schema.feature_names)])


# --- ways of writing a csv file -----------------------------------------------------------------


def test_a_messy_file_of_a_user_can_be_fitted_on(random, tmp_path):
    lines = ["patient id;Blutdruck (mm Hg);has pain?;comment;hospital site;diagnosis"]
    for i in range(60):
        comment = f'"said ""{i}"";\nand left"' if i % 3 else f"free text {i}"
        site = ["St. Mary's", "Köln", "NA"][i % 3]
        pain, sick = random.choice(["yes", "no"]), ["healthy", "ill"][i % 2]
        lines.append(f"p{i};{random.normal():.3f};{pain};{comment};{site};{sick}")
    path = tmp_path / "patients of 2024.csv"
    path.write_bytes(("\ufeff" + "\r\n".join(lines) + "\r\n\r\n").encode())
    data = read_data(path, label="diagnosis", environment="hospital site")
    data.check_for_fit()
    assert data.schema.feature_names == ("Blutdruck (mm Hg)", "has pain?=no", "has pain?=yes")
    assert set(data.labels) == {"healthy", "ill"}
    assert data.environments.tolist() == ["St. Mary's", "Köln", None] * 20
    assert any("'patient id', 'comment'" in note and "free text" in note for note in data.notes)
    assert "the environment of 20 of 60 rows is unknown." in data.notes
    model = ISRClassifier(ISRMean(n_spurious=1))
    model.fit(data.features, data.labels, environments=data.environments)
    assert set(model.predict(data.features)) <= {"healthy", "ill"}


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("gap", ["", "NA", "NaN", "N/A", "null", "None", "?", " NA "])
def test_separator_mark_and_sign_of_a_gap_do_not_matter(separator, encoding, gap, tmp_path):
    columns = BIRDS | {"x": [1.5, np.nan, -3.0, 4.0]}
    plain = write_csv(tmp_path / "plain.csv", columns)
    other = write_csv(
        tmp_path / "other.csv", columns, separator=separator, encoding=encoding, gap=gap
    )
    assert_same(read_data(plain, **NAMES), read_data(other, **NAMES))
    np.testing.assert_array_equal(read_data(other, **NAMES).features[:, 0], columns["x"])


def test_commas_in_quoted_names_do_not_make_a_comma_file(tmp_path):
    text = '"a, b, c";e;y\n1;n;0\n2;n;1\n'
    data = read_data(write_text(tmp_path / "a.csv", text), **NAMES)
    assert data.schema.feature_names == ("a, b, c",)


def test_python_numbers_with_underscores_are_text(tmp_path):
    columns = BIRDS | {"code": ["1_0", "1_1", "1_0", "1_1"]}
    data = read_data(write_csv(tmp_path / "a.csv", columns), **NAMES)
    assert data.schema.feature_names[-2:] == ("code=1_0", "code=1_1")


def test_an_index_that_pandas_wrote_is_no_feature(tmp_path):
    frame = pd.DataFrame(BIRDS, index=[7, 5, 3, 1])
    frame.to_csv(tmp_path / "a.csv")
    frame.to_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        data = read_data(tmp_path / name, **NAMES)
        assert data.schema.feature_names == ("x", "colour=blue", "colour=red")
        assert any("index" in note for note in data.notes)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["2020-01-01", "2020-01-02", "2020-01-01", ""], "dates"),
        (["2020-01-01 10:00", "2020-01-02T10:00:01Z", "", ""], "dates"),
        (["1.2.2020", "1.2.2020", "3.2.2020", "4.2.2020"], "dates"),
        (["7", "7", "7.0", ""], "one value only"),
        (["a", "a", "a", ""], "one value only"),
        (["", "?", "NA", "NaN"], "no value is known"),
        (["a", "b", "c", "d"], "every value is another text"),
        (["a", "b", "c", ""], "every value is another text"),
    ],
)
def test_columns_that_say_nothing_are_left_out_with_a_note(values, reason, tmp_path):
    data = read_data(write_csv(tmp_path / "a.csv", BIRDS | {"more": values}), **NAMES)
    assert data.schema.feature_names == ("x", "colour=blue", "colour=red")
    assert any("'more'" in note and reason in note for note in data.notes)


@pytest.mark.parametrize(("n_values", "encoded"), [(20, True), (21, False)])
def test_text_of_many_values_is_left_out(n_values, encoded, tmp_path):
    n = 2 * n_values
    columns = {
        "text": [f"t{i % n_values}" for i in range(n)],
        "x": [float(i * i) for i in range(n)],
        "e": [i % 2 for i in range(n)],
        "y": [i % 3 for i in range(n)],
    }
    data = read_data(write_csv(tmp_path / "a.csv", columns), **NAMES)
    assert len(data.schema.feature_names) == (1 + n_values if encoded else 1)
    assert any("more than 20" in note for note in data.notes) != encoded


def test_a_column_that_numbers_the_rows_gets_a_note(random, tmp_path):
    columns = {
        "id": random.permutation(np.arange(5, 65)).tolist(),
        "age": random.integers(20, 60, 60).tolist(),
        "e": random.integers(0, 2, 60).tolist(),
        "y": random.integers(0, 2, 60).tolist(),
    }
    data = read_data(write_csv(tmp_path / "a.csv", columns), **NAMES)
    assert [note for note in data.notes if "ID" in note] == [
        "'id' numbers the rows: if it is an ID, drop it."
    ]
    assert read_data(data.source, drop="id", **NAMES).schema.feature_names == ("age",)


# --- labels, environments, split ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "codes"),
    [
        (["1", "0", "1", "0"], [1, 0, 1, 0]),
        (["1.0", "0.0", "1", "-2"], [1, 0, 1, -2]),
        (["a", "1", "a", "1"], ["a", "1", "a", "1"]),
        (["007", "7", "007", "7"], ["007", "7", "007", "7"]),
        (["1e5", "100000", "1e5", "2"], ["1e5", "100000", "1e5", "2"]),
        (["true", "FALSE", "True", "false"], ["True", "False", "True", "False"]),
        (["0.5", "1", "1.50", "0.5"], ["0.5", "1", "1.5", "0.5"]),
        ([" a", "b ", "a", "b"], ["a", "b", "a", "b"]),
        (["9007199254740993", "9007199254740992"] * 2, [9007199254740993, 9007199254740992] * 2),
        (["99999999999999999999", "5"] * 2, ["99999999999999999999", "5"] * 2),
    ],
)
def test_labels_and_environments_mean_what_is_written(written, codes, tmp_path):
    path = write_csv(tmp_path / "a.csv", BIRDS | {"y": written, "e": written[::-1]})
    data = read_data(path, **NAMES)
    assert data.labels.tolist() == codes
    assert data.environments.tolist() == codes[::-1]


def test_several_environments_are_crossed(tmp_path):
    columns = BIRDS | {"when": ["day", "night", "day", ""], "week": [1, 2, 1.0, 2]}
    path = write_csv(tmp_path / "a.csv", columns)
    data = read_data(path, label="y", environment=["e", "when"])
    assert data.environments.tolist() == ["north × day", "south × night", None, None]
    assert data.schema.environment == ("e", "when")
    data = read_data(path, label="y", environment=["week", "e"])
    assert data.environments.tolist() == ["1 × north", "2 × south", None, "2 × north"]


def test_rows_without_a_label_are_left_out_and_counted(random, tmp_path):
    labels = random.choice(["a", "b", ""], 50).tolist() + ["a", "b"]
    columns = {
        "x": random.normal(size=52).tolist(),
        "e": random.integers(0, 9, 52).tolist(),
        "split": random.permutation(["train", "val", "valid", "dev"] * 13).tolist(),
        "y": labels,
    }
    known = np.array([bool(label) for label in labels])
    data = read_data(write_csv(tmp_path / "a.csv", columns), **NAMES)
    np.testing.assert_array_equal(data.features[:, 0], np.array(columns["x"])[known])
    assert data.labels.tolist() == [label for label in labels if label]
    assert data.environments.tolist() == np.array(columns["e"])[known].tolist()
    is_train = np.array(columns["split"])[known] == "train"
    assert data.split.tolist() == np.where(is_train, 0, 1).tolist()
    if not known.all():
        assert f"left out {np.sum(~known)} of 52 rows: they have no label." in data.notes


@pytest.mark.parametrize("name", ["split", "Split", "SPLIT"])
@pytest.mark.parametrize(
    "values", [["train", "Val", "TEST", "train"], [0, 1, 2, 0], [0.0, 1.0, 2.0, 0.0]]
)
def test_a_column_called_split_splits(name, values, tmp_path):
    data = read_data(write_csv(tmp_path / "a.csv", BIRDS | {name: values}), **NAMES)
    assert data.split.tolist() == [0, 1, 2, 0]
    assert f"the rows are split by the column {name!r}." in data.notes
    assert data.schema.feature_names == ("x",)  # one colour only in rows to train on: none


def test_a_column_called_split_that_holds_no_split_is_a_feature(tmp_path):
    columns = BIRDS | {"split": ["left", "right", "left", "right"], "fold": [0, 1, 0, 2]}
    path = write_csv(tmp_path / "a.csv", columns)
    assert read_data(path, **NAMES).split is None
    assert "split=left" in read_data(path, **NAMES).schema.feature_names
    assert read_data(path, split="fold", **NAMES).split.tolist() == [0, 1, 0, 2]


def test_categories_are_those_of_rows_to_train_on(tmp_path):
    columns = {
        "colour": ["red", "blue", "red", "blue", "green", ""],
        "x": [1, 2, 3, 4, 5, 6],
        "split": ["train"] * 4 + ["test"] * 2,
        "e": [0, 1] * 3,
        "y": [0, 1, 1, 0, 1, 0],
    }
    data = read_data(write_csv(tmp_path / "a.csv", columns), **NAMES)
    assert data.schema.feature_names == ("colour=blue", "colour=red", "x")
    np.testing.assert_array_equal(data.features[:, 0], [0, 1, 0, 1, 0, 0])
    np.testing.assert_array_equal(data.features[:, 1], [1, 0, 1, 0, 0, 0])


# --- predicting ---------------------------------------------------------------------------------


def test_to_predict_every_row_is_kept_and_labels_may_be_absent(tmp_path):
    schema = read_data(write_csv(tmp_path / "a.csv", BIRDS), **NAMES).schema
    new = {"colour": ["green", "red", ""], "more": ["p", "q", "r"], "x": ["", 2, 3]}
    data = read_data(write_csv(tmp_path / "b.csv", new), schema=schema)
    np.testing.assert_array_equal(data.features, [[np.nan, 0, 0], [2, 0, 1], [3, 0, 0]])
    assert data.labels is None
    assert data.environments is None
    assert any("not used" in note and "'more'" in note for note in data.notes)
    some = new | {"y": ["gull", "", "tern"], "e": ["north", "", "south"], "split": [2, 2, ""]}
    data = read_data(write_csv(tmp_path / "c.csv", some), schema=schema)
    assert len(data) == 3
    assert data.labels.tolist() == ["gull", None, "tern"]
    assert data.environments.tolist() == ["north", None, "south"]
    assert "1 of 3 rows have no label, and are not scored." in data.notes


def test_a_label_that_is_named_must_be_there_to_predict(tmp_path):
    path = write_csv(tmp_path / "a.csv", BIRDS | {"other": ["p", "q", "q", "p"]})
    schema = read_data(path, drop="other", **NAMES).schema
    assert read_data(path, schema=schema, label="other").labels.tolist() == ["p", "q", "q", "p"]
    with pytest.raises(DataError, match="no column 'z'"):
        read_data(path, schema=schema, label="z")


def test_a_model_of_arrays_predicts_on_a_table_of_the_same_names(random, tmp_path):
    schema = Schema.of_array(2, "labels", ("environments",))
    columns = {"x1": random.normal(size=5).tolist(), "x0": random.normal(size=5).tolist()}
    data = read_data(write_csv(tmp_path / "a.csv", columns), schema=schema)
    np.testing.assert_array_equal(data.features, np.column_stack([columns["x0"], columns["x1"]]))


# --- parquet types ------------------------------------------------------------------------------


def test_every_type_of_parquet_column_has_a_meaning(tmp_path):
    columns = {
        "half": pa.array(np.array([1, 2, 3, 4], np.float16)),
        "decimal": pa.array([Decimal("1.25"), None, Decimal("3.5"), Decimal("4")]),
        "category": pa.array(["u", "v", "u", None]).dictionary_encode(),
        "large": pa.array(["p", "q", "q", "p"], pa.large_string()),
        "truth": pa.array([True, False, None, True]),
        "gaps": pa.array([1, None, 3, 4], pa.int8()),
        "day": pa.array([0, 1, 2, 3], pa.date32()),
        "time": pa.array([0, 1, 2, 3], pa.timestamp("ns", tz="UTC")),
        "list": pa.array([[1], [2], [3], [4]]),
        "bytes": pa.array([b"a", b"b", b"a", b"b"]),
        "nothing": pa.nulls(4),
        "e": pa.array([2**63 + 1, 2**63, None, 2**63], pa.uint64()),
        "y": pa.array([2**53 + 1, 2**53, None, 2**53]),
    }
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    data = read_data(tmp_path / "a.parquet", **NAMES)
    expected = {
        "half": [1, 2, 4],
        "decimal": [1.25, np.nan, 4],
        "category=u": [1, 0, 0],
        "category=v": [0, 1, 0],
        "large=p": [1, 0, 1],
        "large=q": [0, 1, 0],
        "truth": [1, 0, 1],
        "gaps": [1, np.nan, 4],
    }
    assert data.labels.tolist() == [2**53 + 1, 2**53, 2**53]
    assert data.environments.tolist() == [str(2**63 + 1), str(2**63), str(2**63)]
    left_out = " ".join(note for note in data.notes if note.startswith("left out"))
    for name in ("day", "time", "list", "bytes", "nothing"):
        assert repr(name) in left_out
    # Every text of "category" differs in the three rows with a label: it is taken for an ID.
    kept = [name for name in expected if not name.startswith("category")]
    assert data.schema.feature_names == tuple(kept)
    np.testing.assert_array_equal(data.features.T, [expected[name] for name in kept])


def test_days_can_be_environments(tmp_path):
    day = pa.array([0, 1, None, 0], pa.date32())
    columns = {name: pa.array(values) for name, values in BIRDS.items()} | {"day": day}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    data = read_data(tmp_path / "a.parquet", label="y", environment="day")
    assert data.environments.tolist() == ["1970-01-01", "1970-01-02", None, "1970-01-01"]


# --- environments that are measured --------------------------------------------------------------


def ages(n_rows, n_values):
    """Columns of a file whose site is one of n whole numbers."""
    at = np.arange(n_rows)
    return {"x": at / 7, "y": at % 2, "e": 18 + at % n_values}


def days(n_rows, n_values):
    at = np.arange(n_rows) % n_values
    names = [f"2020-{1 + day // 28:02}-{1 + day % 28:02}" for day in at]
    return ages(n_rows, n_values) | {"e": names}


@pytest.mark.parametrize(("draw", "what"), [(ages, "numbers"), (days, "dates")])
def test_many_numbers_or_dates_are_no_environments(draw, what, tmp_path):
    path = write_csv(tmp_path / "a.csv", draw(30 * 21 - 1, 21))
    says = f"environment column 'e' has 21 different {what}: bin them first.*pandas.cut.*hospital"
    with pytest.raises(DataError, match=says):
        read_data(path, **NAMES)
    parquet_file = write_parquet(tmp_path / "a.parquet", draw(30 * 21 - 1, 21))
    with pytest.raises(DataError, match=says):
        open_rows(parquet_file, **NAMES)
    with pytest.raises(DataError, match=says):
        read_data(parquet_file, **NAMES)
    for n_rows, n_values in ((30 * 21, 21), (40, 20)):  # codes of groups, and few
        read_data(write_csv(path, draw(n_rows, n_values)), **NAMES)
    columns = ages(50, 50)
    named = columns | {"e": [f"site {code}" for code in columns["e"]]}
    schema = read_data(write_csv(path, named), **NAMES).schema
    new = read_data(write_csv(path, columns), schema=schema)  # what is predicted may be small
    assert len(set(new.environments)) == 50


# --- arrays -------------------------------------------------------------------------------------


def draw_arrays(random, n=40):
    return {
        "features": random.normal(size=(n, 3)),
        "labels": random.integers(0, 3, n),
        "environments": random.integers(-1, 3, n),
        "split": np.concatenate([[0], random.integers(0, 3, n - 1)]),
    }


def save_npz(folder, arrays):
    np.savez(folder / "a.npz", **arrays)
    return folder / "a.npz"


def save_safetensors(folder, arrays):
    safetensors.save_file(arrays, folder / "a.safetensors")
    return folder / "a.safetensors"


def save_folder(folder, arrays):
    with FeatureWriter(folder / "a", {}, rows_per_shard=10) as writer:
        for i in range(0, 40, 4):
            writer.add(Features(**{name: array[i : i + 4] for name, array in arrays.items()}))
    return folder / "a"


@pytest.mark.parametrize("save", [save_npz, save_safetensors, save_folder])
@pytest.mark.parametrize(("kind", "read_as"), [("f2", "f4"), ("f4", "f4"), ("f8", "f8")])
def test_arrays_are_read_as_they_are(save, kind, read_as, random, tmp_path):
    arrays = draw_arrays(random)
    arrays["features"] = arrays["features"].astype(kind)
    arrays["features"][3, 1] = np.nan
    data = read_data(save(tmp_path, arrays))
    assert data.features.dtype == np.dtype(read_as)
    np.testing.assert_array_equal(data.features, arrays["features"])
    np.testing.assert_array_equal(data.labels, arrays["labels"])
    np.testing.assert_array_equal(data.split, arrays["split"])
    codes = arrays["environments"].tolist()
    assert data.environments.tolist() == [None if code == -1 else code for code in codes]
    assert data.schema.feature_names == ("x0", "x1", "x2")
    assert Schema.from_json(json.loads(json.dumps(data.schema.to_json()))) == data.schema


def test_other_arrays_can_be_named_and_names_of_classes_are_not_read(random, tmp_path):
    arrays = draw_arrays(random) | {
        "class_names": np.array(["a", "b", "c"], dtype=object),
        "environments_extended": random.choice(["p", "q", ""], 40),
        "year": random.integers(2000, 2003, 40).astype(float),
        "mirrored": -random.integers(0, 2, 40),
    }
    path = save_npz(tmp_path, arrays)
    assert set(read_data(path).labels) <= {0, 1, 2}
    data = read_data(path, label="mirrored", environment="environments_extended")
    assert data.labels.tolist() == arrays["mirrored"].tolist()  # -1 is a class
    known = [text or None for text in arrays["environments_extended"].tolist()]
    assert data.environments.tolist() == known
    data = read_data(path, environment=["year", "environments_extended"])
    expected = [t and f"{int(y)} × {t}" for y, t in zip(arrays["year"], known, strict=True)]
    assert data.environments.tolist() == expected
    with pytest.raises(DataError, match="did you mean 'environments_extended'"):
        read_data(path, environment="environment_extended")
    with pytest.raises(DataError, match=r"drop=\['x1'\].*leave them out of the array"):
        read_data(path, drop=["x1"])


def test_labels_of_arrays_may_be_text_bytes_truth_or_missing(random, tmp_path):
    n = 40
    truth = random.integers(0, 2, n).astype(bool)
    for labels, expected in [
        (np.where(truth, "é", "b"), ["é" if t else "b" for t in truth]),
        (np.where(truth, b"a", b"b"), ["a" if t else "b" for t in truth]),
        (truth, [str(t) for t in truth]),
        (np.where(truth, 1.0, np.nan), [1] * truth.sum()),
    ]:
        data = read_data(
            save_npz(tmp_path, draw_arrays(random, n) | {"labels": labels, "split": np.zeros(n)})
        )
        assert data.labels.tolist() == expected


def test_arrays_are_predicted_without_labels(random, tmp_path):
    arrays = draw_arrays(random)
    schema = read_data(save_npz(tmp_path, arrays)).schema
    data = read_data(save_npz(tmp_path, {"features": arrays["features"]}), schema=schema)
    np.testing.assert_array_equal(data.features, arrays["features"])
    assert data.labels is None
    assert data.environments is None
    only_test = arrays | {"split": np.full(40, 2)}
    assert read_data(save_npz(tmp_path, only_test), schema=schema).split.tolist() == [2] * 40
