"""Intervals by the bootstrap over test rows, paired over methods."""

from typing import Final, NamedTuple

import numpy as np

from isrlearn._typing import BoolArray, Float64Array, IntArray

DRAWS: Final = 2000
LEVEL: Final = 0.95
BYTES: Final = 2**26


class Interval(NamedTuple):
    """An estimate with its 95 % bootstrap interval."""

    value: float
    low: float
    high: float


def group_accuracies(
    right: BoolArray, tested: BoolArray, codes: IntArray, weights: Float64Array
) -> Float64Array:
    """Return accuracies per draw, group and column, (B, G, m); NaN where a group has no rows.

    Parameters
    ----------
    right, tested : ndarray of shape (n, m)
        Whether a row was predicted right by a column, and whether it was among its test rows.
    codes : ndarray of shape (n,)
        Group of each row, 0 to G - 1.
    weights : ndarray of shape (B, n)
        How often each row counts.
    """
    n_groups = int(codes.max()) + 1
    found = np.full((len(weights), n_groups, right.shape[1]), np.nan)
    for group in range(n_groups):
        rows = codes == group
        counts = weights[:, rows] @ tested[rows].astype(np.float64)
        correct = weights[:, rows] @ (right & tested)[rows].astype(np.float64)
        np.divide(correct, counts, out=found[:, group], where=counts > 0)
    return found


def worst_group_draws(
    right: BoolArray,
    tested: BoolArray,
    codes: IntArray,
    *,
    n_draws: int = DRAWS,
    random_state: int = 0,
) -> Float64Array:
    """Draw the worst-group accuracy of every column, rows resampled within groups.

    All columns see the same draws, so that differences between them are paired.

    Parameters
    ----------
    right, tested : ndarray of shape (n, m)
        As in `group_accuracies`.
    codes : ndarray of shape (n,)
        Group of each row; rows of group -1 do not count.
    n_draws : int, default=2000
        How many draws B.
    random_state : int, default=0
        Seed.

    Returns
    -------
    ndarray of shape (B, m)
    """
    used = codes >= 0
    right, tested, codes = right[used], tested[used], codes[used]
    random = np.random.default_rng(random_state)
    at_once = max(1, BYTES // (8 * max(len(codes), 1)))
    parts = []
    for begin in range(0, n_draws, at_once):
        weights = _resampled(codes, min(at_once, n_draws - begin), random)
        parts.append(np.nanmin(group_accuracies(right, tested, codes, weights), axis=1))
    return np.concatenate(parts)


def interval(value: float, draws: Float64Array, least: float = -1.0) -> Interval:
    """Return an estimate with the central 95 % of its draws, moved so that it is their median.

    The least of several accuracies is lower in resampled rows than in the rows themselves, the more
    so the smaller the groups: without the move an interval can miss its own estimate.

    Parameters
    ----------
    value : float
        On the rows themselves.
    draws : ndarray of shape (B,)
        On resampled rows.
    least : float, default=-1.0
        What it cannot be below: -1 for a difference of accuracies, 0 for one. Above is 1.
    """
    low, middle, high = np.quantile(draws, [(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2])
    ends = np.clip([value + low - middle, value + high - middle], least, 1.0)
    return Interval(float(value), float(ends[0]), float(ends[1]))


def _resampled(codes: IntArray, n_draws: int, random: np.random.Generator) -> Float64Array:
    """Return how often each row is drawn, (n_draws, n), with as many draws as rows per group."""
    weights = np.empty((n_draws, len(codes)))
    for group in np.unique(codes):
        rows = np.flatnonzero(codes == group)
        weights[:, rows] = random.multinomial(
            len(rows), np.full(len(rows), 1 / len(rows)), size=n_draws
        )
    return weights
