"""Kernels where the answer is known without rounding: shapes, ties and signs."""

import numpy as np
import pytest

from isrlearn.subspace._spectra import flag_mean, mean_contrasts, mean_spectrum, pair_spectrum
from isrlearn.subspace._subspace import fix_signs


@pytest.mark.parametrize(("m", "d"), [(1, 4), (3, 4), (4, 4), (9, 4)])
def test_a_spectrum_of_means_has_no_more_vectors_than_means(random, m, d):
    contrasts = random.normal(size=(m, d))
    values, vectors = mean_spectrum(contrasts)
    n = min(m, d)
    assert values.shape == (d,)
    assert vectors.shape == (n, d)
    np.testing.assert_array_equal(values[n:], 0.0)
    scatter = vectors.T @ np.diag(values[:n]) @ vectors
    np.testing.assert_allclose(scatter, contrasts.T @ contrasts, atol=1e-12)


def test_contrasts_of_two_environments_are_half_their_difference():
    means = np.array([[0.0, 2.0], [4.0, 2.0], [7.0, 7.0]])
    found = mean_contrasts(means, np.array([1.0, 3.0, 4.0]), np.array([1, 1, 3]))
    # The mean of class 1 is (3, 2); a class of one cell has no contrast.
    expected = [[-3 * (1 / 8) ** 0.5, 0.0], [(3 / 8) ** 0.5, 0.0], [0.0, 0.0]]
    np.testing.assert_allclose(found, expected, atol=1e-15)


def test_contrasts_do_not_depend_on_the_size_of_weights():
    """Not beyond the range of double precision either, in which no product fits."""
    means, weights, classes = np.array([[0.0], [4.0]]), np.array([1.0, 3.0]), np.array([0, 0])
    expected = mean_contrasts(means, weights, classes)
    for size in (2.0**-1000, 2.0**1000):
        np.testing.assert_array_equal(mean_contrasts(means, size * weights, classes), expected)
        large = mean_contrasts(2.0**400 * means, size * weights, classes)
        np.testing.assert_array_equal(large, 2.0**400 * expected)


def test_a_pair_of_one_feature_has_one_direction():
    values, vectors = pair_spectrum(np.array([[-3.0]]))
    np.testing.assert_array_equal(values, [-3.0])
    np.testing.assert_array_equal(vectors, [[1.0]])


def test_a_pair_may_be_handed_over_with_one_triangle_off(random):
    """Rounding makes differences that are not symmetric: the mean of both triangles counts."""
    difference = random.normal(size=(5, 5))
    values, vectors = pair_spectrum(difference)
    symmetric = (difference + difference.T) / 2
    np.testing.assert_allclose(vectors.T @ np.diag(values) @ vectors, symmetric, atol=1e-12)
    assert np.all(np.diff(np.abs(values)) <= 0)


def test_eigenvalues_of_one_size_come_with_the_negative_ones_first(random):
    expected = np.repeat([-4.0, 4.0, -2.0, 2.0, -1.0, 1.0], 20)
    values, vectors = pair_spectrum(np.diag(random.permutation(expected)))
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(120), atol=1e-12)


def test_the_flag_mean_of_one_line_is_the_line():
    values, vectors = flag_mean([np.array([[0.0, -1.0, 0.0]])])
    np.testing.assert_allclose(values, [1.0, 0.0, 0.0])
    np.testing.assert_allclose(vectors, [[0.0, 1.0, 0.0]])


def test_the_flag_mean_counts_the_subspaces_that_hold_a_direction():
    x, y, z = np.eye(3)
    values, vectors = flag_mean([np.array([x, y]), np.array([y]), np.array([y, z]), np.array([z])])
    np.testing.assert_allclose(values, [3 / 4, 2 / 4, 1 / 4])
    np.testing.assert_allclose(vectors, [y, z, x], atol=1e-12)


def test_the_flag_mean_of_nothing_is_nothing():
    values, vectors = flag_mean([np.empty((0, 3)), np.empty((0, 3))])
    np.testing.assert_array_equal(values, np.zeros(3))
    assert vectors.shape == (0, 3)


@pytest.mark.parametrize(
    ("vector", "expected"),
    [
        ([3.0, -4.0], [-3.0, 4.0]),
        ([-3.0, 4.0], [-3.0, 4.0]),
        ([-2.0, 2.0], [2.0, -2.0]),  # of equal entries the first
        ([-(1 - 1e-6), 1.0], [1 - 1e-6, -1.0]),  # equal up to 1e-6
        ([-(1 - 2e-6), 1.0], [-(1 - 2e-6), 1.0]),
        ([0.0, 0.0], [0.0, 0.0]),
    ],
)
def test_the_largest_entry_is_positive(vector, expected):
    own = np.array([vector, [1.0, 0.0]])
    np.testing.assert_array_equal(fix_signs(own), [expected, [1.0, 0.0]])
    np.testing.assert_array_equal(own[0], vector)
    assert fix_signs(np.empty((0, 2))).shape == (0, 2)
