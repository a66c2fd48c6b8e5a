"""A folded pipeline predicts what the pipeline predicts."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import draw_rows, seeds
from hypothesis import given, strategies as st
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC

from isrlearn import ISR, ISRClassifier, ISRCov, ISRMean, fold, repair_head
from isrlearn.datasets import make_linear_gaussian

SHUFFLED = StratifiedKFold(2, shuffle=True)
SCALERS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    RobustScaler(),
    MaxAbsScaler(),
    MinMaxScaler((-1, 2)),
    "passthrough",
]
REDUCERS = [
    PCA(6),
    PCA(5, whiten=True),
    IncrementalPCA(6),
    TruncatedSVD(6),
    SelectKBest(k=6),
    "passthrough",
]
REMOVALS = [ISRMean(2), ISRMean(1, reduced=True), ISRCov(2, scale=0.4), ISRCov(1)]


def fit_pipeline(steps, seed, n_classes=2):
    X, y, e = draw_rows(seed, n_classes=n_classes, n_features=7)
    pipe = Pipeline([(f"s{i}", step) for i, step in enumerate(steps)])
    where = next(i for i, s in enumerate(steps) if hasattr(s, "fold_into") or hasattr(s, "isr"))
    return pipe.fit(X, y, **{f"s{where}__environments": e}), X


@given(
    seed=seeds,
    scaler=st.sampled_from(SCALERS),
    reducer=st.sampled_from(REDUCERS),
    removal=st.sampled_from(REMOVALS),
    head=st.sampled_from([RidgeClassifier(), LinearDiscriminantAnalysis()]),
    n_classes=st.integers(2, 3),
)
def test_fold_is_the_pipeline(seed, scaler, reducer, removal, head, n_classes):
    pipe, X = fit_pipeline([scaler, reducer, removal, head], seed, n_classes)
    weight, bias = fold(pipe)
    expected = pipe.decision_function(X)
    found = (X @ weight.T + bias).reshape(expected.shape)
    np.testing.assert_allclose(found, expected, atol=1e-8 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("head", [Ridge(), LinearRegression(fit_intercept=False)])
def test_fold_of_a_regressor_keeps_its_shapes(random, head):
    pipe, X = fit_pipeline([StandardScaler(), ISRMean(2), head], random.integers(2**31))
    weight, bias = fold(pipe)
    assert weight.shape == (7,)
    assert bias.shape == ()
    np.testing.assert_allclose(X @ weight + bias, pipe.predict(X), atol=1e-8)


def test_fold_of_classifier_nested_pipeline_and_search(random):
    X, y, e = draw_rows(random.integers(2**31), n_features=7, per_cell=80)
    clf = ISRClassifier(ISRMean(2), LogisticRegression(max_iter=5000))
    pipe = make_pipeline(StandardScaler(), clf).fit(X, y, isrclassifier__environments=e)
    weight, bias = fold(pipe)
    np.testing.assert_allclose((X @ weight.T + bias)[:, 0], pipe.decision_function(X), atol=1e-8)
    search = GridSearchCV(pipe, {"isrclassifier__isr__n_spurious": [1]}, cv=SHUFFLED)
    search.fit(X, y, isrclassifier__environments=e)
    weight, bias = fold(search)
    np.testing.assert_allclose((X @ weight.T + bias)[:, 0], search.decision_function(X), atol=1e-8)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (PolynomialFeatures(1, include_bias=False), "step 's0' .PolynomialFeatures. is not known"),
        (MinMaxScaler(clip=True), "step 's0' clips"),
    ],
)
def test_steps_that_are_not_linear_are_named(random, step, words):
    pipe, _ = fit_pipeline([step, ISRMean(1), RidgeClassifier()], random.integers(2**31))
    with pytest.raises(TypeError, match=words):
        fold(pipe)


def test_every_clipping_scaler_is_refused(random):
    step = MaxAbsScaler()
    step.clip = True  # a parameter from scikit-learn 1.9 on
    pipe, _ = fit_pipeline(
        [StandardScaler(), ISRMean(1), RidgeClassifier()], random.integers(2**31)
    )
    pipe.steps[0] = ("s0", step)
    with pytest.raises(TypeError, match="step 's0' clips"):
        fold(pipe)


def test_a_head_that_is_not_linear_is_named(random):
    pipe, _ = fit_pipeline([ISRMean(1), RandomForestClassifier(5)], random.integers(2**31))
    with pytest.raises(TypeError, match="RandomForestClassifier is not a linear model"):
        fold(pipe)


@given(seed=seeds, isr=st.sampled_from([ISR(2), ISRMean(2), ISRCov(2), ISRMean(1, reduced=True)]))
def test_repair_head_is_the_old_head_on_projected_rows(seed, isr):
    X, y, e = draw_rows(seed, n_classes=3)
    random = np.random.default_rng(seed)
    weight, bias = random.normal(size=(3, 5)), random.normal(size=3)
    before = weight.copy(), bias.copy()
    new_weight, new_bias = repair_head(weight, bias, X, y, environments=e, isr=isr)
    finder = (ISR() if isr is None else isr).fit(X, y, environments=e)
    expected = finder.subspace_.project(X) @ weight.T + bias
    np.testing.assert_allclose(X @ new_weight.T + new_bias, expected, atol=1e-8)
    np.testing.assert_array_equal((weight, bias)[0], before[0])
    np.testing.assert_array_equal(bias, before[1])


def test_repair_head_without_bias(random):
    X, y, e = draw_rows(random.integers(2**31))
    with pytest.raises(ValueError, match="no bias"):
        repair_head(np.ones(5), None, X, y, environments=e)
    weight, bias = repair_head(np.ones(5), None, X, y, environments=e, centre=0)
    assert bias is None
    assert weight.shape == (5,)


def test_repair_commutes_with_a_shift_of_the_features(random):
    """Moving the origin and the bias with it changes no prediction."""
    X, y, e = draw_rows(random.integers(2**31))
    weight, bias, shift = random.normal(size=5), 0.3, 100 * random.normal(size=5)
    here = repair_head(weight, bias, X, y, environments=e, isr=ISR(2))
    there = repair_head(weight, bias - weight @ shift, X + shift, y, environments=e, isr=ISR(2))
    np.testing.assert_allclose(X @ here[0] + here[1], (X + shift) @ there[0] + there[1], atol=1e-8)


@pytest.mark.parametrize("condition_on", [None, 1, -1])
def test_a_repaired_head_stays_unbiased_whatever_class_is_conditioned_on(random, condition_on):
    """The centre is that of all cells: with mirrored classes half of the rows stay on each side."""
    model = make_linear_gaussian(
        2, 3, 1, mu_c=[1, 1, 1], mu_e=[[3], [1.5]], sigma_e=1.0, R=np.eye(4)
    )
    X, y, e = model.sample(4000, random_state=random.integers(2**31))
    old = LogisticRegression().fit(X, y)
    isr = ISRMean(condition_on=condition_on)
    weight, bias = repair_head(old.coef_[0], old.intercept_[0], X, y, environments=e, isr=isr)
    elsewhere = replace(model, mu_e=np.zeros((2, 1)))
    X_new, y_new, _ = elsewhere.sample(4000, random_state=random.integers(2**31))
    right = np.sign(X_new @ weight + bias) == y_new
    assert right[y_new == 1].mean() > 0.9
    assert right[y_new == -1].mean() > 0.9


def test_the_centre_is_the_mean_of_all_cell_means(random):
    X, y, e = draw_rows(random.integers(2**31), n_classes=3)
    kept = np.arange(len(X)) % 3 > 0  # cells of unequal sizes
    X, y, e = X[kept], y[kept], e[kept]
    means = [X[(y == c) & (e == i)].mean(axis=0) for c in range(3) for i in range(3)]
    for isr in (ISRMean(1, condition_on=2), ISRCov(1, condition_on=[0, 1]), ISRMean(2)):
        centre = isr.fit(X, y, environments=e).subspace_.centre
        np.testing.assert_allclose(centre, np.mean(means, axis=0))


def test_fold_of_steps_within_steps(random):
    inner = make_pipeline(StandardScaler(), PCA(5))
    X, y, e = draw_rows(random.integers(2**31), n_features=7)
    pipe = make_pipeline(inner, ISRMean(1), RidgeClassifier()).fit(X, y, isrmean__environments=e)
    weight, bias = fold(pipe)
    np.testing.assert_allclose(X @ weight + bias, pipe.decision_function(X), atol=1e-8)


def test_fold_refuses_coefficients_that_are_not_those_of_the_decision(random):
    X, y, e = draw_rows(random.integers(2**31), n_classes=3)
    for head in (SVC(kernel="linear"), PLSRegression()):
        pipe = make_pipeline(ISRMean(1), head).fit(X, y, isrmean__environments=e)
        with pytest.raises(TypeError, match="is not a linear model whose decision values"):
            fold(pipe)


def test_a_centre_of_a_wrong_shape_is_named(random):
    X, y, e = draw_rows(random.integers(2**31))
    with pytest.raises(ValueError, match=r"centre has shape \(3,\)"):
        repair_head(np.ones(5), 0.0, X, y, environments=e, centre=np.zeros(3))
    with pytest.raises(TypeError, match="give ISR"):
        repair_head(np.ones(5), 0.0, X, y, environments=e, isr=PCA())
