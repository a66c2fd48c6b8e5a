"""Logistic regression in coordinates of our choice, solved to its optimum."""

from typing import Any, Final, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.utils.class_weight import compute_sample_weight

from isrlearn.heads._coordinates import times
from isrlearn.moments import FEW_COORDINATES
from isrlearn.typing import BoolArray, Float64Array, FloatArray, LabelArray

SOLVED: Final = 1e-6
"""Largest entry of the gradient of the mean loss at which a fit counts as solved. With the usual
1e-4 the error in a new environment can be off by several hundredths: along directions in which the
training environments differ the loss is flat."""
SOLVED_BY_NEWTON: Final = 1e-8
"""The same for Newton's method, which gets there from 1e-6 in a step or less."""
SCALE: Final = "scale"
"""The value of C for a penalty that is measured by how far apart the classes are."""
RIDGE: Final = 0.1
"""That penalty, for classes whose means have variance one. Chosen on training rows alone: the worst
seen group, cross-fitted, peaks between 0.03 and 0.1 (``benchmarks/unseen.py ridge``)."""
ROUNDED: Final = 8.0  # multiples of the rounding error that are no difference
MOST_STEPS: Final = 50
MOST_HALVINGS: Final = 20
PART: Final = 8
ROWS_PER_WEIGHT: Final = 50  # that a part must have to be a start


class Optimum(NamedTuple):
    """Where the gradient vanishes."""

    weights: Float64Array
    """(p,)"""
    n_steps: int
    """Of Newton's method, from its start."""


def fit_in_coordinates(
    model: LogisticRegression,
    X: FloatArray,
    y: LabelArray,
    centre: Float64Array,
    forward: Float64Array,
    sample_weight: Float64Array | None = None,
) -> None:
    r"""Fit logistic regression to :math:`(X - c)F`; its weights are given in coordinates of X.

    The penalty falls on the weights of :math:`(X - c)F`. If F has no columns, only the intercept
    is fitted. Weights and bias come in double precision.

    Parameters
    ----------
    model : LogisticRegression
        What to fit; no subclass of it. Where its solver is the default, Newton's method may find
        the optimum first, and `warm_start` is set.
    X : ndarray of shape (n, d)
        Rows.
    y : ndarray of shape (n,)
        Labels.
    centre : ndarray of shape (d,)
        The point c.
    forward : ndarray of shape (d, q) or (d,)
        The map F, or its diagonal.
    sample_weight : ndarray of shape (n,), default=None
        Weights of the rows.
    """
    model._validate_params()  # before C is computed with
    if forward.shape[-1] == 0:
        forward = np.zeros((X.shape[1], 1))
    small = forward.shape[-1] <= FEW_COORDINATES and model.solver == "lbfgs"
    dtype = np.dtype(np.float64) if small else X.dtype
    mapped = times(np.subtract(X, centre, dtype=dtype), forward.astype(dtype))
    optimum = _optimum(model, mapped, y, sample_weight) if small else None
    _fit(model, mapped, y, sample_weight, optimum)
    model.coef_ = times(model.coef_, forward.T)
    if model.fit_intercept:
        model.intercept_ = model.intercept_ - model.coef_ @ centre


def is_scaled(model: Any) -> bool:
    """Whether the penalty of a `LogisticHead` is measured by how far apart the classes are.

    Parameters
    ----------
    model : LogisticHead
        C is checked: a number, or "scale".
    """
    if isinstance(model.C, str) and model.C != SCALE:
        raise ValueError(
            f"The 'C' parameter of LogisticHead is {model.C!r:.50}: give a positive number or "
            f"{SCALE!r}."
        )
    return isinstance(model.C, str)


def class_means(
    X: FloatArray, y: LabelArray, weights: Float64Array | None
) -> tuple[Float64Array, Float64Array]:
    """Return the weight of each class, (k,), and its mean, (k, d)."""
    codes = np.unique(y, return_inverse=True)[1]
    own = np.ones(len(X)) if weights is None else weights
    totals = np.bincount(codes, own).astype(np.float64)
    there = np.flatnonzero(totals)
    means = [np.average(X[codes == c], axis=0, weights=own[codes == c]) for c in there]
    return totals[there], np.array(means, dtype=np.float64)


def separation(
    totals: Float64Array, means: Float64Array, forward: Float64Array, rounding: Float64Array
) -> float:
    r"""Return how far apart classes are: :math:`\sqrt{\sum_c \pi_c \|\mu_c - \bar\mu\|^2}`.

    Coordinates in which classes differ by no more than rounding do not count. Where that are all,
    the penalty must not vanish with them: then it is the largest rounding error, or 1.

    Parameters
    ----------
    totals : ndarray of shape (k,)
        Weight of each class.
    means : ndarray of shape (k, d)
        Mean of each class.
    forward : ndarray of shape (d, q) or (d,)
        The map to the coordinates in which it is measured, or its diagonal.
    rounding : ndarray of shape (d,)
        Rounding error of each feature.

    Examples
    --------
    >>> import numpy as np
    >>> means = np.array([[0.0, 0.0], [6.0, 8.0]])
    >>> float(separation(np.array([50.0, 50.0]), means, np.ones(2), np.zeros(2)))
    5.0
    """
    shares = totals / totals.sum()
    away = times(means - shares @ means, forward)
    least = ROUNDED * times(rounding, np.abs(forward))
    away = np.where(np.abs(away) > least, away, 0.0)
    unit = np.abs(away).max(initial=0.0)  # no square overflows or vanishes
    if unit == 0:
        return float(least.max(initial=0.0)) or 1.0
    return float(unit * np.sqrt(shares @ np.sum((away / unit) ** 2, axis=1)))


def weighted_covariance(
    X: FloatArray, mean: FloatArray, weights: Float64Array | None = None
) -> Float64Array:
    """Return the covariance of rows about their mean, (d, d), divided by their weight.

    It is not finite where squares of X overflow.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.
    mean : ndarray of shape (d,)
        Their mean.
    weights : ndarray of shape (n,), default=None
        Weights of the rows.
    """
    centred = (X - mean.astype(X.dtype)).astype(np.float64)
    total = len(X) if weights is None else weights.sum()
    with np.errstate(over="ignore", invalid="ignore"):  # the caller looks for what overflowed
        weighted = centred if weights is None else centred * weights[:, None]
        return np.asarray(weighted.T @ centred / total)


def _fit(
    model: LogisticRegression,
    X: FloatArray,
    y: LabelArray,
    sample_weight: Float64Array | None,
    optimum: Optimum | None,
) -> None:
    """Fit a model, from its optimum if that is known: then nothing is left to do but to set it."""
    if optimum is not None:
        model.set_params(warm_start=True)
        model.coef_, model.intercept_ = optimum.weights[None, : X.shape[1]], optimum.weights[-1:]
    model.fit(X, y, sample_weight)
    if optimum is not None:
        model.n_iter_ = np.maximum(model.n_iter_, optimum.n_steps)


def _optimum(
    model: LogisticRegression, X: FloatArray, y: LabelArray, sample_weight: Float64Array | None
) -> Optimum | None:
    """Return the optimum of a model of two classes and few weights; None where it is not found.

    Newton's steps do not mind correlated features, and few of them do from a good start. With many
    rows the start is the optimum of every eighth row, with a penalty that is as strong for each.
    """
    classes = np.unique(y)
    if len(classes) != 2:
        return None
    weights = np.ones(len(y)) if sample_weight is None else sample_weight
    if model.class_weight is not None:
        weights = weights * compute_sample_weight(model.class_weight, y)
    total, positive = float(weights.sum()), y == classes[1]
    columns = np.column_stack([X, np.ones(len(X))] if model.fit_intercept else [X])
    strength = model.C * total
    if not np.finfo(float).tiny < strength < np.inf:  # no penalty, or one beyond all numbers
        return None
    ridge = np.full(columns.shape[1], 1 / strength)
    if model.fit_intercept:
        ridge[-1] = 0.0
    start = np.zeros(columns.shape[1])
    share = float(weights[::PART].sum())
    if len(X) >= PART * ROWS_PER_WEIGHT * len(start) and share > 0:
        part = newton(columns[::PART], positive[::PART], weights[::PART] / share, ridge, start)
        if part is not None:
            found = newton(columns, positive, weights / total, ridge, part.weights)
            if found is not None:
                return found
    return newton(columns, positive, weights / total, ridge, start)


def newton(
    X: Float64Array,
    positive: BoolArray,
    weights: Float64Array,
    ridge: Float64Array,
    start: Float64Array,
) -> Optimum | None:
    r"""Minimise :math:`\sum_i \omega_i \ell_i(w) + \tfrac12 \sum_j \rho_j w_j^2`, logistic loss.

    A step that goes too far is halved: until the loss falls along it at the new point, or rises at
    most half as steeply as it fell at the old one. No loss has to be computed for that, since the
    slope is needed anyway.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Rows.
    positive : ndarray of shape (n,)
        Whether a row is of the second class.
    weights : ndarray of shape (n,)
        Weights :math:`\omega` of the rows; they sum to one.
    ridge : ndarray of shape (p,)
        Penalties :math:`\rho`.
    start : ndarray of shape (p,)
        Where to begin.

    Returns
    -------
    Optimum or None
        None if 50 steps do not get there, or one would have to be halved 20 times.
    """

    def slope_at(point: Float64Array) -> tuple[Float64Array, Float64Array]:
        shares = expit(X @ point)
        return (weights * (shares - positive)) @ X + ridge * point, shares

    point, (slope, shares) = start, slope_at(start)
    for n_steps in range(MOST_STEPS):
        if np.abs(slope).max() <= SOLVED_BY_NEWTON:
            return Optimum(point, n_steps)
        curvature = (X * (weights * shares * (1 - shares))[:, None]).T @ X + np.diag(ridge)
        try:
            step = np.linalg.solve(curvature, slope)
        except np.linalg.LinAlgError:
            return None
        if not np.isfinite(step).all():
            return None
        for _ in range(MOST_HALVINGS):
            ahead, shares = slope_at(point - step)
            if ahead @ step >= -0.5 * (slope @ step):
                break
            step = step / 2
        else:
            return None
        point, slope = point - step, ahead
    return None
