"""Same input, same bits on one thread; the same to 1e-10 over numbers of threads and chunks."""

import os
import subprocess
import sys

import numpy as np
import pytest
from chunk_support import chunked, cut, draw_chunkable
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import RidgeClassifier
from threadpoolctl import threadpool_limits

from isrlearn import ISR, CellMoments, ISRClassifier, ISRCov, ISRMean, ISRRegressor
from isrlearn.io import open_rows

SAME = 1e-10
SAME_IN_SINGLE = 1e-5  # of rows in single precision: beyond 256 features, and weights of heads
FEW, MANY = 6, 300  # features, on both sides of 256
PRECISIONS = [(FEW, np.float64), (FEW, np.float32), (MANY, np.float64), (MANY, np.float32)]


def methods():
    return {"mean": ISRMean(1), "cov": ISRCov(1), "both": ISR(1)}


def heads():
    """Heads that are solved, not descended to: others stop within their own tolerance."""
    return {
        "ridge": ISRClassifier(ISRMean(1), RidgeClassifier()),
        "discriminant": ISRClassifier(ISRMean(1), LinearDiscriminantAnalysis(), group_weight=None),
    }


def tolerance(n_features, dtype):
    return SAME_IN_SINGLE if n_features > 256 and dtype == np.float32 else SAME


def drawn(random, n_features, dtype):
    """Rows whose spread differs along one column, so clearly that few rows show it."""
    X, y, e = draw_chunkable(random, n_features=n_features, per_cell=80)
    X[:, 0] *= 5.0 * (1 + e)
    return X.astype(dtype), y, e


def relative(found, expected):
    return np.abs(found - expected).max() / np.abs(expected).max()


def numbers_of(model, X, y, e):
    """Everything that a fit finds, as one array."""
    model.fit(X, y, environments=e)
    removed = model.subspace_
    parts = [removed.directions, removed.functionals, removed.centre, removed.spectrum]
    if hasattr(model, "coef_"):
        parts += [model.coef_, model.intercept_]
    return np.concatenate([np.ravel(part) for part in parts])


# --- same bits


@pytest.mark.parametrize(("n_features", "dtype"), PRECISIONS)
def test_a_second_fit_gives_the_same_bits(random, n_features, dtype):
    X, y, e = drawn(random, n_features, dtype)
    models = [*methods().values(), ISRClassifier(ISRMean(1)), ISRRegressor(ISR(1))]
    if n_features == FEW:
        models += [ISR(random_state=0), ISR(rank_test="moments", random_state=0), ISRClassifier()]
        models[-1].set_params(isr__random_state=0)
    with threadpool_limits(1):
        for model in models:
            first, second = (numbers_of(model, X.copy(), y, e) for _ in range(2))
            assert first.tobytes() == second.tobytes()


FRESH = """
import hashlib
import numpy as np
from isrlearn import ISR, ISRClassifier, ISRCov, ISRMean

random = np.random.default_rng({seed})
y = random.choice(["gull", "tern", "auk"], 300)
e = random.choice(["lab", "field", "sea"], 300)
X = random.normal(size=(300, 5)) + 2 * (e == "lab")[:, None] * np.arange(5) + (y == "auk")[:, None]
found = hashlib.sha256()
for isr in (ISRMean(1), ISRCov(1), ISR(random_state=0), ISR(rank_test="moments", random_state=0)):
    found.update(ISRClassifier(isr).fit(X, y, environments=e).coef_.tobytes())
print(found.hexdigest())
"""


def test_fresh_processes_with_other_hashes_give_the_same_bits(random):
    script = FRESH.format(seed=int(random.integers(2**32)))

    def run(hash_seed):
        one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        surroundings = {**os.environ, **one_thread, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", script]
        return subprocess.run(
            command, env=surroundings, capture_output=True, text=True, check=True, timeout=300
        ).stdout

    assert run("1") == run("2") != ""


# --- threads


@pytest.mark.parametrize(("n_features", "dtype"), PRECISIONS)
def test_threads_change_less_than_a_ten_billionth(random, n_features, dtype):
    X, y, e = drawn(random, n_features, dtype)
    close = tolerance(n_features, dtype)
    for model in [*methods().values(), *heads().values()]:
        with threadpool_limits(1):
            model.fit(X, y, environments=e)
            alone, coef = model.subspace_, getattr(model, "coef_", None)
        with threadpool_limits(2):
            model.fit(X, y, environments=e)
        assert model.subspace_.angles_to(alone).max() < close
        if coef is not None:
            assert relative(model.coef_, coef) < (SAME if dtype is np.float64 else SAME_IN_SINGLE)


# --- chunks


@pytest.fixture
def one_thread():
    with threadpool_limits(1):
        yield


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(("n_features", "dtype"), PRECISIONS)
def test_moments_of_chunks(random, n_features, dtype):
    X, y, e = drawn(random, n_features, dtype)
    close = tolerance(n_features, dtype)
    whole, grown = CellMoments.from_rows(X, y, e), CellMoments.empty(n_features)
    parts = cut(random, X, y, e, n_cuts=6)
    for part in parts:
        grown.update(*part)
    summed = sum(CellMoments.from_rows(*part) for part in reversed(parts))
    for found in (grown, summed):
        assert relative(found.means, whole.means) < close
        assert relative(found.scatters, whole.scatters) < close


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("name", methods())
@pytest.mark.parametrize(("n_features", "dtype"), PRECISIONS)
def test_subspaces_of_chunks(random, tmp_path, name, n_features, dtype):
    X, y, e = drawn(random, n_features, dtype)
    whole = methods()[name].fit(X, y, environments=e).subspace_
    streamed = methods()[name]
    for X_part, y_part, e_part in cut(random, X, y, e):
        streamed.partial_fit(X_part, y_part, environments=e_part)
    np.savez(tmp_path / "rows.npz", features=X, labels=y, environments=e)
    found = [
        streamed,
        methods()[name].fit(chunked(random, X, y, e)),
        methods()[name].fit(open_rows(tmp_path / "rows.npz")),
    ]
    for isr in found:
        assert isr.subspace_.angles_to(whole).max() < tolerance(n_features, dtype)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("name", heads())
@pytest.mark.parametrize("n_features", [FEW, MANY])
def test_coefficients_of_chunks(random, name, n_features):
    X, y, e = drawn(random, n_features, np.float64)
    whole = heads()[name].fit(X, y, environments=e).coef_
    assert relative(heads()[name].fit(chunked(random, X, y, e)).coef_, whole) < SAME


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("n_features", [FEW, MANY])
def test_a_descended_head_does_not_depend_on_the_cuts(random, n_features):
    X, y, e = drawn(random, n_features, np.float64)
    model = ISRClassifier(ISRMean(1))
    first, second = (model.fit(chunked(random, X, y, e)).coef_ for _ in range(2))
    assert relative(second, first) < SAME
