"""Against 50-digit arithmetic: as close as a backward-stable method, or a warning says so.

The bounds are derived in `exact_support`.
"""

import warnings
from itertools import product

import numpy as np
import pytest
from exact_support import (
    SAFETY,
    angle,
    exact_from_means,
    exact_from_pair,
    exact_from_pairs,
    exact_joint,
)

from isrlearn import ISR, ISRCov, ISRMean, ISRRegressor
from isrlearn.exceptions import PrecisionWarning

REFUSED = "more than the data identify|no direction is identified|rounding errors spoil"
MOST_TURN = 0.01

KERNELS = {
    "means": (lambda rank: ISRMean(rank), exact_from_means),
    "pair": (
        lambda rank: ISRCov(rank, pairs=(0, 1)),
        lambda X, y, e, rank: exact_from_pair(X, y, e, rank, (0, 1)),
    ),
    "flag mean": (lambda rank: ISRCov(rank), exact_from_pairs),
    "joint": (lambda rank: ISR(rank), exact_joint),
}


def stressed(
    random, *, d=4, n_environments=3, condition=1.0, mean=0.0, units=1.0, shift=1.0, dtype=float
):
    """Rows whose covariance within cells has about a condition number, before units are mixed.

    Environments differ in the mean of every direction by `shift` of its standard deviation, and in
    the spread of two.
    """
    per_cell = 10
    y = np.repeat([0, 1], n_environments * per_cell)
    e = np.tile(np.repeat(np.arange(n_environments), per_cell), 2)
    spreads = np.logspace(0, -np.log10(condition) / 2, d)
    Z = random.normal(size=(len(y), d))
    Z[:, random.permutation(d)[:2]] *= (1 + e)[:, None]
    Z += shift * random.normal(size=(n_environments, d))[e] + y[:, None]
    rotation = np.linalg.qr(random.normal(size=(d, d)))[0]
    X = (Z * spreads) @ rotation * np.logspace(0, np.log10(units), d)
    return (X + mean * random.normal(size=d)).astype(dtype), y, e


def fitted(estimator, X, y, e):
    """The directions, or None if refused; and whether something was said about precision."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = estimator.fit(X, y, environments=e).subspace_.directions
        except ValueError as error:
            assert pytest.RaisesExc(ValueError, match=REFUSED).matches(error), str(error)
            found = None
    assert all(issubclass(w.category, PrecisionWarning) for w in caught)
    return found, bool(caught)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "stress",
    [
        {"condition": 1e12},
        {"condition": 1e12, "mean": 1e8},
        {"condition": 1e8, "mean": 1e4, "units": 1e6},
        {"condition": 1e12, "units": 1e6, "shift": 10.0},
        {"mean": 1e8, "units": 1e6, "shift": 1e2},
        {"condition": 1e4, "shift": 1e4},
        {"condition": 1e8, "mean": 1e8, "shift": 1e7},
        {"condition": 1e4, "mean": 1e2, "dtype": np.float32},
        {"units": 1e6, "mean": 1e2, "shift": 1e4, "dtype": np.float32},
    ],
    ids=str,
)
def test_errors_stay_within_the_bound_or_are_announced(random, kernel, stress):
    estimator, exact = KERNELS[kernel]
    n_environments, rank = int(random.integers(2, 5)), int(random.integers(1, 4))
    X, y, e = stressed(random, n_environments=n_environments, **stress)
    found, said = fitted(estimator(rank), X, y, e)
    if found is None:  # refused, with the way out
        return
    expected = exact(X, y, e, rank)
    error = angle(found, expected.directions)
    assert said or error <= SAFETY * expected.bound
    assert said or error <= MOST_TURN


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "stress",
    [
        {},
        {"condition": 1e4, "mean": 1e2},
        {"condition": 1e2, "mean": 1e4, "units": 1e3},
        {"mean": 1e2, "dtype": np.float32},
        {"shift": 1e2},
    ],
    ids=str,
)
def test_usual_rows_are_exact_in_silence(random, kernel, stress):
    estimator, exact = KERNELS[kernel]
    X, y, e = stressed(random, **stress)
    found = estimator(2).fit(X, y, environments=e).subspace_.directions
    expected = exact(X, y, e, 2)
    assert angle(found, expected.directions) <= SAFETY * expected.bound


def rotated(random, d=4, n=300):
    """Rows of several environments without differences, and a rotation."""
    y, e = np.tile([0, 1], n // 2), np.arange(n) // 2 % 3
    return random.normal(size=(n, d)), y, e, np.linalg.qr(random.normal(size=(d, d)))[0]


def test_a_direction_of_a_millionth_of_the_spread_is_found(random):
    """The condition number is 1e12: the direction is weak, but well above rounding errors."""
    Z, y, e, rotation = rotated(random)
    Z[:, -1] = 1e-6 * (Z[:, -1] + 5.0 * e)
    X = Z @ rotation
    isr = ISR(1).fit(X, y, environments=e)
    amounts = (X - isr.subspace_.centre) @ isr.subspace_.functionals[0]
    assert abs(np.corrcoef(amounts, Z[:, -1])[0, 1]) > 0.95


@pytest.mark.parametrize("what", ["means", "covariances"])
def test_a_difference_below_the_precision_of_the_others_is_announced(random, what):
    Z, y, e, rotation = rotated(random)
    Z[:, 0] += e
    Z[:, -1] = Z[:, -1] * (1 + 3 * e) if what == "covariances" else Z[:, -1] + 5.0 * e
    Z[:, -1] *= 1e-8
    with pytest.warns(PrecisionWarning, match="that difference is not seen"):
        ISR(1).fit(Z @ rotation, y, environments=e)


def test_a_direction_near_the_rounding_of_float32_is_announced(random):
    """It is left out as rounding errors of the rows, but means of many rows do differ there."""
    Z, y, e, rotation = rotated(random)
    Z[:, 0] += 0.2 * e
    Z[:, -1] = 1e-3 * (Z[:, -1] + 3.0 * e)
    X = (Z @ rotation + 1e4).astype(np.float32)
    with pytest.warns(PrecisionWarning, match="rounding errors may turn .* pass float64"):
        single = ISR(1).fit(X, y, environments=e)
    double = ISR(1).fit(X.astype(np.float64), y, environments=e)
    assert double.subspace_.angles_to(single.subspace_).max() > MOST_TURN


def test_combinations_of_columns_that_lose_nothing_are_left_out_in_silence(random):
    Z, y, e, rotation = rotated(random)
    Z[:, 0] += e
    X = Z @ rotation + 1e4
    more = np.column_stack([X, X[:, 0], X[:, 0] + X[:, 1], np.full(len(X), 0.1)])
    for rows in (more, more.astype(np.float32)):
        isr = ISR(1).fit(rows, y, environments=e)
        assert np.count_nonzero(isr.spectrum_) == 4  # what rounding adds is no direction


def test_columns_of_zeros_are_left_out_in_silence(random):
    """As the edges of images are, beyond the features that are all whitened."""
    Z, y, e, rotation = rotated(random, d=40)
    Z[:, 0] += e
    X = np.hstack([Z @ rotation, np.zeros((len(Z), 20))])[:, random.permutation(60)]
    assert ISR(1).fit(X, y, environments=e).n_spurious_ == 1


def test_a_column_that_differs_by_rounding_errors_is_announced(random):
    Z, y, e, _ = rotated(random)
    Z[:, 0] += e
    Z[:, 1] = 1e16 + 8.0 * e  # doubles there are two apart
    with pytest.warns(PrecisionWarning, match="in columns 1, but only"):
        ISR(1).fit(Z, y, environments=e)


def test_means_far_beyond_the_noise_are_announced(random):
    Z, y, e, _ = rotated(random)
    Z[:, 2] += 1e5 * e
    with pytest.warns(PrecisionWarning, match="3000 standard deviations.* in column 2: noise"):
        ISR(1).fit(Z, y, environments=e)
    Z[:, 2] = e  # no noise at all: nothing of it can be lost
    isr = ISR(1).fit(Z, y, environments=e)
    assert np.ptp(isr.transform(Z)[:, 2]) < 1e-3


def test_pairs_that_show_too_little_are_announced():
    Z = np.array(list(product([-1.0, 1.0], repeat=4)))  # uncorrelated to the last digit
    X = np.vstack([Z, Z * [2, 1, 1, 1], Z * [1.5, 3, 1, 1]] * 2)
    y, e = np.repeat([0, 1], 48), np.tile(np.repeat([0, 1, 2], 16), 2)
    with pytest.warns(
        PrecisionWarning, match="1 of 3 pairs of environments differ in fewer than 2"
    ):
        isr = ISRCov(2).fit(X, y, environments=e)
    assert isr.subspace_.angles_to(np.eye(4)[:2]).max() < 1e-6


@pytest.mark.parametrize("estimator", [ISRMean(1), ISRCov(1, pairs=(0, 1)), ISRCov(1)])
def test_a_tie_is_announced(estimator):
    """Two directions differ as much: rounding errors alone would choose one of them."""
    square = np.array([[1.0, 1, 0], [1, -1, 0], [-1, 1, 0], [-1, -1, 0], [0, 0, 1], [0, 0, -1]])
    corners = np.exp(2j * np.pi * np.arange(3) / 3)  # of a triangle with equal sides
    shifts = np.column_stack([corners.real, corners.imag, np.zeros(3)])
    X = np.vstack([(1 + k) * square * [1, 1, 1 / (1 + k)] + s for k, s in enumerate(shifts)] * 2)
    y, e = np.repeat([0, 1], 18), np.tile(np.repeat([0, 1, 2], 6), 2)
    with pytest.warns(PrecisionWarning, match="rounding errors may turn the removed directions"):
        estimator.fit(X, y, environments=e)


def test_a_regressor_says_it_too(random):
    Z, _, e, rotation = rotated(random)
    y = random.normal(size=len(Z))
    Z[:, 0] += e * y
    Z[:, -1] = (Z[:, -1] + 5.0 * e) * 1e-8
    with pytest.warns(PrecisionWarning, match="that difference is not seen"):
        ISRRegressor(ISR(1)).fit(Z @ rotation, y, environments=e)
