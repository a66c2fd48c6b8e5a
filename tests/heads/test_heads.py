"""The default head, and logistic regression in coordinates of our choice."""

import warnings
from decimal import Decimal

import numpy as np
import pytest
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from isrlearn import ChunkedRows, ISRClassifier, ISRMean, LogisticHead, Subspace
from isrlearn.baselines import ERM
from isrlearn.datasets import LinearUnitTest
from isrlearn.heads._solver import HeadCoordinates, Problem, newton

MANY = 1500  # rows of each environment


def draw(random, rows=300):
    return LinearUnitTest("3s", 3, seed=int(random.integers(2**31))).sample(rows)


def test_units_and_mixing_change_no_prediction_of_the_head(random):
    X, y, _ = draw(random)
    G = np.linalg.qr(random.normal(size=(10, 10)))[0] * 10.0 ** random.uniform(-3, 3, 10)
    here, there = LogisticHead(tol=1e-8).fit(X, y), LogisticHead(tol=1e-8).fit(X @ G + 5, y)
    np.testing.assert_allclose(here.predict_proba(X), there.predict_proba(X @ G + 5), atol=1e-4)


def test_on_white_features_the_head_is_plain_logistic_regression(random):
    X, y, _ = draw(random)
    root = np.linalg.cholesky(np.linalg.inv(np.cov(X.T, bias=True)))
    plain = LogisticRegression(tol=1e-8).fit(X @ root, y)
    head = LogisticHead(tol=1e-8).fit(X, y)
    np.testing.assert_allclose(head.predict_proba(X), plain.predict_proba(X @ root), atol=1e-5)


def test_the_head_uses_a_feature_that_is_the_class(random):
    y = random.integers(0, 2, 200)
    X = np.column_stack([y, random.normal(size=(200, 3))])
    assert LogisticHead().fit(X, y).score(X, y) == 1.0


def test_options_of_logistic_regression_keep_their_meaning(random):
    X, y, _ = draw(random, 100)
    head = LogisticHead(fit_intercept=False).fit(X + 5, y)
    assert head.intercept_ == 0
    warm = LogisticHead(warm_start=True, max_iter=2000)
    np.testing.assert_allclose(warm.fit(X, y).coef_, warm.fit(X, y).coef_, rtol=0.05, atol=0.05)


def test_the_head_takes_weights_as_repeated_rows(random):
    X, y, _ = draw(random, 100)
    weights = random.integers(0, 4, size=len(y))
    a = LogisticHead(tol=1e-8).fit(X, y, weights)
    b = LogisticHead(tol=1e-8).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-4, atol=1e-4)


# --- Newton's method from the solution of a part of the rows


@pytest.mark.parametrize("model", [LogisticHead(), ERM("standardised"), ERM("whitened")], ids=str)
def test_the_order_of_rows_changes_nothing(random, model):
    X, y, _ = draw(random, MANY)
    order = random.permutation(len(y))
    before = model.fit(X, y).coef_
    np.testing.assert_allclose(model.fit(X[order], y[order]).coef_, before, rtol=1e-3, atol=1e-3)


def test_single_precision_reaches_the_same_optimum(random):
    X, y, _ = draw(random)
    single = LogisticHead().fit(X.astype(np.float32), y)
    assert single.coef_.dtype == single.intercept_.dtype == np.float32
    np.testing.assert_allclose(single.coef_, LogisticHead().fit(X, y).coef_, rtol=1e-2, atol=1e-2)


def test_class_weights_count_as_weights_of_rows(random):
    X, y, _ = draw(random)
    y = y & (random.uniform(size=len(y)) < 0.3)
    balanced = len(y) / (2 * np.bincount(y))
    plain = LogisticRegression(C=0.1, tol=1e-9, max_iter=5000)
    # In white coordinates of its own: no class weight enters the covariance.
    root = np.linalg.cholesky(np.linalg.inv(np.cov(X.T, bias=True)))
    plain.fit(X @ root, y, balanced[y])
    head = LogisticHead(C=0.1, class_weight="balanced").fit(X, y)
    np.testing.assert_allclose(head.coef_ @ np.linalg.inv(root).T, plain.coef_, atol=1e-4)


@pytest.mark.parametrize(("name", "value"), [("C", "x"), ("C", -1), ("tol", None), ("solver", "y")])
def test_bad_parameters_of_the_head_are_named(random, name, value):
    X, y, _ = draw(random)
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        LogisticHead(**{name: value}).fit(X, y)


def problem_of(n_features, strength, total=1.0):
    coordinates = HeadCoordinates(Subspace.nothing(n_features), np.zeros(n_features))
    return Problem(coordinates, 1, strength, total)


def test_newton_ends_where_scikit_learn_does(random):
    X = random.normal(size=(300, 5))
    y = (X[:, 0] + random.normal(size=300) > 0.5).astype(int)
    weights, C = random.uniform(0.1, 2, 300), 0.3
    found = newton(X, y, weights, problem_of(5, 1 / (C * weights.sum()), weights.sum()))
    expected = LogisticRegression(C=C, tol=1e-10, max_iter=5000).fit(X, y, weights)
    np.testing.assert_allclose(found.weight, expected.coef_, atol=1e-5)
    np.testing.assert_allclose(found.bias, expected.intercept_, atol=1e-5)
    assert found.steepest <= 1e-8


def test_newton_runs_away_where_there_is_no_optimum(random):
    X = random.normal(size=(500, 2))
    found = newton(X, (X[:, 0] > 0).astype(int), np.full(500, 1 / 500), problem_of(2, 0.0))
    assert found is None or np.abs(X @ found.weight.T).max() > 10


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e4, 1e8])
@pytest.mark.parametrize("n", [40, 5000])
def test_nothing_warns_whatever_the_penalty(random, C, n):
    # A part of few rows may be separable where the rows are not: a start with huge weights.
    X = random.normal(size=(n, 3)) * 10.0 ** random.uniform(-3, 3, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LogisticHead(C=C).fit(X, random.integers(0, 2, n))


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # of scikit-learn 1.6
@pytest.mark.parametrize(("C", "weight"), [(1e-300, 1), (1, 1e-300), (1e308, 9)])
def test_a_penalty_beyond_all_numbers_is_left_to_the_plain_solver(random, C, weight):
    X, y, _ = draw(random)
    head = LogisticHead(C=C).fit(X, y, np.full(len(y), weight))
    assert np.isfinite(head.coef_).all()
    if C < 1 or weight < 1:
        np.testing.assert_allclose(head.coef_, 0, atol=1e-8)


def test_separable_rows_are_left_to_the_plain_solver(random):
    X = random.normal(size=(2000, 3))
    y = (X[:, 0] > 0).astype(int)
    for C in (1.0, 1e4):
        assert LogisticHead(C=C).fit(X, y).score(X, y) > 0.99
    with pytest.warns(ConvergenceWarning):
        LogisticHead(C=np.inf, tol=1e-12, max_iter=5).fit(X, y)


def test_weights_of_any_type_are_numbers(random):
    X, y, _ = draw(random)
    expected = LogisticHead().fit(X, y).coef_
    for weights in (np.full(len(y), Decimal(1)), np.ones(len(y), np.float16)):
        np.testing.assert_allclose(LogisticHead().fit(X, y, weights).coef_, expected, rtol=1e-6)


def test_a_subclass_may_have_parameters_of_its_own(random):
    class Head(LogisticHead):
        def __init__(self, C=1.0, gain=2.0):
            super().__init__(C=C)
            self.gain = gain

    X, y, _ = draw(random)
    np.testing.assert_array_equal(Head().fit(X, y).coef_, LogisticHead().fit(X, y).coef_)


def test_standardised_erm_sees_what_single_precision_has_left(random):
    z = random.normal(size=2000)
    y = (random.uniform(size=2000) < expit(3 * z)).astype(int)
    X = np.column_stack([1000 + 5e-4 * z, random.normal(size=2000)]).astype(np.float32)
    single, double = (ERM("standardised").fit(rows, y) for rows in (X, X.astype(np.float64)))
    assert single.coef_.dtype == np.float64
    np.testing.assert_allclose(single.coef_, double.coef_, rtol=1e-3)
    assert double.score(X.astype(np.float64), y) > 0.75


def test_a_feature_too_large_to_scale_is_named(random):
    X, y, _ = draw(random)
    with pytest.raises(ValueError, match="as large as 1e\\+200"):
        ERM("standardised").fit(np.column_stack([X, 1e200 * y]), y)


# --- the default head: its penalty is measured by how far apart the classes are


def draw_wide(random, n_features, n_classes=2, rows=200):
    """Classes that differ along some features, in environments that differ along others."""
    y, e = random.integers(n_classes, size=rows), random.integers(3, size=rows)
    X = random.normal(size=(rows, n_features)) * 2.0 ** -np.arange(n_features).clip(0, 8)
    X[:, :n_classes] += np.eye(n_classes)[y]
    X[:, 3] += e
    return X, y, e


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_features", [6, 30])
def test_the_default_head_minimises_its_objective(random, n_features, n_classes):
    X, y, _ = draw_wide(random, n_features, n_classes)
    weights = random.uniform(0.2, 2, len(y))
    head = LogisticHead(C="scale", tol=1e-9, max_iter=5000).fit(X, y, weights)
    shares = weights / weights.sum()
    Z = X
    if n_features <= 20:  # whitened
        mean = shares @ X
        Z = X @ np.linalg.cholesky(np.linalg.inv((X - mean).T @ ((X - mean) * shares[:, None])))
    means = np.array([np.average(Z[y == c], axis=0, weights=shares[y == c]) for c in set(y)])
    share = np.array([shares[y == c].sum() for c in set(y)])
    B = share @ np.sum((means - share @ means) ** 2, axis=1)
    plain = LogisticRegression(C=1 / (0.1 * B * weights.sum()), tol=1e-9, max_iter=5000)
    expected = plain.fit(Z, y, weights).predict_proba(Z)
    np.testing.assert_allclose(head.predict_proba(X), expected, atol=1e-5)


@pytest.mark.parametrize("factor", [1e-30, 1e-3, 0.1, 100, 1e30])
@pytest.mark.parametrize("n_features", [6, 30])
def test_one_number_on_all_of_X_changes_no_prediction(random, n_features, factor):
    X, y, e = draw_wide(random, n_features)
    here, there = (ISRClassifier(ISRMean(1)).fit(Z, y, environments=e) for Z in (X, factor * X))
    shares = here.predict_proba(X)
    np.testing.assert_allclose(there.predict_proba(factor * X), shares, atol=1e-5)
    rows = [(factor * X[i::2], y[i::2], e[i::2]) for i in range(2)]
    chunked = ISRClassifier(ISRMean(1)).fit(ChunkedRows.from_chunks(rows))
    np.testing.assert_allclose(chunked.predict_proba(factor * X), shares, atol=1e-4)


def test_features_that_tell_nothing_change_no_prediction(random):
    X, y, e = draw_wide(random, 30)
    wide = np.hstack([X, np.full((len(X), 70), 3.0)])
    here, there = (ISRClassifier(ISRMean(1)).fit(Z, y, environments=e) for Z in (X, wide))
    np.testing.assert_allclose(there.predict_proba(wide), here.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("n_features", [6, 30])
def test_classes_with_the_same_mean_are_no_error(random, n_features):
    X, y = np.repeat(random.normal(size=(100, n_features)), 2, axis=0), np.tile([0, 1], 100)
    head = LogisticHead(C="scale").fit(X, y)
    np.testing.assert_allclose(head.predict_proba(X), 0.5, atol=1e-6)
    assert np.isfinite(LogisticHead(C="scale").fit(np.ones_like(X), y).coef_).all()


# --- options that need scikit-learn's own solvers


PLAIN = {"class_weight": "balanced"}


@pytest.mark.parametrize("X", ["file.csv", None, 3.0, {}, [1.0, 2.0]])
def test_what_is_no_table_is_refused_by_name_whatever_the_options(X):
    for options in ({}, PLAIN):
        with pytest.raises((TypeError, ValueError), match="X|array"):
            LogisticHead(**options).fit(X, [0, 1])


@pytest.mark.parametrize("C", [None, [1], -1.0, "x"])
def test_a_bad_penalty_is_named_whatever_the_options(random, C):
    X, y, _ = draw(random)
    for options in ({}, PLAIN, {"solver": "newton-cg"}):
        with pytest.raises(ValueError, match="'C' parameter"):
            LogisticHead(C=C, **options).fit(X, y)


def test_a_dual_problem_is_not_solved_as_another(random):
    X, y, _ = draw(random)
    with pytest.raises(ValueError, match="dual"):
        LogisticHead(dual=True).fit(X, y)


def test_without_a_penalty_the_weights_of_several_classes_add_up_to_nothing(random):
    X, y = random.normal(size=(300, 6)), random.integers(3, size=300)
    head = LogisticHead(C=np.inf, tol=1e-6, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(head.coef_.sum(axis=0), 0, atol=1e-8)


def test_constant_features_warn_of_nothing(random):
    _, y, _ = draw(random)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LogisticHead(**PLAIN).fit(np.zeros((len(y), 3)), y)
