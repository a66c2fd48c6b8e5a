"""Weights of rows in heads: every (class, environment) group counts the same, none overflows."""

import numpy as np

from isrlearn._labels import UNKNOWN
from isrlearn._passes import AllMoments, GroupFactors
from isrlearn._typing import Float64Array
from isrlearn._validation import Rows

# Mean weights beyond which a penalty is lost in rounding errors, or is all that counts.
LEAST_MEAN, MOST_MEAN = 1e-16, 1e8


def bearable(total: float, n_rows: int) -> float:
    """Return the factor that brings a mean weight between 1e-16 and 1e8, where heads work.

    A head sets the weights against its penalty, so their scale matters and is kept within these
    limits. Beyond them solvers overflow, find singular systems or never end; single precision,
    in which heads of float32 rows take their weights, ends at 1e38.

    Parameters
    ----------
    total : float
        Sum of the weights.
    n_rows : int
        Number of rows.

    Examples
    --------
    >>> bearable(20.0, 10), bearable(1e151, 10)
    (1.0, 1e-142)
    """
    mean = total / n_rows
    return float(np.clip(mean, LEAST_MEAN, MOST_MEAN) / mean)


def bearable_weights(weights: Float64Array | None) -> Float64Array | None:
    """Return weights of rows, or None, in the range of `bearable`."""
    if weights is None:
        return None
    factor = bearable(float(weights.sum()), len(weights))
    return weights if factor == 1 else weights * factor


def balanced_factors(known: Float64Array, others: Float64Array) -> Float64Array:
    """Return the factors by which the weights of rows are multiplied, (k, E + 1).

    Every group of known environment counts the same. Rows of unknown environment, the last column,
    get the mean factor of their class, or of all known rows where the whole class is unknown.
    Without any known environment, the classes are the groups. The sum of the weights stays.

    Parameters
    ----------
    known : ndarray of shape (k, E)
        Weight of each class in each environment.
    others : ndarray of shape (k,)
        Weight of each class in rows of unknown environment.

    Examples
    --------
    >>> import numpy as np
    >>> balanced_factors(np.array([[3.0, 1.0]]), np.zeros(1))
    array([[0.66666667, 2.        , 1.        ]])
    """
    if known.sum() == 0:
        known, others = others[:, None], np.zeros(len(others))
    factors = np.zeros((len(known), known.shape[1] + 1))
    np.divide(1.0, known, out=factors[:, :-1], where=known > 0)
    totals, weights = np.sum(known > 0, axis=1).astype(float), known.sum(axis=1)
    overall = np.full_like(totals, totals.sum() / weights.sum())
    factors[:, -1] = np.divide(totals, weights, out=overall, where=weights > 0)
    every = np.column_stack([known, others])
    return np.asarray(factors * (every.sum() / np.sum(every * factors)))


def balanced_weights(rows: Rows) -> Float64Array:
    """Return weights that make every group of rows count the same; their own are multiplied in.

    Parameters
    ----------
    rows : Rows
        Checked rows.

    Returns
    -------
    ndarray of shape (n,)
    """
    own = np.ones(len(rows.X)) if rows.sample_weight is None else rows.sample_weight
    n_classes, n_environments = len(rows.classes), len(rows.environments)
    # An unknown environment is -1: its group is the last column.
    columns = np.where(rows.environment_codes == UNKNOWN, n_environments, rows.environment_codes)
    group = rows.class_codes * (n_environments + 1) + columns
    sums = np.bincount(group, own, n_classes * (n_environments + 1)).astype(np.float64)
    table = sums.reshape(n_classes, n_environments + 1)
    factors = balanced_factors(table[:, :-1], table[:, -1])
    if n_environments == 0:
        return np.asarray(own * factors[rows.class_codes, 0])
    return np.asarray(own * factors[rows.class_codes, columns])


def group_factors(moments: AllMoments, *, balanced: bool) -> GroupFactors:
    """Return the factors for all rows that some moments are of.

    Parameters
    ----------
    moments : AllMoments
        Of all rows.
    balanced : bool
        Whether groups count the same; else all rows do.
    """
    known, others = moments.known, moments.others
    classes = np.union1d(known.classes, others.classes) if len(others.classes) else known.classes
    scale = bearable(float(known.weights.sum() + others.weights.sum()), moments.n_rows)
    if not balanced:
        every = np.full((len(classes), len(known.environments) + 1), scale)
        return GroupFactors(classes, known.environments, None if scale == 1 else every)
    table = np.zeros((len(classes), len(known.environments)))
    places = np.searchsorted(classes, known.classes)
    table[places[known.class_index], known.environment_index] = known.weights
    unknown = np.zeros(len(classes))
    unknown[np.searchsorted(classes, others.classes)[others.class_index]] = others.weights
    factors = scale * balanced_factors(table, unknown)
    if len(known.environments) == 0:  # classes are the groups, and all rows in the last column
        factors = factors[:, :1]
    return GroupFactors(classes, known.environments, factors)
