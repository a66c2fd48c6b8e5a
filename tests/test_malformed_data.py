"""Each malformed file gets one line of its own that names the file, the problem and the way out."""

import csv
import re
import sys
import zipfile

import numpy as np
import pytest

from isrlearn.exceptions import DataError, FeatureFileError
from isrlearn.io import Column, FeatureFile, Features, FeatureWriter, Schema, read_data

pa = pytest.importorskip("pyarrow")
pytest.importorskip("safetensors")

from pyarrow import parquet  # noqa: E402

NAMES = {"label": "kind", "environment": "site"}
GOOD = [
    ["size", "colour", "site", "kind"],
    ["1.5", "red", "north", "gull"],
    ["2.5", "blue", "north", "tern"],
    ["3.5", "red", "south", "gull"],
    ["4.5", "blue", "south", "tern"],
    ["5.5", "blue", "south", "tern"],
    ["6.5", "red", "north", "gull"],
]


def good_arrays(**others):
    arrays = {
        "features": np.arange(12.0).reshape(6, 2),
        "labels": np.array([0, 1, 0, 1, 0, 1]),
        "environments": np.array([0, 0, 1, 1, -1, 0]),
    }
    return arrays | others


def write_csv(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


def changed(row, column, value):
    rows = [list(fields) for fields in GOOD]
    rows[row][column] = value
    return rows


def replaced(column, values):
    rows = [list(fields) for fields in GOOD]
    for fields, value in zip(rows[1:], values, strict=True):
        fields[column] = str(value)
    return rows


def with_column(name, values):
    return [[*fields, value] for fields, value in zip(GOOD, [name, *values], strict=True)]


def table(rows, **names):
    return lambda folder: (write_csv(folder / "birds.csv", rows), NAMES | names)


def raw(name, data, **names):
    def write(folder):
        (folder / name).write_bytes(data)
        return folder / name, NAMES | names

    return write


def archive(save=np.savez, drop=None, **others):
    def write(folder):
        arrays = {key: array for key, array in good_arrays(**others).items() if key != drop}
        save(folder / "rows.npz", **arrays)
        return folder / "rows.npz", {}

    return write


def cut_short(folder):
    path, _ = archive()(folder)
    path.write_bytes(path.read_bytes()[:-30])
    return path, {}


def bit_flipped(folder):
    path, _ = archive()(folder)
    data = bytearray(path.read_bytes())
    data[data.index(b"\x93NUMPY") + 130] ^= 0xFF
    path.write_bytes(data)
    return path, {}


def not_an_array(folder):
    with zipfile.ZipFile(folder / "rows.npz", "w") as file:
        file.writestr("features.npy", "hello")
        for name in ("labels", "environments"):
            file.writestr(f"{name}.npy", "hello")
    return folder / "rows.npz", {}


def parquet_with_wrong_text(folder):
    texts = pa.array([b"\xff"] * 6).view(pa.string())
    parquet.write_table(pa.table({"size": range(6), "site": texts}), folder / "birds.parquet")
    return folder / "birds.parquet", NAMES


def empty_folder(folder):
    return folder, {}


def unfinished_folder(folder):
    rows = good_arrays(environments=np.zeros(6, dtype=int))
    writer = FeatureWriter(folder / "features", {}, rows_per_shard=2)
    writer.add(Features(**rows))
    return folder / "features", {}


def continuous(column):
    rows = [list(GOOD[1 + i % 6]) for i in range(30)]
    for i, fields in enumerate(rows):
        fields[column] = f"{i + 0.25}"
    return [GOOD[0], *rows]


CASES = {
    "no file": (lambda folder: (folder / "birds.csv", NAMES), "does not exist: check the path"),
    "unknown ending": (raw("birds.xlsx", b"PK"), r"ends in '\.xlsx'.*give \.csv"),
    "folder without manifest": (empty_folder, "folder without manifest.*name a file inside"),
    "unfinished folder": (unfinished_folder, "not finished.*Run the command"),
    "empty csv": (raw("birds.csv", b" \n\n"), "is empty: .*line of column names"),
    "header only": (table(GOOD[:1]), "column names but no rows: add rows"),
    "ragged row": (table([*GOOD, ["1", "2"]]), "line 8 has 2 fields .* has 4: put a field"),
    "open quote": (raw("birds.csv", b'a,site,kind\n1,n,"x\n'), "line 2 cannot be split.*quotation"),
    "column twice": (table(changed(0, 1, "size")), "column 'size' more than once: rename"),
    "no label named": (table(GOOD, label=None), "label must name the column.*'colour'"),
    "no environment named": (table(GOOD, environment=()), "environment must name.*'colour'"),
    "label absent": (table(GOOD, label="Kidn"), "no column 'Kidn'.*did you mean 'kind'"),
    "environment absent": (table(GOOD, environment="sight"), "'sight' .*did you mean 'site'"),
    "split absent": (table(GOOD, split="fold"), "no column 'fold' .*split.*name one that is there"),
    "drop absent": (table(GOOD, drop=["clour"]), "no column 'clour' .*drop.*mean 'colour'"),
    "label is dropped": (table(GOOD, drop="kind"), "'kind' is named as label and is dropped: do"),
    "two roles": (table(GOOD, environment="kind"), "'kind' is named as label and environment"),
    "environment twice": (table(GOOD, environment=["site", "site"]), "environment and environment"),
    "no feature": (table(GOOD, drop=["size", "colour"]), "no column left for the features: add"),
    "no useful feature": (
        table(replaced(0, [1] * 6), drop="colour"),
        "no column left.*'size': one value only",
    ),
    "no labels": (table(replaced(3, ["", "NA", "?"] * 2)), "no label in any row: fill them in"),
    "continuous label": (table(continuous(3)), "label.* 30 different numbers.*classes are needed"),
    "continuous environment": (table(continuous(2)), "environment.* 30 different.*groups of rows"),
    "stray text": (table(changed(4, 0, "abc")), "line 5: column 'size' is 'abc', but 83%.*mend"),
    "decimal commas": (
        table(replaced(0, ["1,5", "2", "2,25", "3,5", "4,5", "7"])),
        "'size' with a comma, such as '1,5': save it with decimal points",
    ),
    "infinite": (table(changed(2, 0, "-inf")), "line 3: column 'size' is infinite: replace"),
    "infinite below a line break": (
        raw("birds.csv", b'size,site,kind\n1,"a\n\nb",x\n\n1e999,b,y\n'),
        "line 6: column 'size' is infinite",
    ),
    "not UTF-8": (raw("birds.csv", b"a,b\n1,\xe9t\xe9\n"), "line 2 is not UTF-8.*save the file as"),
    "UTF-16": (raw("birds.csv", "a,b\n1,2\n".encode("utf-16")), "UTF-16 text: save it as UTF-8"),
    "binary csv": (raw("birds.csv", b"PAR1\0\0\x01"), "binary data and no text: give it the end"),
    "odd split": (
        table(with_column("fold", ["train", "val", "test", "holdout", "0", "2"]), split="fold"),
        "'fold' is 'holdout' in line 5: write train, validation or test",
    ),
    "gap in split": (
        table(with_column("split", ["train", "", "test", "test", "test", "train"])),
        "'split' is empty in line 3: write train",
    ),
    "no training rows": (
        table(with_column("split", ["test"] * 6)),
        "'split' has no row with a label to train on .*: mark some",
    ),
    "npz cut short": (cut_short, "no npz file, or is cut short: save it again"),
    "npz with a wrong bit": (bit_flipped, "damaged .*: copy or write the file again"),
    "npz without arrays in it": (not_an_array, "damaged .environments is no array.: copy"),
    "npz without features": (
        archive(drop="features", feature=np.ones((6, 2))),
        "no array 'features', .*did you mean 'feature'",
    ),
    "npz without labels": (archive(drop="labels"), "no array 'labels' .*The arrays are"),
    "npz without environments": (archive(drop="environments"), "no array 'environments'"),
    "npz of objects": (
        archive(labels=np.array(["a", "b"] * 3, dtype=object)),
        "labels is an array of Python objects.*strings with dtype str",
    ),
    "flat features": (archive(features=np.ones(6)), r"shape \(6,\), expected .*two dimensions"),
    "no features": (archive(features=np.ones((6, 0))), r"shape \(6, 0\), expected .*at least one"),
    "text features": (archive(features=np.full((6, 2), "a")), "type <U1, but numbers are needed"),
    "infinite features": (
        archive(features=np.array([[1, 2], [3, np.inf]] * 3)),
        "row 2: feature x1 is infinite: replace",
    ),
    "lengths differ": (
        archive(labels=np.zeros(5)),
        "labels has 5 values for 6 rows of features: save one",
    ),
    "labels of two dimensions": (
        archive(labels=np.zeros((6, 1))),
        r"labels has shape \(6, 1\), but one value per row.*one dimension",
    ),
    "labels of dates": (
        archive(labels=np.zeros(6, "M8[s]")),
        "labels has the type datetime64.*save numbers or strings",
    ),
    "npz with odd split": (archive(split=[0, 1, 2, 3, 0, 0]), "'split' is '3' in row 4: write"),
    "damaged parquet": (raw("birds.parquet", b"PAR1 and no more"), "cannot be read as parquet"),
    "parquet with wrong text": (parquet_with_wrong_text, "cannot be read .*utf-8.*write the file"),
    "damaged safetensors": (raw("rows.safetensors", b"\xff" * 30), "safetensors is damaged.*again"),
}


def message_of(write, folder):
    path, names = write(folder)
    with pytest.raises((DataError, FeatureFileError)) as caught:
        read_data(path, **names)
    return path, str(caught.value)


@pytest.mark.parametrize(("write", "expected"), CASES.values(), ids=CASES.keys())
def test_a_malformed_file_is_named_with_its_problem_and_the_way_out(write, expected, tmp_path):
    path, message = message_of(write, tmp_path)
    assert message.startswith(str(path))
    assert "\n" not in message
    assert re.search(expected, message), message


def test_no_two_mistakes_get_the_same_message(tmp_path):
    messages = set()
    for place, (write, _) in enumerate(CASES.values()):
        folder = tmp_path / str(place)
        folder.mkdir()
        path, message = message_of(write, folder)
        messages.add(message.replace(str(path), "FILE"))
    assert len(messages) == len(CASES)


UNFIT = {
    "one class": (replaced(3, ["gull"] * 6), "one class only, 'gull'.*add rows"),
    "small class": (replaced(3, ["gull"] * 5 + ["tern"]), "1 row of class 'tern'.*add rows or"),
    "one environment": (replaced(2, ["north"] * 6), "one environment only, 'north'.*at least two"),
    "no environment": (replaced(2, ["?"] * 6), "no row .*environment is known: name another"),
    "environment is an ID": (replaced(2, range(6)), "6 environments of one row.*groups the rows"),
}


@pytest.mark.parametrize(("rows", "expected"), UNFIT.values(), ids=UNFIT.keys())
def test_what_can_be_read_but_not_fitted_on(rows, expected, tmp_path):
    path = write_csv(tmp_path / "birds.csv", rows)
    data = read_data(path, **NAMES)
    with pytest.raises(DataError, match=expected) as caught:
        data.check_for_fit()
    assert str(caught.value).startswith(str(path))


def test_only_rows_to_train_on_count_for_a_fit(tmp_path):
    path = write_csv(tmp_path / "birds.csv", GOOD)
    read_data(path, **NAMES).check_for_fit()
    north_only = ["train" if fields[2] == "north" else "test" for fields in GOOD[1:]]
    write_csv(path, with_column("split", north_only))
    with pytest.raises(DataError, match="1 row of class 'tern'|one environment only"):
        read_data(path, **NAMES).check_for_fit()


def test_a_file_without_labels_is_not_fitted_on(tmp_path):
    schema = read_data(write_csv(tmp_path / "birds.csv", GOOD), **NAMES).schema
    unlabelled = write_csv(tmp_path / "new.csv", [fields[:3] for fields in GOOD])
    with pytest.raises(DataError, match="new.csv was read without labels"):
        read_data(unlabelled, schema=schema).check_for_fit()


def predicted(rows, *, archived=False):
    def write(folder, schema):
        if archived:
            return archive()(folder)[0], schema
        return write_csv(folder / "new.csv", rows), schema

    return write


def of_other_width(folder, schema):
    return archive()(folder)[0], Schema.of_array(3, "labels", ("environments",))


OTHER_FILES = {
    "columns absent": (predicted([fields[1:] for fields in GOOD]), "lacks 1 of the 2.*'size'"),
    "text for a number": (
        predicted(replaced(0, list("abcdef"))),
        "line 2: column 'size' is 'a', but the model was fitted on numbers",
    ),
    "array for a table": (predicted(GOOD, archived=True), "without column names.*csv or parquet"),
    "other width": (of_other_width, "2 features, but the model was fitted on 3"),
}


@pytest.mark.parametrize(("write", "expected"), OTHER_FILES.values(), ids=OTHER_FILES.keys())
def test_a_file_that_does_not_fit_the_model(write, expected, tmp_path):
    schema = read_data(write_csv(tmp_path / "birds.csv", GOOD), **NAMES).schema
    path, schema = write(tmp_path, schema)
    with pytest.raises(DataError, match=expected) as caught:
        read_data(path, schema=schema)
    assert str(caught.value).startswith(str(path))


def damaged(**changes):
    schema = Schema((Column("a"), Column("b", ("x", "y"))), "y", ("e",), "table")
    written = schema.to_json() | changes
    return {key: value for key, value in written.items() if value is not KeyError}


@pytest.mark.parametrize(
    "written",
    [
        [],
        None,
        damaged(protocol=99),
        damaged(kind="tree"),
        damaged(label=3),
        damaged(environment="e"),
        damaged(environment=[1]),
        damaged(columns=7),
        damaged(columns=[]),
        damaged(columns=KeyError),
        damaged(columns=["a"]),
        damaged(columns=[{"categories": None}]),
        damaged(columns=[{"name": "a", "categories": [1]}]),
        damaged(columns=[{"name": "a"}, {"name": "a"}]),
    ],
    ids=repr,
)
def test_a_damaged_schema_is_refused(written):
    with pytest.raises(DataError, match=r"schema .* is damaged \(.+\): fit the model again"):
        Schema.from_json(written)


@pytest.mark.parametrize(
    ("module", "name"), [("pyarrow.parquet", "a.parquet"), ("safetensors", "a.safetensors")]
)
def test_a_missing_package_is_named_with_its_extra(module, name, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(DataError, match=r"extra 'io': pip install 'isrlearn\[io\]'"):
        read_data(tmp_path / name, **NAMES)


def test_shards_of_different_width_do_not_fit_together(tmp_path):
    with FeatureWriter(tmp_path, {}, rows_per_shard=1) as writer:
        for width in (2, 3):
            rows = good_arrays(features=np.ones((6, width)))
            writer.add(Features(**rows))
    assert len(FeatureFile.open(tmp_path).shards) == 2
    with pytest.raises(DataError, match="do not fit together"):
        read_data(tmp_path)


def test_pickles_are_never_loaded(tmp_path):
    class Bomb:
        def __reduce__(self):
            return pytest.fail, ("a pickle was loaded",)

    array = np.empty(6, dtype=object)
    array[:] = [Bomb() for _ in range(6)]
    for name in ("features", "labels", "environments"):
        np.savez(tmp_path / "rows.npz", **good_arrays(**{name: array}))
        with pytest.raises(DataError, match=f"{name} is an array of Python objects"):
            read_data(tmp_path / "rows.npz")
