"""Arrays that nobody meant, for `fit` and for what is rebuilt from arrays."""

import warnings
from contextlib import suppress

import numpy as np

from fuzz import seeds
from fuzz.mutation import Source

TYPES = ("f8", "f4", "f2", "i8", "i4", "u1", "u8", "?", "c16", "O", "U3", "M8[s]", "g", ">f8")
VALUES = (
    0.0, 1.0, -1.0, 2.0, 0.5, 3.0, -2.5, np.nan, np.inf, -np.inf, 5e-324, 1e-310, 1e-160, 1e-20,
    1e8, 1e16, 1e150, 1e154, 1e300, -1e308, 3.4e38, 2.0**53, 1e-45, 65504.0,
)  # fmt: skip
FINITE = tuple(value for value in VALUES if abs(value) < 1e150)
LABELS = (
    [0, 1, 2], ["a", "b", ""], [True, False, True], [0.0, 1.0, np.nan], [0.5, 1.5, 2.5],
    ["a", 1, None], [None, "b", "c"], [-1, 2**62, -(2**63)], [b"a", b"b", b"c"], ["nan", "a", "b"],
    [10**30, 1, 2], [1 + 2j, 2, 3], [(1, 2), 3, 4], ["\ud800", "a", "b"], ["\0", "a", "a\0"],
    [np.datetime64("2020-01-01"), np.datetime64("NaT"), np.datetime64(0, "s")],
)  # fmt: skip
SPURIOUS = (1, "auto", 0, 2, 5, -1, None, 1.0, True, "one", np.int64(1), np.nan)
USUAL = (1, 1, "auto", "auto", 0, 2)
ODD = (None, "", "a", -1, 10**12, 0.5, np.nan, [], [[1]], {"a": 1}, True, np.array(1), (1, 2))


def features(source: Source):
    """Return n rows of d features, few, of some type."""
    n = source.one_of((12, 16, 20, 24, 12, 16, 20, 24, 8, 8, 6, 4, 3, 2, 1, 0))
    d = source.one_of((2, 3, 2, 3, 5, 5, 1, 1, 4, 2, 3, 0))
    random = np.random.default_rng(source.byte())
    X = random.normal(size=(n, d)) * source.one_of((1.0, 1.0, 1e-3, 1e6, 1e-160, 1e140))
    X += source.one_of((0.0, 0.0, 1e4, 1e9))
    if source.below(3) == 2 and d > 1:
        X[:, -1] = X[:, 0] * source.one_of((1.0, 0.0, 1 + 1e-12))
    some = VALUES if source.below(3) == 2 else FINITE
    for _ in range(source.below(5)):
        if X.size:
            X.flat[source.below(X.size)] = source.one_of(some)
    return _as_type(X, source)


def _as_type(X, source):
    kind = source.below(64)
    if kind >= len(TYPES):
        return X
    X = _cast(X, TYPES[kind])
    shape = source.below(8)
    odd = {5: lambda: X.tolist(), 6: lambda: X[None], 7: lambda: X.ravel()}
    return odd[shape]() if shape in odd else X


def labels(n, source: Source):
    """Return about n labels of some kind."""
    values = LABELS[source.below(len(LABELS))] if source.below(8) == 7 else LABELS[source.below(2)]
    n_values = source.one_of((2, 2, 2, 3, 3, 1))
    cycle = [values[i % n_values] for i in range(max(0, n))]
    for _ in range(source.below(4)):
        if cycle:
            cycle[source.below(len(cycle))] = values[source.below(n_values)]
    if source.below(2):
        cycle.sort(key=str)
    return _as_container(cycle, source)


def _as_container(values, source):
    kind = source.below(32)
    if kind in (29, 30):
        values = values[:-1] if kind == 29 else [*values, *values[:1]]
    if kind == 31:
        return source.one_of(ODD)
    if kind < 12:
        return values
    try:
        return np.array(values, dtype=object if kind < 16 else None)
    except ValueError:
        return values


def weights(n, source: Source):
    kind = source.below(8)
    if kind < 4:
        return None
    found = np.full(n, source.one_of((1.0, 1.0, 1.0, 1e-200, 1e140, 1e-298, 1e149)))
    some = VALUES if kind == 6 else tuple(value for value in FINITE if value >= 0)
    for _ in range(source.below(5)):
        if n:
            found[source.below(n)] = source.one_of(some)
    return found if kind < 7 else _as_container(found.tolist(), source)


def settings(source: Source, *, first="n_spurious"):
    found = {first: source.one_of(SPURIOUS) if source.below(4) == 3 else source.one_of(USUAL)}
    others = (
        ("scale", (0.0, 0.5, 1.0, -1, np.nan, "0", None, True)),
        ("condition_on", (None, 0, "a", [0, 1], ["a"], [], [[0]], "zz", np.nan)),
        ("alpha", (0.01, 0.5, 0, 1, np.nan, "0.1", None)),
        ("rank_test", ("permutation", "moments", "none", None)),
        ("reduced", (False, True, None, "yes")),
        ("random_state", (0, None, -1, "seed", 2**33)),
    )
    for _ in range(max(0, source.below(5) - 2)):
        name, values = source.one_of(others)
        found[name] = source.one_of(values)
    found["n_permutations"] = source.one_of((*[19] * 30, 99, 0, -1, 1.5, "9"))
    found.setdefault("alpha", 0.05)  # that 19 permutations can give
    return found


def arguments(source: Source):
    X = features(source)
    n = len(X)
    y = labels(n, source)
    environments = labels(n, source) if source.below(16) else None
    if source.below(2):
        environments = np.sort(np.arange(n) % 3)
    return X, y, {"environments": environments, "sample_weight": weights(n, source)}


def fit_transformer(name):
    def run(source, folder):
        import isrlearn

        own = settings(source)
        if name == "ISRCov":
            own["pairs"] = source.one_of(("all", "distinct", (0, 1), ("a", "b"), (0, 0), "x", 3))
        X, y, others = arguments(source)
        fitted = getattr(isrlearn, name)(**own).fit(X, y, **others)
        found = fitted.transform(X)
        assert found.ndim == 2 and np.isfinite(np.asarray(found, dtype=float)).all()

    return run


def fit_predictor(name):
    def run(source, folder):
        import isrlearn

        own = settings(source)
        kind = source.one_of(("ISRMean", "ISR", "ISRCov"))
        isr = None if source.below(6) == 5 else getattr(isrlearn, kind)(**own)
        X, y, others = arguments(source)
        if name == "ISRRegressor" and source.below(4):
            y = np.linspace(-1, 1, max(len(X), 1))[: len(X)] * source.one_of((1.0, 1e-5, 1e8))
        more = {} if name == "ISRRegressor" else {"group_weight": source.one_of((None, "balanced"))}
        fitted = getattr(isrlearn, name)(isr, **more).fit(X, y, **others)
        assert len(fitted.predict(X)) == len(X)
        if hasattr(fitted, "coef_"):
            assert np.isfinite(fitted.coef_).all()

    return run


FITS = {name: fit_transformer(name) for name in ("ISRMean", "ISRCov", "ISR")} | {
    name: fit_predictor(name) for name in ("ISRClassifier", "ISRRegressor")
}


def changed_arrays(arrays, source: Source):
    """Return arrays by name of which some are left out, reshaped, cast, or have other values."""
    arrays = {name: np.array(value) for name, value in arrays.items()}
    for _ in range(source.below(4)):
        if not source or not arrays:
            break
        name = source.one_of(sorted(arrays))
        change = source.below(6)
        if change == 0:
            del arrays[name]
        elif change == 1:
            arrays[name] = arrays[name].ravel()[: source.below(8)]
        elif change == 2:
            arrays[name] = np.expand_dims(arrays[name], 0)
        elif change == 3:
            arrays[name] = _cast(arrays[name], source.one_of(TYPES))
        elif change == 4 and arrays[name].size:
            value = source.one_of(VALUES)
            arrays[name] = _put(arrays[name], source.below(arrays[name].size), value)
        else:
            arrays[name] = np.asarray(_plain(source.one_of(ODD)))
    return arrays


def _plain(value):
    return "x" if isinstance(value, dict) else value


def _cast(array, kind):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return array.astype(kind)
        except (ValueError, TypeError, RuntimeError):  # the last: a date as a short text
            return array


def _put(array, place, value):
    array = array.copy()
    with np.errstate(all="ignore"), suppress(ValueError, TypeError, OverflowError):
        array.flat[place] = value
    return array


def subspace_arrays(source, folder):
    from isrlearn.subspace import Subspace

    found = Subspace.from_arrays(changed_arrays(seeds.subspace(), source))
    found.project(np.zeros((2, found.n_features)))
    found.kept  # noqa: B018
    assert np.isfinite(found.matrix()).all()


def moment_arrays(source, folder):
    from isrlearn.moments import CellMoments

    found = CellMoments.from_arrays(changed_arrays(seeds.moments(), source))
    repr(found)
    found.counts_table()
    found + found  # noqa: B018
