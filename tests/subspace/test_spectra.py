"""Kernels against scikit-learn's PCA and the paper's own formulas."""

import numpy as np
import pytest
from conftest import draw_rows, seeds
from hypothesis import given, strategies as st
from scipy.linalg import subspace_angles, svd
from sklearn.decomposition import PCA

from isrlearn import CellMoments
from isrlearn.exceptions import EmptyCellWarning
from isrlearn.subspace import _pairs
from isrlearn.subspace._pairs import choose_pairs, pair_difference
from isrlearn.subspace._recovery import subspace_from_covariances, subspace_from_means
from isrlearn.subspace._rounding import (
    check_n_spurious,
    check_rank,
    covariance_rounding,
    n_identified,
)
from isrlearn.subspace._spectra import flag_mean, mean_contrasts, mean_spectrum, pair_spectrum


def same_span(a, b):
    return subspace_angles(a.T, b.T).max() < 1e-6


@given(seed=seeds, E=st.integers(2, 8), d=st.integers(2, 6))
def test_one_class_is_pca_of_the_means(seed, E, d):
    """Algorithm 1, step II, by an independent implementation."""
    X, y, e = draw_rows(seed, n_environments=E, n_features=d)
    rank = min(E - 1, d - 1)
    ours = subspace_from_means(CellMoments.from_rows(X, y, e), rank, condition_on=1).subspace
    means = np.array([X[(y == 1) & (e == i)].mean(axis=0) for i in range(E)])
    pca = PCA(rank).fit(means)
    assert same_span(ours.directions, pca.components_)
    np.testing.assert_allclose(ours.spectrum[:rank], pca.explained_variance_ * (E - 1) / E)


@given(seed=seeds)
def test_pooled_means_are_the_between_scatter_of_manova(seed):
    X, y, e = draw_rows(seed, n_classes=3)
    spectrum = subspace_from_means(CellMoments.from_rows(X, y, e), 2).subspace.spectrum
    H = np.zeros((5, 5))
    for c in range(3):
        for i in range(3):
            rows = (y == c) & (e == i)
            delta = X[rows].mean(axis=0) - X[y == c].mean(axis=0)
            H += rows.sum() * np.outer(delta, delta)
    np.testing.assert_allclose(spectrum, np.linalg.eigvalsh(H / len(X))[::-1], atol=1e-9)


@given(seed=seeds, classes=st.sampled_from([0, 1, [0, 1], None]))
def test_a_pair_is_the_eigenvectors_of_its_covariance_difference(seed, classes):
    X, y, e = draw_rows(seed)
    moments = CellMoments.from_rows(X, y, e)
    ours = subspace_from_covariances(moments, 2, condition_on=classes, pairs=(0, 2)).subspace
    delta, total = 0, 0
    for c in [0, 1] if classes in (None, [0, 1]) else [classes]:
        first, second = (X[(y == c) & (e == i)] for i in (0, 2))
        precision = 1 / (1 / len(first) + 1 / len(second))
        delta = delta + precision * (np.cov(first.T, ddof=0) - np.cov(second.T, ddof=0))
        total += precision
    values, vectors = np.linalg.eigh(delta / total)
    order = np.argsort(-np.abs(values))
    np.testing.assert_allclose(ours.spectrum, values[order], atol=1e-9)
    assert same_span(ours.directions, vectors.T[order[:2]])


@given(seed=seeds, n=st.integers(1, 6), r=st.integers(1, 4))
def test_flag_mean_is_the_papers_on_the_complements(seed, n, r):
    """The paper: left singular vectors of the concatenated bases of the kept subspaces."""
    d = 6
    random = np.random.default_rng(seed)
    centre = random.normal(size=(d, d))
    frames = [np.linalg.qr(centre + 0.3 * random.normal(size=(d, d)))[0].T for _ in range(n)]
    kept_by_paper = svd(np.hstack([q[r:].T for q in frames]))[0][:, : d - r]
    removed = flag_mean([q[:r] for q in frames])
    np.testing.assert_allclose(removed.vectors[:r] @ kept_by_paper, 0, atol=1e-7)
    assert np.all((removed.values >= -1e-12) & (removed.values <= 1 + 1e-12))


def test_environments_with_changed_class_shares_do_not_differ(random):
    """Classes of different spread in different proportions: nothing differs given the class."""
    X, y, e = [], [], []
    for environment, share in ((0, 0.9), (1, 0.1)):
        for c, spread, n in ((0, 1.0, int(4000 * share)), (1, 3.0, int(4000 * (1 - share)))):
            X.append(random.normal(size=(n, 3)) * spread)
            y += [c] * n
            e += [environment] * n
    moments = CellMoments.from_rows(np.concatenate(X), y, e)
    [pair] = choose_pairs(moments, "all")
    assert np.abs(pair_difference(moments, pair)).max() < 1.5  # pooled over classes: about 6.4


def test_signs_and_order_are_fixed(random):
    contrasts = random.normal(size=(4, 6))
    for spectrum in (mean_spectrum(contrasts), pair_spectrum(contrasts.T @ contrasts)):
        assert np.all(np.diff(np.abs(spectrum.values)) <= 1e-12)
        largest = np.abs(spectrum.vectors).argmax(axis=1)
        assert np.all(spectrum.vectors[np.arange(len(largest)), largest] > 0)
    flipped = mean_spectrum(-contrasts)
    np.testing.assert_allclose(flipped.vectors, mean_spectrum(contrasts).vectors)


def test_contrasts_of_each_class_sum_to_zero(random):
    means, weights = random.normal(size=(7, 4)), random.uniform(1, 2, 7)
    classes = np.array([0, 0, 0, 2, 2, 5, 5])
    contrasts = mean_contrasts(means, weights, classes) * np.sqrt(weights)[:, None]
    for c in (0, 2, 5):
        np.testing.assert_allclose(contrasts[classes == c].sum(axis=0), 0, atol=1e-12)


def test_distinct_keeps_the_pairs_that_differ(random):
    """Three environments alike, one of another spread: three of six pairs are distinct."""
    spreads = np.array([1.0, 1.0, 1.0, 1.4])
    e = np.repeat(np.arange(4), 3000)
    X = random.normal(size=(len(e), 4)) * spreads[e, None]
    y = random.integers(0, 2, len(e))
    moments = CellMoments.from_rows(X, y, e)
    assert len(choose_pairs(moments, "all")) == 6
    chosen = choose_pairs(moments, "distinct")
    named = [sorted(moments.environment_index[[p.first[0], p.second[0]]]) for p in chosen]
    assert all(pair in named for pair in ([0, 3], [1, 3], [2, 3]))
    # Of the other three each is kept by mistake in one of a hundred runs.
    assert len(named) < 6
    alike = CellMoments.from_rows(X[e < 2], y[e < 2], e[e < 2])
    p_value = _pairs._equality_test(alike)(choose_pairs(alike, "all")[0])
    if p_value >= _pairs.DISTINCT_LEVEL:  # at level .01 this is so in 99 of 100 runs
        with pytest.raises(ValueError, match="no two environments have covariances that differ"):
            choose_pairs(alike, "distinct")


def test_the_equality_test_has_its_level(random):
    """p-values of Gaussian rows that do not differ are uniform."""
    values = []
    y, e = np.arange(600) // 2 % 2, np.arange(600) % 2
    for _ in range(400):
        spread = np.where(y == 0, 1.0, 5.0)[:, None]  # classes need not be alike
        X = spread * random.normal(size=(600, 3)) @ random.normal(size=(3, 3))
        moments = CellMoments.from_rows(X, y, e)
        [pair] = choose_pairs(moments, "all")
        values.append(_pairs._equality_test(moments)(pair))
    # 400 draws at level .1: 40 expected, standard deviation 6.
    assert 10 <= np.sum(np.array(values) < 0.1) <= 75


def test_many_environments_are_capped_whatever_their_names(random):
    X, y, e = draw_rows(random.integers(2**31), n_environments=25, n_features=3, per_cell=5)
    names = random.permutation(25)
    for environments in (e, names[e]):
        chosen = choose_pairs(CellMoments.from_rows(X, y, environments), "all")
        assert len(chosen) == 190
    a, b = (
        subspace_from_covariances(CellMoments.from_rows(X, y, environments), 1).subspace
        for environments in (e, names[e])
    )
    assert a.angles_to(b).max() < 1e-6


def test_limits():
    assert n_identified(np.array([-1.0, 1e-3, 1e-17, 0.0]), np.zeros(3)) == 2
    assert n_identified(np.array([-1.0, 1e-3, 1e-4, 0.0]), np.array([0.1, 0.1, 0.0])) == 1
    check_rank(2, 2, 5, "")
    check_n_spurious(np.int64(3))
    check_n_spurious("auto")
    for bad in (-1, 1.0, "automatic", True, None):
        with pytest.raises(ValueError, match="n_spurious"):
            check_n_spurious(bad)


def test_the_pairs_kept_of_many_are_the_most_informative(random):
    """One environment of another spread among 25: all its pairs are kept."""
    e = np.repeat(np.arange(25), 200)
    X = random.normal(size=(len(e), 3)) * np.where(e == 13, 3.0, 1.0)[:, None]
    moments = CellMoments.from_rows(X, np.arange(len(e)) % 2, e)
    chosen = choose_pairs(moments, "all")
    named = [set(moments.environment_index[[p.first[0], p.second[0]]]) for p in chosen]
    assert sum(13 in pair for pair in named) == 24


def test_a_pair_may_be_named_in_any_sequence(random):
    X, y, e = draw_rows(random.integers(2**31))
    moments = CellMoments.from_rows(X, y, e)
    a, b, c = (
        subspace_from_covariances(moments, 1, pairs=pairs).subspace
        for pairs in ((0, 2), [2, 0], np.array([0, 2]))
    )
    assert max(a.angles_to(b).max(), a.angles_to(c).max()) < 1e-7


def test_signs_do_not_hang_on_the_last_bit(random):
    """Features u and -u: the two entries of the direction are equal up to rounding."""
    X, y, e = draw_rows(random.integers(2**31), n_features=1)
    X = np.hstack([X, -X, 0.01 * random.normal(size=X.shape)])
    for find in (subspace_from_means, subspace_from_covariances):
        signs = set()
        for _ in range(30):
            order = random.permutation(len(X))
            moments = CellMoments.from_rows(X[order], y[order], e[order])
            signs.add(tuple(np.sign(find(moments, 1).subspace.directions[0, :2])))
        assert len(signs) == 1


def test_the_limit_of_means_is_counted_over_classes(random):
    """Three classes in two environments: three contrasts, however many features."""
    X, y, e = draw_rows(random.integers(2**31), n_classes=3, n_environments=2, n_features=9)
    moments = CellMoments.from_rows(X, y, e)
    assert subspace_from_means(moments, 3).subspace.rank == 3
    with pytest.raises(ValueError, match="at most 3, .*means of 2 environments"):
        subspace_from_means(moments, 4)


def test_one_class_is_unpooled_only_on_request(random):
    """With None the weights pool the cells, also where a single class can be compared."""
    X, y, e = draw_rows(random.integers(2**31))
    kept = (y == 0) | (e == 0)
    sizes = np.where((e == 1) & (np.arange(len(e)) % 2 == 0), 0.0, 1.0)
    moments = CellMoments.from_rows(
        X[kept & (sizes > 0)], y[kept & (sizes > 0)], e[kept & (sizes > 0)]
    )
    with pytest.warns(EmptyCellWarning):
        pooled = subspace_from_means(moments, 1).subspace
    alone = CellMoments.from_rows(*(a[(y == 0) & (sizes > 0)] for a in (X, y, e)))
    H = np.zeros((5, 5))
    centre = np.average(alone.means, axis=0, weights=alone.weights)
    for mean, weight in zip(alone.means, alone.weights, strict=True):
        H += weight / alone.weights.sum() * np.outer(mean - centre, mean - centre)
    assert pooled.spectrum[0] == pytest.approx(np.linalg.eigvalsh(H)[-1])


def test_the_spectrum_of_several_pairs_is_a_share(random):
    X, y, e = draw_rows(random.integers(2**31))
    moments = CellMoments.from_rows(X, y, e)
    shares = subspace_from_covariances(moments, 2).subspace.spectrum
    assert np.all((shares >= -1e-12) & (shares <= 1 + 1e-12))
    assert shares.sum() == pytest.approx(2)
    nothing = subspace_from_covariances(moments, 0).subspace
    np.testing.assert_array_equal(nothing.spectrum, np.zeros(5))


def test_products_are_not_averaged_out():
    """However many rows there are, float32 products keep their relative error."""
    eps = float(np.finfo(np.float32).eps)
    spreads = np.array([1.0, 10.0])
    error = covariance_rounding(np.eye(2), np.full(2, 50.0), spreads, eps, 10**14)
    assert np.all(error >= eps * spreads**2)
