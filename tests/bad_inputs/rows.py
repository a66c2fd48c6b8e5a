"""Mistakes in the rows that estimators are given: features, labels, environments, weights."""

import datetime
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
from conftest import draw_rows
from scipy.sparse import csr_array

from bad_inputs.running import Case
from isrlearn import ISRCov, ISRMean, ISRRegressor

X, Y, E = draw_rows(0, n_classes=3)
X = X / X.std(axis=0)
N = len(X)
LONG = "ward " + "x" * 10**5


def objects(values):
    """Return an array of objects, whatever the values are."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def spoilt(place, value):
    def spoil(X, y, e):
        bad = X.copy()
        bad[place] = value
        return bad, y, e

    return spoil


# What spoils X, y and environments, and what is said of it; tests use them on every estimator.
BAD_ROWS = {
    "one environment": (
        lambda X, y, e: (X, y, np.zeros(len(X))),
        r"1 distinct value.*need at least 2.*leave environments out",
    ),
    "each class in an environment of its own": (
        lambda X, y, e: (X, y, np.array(["p", "q", "r"])[y]),
        "can be compared .*each is seen in one environment only.*share classes",
    ),
    "NaN in X": (spoilt((3, 1), np.nan), r"X contains NaN in column\(s\) \[1\], in 1 of .*: drop"),
    "infinity in X": (
        lambda X, y, e: (np.where(X > 1, np.inf, X), y, e),
        r"X contains infinity in column\(s\) .*replace",
    ),
    "y shorter than X": (lambda X, y, e: (X, y[:-1], e), "y has .* values but X has .* rows: give"),
    "environments shorter than X": (
        lambda X, y, e: (X, y, e[:-2]),
        "environments has .* values but X has .* rows: give one value per row",
    ),
    "every environment missing": (
        lambda X, y, e: (X, y, [None] * len(X)),
        "no known value.*leave the argument out",
    ),
    "one class": (lambda X, y, e: (X, np.ones(len(X)), e), "one class.*at least two"),
    "sparse X": (lambda X, y, e: (csr_array(X), y, e), "sparse.*TruncatedSVD.*toarray"),
    "environments of two columns": (
        lambda X, y, e: (X, y, np.c_[e, e]),
        r"environments has shape .*one label per row.*join several",
    ),
    "y of continuous numbers": (
        lambda X, y, e: (X, X[:, 0], e),
        "y is continuous with .* distinct values.*ISRRegressor, or bin",
    ),
    "a missing label in y": (
        lambda X, y, e: (X, np.where(np.arange(len(y)) == 3, None, y), e),
        "y has missing labels.*drop those rows",
    ),
    "y NaN in one row": (
        lambda X, y, e: (X, np.where(np.arange(len(y)) == 3, np.nan, y), e),
        "y has missing labels.*drop those rows",
    ),
    "complex numbers in X": (lambda X, y, e: (X + 1j, y, e), "complex numbers: pass the real part"),
    "text in X": (
        lambda X, y, e: (np.where(X > 0, "high", "low"), y, e),
        "X holds text, such as '(high|low)', but numbers are needed: encode",
    ),
    "numbers written as text in X": (
        lambda X, y, e: (np.round(X, 1).astype(str), y, e),
        "X holds text, such as '.*convert it",
    ),
    "dates in X": (
        lambda X, y, e: (np.full(X.shape, np.datetime64("2020-01-01")), y, e),
        "X holds dates or times: turn them into numbers",
    ),
    "masked values in X": (
        lambda X, y, e: (np.ma.array(X, mask=np.arange(X.size).reshape(X.shape) < 7), y, e),
        "7 masked values: fill them",
    ),
    "X of one dimension": (
        lambda X, y, e: (X[:, 0], y, e),
        r"Expected 2D array, got 1D .*shape \(.*Reshape your data.*reshape\(-1, 1\)",
    ),
    "X of three dimensions": (
        lambda X, y, e: (X[:, :, None], y, e),
        r"X has 3 dimensions, shape .*reshape\(len\(X\), -1\)",
    ),
    "X of no rows": (lambda X, y, e: (X[:0], y[:0], e[:0]), r"0 sample\(s\).*X has no rows"),
    "X of no columns": (lambda X, y, e: (X[:, :0], y, e), r"0 feature\(s\).*X has no columns"),
    "y of two columns": (
        lambda X, y, e: (X, np.c_[y, y], e),
        r"y should be a 1d array.*\(\d+, 2\).*one model for each target",
    ),
    "one row": (lambda X, y, e: (X[:1], y[:1], e[:1]), "one class|at least"),
}


def fitting(spoil, estimator=None):
    estimator = ISRMean() if estimator is None else estimator

    def make(folder):
        features, labels, environments = spoil(X, Y, E)
        estimator.fit(features, labels, environments=environments)

    return make


def case(name, reason=""):
    spoil, says = BAD_ROWS[name]
    return Case(name, fitting(spoil), says, reason)


def fit(says, wrong, spoil, estimator=None):
    return Case(wrong, fitting(spoil, estimator), says)


def features(wrong, says, value):
    return fit(says, wrong, lambda X, y, e: (value(X) if callable(value) else value, y, e))


def labels(wrong, says, value, estimator=None):
    return fit(
        says, wrong, lambda X, y, e: (X, value(y) if callable(value) else value, e), estimator
    )


def places(wrong, says, value, estimator=None):
    return fit(
        says, wrong, lambda X, y, e: (X, y, value(e) if callable(value) else value), estimator
    )


def frame(X, **others):
    return pd.DataFrame(X, columns=[f"age {j}" for j in range(X.shape[1])]).assign(**others)


ROWS = [
    *map(case, ("NaN in X", "infinity in X", "complex numbers in X", "sparse X", "text in X")),
    *map(case, ("numbers written as text in X", "dates in X", "masked values in X")),
    *map(case, ("X of one dimension", "X of three dimensions", "X of no rows", "X of no columns")),
    features("X is None", "X is None, but an array or a table is needed", None),
    features("X is one number", r"got 0D array.*shape \(\)", 3.0),
    features("X is the name of a file", "X='rows.csv' is text.*read_data", "rows.csv"),
    features("X is a dict", "X is a dict.*make one first", lambda X: {"age": X[:, 0]}),
    features("X is a generator", "X is a generator.*make one first", lambda X: (x for x in X)),
    features("rows of different lengths", "not equally long", lambda X: [[1, 2], [3]] * N),
    features(
        "records with fields", "records with fields: stack", np.zeros(N, dtype=[("a", float)])
    ),
    features(
        "dicts in X", "X holds a dict, {}: .*must be.*number", np.full(X.shape, {}, dtype=object)
    ),
    features(
        "a whole number of 400 digits",
        "too large for a float: scale",
        np.full(X.shape, 10**400, dtype=object),
    ),
    features("numbers near the largest float", "so large.*overflow: scale", lambda X: X * 1e160),
    features("X is the path of a file", "X is a PosixPath.*make one first", Path("rows.csv")),
    features("X is an estimator", "X is a ISRMean, but an array or", ISRMean()),
    features("X is a class", "X is a class, but an array or a table", lambda X: ISRMean),
    features(
        "a list in a cell of X",
        r"X holds a list, \[1.0, \[1, 2\]\]: .*must be.*one number",
        lambda X: objects([[1.0, [1, 2]]] * N).reshape(N, 1),
    ),
    features(
        "durations as objects in X",
        "X holds durations: turn",
        np.full(X.shape, np.timedelta64(1, "D"), dtype=object),
    ),
    features(
        "NA in an array of objects",
        r"X contains NaN in column\(s\) \[0\], in 200 of 200 rows",
        lambda X: np.column_stack([np.full(N, pd.NA, dtype=object), X.astype(object)]),
    ),
    features(
        "one text in a list of numbers",
        "X holds text, such as '2'",
        lambda X: [[1.0, "2", 3.0]] * N,
    ),
    features(
        "intervals in a column of a table",
        "column 'age', holds a Interval, Interval.*must be",
        lambda X: frame(X, age=pd.cut(X[:, 0], 3).astype(object)),
    ),
    features(
        "text in a column of a table",
        r"text in column\(s\) \['hospital'\]: drop or encode",
        lambda X: frame(X, hospital="north"),
    ),
    features(
        "dates in a column of a table",
        "column 'born', holds dates or times: turn",
        lambda X: frame(X, born=pd.Timestamp("2020-01-01")),
    ),
    features(
        "NaN in a column of a table",
        r"NaN in column\(s\) \['age 1'\]",
        lambda X: frame(spoilt((3, 1), np.nan)(X, 0, 0)[0]),
    ),
    features(
        "two columns of the same name",
        "X has the column 'a' more than once: rename",
        lambda X: pd.DataFrame(X, columns=list("aabcd")),
    ),
    features(
        "a table with a sparse column",
        "X is sparse.*to_dense",
        lambda X: frame(X).astype(pd.SparseDtype(float)),
    ),
]
LABELS = [
    *map(case, ("y shorter than X", "y of continuous numbers", "a missing label in y")),
    *map(case, ("one class", "y of two columns")),
    labels("y is None", "requires y to be passed", None),
    labels("y is a set", "y={0, 1, 2} is one value: give one label per row", {0, 1, 2}),
    labels(
        "fractions in y",
        "y has labels of type Fraction: use only",
        lambda y: [Fraction(int(v), 3) for v in y],
    ),
    labels(
        "whole numbers of 70 bits in y",
        "y has whole numbers of more than 64 bits: use strings",
        lambda y: [2**70 + int(v) for v in y],
    ),
    labels("y is the name of a column", "y='disease' is one value: give one label per", "disease"),
    labels(
        "y infinite in one row", "y contains infinity: drop", lambda y: np.where(y > 1, np.inf, y)
    ),
    labels(
        "y of complex numbers",
        "y holds complex numbers, which are no labels: use",
        lambda y: y + 1j,
    ),
    labels(
        "text and numbers in y",
        "y mixes labels of type number, str: use only",
        lambda y: objects([int(v) if v else "zero" for v in y]),
    ),
    labels(
        "text and bytes in y",
        "y mixes labels of type bytes, str",
        lambda y: objects([b"a" if v else "a" for v in y]),
    ),
    labels("bytes in y", r"y has labels of type bytes.*\.astype\(str\)", lambda y: y.astype("S")),
    labels(
        "text as the target of a regression",
        "y holds text, such as 'a', but a regressor needs numbers.*ISRClassifier",
        np.array(["a", "b", "c"])[Y],
        ISRRegressor(),
    ),
    labels(
        "a missing value of a regression's target",
        "y has missing values.*drop",
        np.where(Y > 1, np.nan, X[:, 0]),
        ISRRegressor(),
    ),
    labels(
        "durations as the target of a regression",
        "y holds durations: turn",
        objects([datetime.timedelta(1)] * N),
        ISRRegressor(),
    ),
    labels(
        "dates as the target of a regression",
        "y holds dates or times: turn",
        np.full(N, np.datetime64("2020-01-01")),
        ISRRegressor(),
    ),
    labels(
        "a regression's target near the largest float",
        "y is so large.*scale",
        np.where(Y > 1, 1e308, -1e308),
        ISRRegressor(),
    ),
]
ENVIRONMENTS = [
    *map(case, ("one environment", "each class in an environment of its own")),
    *map(case, ("environments shorter than X", "every environment missing")),
    *map(case, ("environments of two columns",)),
    places("environments of one column", r"shape .*, 1\).*\.ravel\(\)", lambda e: e[:, None]),
    places(
        "environments in a dict", "environments={'site': .* is one value", lambda e: {"site": e}
    ),
    places("one name for all rows", "environments='hospital' is one value", "hospital"),
    places(
        "text and numbers in environments",
        "environments mixes labels of type number, str",
        lambda e: [*e[:-1].tolist(), "one"],
    ),
    places(
        "tuples in environments", "type tuple: use only", lambda e: objects([(i, i) for i in e])
    ),
    places(
        "bytes in environments", "environments has labels of type bytes", lambda e: e.astype("S")
    ),
    places("complex environments", "environments holds complex numbers, which", lambda e: e + 1j),
    places("a generator", "environments=<generator .* is one value", lambda e: (v for v in e)),
    places(
        "a name of 100 005 characters",
        r"a label of 100005 characters, 'ward x+\.\.\.x+': give at most 1000",
        objects([LONG] * N),
    ),
    places("a name of 900 characters", r"1 distinct.*xxx\.\.\.xxx", [LONG[:900]] * N),
    places("a name that commands a terminal", r"1 distinct.*\\x1b\[2J", ["ward \x1b[2J\0"] * N),
    places(
        "cells of one row, for covariances",
        "single or identical rows in .*add rows or merge",
        np.arange(N).astype(str),
        ISRCov(),
    ),
    places("an age", f"{N} different numbers: bin them first, .*hospital", np.arange(N)),
    places("fractions of many values", "has 40 different numbers", np.arange(N) % 40 / 2),
]


# Weights, and what the message says; used on every estimator too.
BAD_WEIGHTS = {
    "negative weights": (lambda n: -np.ones(n), r"negative value \(-1\): weights must be >= 0"),
    "weights that are all zero": (np.zeros, "zero for every row: at least one must be positive"),
    "too few weights": (lambda n: np.ones(n - 1), "sample_weight has .* values but X has .* rows"),
    "weights of two columns": (
        lambda n: np.ones((n, 2)),
        r"shape .*, 2\), expected .*one weight per",
    ),
    "NaN among weights": (
        lambda n: np.where(np.arange(n) == 3, np.nan, 1.0),
        "sample_weight contains NaN or infinity in 1 of .*: weights must be finite",
    ),
    "text as weights": (lambda n: ["1.5"] * n, "sample_weight holds text, such as '1.5'"),
    "one word for weights": (lambda n: "balanced", "sample_weight='balanced' is text"),
    "one number for weights": (lambda n: 2.0, r"shape \(\), expected"),
    "complex weights": (lambda n: np.ones(n) + 1j, "sample_weight holds complex numbers"),
    "dates as weights": (
        lambda n: np.full(n, np.datetime64("2020-01-01")),
        "sample_weight holds dates",
    ),
    "weights near the largest float": (
        lambda n: np.full(n, 1e308),
        "from 1e-300 to 1e.200: scale",
    ),
    "masked weights": (
        lambda n: np.ma.array(np.ones(n), mask=np.arange(n) < 3),
        "sample_weight is a masked array: fill it, with 0",
    ),
}


def weighing(weights):
    return lambda folder: ISRMean().fit(X, Y, environments=E, sample_weight=weights(N))


WEIGHTS = [Case(name, weighing(make), says) for name, (make, says) in BAD_WEIGHTS.items()]
