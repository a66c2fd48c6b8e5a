"""Mistakes in files: of rows, for a model, of a model, of features, and of benchmark results."""

import csv
import zipfile
from contextlib import suppress

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from bad_inputs.running import Case
from isrlearn.io import Features, FeatureWriter, Schema, read_data

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
    with suppress(RuntimeError), FeatureWriter(folder / "features", {}, rows_per_shard=2) as writer:
        writer.add(Features(**rows))
        raise RuntimeError  # before the end
    return folder / "features", {}


def many(column, value):
    rows = [list(GOOD[1 + i % 6]) for i in range(30)]
    for i, fields in enumerate(rows):
        fields[column] = value(i)
    return [GOOD[0], *rows]


def continuous(column):
    return many(column, lambda i: f"{i + 0.25}")


BAD_FILES = {
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
    "continuous environment": (
        table(continuous(2)),
        "environment.* 30 different.*not whole.*bin them",
    ),
    "age as environment": (
        table(many(2, lambda i: 30 + i)),
        "environment column 'site' has 30 different numbers: bin them first, .* the hospital",
    ),
    "dates as environment": (
        table(many(2, lambda i: f"2020-01-{i + 1:02}")),
        "environment column 'site' has 30 different dates: bin them first",
    ),
    "stray text": (
        table(changed(4, 0, "abc")),
        "line 5: column 'size' is 'abc', but 83%.*correct",
    ),
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
    "a formula among labels": (
        table(changed(2, 3, '=HYPERLINK("http://x";"y")')),
        "line 3: column 'kind' is the formula '=HYPER.*: save values instead of formulas",
    ),
    "a formula among environments": (
        table(changed(4, 2, "=cmd|' /C calc'!A0")),
        "line 5: column 'site' is the formula .*: save values",
    ),
    "a formula among texts": (
        table(changed(3, 1, "=A1")),
        "line 4: column 'colour' is the formula '=A1': save values",
    ),
    "a formula for a number": (
        table(changed(6, 0, "=SUM(A2:A6)")),
        r"line 7: column 'size' is the formula '=SUM\(A2:A6\)': save values",
    ),
    "a formula for the name of a column": (
        table(changed(0, 0, "=A1+1")),
        r"the name of a column is the formula '=A1\+1': save values",
    ),
    "another separator in one line": (
        raw("birds.csv", b"size,site,kind\n1,a,x\n2;b;y\n"),
        "line 3 has 1 fields .* has 3: put a field",
    ),
    "a line above the names of the columns": (
        raw("birds.csv", b"# of the harbour\nsize,site,kind\n1,a,x\n2,b,y\n"),
        "line 2 has 3 fields .* has 1: put .*, and remove what stands above the names",
    ),
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
    "parquet with wrong text": (parquet_with_wrong_text, "cannot be read .*(?i:utf-?8).*write"),
    "damaged safetensors": (raw("rows.safetensors", b"\xff" * 30), "safetensors is damaged.*again"),
}


BAD_FOR_A_FIT = {
    "one class": (replaced(3, ["gull"] * 6), "one class only, 'gull'.*add rows"),
    "small class": (replaced(3, ["gull"] * 5 + ["tern"]), "1 row of class 'tern'.*add rows or"),
    "one environment": (replaced(2, ["north"] * 6), "one environment only, 'north'.*at least two"),
    "no environment": (replaced(2, ["?"] * 6), "no row .*environment is known: name another"),
    "environment is an ID": (replaced(2, range(6)), "6 environments of one row.*groups the rows"),
}


def reading(write):
    """Return what writes a file and reads it."""

    def make(folder):
        path, names = write(folder)
        read_data(path, **names)

    return make


# Words of pyarrow, safetensors, zipfile and csv, which change with their versions.
_REASON = r"(?<=\()[^()]*(?:\([^()]*\)[^()]*)*(?=\): (?:copy|write|save|look))"


def asking(wrong, says, **names):
    """Return the case of a good table, of which something impossible is asked."""

    def make(folder):
        read_data(write_csv(folder / "birds.csv", GOOD), **NAMES | names)

    return Case(wrong, make, says)


DATA_FILES = [
    *(Case(name, reading(write), says, _REASON) for name, (write, says) in BAD_FILES.items()),
    asking("a number for a label", "label=3 must be the name of a column", label=3),
    asking("a list for a label", r"label=\['kind'\] must be the name", label=["kind"]),
    asking("a number for environments", "environment=3 must be a name, or a list", environment=3),
    asking("a number for what is dropped", "drop=3 must be a name, or a list", drop=3),
    asking("a number among names", "drop=7 must be the name of a column", drop=["size", 7]),
    asking("a word for a schema", "schema='x' must be that of a model", schema="x"),
]


def fitting_on(rows):
    def make(folder):
        read_data(write_csv(folder / "birds.csv", rows), **NAMES).check_for_fit()

    return make


UNFIT = [Case(name, fitting_on(rows), says) for name, (rows, says) in BAD_FOR_A_FIT.items()]


def predicted(rows, *, archived=False):
    def write(folder, schema):
        if archived:
            return archive()(folder)[0], schema
        return write_csv(folder / "new.csv", rows), schema

    return write


def of_other_width(folder, schema):
    return archive()(folder)[0], Schema.of_array(3, "labels", ("environments",))


BAD_FOR_A_MODEL = {
    "columns absent": (predicted([fields[1:] for fields in GOOD]), "lacks 1 of the 2.*'size'"),
    "text for a number": (
        predicted(replaced(0, list("abcdef"))),
        "line 2: column 'size' is 'a', but the model was fitted on numbers",
    ),
    "array for a table": (predicted(GOOD, archived=True), "without column names.*csv or parquet"),
    "other width": (of_other_width, "2 features, but the model was fitted on 3"),
}


def predicting(write):
    def make(folder):
        schema = read_data(write_csv(folder / "birds.csv", GOOD), **NAMES).schema
        path, schema = write(folder, schema)
        read_data(path, schema=schema)

    return make


OTHER_FILES = [
    Case(name, predicting(write), says) for name, (write, says) in BAD_FOR_A_MODEL.items()
]
