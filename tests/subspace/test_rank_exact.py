"""Limits of the rank, to the last digit and word for word."""

from fractions import Fraction

import numpy as np
import pytest
from conftest import says

from isrlearn.moments import CellMoments
from isrlearn.subspace._rounding import (
    check_n_spurious,
    check_rank,
    check_search,
    covariance_rounding,
    mean_rounding,
    n_identified,
    norms,
    rounding_unit,
)

DOUBLE = 2.0**-52
OF_SUMS = 64 * DOUBLE


@pytest.mark.parametrize("far", [1e300, 1.0, 1e-300])
def test_lengths_are_right_where_squares_are_not(far):
    rows = far * np.array([[[3.0, 4.0], [0.0, 0.0]], [[-5.0, 12.0], [1.0, 0.0]]])
    np.testing.assert_allclose(norms(rows), far * np.array([[5, 0], [13, 1]]), rtol=4 * DOUBLE)
    assert norms(np.zeros((0, 3))).shape == (0,)
    assert norms(rows[:, :0]).shape == (2, 0)


@pytest.mark.parametrize(
    ("values", "rounding", "expected"),
    [
        ([], [], 0),
        ([3.0], [], 0),  # a value without an error is zero by construction
        ([3.0], [0.0], 1),
        ([3.0], [3.0], 0),  # larger than its error, not equal to it
        ([-3.0, 2.0], [0.0, 2.0], 1),
        ([-3.0, 2.0], [0.0, 1.0], 2),
        ([3.0, 2.0, 2.0], [0.0, 2.0, 0.0], 1),  # only leading values count
        ([0.0, 0.0], [0.0, 0.0], 0),
        ([1.0, 0.9 * OF_SUMS], [0.0, 0.0], 1),  # against the largest value
        ([1.0, 1.1 * OF_SUMS], [0.0, 0.0], 2),
    ],
)
def test_values_count_until_the_first_that_rounding_explains(values, rounding, expected):
    assert n_identified(np.array(values), np.array(rounding)) == expected


@pytest.mark.parametrize(
    ("d", "precision", "expected"),
    [(256, 0.5, DOUBLE), (257, 0.5, 0.5), (257, 0.0, DOUBLE)],
)
def test_sums_of_many_features_are_as_exact_as_the_rows(d, precision, expected):
    cells = CellMoments.empty(d, second_order=False)
    cells.precision = precision
    assert rounding_unit(cells) == expected


def slanted(d):
    """A direction in the plane of the first two of d features, which are of size 3 and 4."""
    vectors, largest = np.zeros((2, d)), np.ones(d)
    vectors[0, :2], vectors[1, 2] = (0.6, 0.8), 1.0
    largest[:2] = 3.0, 4.0
    return vectors, largest, np.array([np.hypot(0.6 * 3, 0.8 * 4), 1.0])


@pytest.mark.parametrize(
    ("d", "precision", "of_sums"),
    [
        (3, 0.5, OF_SUMS),
        (256, 0.5, OF_SUMS),
        (257, 0.5, 4 * 0.5),  # many features: sums in the precision of the rows
        (257, DOUBLE, OF_SUMS),  # but never better than those in double precision
    ],
)
def test_the_rounding_of_means_is_that_of_rows_and_of_sums(d, precision, of_sums):
    vectors, largest, sizes = slanted(d)
    for n_rows in (1, 100):
        found = mean_rounding(vectors, largest, precision, n_rows)
        expected = sizes * (precision / n_rows**0.5 + of_sums)
        np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_the_rounding_of_covariances_is_that_of_squares():
    """Values x + q of spread s: (s + q)^2 - s^2, less by the root of n, and that of products."""
    vectors, largest, sizes = slanted(3)
    spreads = np.array([30.0, 40.0, 2.0])
    s = np.array([10 * sizes[0], 2.0])
    for precision, n_rows in ((0.5, 1), (0.5, 100), (DOUBLE, 9), (0.0, 1)):
        q = precision * sizes
        expected = q * (2 * s + q) / n_rows**0.5 + (4 * precision + OF_SUMS) * s * s
        found = covariance_rounding(vectors, largest, spreads, precision, n_rows)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("allowed", [0, 1, np.int32(7), "auto"])
def test_numbers_of_directions(allowed):
    check_n_spurious(allowed)


@pytest.mark.parametrize("bad", [-1, 1.0, True, None, "all"])
def test_what_is_no_number_of_directions(bad):
    with says(f"n_spurious={bad!r} must be an integer >= 0 or 'auto'."):
        check_n_spurious(bad)


@pytest.mark.parametrize(
    ("alpha", "least"),
    [(0.01, 99), (0.05, 19), (0.3, 3), (0.5, 1), (Fraction(1, 10), 9), (np.float32(0.25), 3)],
)
def test_permutations_must_be_able_to_reach_the_level(alpha, least):
    """The smallest p-value of n permutations is 1 / (n + 1)."""
    for rank_test in ("permutation", "moments"):
        check_search(alpha, rank_test, least)
    with says(
        f"n_permutations={least - 1} cannot give a p-value of alpha={float(alpha):g}: use at least "
        f"{least}, or a larger alpha."
    ):
        check_search(alpha, "permutation", least - 1)


@pytest.mark.parametrize("alpha", [1e-5, 1 / 100_001])
def test_the_least_level_takes_all_permutations(alpha):
    check_search(alpha, "permutation", 100_000)


def test_a_level_that_no_permutations_reach():
    with says(
        "alpha=9.99985e-06 is too small to be tested by permutations: it must be at least 1e-05."
    ):
        check_search(1 / 100_001.5, "permutation", 100_000)


@pytest.mark.parametrize("bad", [0, 1, 0.0, 1.0, 1.5, -0.1, True, False, np.nan, None, "0.01", 1j])
def test_what_is_no_level(bad):
    with says(f"alpha={bad!r} must be a number between 0 and 1, such as 0.01."):
        check_search(bad, "permutation", 1000)


@pytest.mark.parametrize("bad", ["bootstrap", None, ("moments", "permutation")])
def test_what_is_no_rank_test(bad):
    with says(f"rank_test={bad!r} must be one of ('permutation', 'moments')."):
        check_search(0.01, bad, 1000)


@pytest.mark.parametrize("bad", [True, 200.0, None, "200"])
def test_what_is_no_number_of_permutations(bad):
    with says(f"n_permutations={bad!r} must be an integer from 1 to 100000."):
        check_search(0.5, "permutation", bad)


@pytest.mark.parametrize(("asked", "identified", "d"), [(0, 0, 1), (2, 2, 5), (4, 5, 5)])
def test_a_rank_that_the_data_identify(asked, identified, d):
    check_rank(asked, identified, d, "means")


def test_a_rank_that_they_do_not():
    with says(
        "n_spurious=1, but no direction is identified: the means of 2 environments do not differ "
        "given the class by more than rounding errors. Use n_spurious=0, or an environment that "
        "makes a difference; if features are large against their differences, centre and scale "
        "them."
    ):
        check_rank(1, 0, 5, "the means of 2 environments")
    with says(
        "n_spurious=3 is more than the data identify: at most 2, the directions in which the means "
        "of 3 environments differ given the class. Lower n_spurious to 2 or less, or add "
        "environments."
    ):
        check_rank(3, 2, 5, "the means of 3 environments")
    with says("n_spurious=5 would leave nothing of 5 feature(s): at most 4 can be removed."):
        check_rank(5, 5, 5, "means")
