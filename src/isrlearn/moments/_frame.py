r"""Coordinates in which every direction has comparable noise.

An eigenvalue of the raw scatter says which feature has large units; in these coordinates it says by
how many standard errors the environments differ.
"""

from typing import Final, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq

from isrlearn.moments._cells import SMALLEST
from isrlearn.moments._conditioning import Conditioned, mean_evidence, within_scatter
from isrlearn.typing import BoolArray, Float64Array

FEW_COORDINATES: Final = 20
MOST_COORDINATES: Final = 50
ROWS_PER_COORDINATE: Final = 10
MOST_ENTRIES: Final = 125_000  # of the covariances of all cells together
SINGULAR: Final = 1e-13  # of the largest eigenvalue; below, a few digits would be left of one
ROUNDING: Final = 8.0  # multiples of the rounding error that are no variation


class Frame(NamedTuple):
    """A linear map x -> z = x @ forward, with x = z @ backward on the span of the rows."""

    forward: Float64Array
    """(d, q)"""
    backward: Float64Array
    """(q, d)"""
    n_leading: int
    """p: the first p coordinates are those in which covariances are compared."""
    weakest: float = 1.0
    """The least variance of a coordinate before it was whitened, over the largest."""


def noise_frame(cond: Conditioned, rounding: Float64Array) -> Frame:
    r"""Return coordinates z in which the total covariance given the target is nearly white.

    With :math:`T = Q\Lambda Q^T` that covariance on the correlation scale,
    :math:`z = (\Lambda + \tau)^{-1/2} Q^T x`. Permuting environments within a class leaves T as it
    is: a permutation test in these coordinates is exact.

    With up to 20 features :math:`\tau = 0`, and whatever invertible map was applied to X makes no
    difference. With many, full whitening would raise the noise of hundreds of weak directions to
    the level of the strong ones. Then :math:`\tau` is such that the effective dimension
    :math:`\sum_j \lambda_j/(\lambda_j + \tau)` is at most 50, and at most a tenth
    of the number of rows: directions stronger than :math:`\tau` are whitened, weaker ones keep
    their scale. Columns without variance and exact linear combinations of others are dropped.

    Parameters
    ----------
    cond : Conditioned
        Moments with covariances of all d features.
    rounding : ndarray of shape (d,)
        Rounding error of each feature: one that varies no more than that is constant.
    """
    n_rows = float(cond.grams[:, 0, 0].sum())
    return frame_of(total_covariance(cond), rounding, n_rows, len(cond.group))


def frame_of(total: Float64Array, rounding: Float64Array, n_rows: float, n_cells: int) -> Frame:
    """Return the coordinates of `noise_frame` for a covariance.

    Parameters
    ----------
    total : ndarray of shape (d, d)
        The covariance to make white; it is overwritten.
    rounding : ndarray of shape (d,)
        As in `noise_frame`.
    n_rows : float
        Rows that it was estimated from.
    n_cells : int
        How many covariances are to be compared in the leading coordinates.
    """
    values, vectors, scale = principal_axes(total, rounding, overwrite=True)
    most = _most_coordinates(n_rows, n_cells)
    root = np.sqrt(values + ridge(values, most))
    weakest = float((root[-1] / root[0]) ** 2) if len(root) else 1.0
    forward = vectors / scale[:, None]
    forward /= root
    vectors *= scale[:, None]  # in place: with thousands of features every matrix counts
    vectors *= root
    return Frame(forward, vectors.T, n_leading=min(len(values), most), weakest=weakest)


def principal_axes(
    covariance: Float64Array, rounding: Float64Array, *, overwrite: bool = False
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return eigenvalues (q,), eigenvectors (d, q) and scales (d,) of a covariance.

    On the correlation scale, so that units do not matter; without constant columns and exact
    linear combinations.

    Parameters
    ----------
    covariance : ndarray of shape (d, d)
        The covariance.
    rounding : ndarray of shape (d,)
        Rounding error of each feature.
    overwrite : bool, default=False
        Whether the covariance may be lost.
    """
    scale, constant = feature_scales(np.diag(covariance), rounding)
    correlation = np.divide(covariance, scale, out=covariance if overwrite else None)
    correlation /= scale[:, None]
    correlation[constant] = correlation[:, constant] = 0.0
    values, vectors = eigen_system(correlation)
    values, vectors = values[::-1], vectors[:, ::-1]
    noise = np.linalg.norm(vectors * (ROUNDING * rounding / scale)[:, None], axis=0) ** 2
    used = values > np.maximum(noise, SINGULAR * max(values[0], SINGULAR))
    return values[used], vectors[:, used], scale


def feature_scales(
    variances: Float64Array, rounding: Float64Array
) -> tuple[Float64Array, BoolArray]:
    """Return standard deviations (d,), one for a constant feature, and which are constant (d,).

    So are those whose squares have lost digits.

    Parameters
    ----------
    variances : ndarray of shape (d,)
        Of each feature.
    rounding : ndarray of shape (d,)
        Rounding error of each feature: one that varies no more than that is constant.
    """
    scale = np.sqrt(np.maximum(variances, 0.0))  # rounding may go below
    constant = scale <= np.maximum(ROUNDING * rounding, SMALLEST)
    return np.where(constant, 1.0, scale), constant


def whitening(covariance: Float64Array, rounding: Float64Array) -> Float64Array:
    """Return the map (d, q) to coordinates in which a covariance is the identity.

    Parameters
    ----------
    covariance, rounding
        As in `principal_axes`.
    """
    values, vectors, scale = principal_axes(covariance, rounding)
    return np.asarray(vectors / scale[:, None] / np.sqrt(values))


def ridge(values: Float64Array, most: int) -> float:
    r"""Return the least :math:`\tau \ge 0` with :math:`\sum_j \lambda_j/(\lambda_j+\tau) \le` most.

    Examples
    --------
    >>> import numpy as np
    >>> ridge(np.ones(3), 5)
    0.0
    >>> round(ridge(np.ones(10), 5), 6)
    1.0
    """
    if len(values) <= most:
        return 0.0

    def excess(tau: float) -> float:
        return float(np.sum(values / (values + tau))) - most

    return float(brentq(excess, 0.0, float(values.sum()), xtol=1e-12 * float(values[0])))


def total_covariance(cond: Conditioned) -> Float64Array:
    """Return the covariance about the common relation to the target, all environments together."""
    contrasts = mean_evidence(cond)
    # Scatters, not covariances: their sum with that of the means is the same for all permutations.
    total = within_scatter(cond)
    total += contrasts.T @ contrasts
    total /= cond.grams[:, 0, 0].sum()
    return total


def _most_coordinates(n_rows: float, n_cells: int) -> int:
    by_memory = int(np.sqrt(MOST_ENTRIES / n_cells))
    by_rows = max(FEW_COORDINATES, int(n_rows / ROWS_PER_COORDINATE))
    return max(2, min(MOST_COORDINATES, by_memory, by_rows))


def eigen_system(symmetric: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return all eigenvalues, ascending, and eigenvectors, (d, d), of a matrix that may be lost.

    Parameters
    ----------
    symmetric : ndarray of shape (d, d)
        Overwritten.
    """
    driver = "evd" if len(symmetric) > 1 else "ev"  # evd of one number fails before SciPy 1.14
    values, vectors = eigh(symmetric, overwrite_a=True, driver=driver)
    return values, vectors
