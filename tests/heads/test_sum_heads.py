"""Heads that are fitted from sums over rows are those of scikit-learn."""

import warnings

import numpy as np
import pytest
from chunk_support import chunked, draw_chunkable, oblique_subspace
from hypothesis import given, strategies as st
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import log_loss
from threadpoolctl import ThreadpoolController, threadpool_limits

from isrlearn import (
    ISR,
    ISRClassifier,
    ISRMean,
    LogisticHead,
    Subspace,
)
from isrlearn.estimators import _predictors
from isrlearn.heads import _logistic, _loss
from isrlearn.heads._logistic import SOLVED
from isrlearn.heads._loss import AddLoss, Loss, curvature_of, loss_of
from isrlearn.heads._row_weights import (
    GroupFactors,
    Pooled,
    cell_factors,
    group_factors,
    scheme_weights,
)
from isrlearn.heads._solver import (
    HeadCoordinates,
    Problem,
    _LookedAt,
    descend,
    one_thread_in_scipy,
    sample_curvature,
)
from isrlearn.moments._cells import AddMoments
from isrlearn.rows._source import Chunk, ChunkedRows
from isrlearn.rows._validation import check_rows

EXACT = {"tol": 1e-8, "max_iter": 10_000}


@pytest.fixture(autouse=True)
def one_thread():
    """Products are small: threads would do nothing but wait for each other."""
    with threadpool_limits(1):
        yield


def draw_head(random, n_classes, n_features, n_rows=60):
    """Rows, labels, weights, and a head that need not fit them."""
    m = 1 if n_classes == 2 else n_classes
    codes = random.permutation(np.arange(n_rows) % n_classes)
    return (
        random.normal(size=(n_rows, n_features)),
        codes,
        random.uniform(0.1, 3, n_rows),
        0.5 * random.normal(size=(m, n_features)),
        0.5 * random.normal(size=m),
    )


def slope_of(X, codes, weights, coef, bias):
    """The loss of arrays."""
    return loss_of(
        X, lambda own: (codes[own], None if weights is None else weights[own]), coef, bias
    )


def shares_of(X, coef, bias):
    scores = X @ coef.T + bias
    if len(bias) > 1:
        return softmax(scores, axis=1)
    return np.column_stack([1 - expit(scores), expit(scores)])


# --- the loss and its slope


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_loss_is_that_of_scikit_learn(random, n_classes):
    X, codes, weights, coef, bias = draw_head(random, n_classes, 4)
    shares = shares_of(X, coef, bias)
    expected = log_loss(codes, shares, normalize=False, sample_weight=weights)
    assert slope_of(X, codes, weights, coef, bias).value == pytest.approx(expected, rel=1e-12)
    alone = log_loss(codes, shares, normalize=False)
    assert slope_of(X, codes, None, coef, bias).value == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_slope_is_the_derivative_of_the_loss(random, n_classes):
    X, codes, weights, coef, bias = draw_head(random, n_classes, 4)
    slope = slope_of(X, codes, weights, coef, bias)
    step = 1e-5
    for _ in range(5):
        by_coef, by_bias = random.normal(size=coef.shape), random.normal(size=bias.shape)
        ends = [
            slope_of(X, codes, weights, coef + s * by_coef, bias + s * by_bias).value
            for s in (step, -step)
        ]
        found = np.sum(slope.coef * by_coef) + np.sum(slope.bias * by_bias)
        assert found == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6, abs=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_single_precision_gives_the_slope_to_its_digits(random, n_classes):
    X, codes, weights, coef, bias = draw_head(random, n_classes, 5, 300)
    fine = slope_of(X, codes, weights, coef, bias)
    coarse = slope_of(X.astype(np.float32), codes, weights, coef, bias)
    scale = np.abs(X).sum() * 3
    assert coarse.coef.dtype == np.float64
    assert coarse.value == pytest.approx(fine.value, rel=1e-5)
    np.testing.assert_allclose(coarse.coef, fine.coef, atol=1e-6 * scale)
    np.testing.assert_allclose(coarse.bias, fine.bias, atol=1e-6 * scale)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_steps_that_single_precision_cannot_hold_change_the_loss(random, n_classes):
    """A descent on rows of single precision ends where the slope does, not where rounding does."""
    X, codes, weights, coef, bias = draw_head(random, n_classes, 5, 300)
    X = X.astype(np.float32)
    coef = random.choice([-1.0, 1.0], coef.shape) * random.uniform(0.5, 1, coef.shape)
    coef = coef.astype(np.float32).astype(np.float64)
    slope = slope_of(X, codes, weights, coef, bias)
    step = 1e-9 * np.sign(slope.coef)
    assert np.array_equal((coef + step).astype(np.float32), coef)
    change = slope_of(X, codes, weights, coef + step, bias).value - slope.value
    assert change == pytest.approx(np.sum(slope.coef * step), rel=1e-2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_blocks_and_parts_of_rows_add_up(random, monkeypatch, n_classes, dtype):
    X, codes, weights, coef, bias = draw_head(random, n_classes, 4)
    X = X.astype(dtype)
    whole = slope_of(X, codes, weights, coef, bias)
    at = int(random.integers(1, len(X)))
    parts = [
        slope_of(X[own], codes[own], weights[own], coef, bias)
        for own in (slice(at), slice(at, None))
    ]
    monkeypatch.setattr(_loss, "LOSS_BYTES", X[0].nbytes * int(random.integers(1, 9)))
    rtol = 1e-11 if dtype == np.float64 else 1e-5
    for found in (parts[0] + parts[1], slope_of(X, codes, weights, coef, bias)):
        assert found.value == pytest.approx(whole.value, rel=rtol)
        np.testing.assert_allclose(found.coef, whole.coef, atol=rtol * 100)
        np.testing.assert_allclose(found.bias, whole.bias, atol=rtol * 100)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_are_repeated_rows(random, n_classes):
    X, codes, _, coef, bias = draw_head(random, n_classes, 4)
    times = random.integers(0, 4, len(X))
    found = slope_of(X, codes, times.astype(float), coef, bias)
    rows = np.repeat(np.arange(len(X)), times)
    expected = slope_of(X[rows], codes[rows], None, coef, bias)
    assert found.value == pytest.approx(expected.value)
    np.testing.assert_allclose(found.coef, expected.coef, atol=1e-10)
    np.testing.assert_allclose(found.bias, expected.bias, atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_large_scores_neither_overflow_nor_vanish(n_classes):
    """The loss of a sure mistake is the distance of the scores, and its slope the row."""
    coef = 1e4 * np.eye(1 if n_classes == 2 else n_classes, 2)
    X, codes = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([0, 1])
    bias = np.zeros(len(coef))
    slope = slope_of(X, codes, None, coef, bias)
    right = slope_of(X, 1 - codes, None, coef, bias)
    if n_classes == 2:
        assert slope.value == pytest.approx(2e4)
        np.testing.assert_allclose(slope.coef, [[2.0, 0.0]])
        assert right.value == 0
    else:  # in the second row the other two are as good as each other
        assert slope.value == pytest.approx(np.log(2))
        assert right.value == pytest.approx(2e4 + np.log(2), abs=1e-8)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_curvature_is_the_difference_of_gradients(random, n_classes):
    X, codes, weights, coef, bias = draw_head(random, n_classes, 3)
    columns, point = np.column_stack([X, np.ones(len(X))]), np.column_stack([coef, bias])

    def slope(at):
        found = slope_of(X, codes, weights, at[:, :-1], at[:, -1])
        return np.column_stack([found.coef, found.bias]).ravel()

    found = curvature_of(columns, _loss.shares_of(columns @ point.T), weights)
    for j in range(point.size):
        step = np.zeros(point.size)
        step[j] = 1e-5
        step = step.reshape(point.shape)
        expected = (slope(point + step) - slope(point - step)) / 2e-5
        np.testing.assert_allclose(found[j], expected, atol=1e-6 * np.abs(found).max())


# --- coordinates


@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(2, 7),
    scale=st.sampled_from([0.0, 0.4, 1.0]),
    mapped=st.booleans(),
)
def test_a_head_on_mapped_rows_is_one_on_the_rows(seed, d, scale, mapped):
    random = np.random.default_rng(seed)
    subspace = oblique_subspace(random, d, int(random.integers(1, d)), scale)
    forward = random.normal(size=(d, int(random.integers(1, d + 1)))) if mapped else None
    coordinates = HeadCoordinates(subspace, random.normal(size=d), forward)
    X, m = random.normal(size=(20, d)), int(random.integers(1, 4))
    kept = X - (1 - scale) * (X - subspace.centre) @ subspace.functionals.T @ subspace.directions
    Z = kept - coordinates.centre
    Z = Z if forward is None else Z @ forward
    assert coordinates.n_coordinates == Z.shape[1]
    weight, bias = random.normal(size=(m, Z.shape[1])), random.normal(size=m)
    scores, atol = Z @ weight.T + bias, 1e-9 * (1 + np.abs(subspace.functionals).max()) ** 2
    on_rows, bias_on_rows = coordinates.on_rows(weight, bias)
    np.testing.assert_allclose(X @ on_rows.T + bias_on_rows, scores, atol=atol)
    inside, bias_inside = coordinates.unmapped(weight, bias)
    np.testing.assert_allclose(kept @ inside.T + bias_inside, scores, atol=atol)
    errors = random.normal(size=(20, m))
    pulled = coordinates.pull_back(errors.T @ X, errors.sum(axis=0))
    np.testing.assert_allclose(pulled, errors.T @ Z, atol=20 * atol)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_gradient_is_that_of_the_penalised_mean_loss(random, n_classes, fit_intercept):
    X, codes, weights, *_ = draw_head(random, n_classes, 5)
    coordinates = HeadCoordinates(
        oblique_subspace(random, 5, 2), random.normal(size=5), random.normal(size=(5, 3))
    )
    C, total = random.uniform(0.1, 2), weights.sum()
    m = 1 if n_classes == 2 else n_classes
    problem = Problem(coordinates, m, 1 / (C * total), total, fit_intercept)

    def objective(point):
        return problem.value_and_gradient(
            lambda coef, bias: slope_of(X, codes, weights, coef, bias), point
        )

    point = 0.1 * random.normal(size=problem.shape)
    if not fit_intercept:
        point[:, -1] = 0
    value, gradient = objective(point)
    Z = (coordinates.subspace.project(X) - coordinates.centre) @ coordinates.forward
    shares = shares_of(Z, point[:, :-1], point[:, -1])
    loss = log_loss(codes, shares, sample_weight=weights)
    assert value == pytest.approx(loss + np.sum(point[:, :-1] ** 2) / (2 * C * total))
    along = random.normal(size=point.shape)
    if not fit_intercept:
        assert not gradient[:, -1].any()
        along[:, -1] = 0
    ends = [objective(point + step * along)[0] for step in (1e-5, -1e-5)]
    expected = (ends[0] - ends[1]) / 2e-5
    assert np.sum(gradient * along) == pytest.approx(expected, rel=1e-5, abs=1e-6)


# --- the solver


def draw_problem(random, n_classes, fit_intercept, n_features=5):
    X, y, _ = draw_chunkable(random, n_classes=n_classes, n_features=n_features)
    C, weights = random.uniform(0.1, 2), random.uniform(0.2, 2, len(X))
    expected = LogisticRegression(C=C, fit_intercept=fit_intercept, **EXACT).fit(X, y, weights)
    plain = HeadCoordinates(Subspace.nothing(n_features), np.zeros(n_features))
    total = weights.sum()
    m = 1 if n_classes == 2 else n_classes
    problem = Problem(plain, m, 1 / (C * total), total, fit_intercept)
    return X, weights, problem, lambda *head: slope_of(X, y, weights, *head), expected


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_every_way_ends_at_the_optimum_of_scikit_learn(
    random, n_classes, fit_intercept, curved, near
):
    X, _, problem, slope_at, expected = draw_problem(random, n_classes, fit_intercept)
    how = {}
    if curved:  # any curvature will do
        A = random.normal(size=(9 * problem.shape[1], problem.shape[1]))
        how["curvature"] = A.T @ A / len(A)
    if near:
        start = 0.5 * random.normal(size=problem.shape)
        start -= start.mean(axis=0) if n_classes > 2 else 0  # along which the softmax is flat
        start[:, -1] *= fit_intercept
        how["start"] = start
    found = descend(problem, slope_at, tol=1e-8, max_iter=10_000, **how)
    np.testing.assert_allclose(found.weight, expected.coef_, atol=1e-4)
    np.testing.assert_allclose(found.bias, np.ravel(expected.intercept_), atol=1e-4)
    assert found.steepest <= 1e-6
    assert 0 < found.n_iter < 10_000


@pytest.mark.parametrize("curved", [False, True])
def test_the_first_point_is_the_start(random, curved):
    X, weights, problem, slope_at, expected = draw_problem(random, 3, True)
    start = np.column_stack([expected.coef_, expected.intercept_])
    seen = []

    def watched(coef, bias):
        seen.append(np.column_stack([coef, bias]))
        return slope_at(coef, bias)

    flat = np.full((len(X), 3), 1 / 3)
    curvature = sample_curvature(X, flat, weights, problem.strength) if curved else None
    found = descend(problem, watched, tol=1e-5, max_iter=100, start=start, curvature=curvature)
    np.testing.assert_allclose(seen[0], start, atol=1e-9)
    assert found.n_iter <= 1  # it was the end


def test_a_good_curvature_saves_steps(random):
    X, weights, problem, slope_at, _ = draw_problem(random, 2, True)
    units = 10.0 ** np.linspace(-2, 2, X.shape[1])
    coordinates = HeadCoordinates(
        problem.coordinates.subspace, problem.coordinates.centre, np.diag(units)
    )
    scaled = Problem(coordinates, 1, problem.strength, problem.total)
    flat = np.full((len(X), 1), 0.5)
    curvature = sample_curvature(X * units, flat, weights, problem.strength)
    found = {"far": {}, "near": {"curvature": curvature}}
    steps = {
        name: descend(scaled, slope_at, tol=1e-6, max_iter=10_000, **how).n_iter
        for name, how in found.items()
    }
    assert steps["near"] < steps["far"]


def test_the_curvature_of_a_sample_is_the_second_derivative(random):
    X, codes, weights, coef, bias = draw_head(random, 2, 4)
    total = weights.sum()
    curvature = sample_curvature(X, expit(X @ coef.T + bias), weights, 0.0)
    point = np.column_stack([coef, bias])

    def gradient(at):
        slope = slope_of(X, codes, weights, at[:, :-1], at[:, -1])
        return np.column_stack([slope.coef, slope.bias])[0] / total

    columns = []
    for j in range(point.shape[1]):
        step = np.zeros_like(point)
        step[0, j] = 1e-5
        columns.append((gradient(point + step) - gradient(point - step)) / 2e-5)
    np.testing.assert_allclose(curvature, np.array(columns), atol=1e-4 * np.trace(curvature))
    ridge = sample_curvature(X, expit(X @ coef.T + bias), weights, 3.0) - curvature
    np.testing.assert_allclose(ridge, 3 * np.eye(5), atol=1e-9)


def test_too_few_iterations_are_reported(random, monkeypatch):
    X, y, e = draw_chunkable(random, n_classes=3)
    head = LogisticRegression(max_iter=1, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1 .* Raise max_iter"):
        ISRClassifier(ISRMean(1), head).fit(chunked(random, X, y, e))
    monkeypatch.setattr(_logistic, "MAPPED_BYTES", 0)
    with pytest.warns(ConvergenceWarning, match=r"wanted 1.0e-12"):
        ISRClassifier(ISRMean(1), head).fit(X, y, environments=e)


def test_a_parameter_that_cannot_be_is_refused(random):
    X, y, e = draw_chunkable(random)
    with pytest.raises(ValueError, match="'C'"):
        ISRClassifier(ISRMean(1), LogisticRegression(C=-1.0)).fit(chunked(random, X, y, e))


# --- rows in memory, without a copy


@pytest.fixture
def from_sums(monkeypatch):
    """A list of the heads that are fitted from sums, of rows of any size."""
    heads, fit = [], _predictors.fit_from_sums

    def watched(head, *how):
        heads.append(type(head).__name__)
        return fit(head, *how)

    monkeypatch.setattr(_predictors, "fit_from_sums", watched)
    monkeypatch.setattr(_logistic, "MAPPED_BYTES", 0)
    return heads


@pytest.mark.parametrize("group_weight", ["balanced", None])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("head", "n_features"),
    [
        (LogisticRegression(**EXACT), 5),
        (LogisticRegression(C=0.2, fit_intercept=False, **EXACT), 24),
        (LogisticHead(**EXACT), 24),
    ],
    ids=["few", "no intercept", "head"],
)
def test_large_rows_in_memory_get_the_same_head(
    random, monkeypatch, from_sums, head, n_features, n_classes, group_weight
):
    X, y, e = draw_chunkable(
        random, n_classes=n_classes, n_features=n_features, unknown=0.2, per_cell=50
    )
    how = {"environments": e, "sample_weight": random.uniform(0.2, 2, len(X))}
    found = ISRClassifier(ISRMean(1), head, group_weight=group_weight).fit(X, y, **how)
    assert from_sums == [type(head).__name__]
    monkeypatch.undo()
    expected = ISRClassifier(ISRMean(1), head, group_weight=group_weight).fit(X, y, **how)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-4)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=1e-4)
    np.testing.assert_array_equal(found.classes_, expected.classes_)


@pytest.mark.parametrize(
    ("isr", "head"),
    [
        (ISRMean(1, reduced=True), LogisticRegression()),
        (ISRMean(1), RidgeClassifier()),
        (ISRMean(1), LogisticRegression(solver="newton-cg")),
        (ISRMean(1), LogisticRegression(class_weight="balanced")),
    ],
    ids=str,
)
def test_other_heads_get_the_rows_as_ever(random, from_sums, isr, head):
    X, y, e = draw_chunkable(random)
    assert ISRClassifier(isr, head).fit(X, y, environments=e).score(X, y) > 0.5
    assert not from_sums


# --- closed forms


def fitted_on_rows(random, head, *, n_classes, isr, group_weight=None):
    """A classifier of chunks, and the same head on the rows as scikit-learn would have it."""
    X, y, e = draw_chunkable(random, n_classes=n_classes, unknown=0.2, names=True)
    weights = random.uniform(0.2, 2, len(X)) if group_weight == "balanced" else None
    columns = (X, y, e) if weights is None else (X, y, e, weights)
    found = ISRClassifier(isr, head, group_weight=group_weight).fit(chunked(random, *columns))
    inside = isr.fit(X, y, environments=e, sample_weight=weights).transform(X)
    own = () if weights is None else (scheme_weights(check_rows(X, y, e, weights), "balanced"),)
    return X, y, found, clone(head).fit(inside, y, *own), inside


def centred(scores):
    """Scores up to what all classes have in common."""
    scores = np.column_stack([-scores, scores]) / 2 if scores.ndim == 1 else scores
    return scores - scores.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("isr", [ISRMean(1, scale=0.1), ISR(1, scale=0.5)], ids=["means", "joint"])
def test_discriminants_of_moments_are_those_of_rows(random, isr, n_classes):
    # Of the solvers of scikit-learn this one has always divided by the number of rows. It takes the
    # rounding errors of a direction that is removed whole for a direction in 3 draws of 100: the
    # next test has the pseudo-inverse for that.
    head = LinearDiscriminantAnalysis(solver="lsqr")
    X, _, found, expected, inside = fitted_on_rows(random, head, n_classes=n_classes, isr=isr)
    np.testing.assert_array_equal(found.classes_, expected.classes_)
    np.testing.assert_allclose(found.head_.means_, expected.means_, atol=1e-9)
    np.testing.assert_allclose(found.head_.priors_, expected.priors_, atol=1e-12)
    scores = centred(expected.decision_function(inside))
    np.testing.assert_allclose(centred(found.decision_function(X)), scores, atol=1e-6)
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(inside), atol=1e-6)
    folded = np.squeeze(X @ found.coef_.T + found.intercept_)
    np.testing.assert_allclose(centred(folded), scores, atol=1e-6)


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_discriminants_without_a_direction_have_the_pseudo_inverse(random, n_classes, given):
    priors = random.dirichlet(np.full(n_classes, 5.0)) if given else None
    head = LinearDiscriminantAnalysis(solver="lsqr", priors=priors)
    X, y, found, expected, inside = fitted_on_rows(
        random, head, n_classes=n_classes, isr=ISRMean(1)
    )
    means = expected.means_
    away = inside - means[np.searchsorted(expected.classes_, y)]
    inverse = np.linalg.pinv(away.T @ away / len(X), rcond=1e-8, hermitian=True)
    scores = inside @ inverse @ means.T - np.sum(means @ inverse * means, axis=1) / 2
    scores = centred(scores + np.log(expected.priors_))
    np.testing.assert_allclose(centred(found.decision_function(X)), scores, atol=1e-6)
    folded = np.squeeze(X @ found.coef_.T + found.intercept_)
    np.testing.assert_allclose(centred(folded), scores, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_discriminant_of_default_is_that_of_rows(random, n_classes):
    """Before 1.9 this solver divides by the number of rows less that of classes."""
    head = LinearDiscriminantAnalysis()
    X, _, found, expected, inside = fitted_on_rows(
        random, head, n_classes=n_classes, isr=ISRMean(1)
    )
    scores = expected.decision_function(inside)
    atol = 1e-6 * (1 + np.abs(scores).max())
    np.testing.assert_allclose(found.decision_function(X), scores, atol=atol)


@pytest.mark.parametrize("group_weight", ["balanced", None])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_ridge_of_moments_is_that_of_rows(random, n_classes, fit_intercept, group_weight):
    head = RidgeClassifier(10.0 ** random.uniform(-2, 2), fit_intercept=fit_intercept)
    X, _, found, expected, inside = fitted_on_rows(
        random, head, n_classes=n_classes, isr=ISRMean(1), group_weight=group_weight
    )
    np.testing.assert_allclose(found.head_.coef_, np.atleast_2d(expected.coef_), atol=1e-8)
    np.testing.assert_allclose(found.head_.intercept_, expected.intercept_, atol=1e-8)
    np.testing.assert_allclose(
        found.decision_function(X), expected.decision_function(inside), atol=1e-7
    )
    np.testing.assert_array_equal(found.predict(X), expected.predict(inside))


def test_ridge_without_a_penalty_is_least_squares(random):
    head = RidgeClassifier(0.0)
    _, _, found, expected, _ = fitted_on_rows(random, head, n_classes=2, isr=ISRMean(0))
    np.testing.assert_allclose(found.head_.coef_, np.atleast_2d(expected.coef_), atol=1e-8)


# --- moments of all environments


@pytest.mark.parametrize("scheme", ["balanced", "class", None])
@pytest.mark.parametrize("unknown", [0.0, 0.3])
def test_pooled_moments_are_those_of_weighted_rows(random, scheme, unknown):
    X, y, e = draw_chunkable(random, n_classes=3, unknown=unknown)
    own = random.uniform(0.2, 2, len(X))
    moments = chunked(random, X, y, e, own).total(AddMoments(True))
    factors = group_factors(moments, scheme)
    pooled = Pooled.of(moments, factors, scatters=True)
    weights = scheme_weights(check_rows(X, y, e, own), scheme) if scheme else own
    np.testing.assert_allclose(pooled.total, weights.sum())
    within = np.zeros((X.shape[1],) * 2)
    for c in range(3):
        rows = y == c
        assert pooled.weights[c] == pytest.approx(weights[rows].sum())
        mean = np.average(X[rows], axis=0, weights=weights[rows])
        np.testing.assert_allclose(pooled.means[c], mean, atol=1e-9)
        within += np.cov(X[rows].T, aweights=weights[rows], ddof=0) * weights[rows].sum()
    np.testing.assert_allclose(pooled.within, within, rtol=1e-9, atol=1e-7)
    np.testing.assert_allclose(pooled.mean(), np.average(X, axis=0, weights=weights), atol=1e-9)
    np.testing.assert_allclose(
        pooled.covariance(), np.cov(X.T, aweights=weights, ddof=0), rtol=1e-9, atol=1e-9
    )
    assert pooled.n_rows == len(X)
    np.testing.assert_array_equal(pooled.rounding, np.finfo(X.dtype).eps * np.abs(X).max(axis=0))
    means = Pooled.of(moments, factors, scatters=False)
    np.testing.assert_array_equal(means.means, pooled.means)
    with pytest.raises(ValueError, match="means only"):
        means.covariance()


@pytest.mark.parametrize("scale", [0.0, 0.3])
@pytest.mark.parametrize("rank", [0, 1, 3])
def test_pooled_moments_without_a_subspace_are_those_of_projected_rows(random, rank, scale):
    X, y, e = draw_chunkable(random, n_features=5)
    subspace = Subspace.nothing(5) if rank == 0 else oblique_subspace(random, 5, rank, scale)
    rows, projected = check_rows(X, y, e), check_rows(subspace.project(X), y, e)
    factors = GroupFactors(rows.classes, rows.environments, random.uniform(1, 2, (2, 4)))
    before = Pooled.of(AddMoments(True)(rows), factors, scatters=True)
    found = before.without(subspace)
    expected = Pooled.of(AddMoments(True)(projected), factors, scatters=True)
    size = np.abs(before.within).max() * (1 + np.abs(subspace.functionals).max(initial=0)) ** 2
    np.testing.assert_allclose(found.means, expected.means, atol=1e-8)
    np.testing.assert_allclose(found.within, expected.within, atol=1e-10 * size)
    np.testing.assert_array_equal(found.weights, expected.weights)
    assert found.n_rows == len(X)


# --- weights that balance groups


@st.composite
def weights_of_cells(draw):
    """Weights of known cells (k, E), some of them empty, and of unknown rows (k,)."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k, E = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    known = random.uniform(0.5, 20, (k, E)) * (random.random((k, E)) < 0.7)
    known[random.integers(k), random.integers(E)] = 1.0
    others = random.uniform(0.5, 20, k) * (random.random(k) < 0.5)
    others[known.sum(axis=1) == 0] = 3.0  # no class without rows
    return known, others


@given(cells=weights_of_cells(), scheme=st.sampled_from(["balanced", "matched", "class", "group"]))
def test_weights_keep_their_sum_and_have_no_scale(cells, scheme):
    known, others = cells
    factors = cell_factors(known, others, scheme)
    assert np.sum(np.column_stack(cells) * factors) == pytest.approx(np.sum(known) + others.sum())
    np.testing.assert_allclose(cell_factors(7 * known, 7 * others, scheme), factors)


@given(cells=weights_of_cells())
def test_classes_count_alike_and_within_a_class_the_environments_it_has(cells):
    known, others = cells
    factors = cell_factors(known, others, "balanced")
    of_class = np.sum(np.column_stack(cells) * factors, axis=1)
    np.testing.assert_allclose(of_class, of_class[0])
    for c in np.flatnonzero(known.any(axis=1)):
        cells_of_class = (known[c] * factors[c, :-1])[known[c] > 0]
        np.testing.assert_allclose(cells_of_class, cells_of_class[0])
        assert factors[c, -1] == pytest.approx(cells_of_class.sum() / known[c].sum())


@given(cells=weights_of_cells())
def test_matched_classes_count_alike_and_more_in_environments_that_they_share(cells):
    known, others = cells
    factors = cell_factors(known, others, "matched")
    of_class = np.sum(np.column_stack(cells) * factors, axis=1)
    np.testing.assert_allclose(of_class, of_class[0])
    np.testing.assert_allclose(factors[:, -1], cell_factors(known, others, "class")[:, -1])
    n_others = np.sum(known > 0, axis=0) - 1
    if not np.allclose(factors, cell_factors(known, others, "balanced")):
        for c in range(len(known)):
            groups, there = known[c] * factors[c, :-1], known[c] > 0
            if known[c] @ n_others < 0.03 * known[c].sum() * max(len(known) - 1, 1):
                continue  # too few to stand for the class
            np.testing.assert_allclose(
                groups[there] * n_others[there].sum(), groups.sum() * n_others[there], atol=1e-12
            )


def test_rows_of_an_environment_with_one_class_do_not_count_in_the_default_head():
    known = np.array([[30.0, 10.0, 0.0], [20.0, 40.0, 50.0]])
    found = cell_factors(known, np.zeros(2), "matched")[:, :-1] * known
    np.testing.assert_allclose(found, [[37.5, 37.5, 0], [37.5, 37.5, 0]])
    lonely = np.array([[30.0, 0.0], [0.0, 40.0]])  # no environment has both
    patients = np.array([[30.0, 20.0, 10.0, 0.0, 0.0], [0.0, 0.0, 10.0, 20.0, 30.0]])
    for table in (lonely, patients, known[:1]):
        none = np.zeros(len(table))
        np.testing.assert_allclose(
            cell_factors(table, none, "matched"), cell_factors(table, none, "balanced")
        )


@pytest.mark.parametrize(("n_kept", "part"), [(3000, 1), (15, 0.5), (3, 0.1)])
def test_a_class_does_not_rest_on_very_few_of_its_rows(n_kept, part):
    """Where one environment keeps n_kept of 1 000 rows, or 3 000 of 4 000, the other has none."""
    other = 1000.0 if n_kept == 3000 else 1000.0 - n_kept
    known, none = np.array([[n_kept, other], [500.0, 0.0]]), np.zeros(2)
    found = known * cell_factors(known, none, "matched")[:, :-1]
    half = found.sum() / 4
    np.testing.assert_allclose(found[0], [half * (1 + part), half * (1 - part)], atol=1e-9)


@pytest.mark.filterwarnings("ignore::isrlearn.exceptions.EmptyCellWarning")
@pytest.mark.parametrize("n_features", [6, 30])
def test_the_default_head_is_matched_and_an_explicit_one_balanced(random, n_features):
    X, y, e = draw_chunkable(random, n_features=n_features)
    kept = (y == 0) | (e != e[y == 0][0])
    X, y, e = X[kept], y[kept], e[kept]
    rows = check_rows(X, y, e)
    inside = ISRMean(1).fit(X, y, environments=e).transform(X)
    plain = LogisticHead(C="scale", max_iter=1000, tol=SOLVED)
    for head, scheme in ((None, "matched"), (plain, "balanced")):
        expected = (
            clone(plain).fit(inside, y, scheme_weights(rows, scheme)).decision_function(inside)
        )
        for found in (
            ISRClassifier(ISRMean(1), head).fit(X, y, environments=e),
            ISRClassifier(ISRMean(1), head).fit(chunked(random, X, y, e)),
        ):
            np.testing.assert_allclose(found.decision_function(X), expected, atol=2e-3)
    weights = [scheme_weights(rows, scheme) for scheme in ("matched", "balanced")]
    assert not np.allclose(*weights)


@given(cells=weights_of_cells())
def test_where_no_group_is_missing_groups_count_alike(cells):
    known, _ = cells
    complete, none = known + 0.5, np.zeros(len(known))
    groups = complete * cell_factors(complete, none, "balanced")[:, :-1]
    np.testing.assert_allclose(groups, complete.sum() / complete.size)
    for scheme in ("group", "matched"):
        np.testing.assert_allclose(
            cell_factors(complete, none, scheme), cell_factors(complete, none, "balanced")
        )


@given(cells=weights_of_cells())
def test_class_weights_read_no_environment(cells):
    known, others = cells
    merged = cell_factors(np.zeros((len(known), 0)), known.sum(axis=1) + others, "class")
    found = cell_factors(known, others, "class")
    np.testing.assert_allclose(found, np.repeat(merged, known.shape[1] + 1, axis=1))


def test_without_environments_the_classes_are_balanced(random):
    sizes = random.uniform(0.5, 20, 4)
    factors = cell_factors(np.zeros((4, 0)), sizes, "balanced")
    np.testing.assert_allclose(sizes * factors[:, 0], sizes.sum() / 4)
    X, y, _ = draw_chunkable(random, n_classes=3)
    found = group_factors(chunked(random, X, y).total(AddMoments(False)), "balanced")
    weights = found.labels_of(check_rows(X, y))(slice(None))[1]
    np.testing.assert_allclose(np.bincount(y, weights), len(X) / 3)


@pytest.mark.parametrize("scheme", ["balanced", "class"])
@pytest.mark.parametrize("unknown", [0.0, 0.3])
def test_weights_of_chunks_are_those_of_all_rows(random, unknown, scheme):
    X, y, e = draw_chunkable(random, n_classes=3, unknown=unknown, names=True)
    e = e.astype(object)
    e[y == "x"] = None  # a class of which no environment is known
    own = random.uniform(0.2, 2, len(X))
    expected = scheme_weights(check_rows(X, y, e, own), scheme)
    moments = chunked(random, X, y, e, own).total(AddMoments(False))
    factors = group_factors(moments, scheme)
    assert factors.classes.tolist() == sorted(set(y))
    found = factors.labels_of(check_rows(X, y, e, own))(slice(None))[1]
    np.testing.assert_allclose(found, expected)
    some = y == "gull"  # labels that the chunk lacks are in the table
    part = check_rows(X[some], y[some], e[some], own[some])
    np.testing.assert_allclose(factors.labels_of(part)(slice(None))[1], expected[some])
    assert set(factors.labels_of(part)(slice(None))[0]) == {sorted(set(y)).index("gull")}
    every = group_factors(moments, None)
    np.testing.assert_array_equal(every.labels_of(check_rows(X, y, e, own))(slice(None))[1], own)
    assert every.labels_of(check_rows(X, y, e))(slice(None))[1] is None


# --- how many passes it takes


class _Counted(ChunkedRows):
    """Chunks whose passes for a head are counted."""

    n_passes = 0

    def total(self, function, **how):
        self.n_passes += isinstance(function, AddLoss)
        return super().total(function, **how)


def counted(X, y, e):
    parts = [Chunk(X[own], y[own], e[own]) for own in np.array_split(np.arange(len(X)), 5)]
    return _Counted(lambda: iter(parts), X.shape[1])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_single_precision_takes_hardly_more_passes_than_double(random, n_classes):
    """Values of float32 sums are off by more than the last steps gain; gradients are not."""
    X, y, e = draw_chunkable(random, n_classes=n_classes, n_features=30, per_cell=4000)
    found = []
    for dtype in (np.float32, np.float64):
        rows = counted(X.astype(dtype), y, e)
        model = ISRClassifier(ISRMean(1)).fit(rows)
        found.append((rows.n_passes, model.coef_))
    (single, coarse), (double, fine) = found
    assert single <= 2 * double + 4
    np.testing.assert_allclose(coarse, fine, atol=1e-4 * np.abs(fine).max())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_short_sample_is_a_start_and_not_the_end(random, monkeypatch):
    """A sample of a few rows per weight can be told apart without an error; all rows cannot."""
    monkeypatch.setattr(_logistic, "LEAST_SAMPLE", 1)
    monkeypatch.setattr(_logistic, "SAMPLE_ROWS", 3)
    n_passes = {"short": 0, "solved": 0}
    for _ in range(2):
        X, y, e = draw_chunkable(random, n_features=60, per_cell=2000)
        for name, steps in (("short", _logistic.SHORT_STEPS), ("solved", 200)):
            rows = counted(X, y, e)
            with monkeypatch.context() as patched:
                patched.setattr(_logistic, "SHORT_STEPS", steps)
                head = LogisticHead(max_iter=1000, tol=SOLVED)
                ISRClassifier(ISRMean(1), head).fit(rows)
            n_passes[name] += rows.n_passes
    assert n_passes["short"] < n_passes["solved"]


def test_near_points_differ_by_what_their_gradients_say(random):
    A = random.normal(size=(5, 5))
    A, b = A @ A.T, random.normal(size=5)

    def at(x):
        return _LookedAt(1e3 + x @ A @ x / 2 + b @ x, (A @ x + b)[None], x[None])

    a, x = random.normal(size=(2, 5)) * 1e-6
    off = at(x)._replace(value=at(x).value + 1e-6)  # rounding
    assert off.measured_from(at(a)).value == pytest.approx(at(x).value, rel=1e-14)
    far = at(x + 10)
    assert far.measured_from(at(a)) is far


@pytest.mark.parametrize("offset", [300, 1000, 1e4])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_far_from_zero_end_with_a_word(random, offset, n_classes):
    """Single precision has few digits left there: no error, and it is said."""
    X, y, e = draw_chunkable(random, n_classes=n_classes, per_cell=500)
    rows = counted((X + offset).astype(np.float32), y, e)
    head = LogisticRegression(max_iter=1000)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = ISRClassifier(ISRMean(1), head, group_weight=None).fit(rows)
    assert not said or "Centre and scale" in str(said[-1].message)
    centred = ISRClassifier(ISRMean(1), head, group_weight=None).fit(X, y, environments=e)
    right = np.mean(found.predict((X + offset).astype(np.float32)) == y)
    assert right > np.mean(centred.predict(X) == y) - 0.05


def test_the_start_keeps_its_value(random):
    """A trial that rounds to the start gets what was found there, not what the last trial got."""
    problem = Problem(HeadCoordinates(Subspace.nothing(2), np.zeros(2)), 1, 0.0, 1.0)
    seen = []

    def steep(coef, bias):
        seen.append(coef.copy())
        rise = 0.0 if not coef.any() else 1.0  # every step is up
        return Loss(rise, np.full((1, 2), 1e-3), np.zeros(1))

    found = descend(problem, steep, tol=1e-6, max_iter=5, curvature=np.eye(3))
    assert not found.weight.any()
    assert found.n_iter <= 1


def test_a_target_that_cannot_be_reached_is_no_warning(random):
    X, y, e = draw_chunkable(random, n_features=24, per_cell=100)
    ISRClassifier(ISRMean(1), LogisticRegression(tol=0.0, max_iter=1000)).fit(counted(X, y, e))


def test_threads_of_scipy_come_back_after_overlapping_solves():
    controller = ThreadpoolController()
    before = [found["num_threads"] for found in controller.info()]
    one, two = one_thread_in_scipy(), one_thread_in_scipy()
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    two.__exit__(None, None, None)
    assert [found["num_threads"] for found in controller.info()] == before
