"""Rows on a device give what rows of NumPy give, and only sums of them come to the host.

There need not be an accelerator. Arrays of array_api_strict on its made-up devices refuse to be
read by NumPy, and so do CPU tensors of torch here, which are taken for tensors of a GPU.
"""

import re
import sys

import numpy as np
import pandas as pd
import pytest
from conftest import draw_rows
from sklearn.linear_model import LogisticRegression
from test_imports import modules_after

from isrlearn import (
    ISR,
    CellMoments,
    ISRClassifier,
    ISRCov,
    ISRMean,
    ISRRegressor,
    Subspace,
)
from isrlearn.baselines import GroupDRO
from isrlearn.moments import _device_sums
from isrlearn.moments._device_sums import device_moments
from isrlearn.rows import _device
from isrlearn.rows._device import on_device, to_host
from isrlearn.rows._validation import check_rows

pytest.importorskip("array_api_compat")
strict = pytest.importorskip("array_api_strict")

TOLERANCE = {np.float64: 1e-10, np.float32: 1e-4}
both_types = pytest.mark.parametrize("dtype", TOLERANCE, ids=["double", "single"])


def on_strict(X, device="device1"):
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        pytest.skip("array_api_strict has devices with NumPy 2 alone")
    return strict.asarray(np.array(X), device=strict.Device(device))


def refuse_to_be_read(*_, **__):
    raise TypeError("this tensor is on a device.")


@pytest.fixture(params=["torch", "strict"])
def away(request, monkeypatch):
    """A function that brings arrays to a device."""
    if request.param == "strict":
        return on_strict
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(_device, "_is_host", lambda device: False)
    monkeypatch.setattr(torch.Tensor, "__array__", refuse_to_be_read)
    return lambda X: torch.from_numpy(np.array(X))


@pytest.fixture
def rows(random):
    """X, y, environments of cells that differ, in no order."""
    X, y, e = draw_rows(random.integers(2**31), n_classes=3, per_cell=30)
    order = random.permutation(len(X))
    return X[order], y[order], e[order]


def assert_close(found, expected, tolerance):
    scale = np.abs(expected).max(initial=1e-300)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


def assert_same_moments(found, expected, tolerance=1e-10):
    for name in ("classes", "environments", "class_index", "environment_index", "counts"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for name in ("weights", "means", "largest"):
        assert_close(getattr(found, name), getattr(expected, name), tolerance)
    assert found.precision == expected.precision
    assert (found.scatters is None) == (expected.scatters is None)
    for cell in range(0 if expected.scatters is None else len(expected.counts)):
        assert_close(found.scatters[cell], expected.scatters[cell], tolerance)


# --- which arrays are on a device


def test_what_numpy_reads_is_not_on_a_device():
    table = pd.DataFrame({"device": [1.0, 2.0]})
    at_home = strict.asarray([1.0], device=strict.Device("CPU_DEVICE"))
    for X in (np.ones(3), np.float64(1), [1.0], "cpu", None, table, table["device"], at_home):
        assert not on_device(X)
        assert to_host(X) is X
    assert on_device(on_strict([1.0]))


def test_a_tensor_is_on_a_device_unless_that_is_the_cpu():
    torch = pytest.importorskip("torch")
    assert not on_device(torch.ones(2, 3))
    assert on_device(torch.ones(2, 3, device="meta"))
    assert on_device(torch.nn.Parameter(torch.ones(2, device="meta")))


def test_rows_of_numpy_load_neither_torch_nor_array_api_compat():
    code = (
        "import numpy as np, isrlearn\n"
        "X, y, e = np.random.default_rng(0).normal(size=(60, 3)), [0, 1] * 30, [0, 0, 1] * 20\n"
        "isrlearn.ISRCov(1).fit(X, y, environments=e).transform(X)"
    )
    roots = {name.partition(".")[0] for name in modules_after(code)}
    assert not roots & {"torch", "array_api_compat"}


def test_without_array_api_compat_the_message_names_it(rows, away, monkeypatch):
    monkeypatch.setitem(sys.modules, "array_api_compat", None)
    X, y, e = rows
    with pytest.raises(ValueError, match=r"device.*pip install array-api-compat.*X\.cpu\(\)"):
        CellMoments.from_rows(away(X), y, e)


# --- moments


@both_types
@pytest.mark.parametrize("second_order", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_moments_are_those_of_numpy(rows, away, random, dtype, second_order, weighted):
    X, y, e = rows[0].astype(dtype), *rows[1:]
    weights = random.uniform(0.1, 9.0, size=len(X)) if weighted else None
    found = CellMoments.from_rows(away(X), y, e, weights, second_order=second_order)
    expected = CellMoments.from_rows(X, y, e, weights, second_order=second_order)
    assert_same_moments(found, expected, TOLERANCE[dtype])
    if second_order:
        np.testing.assert_array_equal(found.scatters, found.scatters.swapaxes(1, 2))


@both_types
def test_blocks_make_no_difference(rows, away, random, dtype, monkeypatch):
    X, y, e = rows[0].astype(dtype), *rows[1:]
    weights, there = random.uniform(0.1, 9.0, size=len(X)), away(X)
    whole = CellMoments.from_rows(there, y, e, weights)
    subspace = Subspace.orthogonal(np.eye(5)[:2], centre=random.normal(size=5))
    projected = to_host(subspace.project(there))
    for n_rows in (1, 7):
        monkeypatch.setattr(_device, "BLOCK_BYTES", n_rows * 5 * X.itemsize)
        monkeypatch.setattr(_device_sums, "SAMPLE", n_rows)
        found = CellMoments.from_rows(there, y, e, weights)
        assert_same_moments(found, whole, TOLERANCE[dtype])
        assert_close(to_host(subspace.project(there)), projected, TOLERANCE[dtype])


def test_only_sums_come_to_the_host(rows, away, monkeypatch):
    X, y, e = rows
    seen = []

    def watched(values):
        seen.append(int(np.prod(values.shape)))
        return to_host(values)

    monkeypatch.setattr(_device, "to_host", watched)
    monkeypatch.setattr(_device, "MOST_ROWS", 8)
    ISRCov(1).fit(away(X), y, environments=e).transform(away(X))
    assert max(seen) == X.shape[1] ** 2 < len(X)


@pytest.mark.parametrize("unknown", ["some", "all"])
def test_rows_of_unknown_environment_do_not_enter(rows, away, random, unknown):
    X, y, e = rows
    e = e.astype(float)
    e[random.permutation(len(e))[: len(e) // 3] if unknown == "some" else slice(None)] = np.nan
    known = ~np.isnan(e)
    found = CellMoments.from_rows(away(X), y, e)
    assert_same_moments(found, CellMoments.from_rows(X, y, e))
    if known.any():
        assert_same_moments(found, CellMoments.from_rows(X[known], y[known], e[known]))


def test_rows_of_weight_zero_are_no_rows(rows, away, random):
    X, y, e = rows
    weights = random.integers(0, 3, size=len(X)).astype(float)
    found = CellMoments.from_rows(away(X), y, e, weights)
    assert_same_moments(found, CellMoments.from_rows(X, y, e, weights))


def test_labels_and_weights_may_be_on_the_device(rows, away, random):
    X, y, e = rows
    weights = random.uniform(0.1, 9.0, size=len(X))
    expected = CellMoments.from_rows(X, y, e, weights)
    columns = [away(column) for column in (y, e, weights)]
    assert_same_moments(CellMoments.from_rows(away(X), *columns), expected)
    assert_same_moments(CellMoments.from_rows(X, *columns), expected)


def test_chunks_on_a_device_add_up(rows, away):
    X, y, e = rows
    moments = CellMoments.empty(X.shape[1])
    for part in np.array_split(np.arange(len(X)), 4):
        moments.update(away(X[part]), y[part], e[part])
    assert_same_moments(moments, CellMoments.from_rows(X, y, e))


@pytest.mark.parametrize("device", ["no_float64", "no_x64"])
@pytest.mark.parametrize("exponents", [(-25, -25), (18, 25), (-25, 25)])
def test_units_do_not_matter_where_there_is_no_double_precision(rows, random, device, exponents):
    X, y, e = rows
    X = (X * 10.0 ** random.uniform(*exponents, size=X.shape[1])).astype(np.float32)
    found = CellMoments.from_rows(on_strict(X, device), y, e)
    expected = CellMoments.from_rows(X.astype(np.float64), y, e)
    units = np.abs(X).max(axis=0).astype(np.float64)
    assert_close(found.means / units, expected.means / units, 1e-4)
    square = np.outer(units, units)
    assert_close(found.scatters / square, expected.scatters / square, 1e-4)


def test_far_from_zero_no_digits_are_lost(rows, away):
    X, y, e = rows
    X = (X + 1e4).astype(np.float32)
    assert_same_moments(
        CellMoments.from_rows(away(X), y, e), CellMoments.from_rows(X, y, e), tolerance=1e-4
    )


def test_a_row_far_from_the_others_spoils_no_digits(away, random):
    X = random.normal(size=(5000, 1)).astype(np.float32)
    X[0] = 1e4  # as the centre, it would leave nothing of what the others differ by
    codes = np.zeros(len(X), dtype=np.intp)
    _, means, scatters, _ = device_moments(away(X), codes, 1, None, True)
    X = X.astype(np.float64)
    assert_close(means[0], X.mean(axis=0), 1e-5)
    assert_close(scatters[0, 0], ((X - X.mean()) ** 2).sum(), 5e-5)


# --- what is refused


@pytest.mark.parametrize("second_order", [True, False])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("known", [True, False])
def test_the_columns_that_are_not_finite_are_named(rows, away, random, second_order, value, known):
    X, y, e = rows
    e = e.astype(float)
    bad = random.permutation(len(X))[:2]
    e[bad] = e[bad] if known else np.nan
    X[bad[0], 1], X[bad[1], 3] = value, value
    what = "NaN" if np.isnan(value) else "infinity"
    message = re.escape(f"X contains {what} in column(s) [1, 3], in 2 of {len(X)} rows")
    with pytest.raises(ValueError, match=message):
        CellMoments.from_rows(away(X), y, e, second_order=second_order)
    with pytest.raises(ValueError, match=message):
        CellMoments.from_rows(X, y, e, second_order=second_order)


def test_transform_names_the_columns_that_are_not_finite(rows, away):
    X, y, e = rows
    isr = ISRMean(1).fit(X, y, environments=e)
    X[4, 2] = np.nan
    with pytest.raises(ValueError, match=r"NaN in column\(s\) \[2\], in 1 of"):
        isr.transform(away(X))


def test_values_too_large_to_square_are_refused(rows, away):
    X, y, e = rows
    with pytest.raises(ValueError, match="so large.*StandardScaler"):
        CellMoments.from_rows(away(X * 1e200), y, e)


def test_other_types_and_shapes_are_refused(rows, away):
    X, y, e = rows
    with pytest.raises(TypeError, match="int64 on device.*float32 and float64.*X.float"):
        check_rows(away(X.astype(np.int64)), y, e)
    for other in (X[:, 0], X[:, :0], X[:, None]):
        with pytest.raises(ValueError, match=r"shape .*expected \(rows, features\)"):
            check_rows(away(other), y, e)
    with pytest.raises(ValueError, match="y has .* values but X has .* rows"):
        check_rows(away(X), y[:-1], e)
    with pytest.raises(ValueError, match="requires y"):
        ISRMean(1).fit(away(X), environments=e)
    isr = ISRMean(1).fit(away(X), y, environments=e)
    with pytest.raises(ValueError, match="4 features, but ISRMean is expecting 5"):
        isr.partial_fit(away(X[:, :4]), y, environments=e)
    with pytest.raises(ValueError, match="4 features, but ISRMean is expecting 5"):
        isr.transform(away(X[:, :4]))
    with pytest.raises(ValueError, match="there are 5 features"):
        isr.subspace_.project(away(X[:, :4]))


@pytest.mark.parametrize("estimator", [ISR(), ISRMean("auto"), ISRCov("auto", rank_test="moments")])
def test_the_rank_test_wants_rows_on_the_host(rows, away, estimator):
    X, y, e = rows
    message = r"on device .*n_spurious='auto' reads rows on the host.*X\.cpu\(\), or give n_sp"
    for fit in (estimator.fit, estimator.partial_fit):
        with pytest.raises(ValueError, match=message):
            fit(away(X), y, environments=e)
    estimator.set_params(random_state=0).fit(X, y, environments=e)
    assert_close(to_host(estimator.transform(away(X))), estimator.transform(X), 1e-10)


@pytest.mark.parametrize(
    "estimator",
    [ISRClassifier(ISRMean(1)), ISRClassifier(ISR(1), LogisticRegression()), GroupDRO()],
)
def test_heads_want_rows_on_the_host(rows, away, estimator):
    X, y, e = rows
    X = X / X.std(axis=0)
    name = type(estimator).__name__
    message = rf"on device .*{name} reads rows on the host.*X\.cpu\(\).*head on transform\(X\)"
    with pytest.raises(ValueError, match=message):
        estimator.fit(away(X), y, environments=e)
    estimator.fit(X, y, environments=e)
    with pytest.raises(ValueError, match=message):
        estimator.predict(away(X))


def test_the_regressor_wants_rows_on_the_host(rows, away):
    X, _, e = rows
    with pytest.raises(ValueError, match=r"on device .*ISRRegressor reads rows on the host"):
        ISRRegressor().fit(away(X), X[:, 0], environments=e)


# --- removal and estimators


@both_types
@pytest.mark.parametrize("rank", [0, 1, 3])
@pytest.mark.parametrize("scale", [0.0, 0.3])
def test_removal_is_that_of_numpy(away, random, dtype, rank, scale):
    X = (random.normal(size=(40, 6)) + 3).astype(dtype)
    basis, _ = np.linalg.qr(random.normal(size=(6, 6)))
    directions, others = basis[:, :rank].T, basis[:, rank:].T
    functionals = directions + random.normal(size=(rank, 6 - rank)) @ others
    centre = random.normal(size=6)
    subspace = Subspace(directions, functionals, centre, np.zeros(6), scale)
    there = away(X)
    for remove in (subspace.project, subspace.reduce):
        found = remove(there)
        assert (type(found), found.device) == (type(there), there.device)
        assert found.dtype == there.dtype
        assert_close(to_host(found), remove(X), TOLERANCE[dtype])
    found = subspace.project(there)
    found *= 0.0  # a new array: X stays as it is
    np.testing.assert_array_equal(to_host(there), X)


@pytest.mark.parametrize("estimator", [ISRMean(1), ISRMean(2, reduced=True), ISRCov(1), ISR(1)])
def test_estimators_find_what_they_find_in_numpy(rows, away, random, estimator):
    X, y, e = rows
    weights = random.uniform(0.5, 2.0, size=len(X))
    given = {"environments": e, "sample_weight": weights}
    expected = estimator.fit(X, y, **given).subspace_
    transformed = estimator.transform(X)
    there = estimator.fit(away(X), y, **given)
    assert there.n_features_in_ == X.shape[1]
    np.testing.assert_allclose(there.subspace_.matrix(), expected.matrix(), atol=1e-6)
    assert_close(to_host(there.transform(away(X))), transformed, 1e-6)
    assert_close(there.transform(X), transformed, 1e-6)


def test_partial_fit_adds_up_to_fit(rows, away):
    X, y, e = rows
    whole, parts = ISRCov(1).fit(X, y, environments=e), ISRCov(1)
    for part in np.array_split(np.arange(len(X)), 3):
        parts.partial_fit(away(X[part]), y[part], environments=e[part])
    assert_same_moments(parts.moments_, whole.moments_)
    np.testing.assert_allclose(parts.subspace_.matrix(), whole.subspace_.matrix(), atol=1e-6)


def test_names_of_features_are_forgotten_with_the_table(rows, away):
    X, y, e = rows
    isr = ISRMean(1).fit(pd.DataFrame(X, columns=list("abcde")), y, environments=e)
    isr.fit(away(X), y, environments=e)
    assert not hasattr(isr, "feature_names_in_")


def test_gradients_pass_through_the_removal_and_not_through_the_moments(rows, monkeypatch):
    torch = pytest.importorskip("torch")
    X, y, e = rows
    monkeypatch.setattr(_device, "_is_host", lambda device: False)
    with monkeypatch.context() as patch:
        there = torch.tensor(X, requires_grad=True)
        patch.setattr(_device, "to_host", lambda v: to_host(v) if not v.requires_grad else 1 / 0)
        CellMoments.from_rows(there, y, e)
    isr = ISRMean(1).fit(there, y, environments=e)
    assert_same_moments(isr.moments_, CellMoments.from_rows(X, y, e, second_order=False))
    slopes = np.random.default_rng(0).normal(size=X.shape)
    (isr.transform(there) * torch.tensor(slopes)).sum().backward()
    assert_close(to_host(there.grad), slopes @ isr.subspace_.matrix(), 1e-10)
