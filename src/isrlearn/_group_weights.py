"""Weights that make every (class, environment) group count the same."""

import numpy as np

from isrlearn._labels import UNKNOWN
from isrlearn._passes import AllMoments, GroupFactors
from isrlearn._typing import Float64Array
from isrlearn._validation import Rows


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
    if not balanced:
        return GroupFactors(classes, known.environments, None)
    table = np.zeros((len(classes), len(known.environments)))
    places = np.searchsorted(classes, known.classes)
    table[places[known.class_index], known.environment_index] = known.weights
    unknown = np.zeros(len(classes))
    unknown[np.searchsorted(classes, others.classes)[others.class_index]] = others.weights
    factors = balanced_factors(table, unknown)
    if len(known.environments) == 0:  # classes are the groups, and all rows in the last column
        factors = factors[:, :1]
    return GroupFactors(classes, known.environments, factors)
