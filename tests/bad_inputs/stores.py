"""Mistakes in what commands keep: models, folders of features, stores of benchmark results."""

import json
import re
import sqlite3

import numpy as np
import pandas as pd

from bad_inputs.files import good_arrays
from bad_inputs.running import Case
from isrlearn._seal import UNSEALED, seal
from isrlearn.benchmark import Store, grid
from isrlearn.io import Column, FeatureFile, Features, FeatureWriter, LinearModel, Schema


def small_model():
    schema = Schema.of_array(2, "labels", ("environments",))
    return LinearModel(np.eye(3, 2), np.zeros(3), np.zeros(2), np.array(["a", "b", "c"]), schema)


def bird_model():
    """A model of the columns of `write_birds`."""
    columns = Column("size"), Column("colour", ("blue", "red"))
    schema = Schema(columns, "kind", ("site",), "table")
    classes = np.array(["gull", "tern"])
    return LinearModel(np.ones((1, 3)), np.zeros(1), np.zeros(3), classes, schema)


def birds(**columns):
    return pd.DataFrame({"size": [1.5, 2.5], "colour": ["red", "blue"]} | columns)


def seal_again(path):
    """Do what somebody does who changes a file on purpose."""
    path.write_bytes(re.sub(rb"isrlearn-sha256:[0-9a-f]{64}", UNSEALED.encode(), path.read_bytes()))
    seal(path)


def loading(change, sealed=False):
    """Return what damages a model file and loads it."""

    def make(folder):
        path = folder / "m.safetensors"
        small_model().save(path)
        path.write_bytes(change(path.read_bytes()))
        if sealed:
            seal_again(path)
        LinearModel.load(path)

    return make


def opening(change, read=False):
    """Return what damages a folder of features and opens it."""

    def make(folder):
        with FeatureWriter(folder, {"network": "a"}) as writer:
            writer.add(Features(**good_arrays(environments=np.zeros(6, dtype=int))))
        change(folder)
        file = FeatureFile.open(folder)
        if read:
            file.read()

    return make


def manifest(**changes):
    def change(folder):
        written = json.loads((folder / "manifest.json").read_text())
        (folder / "manifest.json").write_text(json.dumps(written | changes))
        seal_again(folder / "manifest.json")

    return change


def flip(folder):
    shard = next(folder.glob("*.safetensors"))
    data = bytearray(shard.read_bytes())
    data[-1] ^= 0xFF
    shard.write_bytes(data)


def adding_to_other_features(folder):
    opening(lambda folder: None)(folder)
    FeatureWriter(folder, {"network": "b"})


OUTSIDE = [{"name": "../x", "rows": 1, "sha256": "", "bytes": 1}]
_WORDS = r"(?<=wrote \().*(?=\)\.$)"


def small_file(folder):
    (folder / "notes").write_text("mine", encoding="utf-8")
    return folder / "notes"


def adding(rows):
    def make(folder):
        with FeatureWriter(folder / "features", {}) as writer:
            writer.add(rows)

    return make


MODELS = [
    Case(
        "a tuple for features",
        adding((np.zeros((2, 3)), np.zeros(2, int), np.zeros(2, int))),
        r"cannot be added: give Features\(features, labels, environments\)",
    ),
    Case(
        "no rows in a shard",
        lambda folder: FeatureWriter(folder / "features", {}, rows_per_shard=0),
        "rows_per_shard=0 must be a whole number from 1",
    ),
    Case(
        "a file in the place of a folder of features",
        lambda folder: FeatureWriter(small_file(folder), {}),
        "notes is a file: name a folder",
    ),
    Case(
        "a model that is not there",
        lambda folder: LinearModel.load(folder / "m.safetensors"),
        "m.safetensors is not there: name a model",
    ),
    Case("a model cut short", loading(lambda data: data[:60]), "m.safetensors is not a m", _WORDS),
    Case(
        "a pickle for a model",
        loading(lambda data: b"\x80\x04pickle"),
        "m.safetensors is not a model",
        _WORDS,
    ),
    Case(
        "a model of another protocol",
        loading(
            lambda data: data.replace(b'\\"protocol\\": 2, \\"sch', b'\\"protocol\\": 9, \\"sch'),
            sealed=True,
        ),
        "protocol 9.* this version reads",
    ),
    Case(
        "rows of another width for a model",
        lambda folder: small_model().predict(np.zeros((4, 3))),
        r"shape \(4, 3\), but the model has 2 features",
    ),
    Case(
        "a DataFrame without a column of the model",
        lambda folder: bird_model().predict(birds().rename(columns={"size": "Size"})),
        "DataFrame lacks 1 of the 2 columns .*: add 'size', or rename 'Size' to 'size'",
    ),
    Case(
        "a DataFrame with text for a number",
        lambda folder: bird_model().predict(birds(size=["1.5", "large"])),
        "DataFrame, row 2: column 'size' is 'large', but the model was fitted on numbers there",
    ),
    Case(
        "the prior of other classes",
        lambda folder: bird_model().with_prior({"gull": 0.5, "auk": 0.5}),
        "prior has the labels .'gull', 'auk'., but .*: give the share of each",
    ),
    Case(
        "a prior of the training rows that is not kept",
        lambda folder: bird_model().with_prior("training"),
        "prior='training' is not known to this model: give the share of each class",
    ),
    Case(
        "a class that is never there",
        lambda folder: bird_model().with_prior([1, 0]),
        r"prior=\[1, 0\] must be 2 positive shares",
    ),
    Case(
        "a second prior",
        lambda folder: bird_model().with_prior([0.2, 0.8]).with_prior([0.2, 0.8]),
        "knows a prior already .'given'.*: take the model that counts classes alike",
    ),
    Case(
        "a folder without features",
        lambda folder: FeatureFile.open(folder),
        "no manifest.json: not a feature file",
    ),
    Case(
        "features of another protocol", opening(manifest(protocol=99)), "protocol 99; this version"
    ),
    Case("a shard outside the folder", opening(manifest(shards=OUTSIDE)), "'../x', outside the"),
    Case(
        "a changed byte in a model",
        loading(lambda data: data[:-1] + bytes([data[-1] ^ 1])),
        "is damaged: its content is not what was sealed",
    ),
    Case("a changed byte in a shard", opening(flip, read=True), "is damaged: its hash"),
    Case(
        "features of another network, added",
        adding_to_other_features,
        r"something else \(network differ",
    ),
]


def checking(content):
    """Return what checks a file with some content as a store."""

    def make(folder):
        (folder / "s.sqlite").write_bytes(content)
        Store(folder / "s.sqlite").check()

    return make


def database(statement, *, store):
    def make(folder):
        path = folder / "s.sqlite"
        if store:
            Store(path).create()
        connection = sqlite3.connect(path)
        connection.execute(statement)
        connection.close()
        Store(path).check()

    return make


def jobs(wrong, says, **changes):
    given = {"methods": ["isr"], "examples": ["3"], "n_environments": [2], "seeds": [0]}
    return Case(wrong, lambda folder: grid(**given | changes), says)


STORES = [
    Case(
        "no store", lambda folder: Store(folder / "s.sqlite").check(), "no store.*bench run makes"
    ),
    Case("a folder for a store", lambda folder: Store(folder).create(), "is a folder"),
    Case(
        "a csv for a store",
        checking(b"example,method\n" * 50),
        "cannot be used as a store",
        theirs=True,
    ),
    Case("an empty file for a store", checking(b""), "cannot be used as a store"),
    Case(
        "a database of another program",
        database("CREATE TABLE results (job TEXT)", store=False),
        "another program",
    ),
    Case(
        "a store of another protocol",
        database("PRAGMA user_version = 99", store=True),
        "protocol 99",
    ),
    jobs("one environment in a job", "1 environments are too few.*at least 2", n_environments=[1]),
    jobs("an example that is not there", "'9' must be one of", examples=["9"]),
    jobs("a method that is not in the benchmark", "method 'magic' must be", methods=["magic"]),
    jobs("a rule that is not there", "rule 'best' must be one of", rule="best"),
]
