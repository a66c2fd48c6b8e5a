"""Weights of any size reach a head in a range in which it works; within it their scale matters."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier

from isrlearn import ISR, ChunkedRows, ISRClassifier, ISRMean, ISRRegressor

HEADS = [None, LogisticRegression(), RidgeClassifier()]


@pytest.fixture
def rows(random):
    y, e = np.arange(200) % 2, np.arange(200) // 2 % 2
    X = random.normal(size=(200, 3)) + np.column_stack([2 * y, 3 * e, 0 * y])
    return X, y, e


def decisions(rows, weight, head, group_weight, dtype=np.float64, chunks=False):
    X, y, e = rows
    weights = np.full(len(X), weight)
    estimator = ISRClassifier(ISRMean(1), head, group_weight=group_weight)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if chunks:
            halves = [(X[i::2], y[i::2], e[i::2], weights[i::2]) for i in range(2)]
            return estimator.fit(ChunkedRows.from_chunks(halves)).decision_function(X)
        estimator.fit(X.astype(dtype), y, environments=e, sample_weight=weights)
        return estimator.decision_function(X.astype(dtype))


@pytest.mark.parametrize("group_weight", ["balanced", None])
@pytest.mark.parametrize("head", HEADS, ids=str)
@pytest.mark.parametrize(("weight", "limit"), [(1e199, 1e8), (1e20, 1e8), (1e-290, 1e-16)])
def test_beyond_the_limits_a_head_sees_the_limit(rows, head, group_weight, weight, limit):
    for chunks in (False, True):
        far, near = (decisions(rows, w, head, group_weight, chunks=chunks) for w in (weight, limit))
        np.testing.assert_allclose(far, near, rtol=1e-4, atol=1e-9 + 1e-5 * np.abs(near).max())


def test_single_precision_does_not_overflow_on_weights(rows):
    wanted = decisions(rows, 1e8, LogisticRegression(), None)
    for weight in (1e60, 1e199):
        found = decisions(rows, weight, LogisticRegression(), None, np.float32)
        np.testing.assert_allclose(found, wanted, atol=1e-2)


@pytest.mark.parametrize("head", HEADS[1:], ids=str)
def test_within_the_limits_a_weight_counts_rows(rows, head):
    thrice = [np.repeat(column, 3, axis=0) for column in rows]
    repeated = decisions(thrice, 1.0, head, None)[::3]
    np.testing.assert_allclose(decisions(rows, 3.0, head, None), repeated, atol=1e-3)
    assert not np.allclose(decisions(rows, 1.0, head, None), repeated, rtol=0, atol=1e-3)


def test_the_default_head_sees_no_scale_of_weights_and_no_repeats(rows):
    thrice = [np.repeat(column, 3, axis=0) for column in rows]
    wanted = decisions(rows, 1.0, None, None)
    for found in (decisions(rows, 300.0, None, None), decisions(thrice, 1.0, None, None)[::3]):
        np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_a_regressor_bears_large_weights(rows):
    X, _, e = rows
    y = X[:, 0] - X[:, 2]
    found = [
        ISRRegressor(ISR(1), Ridge()).fit(X, y, environments=e, sample_weight=np.full(len(X), w))
        for w in (1e8, 1e180)
    ]
    np.testing.assert_allclose(found[0].predict(X), found[1].predict(X), atol=1e-5)
