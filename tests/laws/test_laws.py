"""Laws that hold for any data: drawn by hypothesis."""

import numpy as np
import pytest
from conftest import draw_rows, seeds
from hypothesis import given, strategies as st
from scipy.stats import ortho_group
from sklearn.base import clone

from isrlearn import ISR, CellMoments, ISRClassifier, ISRCov, ISRMean
from isrlearn.datasets import make_linear_gaussian

ESTIMATORS = [
    ISRMean(2),
    ISRMean(2, condition_on=1),
    ISRMean(1, condition_on=[0, 1], scale=0.3),
    ISRCov(2),
    ISRCov(1, condition_on=0, pairs=(0, 2)),
    ISRCov(2, pairs="distinct"),
    ISR(2),
    ISR(1, condition_on=1, scale=0.3),
]
every_estimator = pytest.mark.parametrize("isr", ESTIMATORS, ids=str)
shapes = st.fixed_dictionaries(
    {
        "n_classes": st.integers(2, 4),
        "n_environments": st.integers(3, 5),
        "n_features": st.integers(4, 8),
    }
)


def fitted(isr, X, y, e, **weights):
    return clone(isr).fit(X, y, environments=e, **weights)


def assert_same_map(a, b, X):
    """Both fits do the same to X, up to rounding that a small gap in the spectrum may enlarge."""
    np.testing.assert_allclose(a.transform(X), b.transform(X), atol=1e-6 * np.abs(X).max())


@every_estimator
@given(seed=seeds, shape=shapes)
def test_row_order_does_not_matter(isr, seed, shape):
    X, y, e = draw_rows(seed, **shape)
    order = np.random.default_rng(seed).permutation(len(X))
    assert_same_map(fitted(isr, X, y, e), fitted(isr, X[order], y[order], e[order]), X)


@every_estimator
@given(seed=seeds, shape=shapes)
def test_names_of_environments_do_not_matter(isr, seed, shape):
    X, y, e = draw_rows(seed, **shape)
    names = np.random.default_rng(seed).permutation([f"site {i}" for i in range(e.max() + 1)])
    renamed = clone(isr)
    if isinstance(getattr(isr, "pairs", None), tuple):
        renamed.set_params(pairs=tuple(str(names[i]) for i in isr.pairs))
    assert_same_map(fitted(isr, X, y, e), fitted(renamed, X, y, names[e]), X)


@every_estimator
@given(seed=seeds, shape=shapes)
def test_rotation_and_shift_carry_over(isr, seed, shape):
    X, y, e = draw_rows(seed, **shape)
    Q = ortho_group.rvs(X.shape[1], random_state=seed)
    shift = 100 * np.random.default_rng(seed).normal(size=X.shape[1])
    here, there = fitted(isr, X, y, e), fitted(isr, X @ Q + shift, y, e)
    expected = here.transform(X) @ Q + shift
    np.testing.assert_allclose(there.transform(X @ Q + shift), expected, atol=1e-5)


@every_estimator
@given(seed=seeds, shape=shapes)
def test_weights_are_repeated_rows(isr, seed, shape):
    X, y, e = draw_rows(seed, **shape)
    weights = np.random.default_rng(seed).integers(0, 4, size=len(X))
    weights[::3] = 1  # no cell becomes tiny
    repeated = fitted(isr, *(np.repeat(a, weights, axis=0) for a in (X, y, e)))
    assert_same_map(fitted(isr, X, y, e, sample_weight=weights), repeated, X)


@every_estimator
@given(seed=seeds, shape=shapes)
def test_rows_of_unknown_environment_do_not_enter(isr, seed, shape):
    X, y, e = draw_rows(seed, **shape)
    strangers = 50 * np.random.default_rng(seed).normal(size=(7, X.shape[1]))
    environments = [*e.tolist(), *[None] * 7]
    mixed = fitted(isr, np.vstack([X, strangers]), np.append(y, [0] * 7), environments)
    assert_same_map(fitted(isr, X, y, e), mixed, X)


@every_estimator
@given(seed=seeds, shape=shapes, n_chunks=st.integers(1, 9))
def test_partial_fit_is_fit(isr, seed, shape, n_chunks):
    X, y, e = draw_rows(seed, **shape)
    # Rows sorted by cell: most chunks miss classes and environments.
    streamed = clone(isr)
    for part in np.array_split(np.arange(len(X)), n_chunks):
        streamed.partial_fit(X[part], y[part], environments=e[part])
    whole = fitted(isr, X, y, e)
    assert_same_map(whole, streamed, X)
    np.testing.assert_allclose(whole.spectrum_, streamed.spectrum_, atol=1e-8)


@every_estimator
@given(seed=seeds, shape=shapes)
def test_project_is_idempotent(isr, seed, shape):
    X, y, e = draw_rows(seed, **shape)
    once = fitted(clone(isr).set_params(scale=0.0), X, y, e)
    np.testing.assert_allclose(once.transform(once.transform(X)), once.transform(X), atol=1e-9)


@given(seed=seeds, shape=shapes, second_order=st.booleans())
def test_batches_merge_in_any_order(seed, shape, second_order):
    X, y, e = draw_rows(seed, **shape)
    random = np.random.default_rng(seed)
    weights = random.uniform(0.1, 3, size=len(X))
    whole = CellMoments.from_rows(X, y, e, weights, second_order=second_order)
    parts = [
        CellMoments.from_rows(X[p], y[p], e[p], weights[p], second_order=second_order)
        for p in np.array_split(random.permutation(len(X)), random.integers(1, 8))
    ]
    total = CellMoments.empty(X.shape[1], second_order=second_order)
    for part in parts:
        total = part + total if random.integers(2) else total + part
    for name, value in whole.to_arrays().items():
        np.testing.assert_allclose(getattr(total, name, 1), value, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "isr", [ISRMean(2), ISRMean(2, condition_on=1), ISRCov(2), ISRCov(2, pairs=(0, 2))], ids=str
)
@given(seed=seeds)
def test_float32_with_a_large_mean_agrees_with_float64(isr, seed):
    # A model with two spurious directions, so that the gap after the second does not vanish.
    model = make_linear_gaussian(3, 4, 2, mu_e=[[3, 0], [0, 3], [0, 0]], sigma_e=[0.3, 2, 6])
    X, y, e = model.sample(300, random_state=seed)
    X32 = (X + 1e4).astype(np.float32)
    single, double = fitted(isr, X32, y, e), fitted(isr, X32.astype(np.float64), y, e)
    assert single.transform(X32).dtype == np.float32
    assert single.subspace_.angles_to(double.subspace_).max() < 1e-4
    np.testing.assert_allclose(
        single.spectrum_, double.spectrum_, atol=1e-4 * np.abs(double.spectrum_).max()
    )
    np.testing.assert_allclose(single.transform(X32), double.transform(X32), rtol=1e-6)


@given(seed=seeds, shape=shapes, factor=st.floats(1e-3, 1e3))
def test_overall_scale_of_the_weights_does_not_matter(seed, shape, factor):
    X, y, e = draw_rows(seed, **shape)
    weights = np.random.default_rng(seed).uniform(0.5, 2, size=len(X))
    for isr in (ISRMean(2), ISRCov(2)):
        scaled = fitted(isr, X, y, e, sample_weight=factor * weights)
        assert_same_map(fitted(isr, X, y, e, sample_weight=weights), scaled, X)


@given(seed=seeds, shape=shapes, balanced=st.booleans())
def test_classifier_takes_weights_as_repeated_rows(seed, shape, balanced):
    X, y, e = draw_rows(seed, **shape)
    X = X / X.std(axis=0)
    weights = np.random.default_rng(seed).integers(1, 4, size=len(X))
    clf = ISRClassifier(ISRMean(2), group_weight="balanced" if balanced else None)
    clf.set_params(head=clf._head_or_default().set_params(tol=1e-8, max_iter=10_000))
    weighted = clone(clf).fit(X, y, environments=e, sample_weight=weights)
    repeated = clone(clf).fit(
        np.repeat(X, weights, axis=0), np.repeat(y, weights), environments=np.repeat(e, weights)
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-4)
