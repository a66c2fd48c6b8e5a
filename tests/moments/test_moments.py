"""Moments against NumPy, cell by cell."""

import numpy as np
import pytest
from conftest import draw_rows, seeds
from hypothesis import given, strategies as st
from threadpoolctl import threadpool_limits

from isrlearn import CellMoments
from isrlearn.exceptions import EmptyCellWarning, TinyCellWarning
from isrlearn.heads._loss import loss_of
from isrlearn.moments import _sums
from isrlearn.moments._evidence import comparable


@given(seed=seeds, k=st.integers(1, 4), E=st.integers(1, 4), d=st.integers(1, 6))
def test_cells_agree_with_numpy(seed, k, E, d):
    X, y, e = draw_rows(seed, n_classes=k, n_environments=E, n_features=d)
    weights = np.random.default_rng(seed).uniform(0.1, 2, size=len(X))
    m = CellMoments.from_rows(X, y, e, weights)
    for cell, (c, environment) in enumerate(zip(m.class_index, m.environment_index, strict=True)):
        rows = (y == m.classes[c]) & (e == m.environments[environment])
        assert m.counts[cell] == rows.sum()
        assert m.weights[cell] == pytest.approx(weights[rows].sum())
        np.testing.assert_allclose(
            m.means[cell], np.average(X[rows], axis=0, weights=weights[rows])
        )
        covariance = np.cov(X[rows].T, aweights=weights[rows], ddof=0).reshape(d, d)
        np.testing.assert_allclose(m.covariances()[cell], covariance, atol=1e-9)


def test_blocks_of_rows_make_no_difference(random, monkeypatch):
    X, y, e = draw_rows(random.integers(2**31), per_cell=50)
    whole = CellMoments.from_rows(X, y, e)
    monkeypatch.setattr(_sums, "BLOCK_BYTES", 8 * X.shape[1] * 7)
    cut = CellMoments.from_rows(X, y, e)
    np.testing.assert_allclose(cut.scatters, whole.scatters, rtol=1e-11, atol=1e-9)
    np.testing.assert_allclose(cut.means, whole.means, rtol=1e-12)


def test_means_only_mode_holds_no_matrix(random):
    X, y, e = draw_rows(random.integers(2**31))
    means = CellMoments.from_rows(X, y, e, second_order=False)
    assert means.scatters is None
    np.testing.assert_allclose(means.means, CellMoments.from_rows(X, y, e).means, rtol=1e-12)
    with pytest.raises(ValueError, match="second_order=True"):
        means.covariances()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_centred_sums_survive_a_large_mean(random, dtype):
    """Raw second moments would lose every digit here."""
    X = (random.normal(size=(20_000, 4)) + 1e4).astype(dtype)
    m = CellMoments.from_rows(X, np.zeros(len(X)), np.zeros(len(X)))
    expected = np.cov(X.astype(np.longdouble).T, ddof=0).astype(float)
    np.testing.assert_allclose(
        m.covariances()[0], expected, atol=1e-5 if dtype == np.float32 else 1e-9
    )
    np.testing.assert_allclose(
        m.means[0], X.mean(axis=0, dtype=np.longdouble).astype(float), rtol=1e-12
    )


def test_update_works_in_place_and_returns_itself(random):
    X, y, e = draw_rows(random.integers(2**31))
    m = CellMoments.empty(X.shape[1])
    for part in np.array_split(random.permutation(len(X)), 4):
        assert m.update(X[part], y[part], e[part]) is m
    np.testing.assert_allclose(m.scatters, CellMoments.from_rows(X, y, e).scatters, atol=1e-9)


def test_a_sum_leaves_its_parts_alone(random):
    X, y, e = draw_rows(random.integers(2**31))
    a, b = CellMoments.from_rows(X, y, e), CellMoments.from_rows(2 * X, y, e)
    before = a.scatters.copy(), b.means.copy()
    a + b
    np.testing.assert_array_equal(a.scatters, before[0])
    np.testing.assert_array_equal(b.means, before[1])


def test_cells_are_stored_sparsely_and_named():
    m = CellMoments.from_rows(np.eye(3), ["b", "a", "b"], ["x", "y", "z"])
    assert m.means.shape == (3, 3)
    np.testing.assert_array_equal(m.counts_table(), [[0, 1, 0], [1, 0, 1]])
    assert "cells=3 of 6" in repr(m)
    assert "smallest_cell=1" in repr(m)


def test_thousands_of_cells(random):
    n = 3000
    y, e = random.integers(0, 300, n), random.integers(0, 300, n)
    m = CellMoments.from_rows(random.normal(size=(n, 3)), y, e, second_order=False)
    assert m.counts.sum() == n
    assert len(m.counts) == len({*zip(y.tolist(), e.tolist(), strict=True)})


def test_what_cannot_be_added_says_why(random):
    X, y, e = draw_rows(random.integers(2**31))
    m = CellMoments.from_rows(X, y, e)
    with pytest.raises(ValueError, match="5 and of 4 features"):
        m + CellMoments.from_rows(X[:, :4], y, e)
    with pytest.raises(ValueError, match="second_order"):
        m + CellMoments.from_rows(X, y, e, second_order=False)
    with pytest.raises(TypeError, match="only strings or only numbers"):
        m + CellMoments.from_rows(X, y.astype(str), e)
    with pytest.raises(TypeError):
        m + 1


def test_arrays_and_back(random):
    X, y, e = draw_rows(random.integers(2**31))
    for second_order in (True, False):
        m = CellMoments.from_rows(X, y.astype(str), e, second_order=second_order)
        back = CellMoments.from_arrays(m.to_arrays())
        for name, value in m.to_arrays().items():
            np.testing.assert_array_equal(back.to_arrays()[name], value)
    with pytest.raises(ValueError, match="protocol 99"):
        CellMoments.from_arrays({**m.to_arrays(), "protocol": np.array(99)})


def test_comparable_leaves_out_what_cannot_be_compared(random):
    X, y, e = draw_rows(random.integers(2**31), n_classes=3, per_cell=10)
    lonely = (y != 2) | (e == 0)  # class 2 in one environment only
    m = CellMoments.from_rows(X[lonely], y[lonely], e[lonely])
    with pytest.warns(EmptyCellWarning, match="class .*2.* in environment .*1"):
        assert comparable(m).classes.tolist() == [0, 1]
    tiny = np.append(np.flatnonzero((y != 1) | (e != 1)), np.flatnonzero((y == 1) & (e == 1))[:2])
    with pytest.warns(TinyCellWarning, match="has 2"):
        comparable(CellMoments.from_rows(X[tiny], y[tiny], e[tiny]))


def test_zero_weights_are_absent_rows(random):
    X, y, e = draw_rows(random.integers(2**31))
    weights = random.integers(0, 2, len(X)).astype(float)
    weights[:2] = 1
    kept = weights > 0
    a = CellMoments.from_rows(X, y, e, weights)
    b = CellMoments.from_rows(X[kept], y[kept], e[kept])
    np.testing.assert_array_equal(a.counts, b.counts)
    np.testing.assert_allclose(a.scatters, b.scatters)


@pytest.mark.parametrize("factor", [1e-60, 1e80])
def test_weights_of_any_size_in_single_precision(random, factor):
    X, y, e = draw_rows(random.integers(2**31))
    weights = random.uniform(0.5, 2, len(X))
    expected = CellMoments.from_rows(X, y, e, weights)
    found = CellMoments.from_rows(X.astype(np.float32), y, e, factor * weights)
    np.testing.assert_allclose(found.covariances(), expected.covariances(), rtol=1e-3, atol=1e-3)


def test_the_provisional_mean_leaves_no_trace(random):
    """Float32 rows far from zero: the rounded centre is put right in mean and scatter."""
    X = (1e6 + random.normal(size=(4000, 2))).astype(np.float32)
    m = CellMoments.from_rows(X, np.zeros(4000), np.zeros(4000))
    np.testing.assert_allclose(m.means[0], X.astype(np.float64).mean(axis=0), rtol=1e-13)
    exact = np.cov(X.T.astype(np.float64), ddof=0)
    np.testing.assert_allclose(m.covariances()[0], exact, rtol=1e-5, atol=1e-5)


def test_precision_is_that_of_the_coarsest_rows(random):
    X, y, e = draw_rows(random.integers(2**31))
    fine, coarse = (CellMoments.from_rows(X.astype(t), y, e) for t in (np.float64, np.float32))
    np.testing.assert_array_equal(fine.largest, np.abs(X).max(axis=0))
    assert (fine + coarse).precision == coarse.precision == np.finfo(np.float32).eps
    assert fine.precision == np.finfo(np.float64).eps
    doubled = fine + CellMoments.from_rows(2 * X, y, e)
    np.testing.assert_array_equal(doubled.largest, 2 * fine.largest)


def test_sum_adds_moments(random):
    X, y, e = draw_rows(random.integers(2**31))
    m = CellMoments.from_rows(X, y, e)
    np.testing.assert_array_equal(sum([m, m]).weights, 2 * m.weights)
    before = m.weights.copy()
    sum([m]).update(X, y, e)
    np.testing.assert_array_equal(m.weights, before)


def test_moments_read_back_are_their_own(random):
    X, y, e = draw_rows(random.integers(2**31))
    m = CellMoments.from_rows(X, y, e)
    before = m.means.copy()
    CellMoments.from_arrays(m.to_arrays()).update(X + 5, y, e)
    np.testing.assert_array_equal(m.means, before)


@pytest.mark.parametrize("n", [1, 63, 64, 64 * 64 - 1, 64 * 64, 64 * 64 + 1, 5000])
@pytest.mark.parametrize("d", [1, 7, 64, 65])
def test_the_largest_values_are_those_of_every_row(random, n, d):
    for row in (0, n - 1, max(0, n - 40), int(random.integers(n))):
        X = random.normal(size=(n, d))
        X[row, random.integers(d)] = random.choice([-9.0, 9.0])
        for block in (X, X[:, ::-1], np.asfortranarray(X), X.astype(np.float32)):
            largest = np.abs(block).max(axis=0)
            np.testing.assert_array_equal(_sums.largest_values(block), largest)


@pytest.mark.parametrize("d", [1, 7, 64, 256, 257])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_means_are_sums_over_counts_whatever_the_blocks(random, monkeypatch, d, dtype):
    n, m = int(random.integers(1, 1500)), int(random.integers(1, 9))
    monkeypatch.setattr(_sums, "BLOCK_BYTES", int(random.integers(1, 700)) * d * 4)
    X = (random.normal(size=(n, d)) + random.normal(size=d)).astype(dtype)
    codes = random.integers(0, m + 1, n).astype(np.uint8)  # the last is of no cell
    codes[:m] = np.arange(m)[: len(codes[:m])]
    seen = np.unique(codes[codes < m])
    for weights in (None, random.uniform(0.1, 3, n)):
        found = _sums.cell_means(X, codes, m, weights)
        own = np.ones(n) if weights is None else weights
        for cell in seen:
            here = codes == cell
            expected = np.average(X[here].astype(np.float64), axis=0, weights=own[here])
            np.testing.assert_allclose(
                found.means[cell], expected, atol=1e-12 if d <= 256 or dtype == np.float64 else 1e-5
            )
            assert found.weights[cell] == pytest.approx(own[here].sum())
        if d <= 256:  # of many features, not every row is looked at
            np.testing.assert_array_equal(found.largest, np.abs(X).max(axis=0))


def test_threads_change_no_bit_of_few_features(random):
    shape = random.integers(5_000, 60_000), random.integers(2, 65)
    X = random.normal(size=shape).astype(np.float32)
    y, e = random.integers(0, 2, (2, len(X)))
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, user_api="blas"):
            moments = CellMoments.from_rows(X, y, e, second_order=False)
            slope = loss_of(
                X, lambda own: (y[own], None), np.full((1, X.shape[1]), 0.1), np.zeros(1)
            )
        found.append((moments.means, slope.coef, slope.value))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)
