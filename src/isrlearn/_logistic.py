"""Logistic regression in coordinates of our choice, solved to its optimum."""

import warnings
from typing import Any, Final

import numpy as np
from sklearn.linear_model import LogisticRegression

from isrlearn._frame import FEW_COORDINATES
from isrlearn._typing import Float64Array, FloatArray, LabelArray

SOLVED: Final = 1e-6
"""Largest entry of the gradient of the mean loss at which a fit counts as solved. With the usual
1e-4 the error in a new environment can be off by several hundredths: along directions in which the
training environments differ the loss is flat."""
SOLVED_BY_NEWTON: Final = 1e-8
"""The same for Newton's method, which gets there from 1e-6 in a step or less."""
PART: Final = 8


def fit_in_coordinates(
    model: LogisticRegression,
    X: FloatArray,
    y: LabelArray,
    centre: Float64Array,
    forward: Float64Array,
    sample_weight: Any = None,
) -> None:
    r"""Fit logistic regression to :math:`(X - c)F`; its weights are given in coordinates of X.

    The penalty falls on the weights of :math:`(X - c)F`. If F has no columns, only the intercept
    is fitted.

    Parameters
    ----------
    model : LogisticRegression
        What to fit; its default solver may be replaced by a faster one.
    X : ndarray of shape (n, d)
        Rows.
    y : ndarray of shape (n,)
        Labels.
    centre : ndarray of shape (d,)
        The point c.
    forward : ndarray of shape (d, q) or (d,)
        The map F, or its diagonal.
    sample_weight : array-like of shape (n,), default=None
        Weights of the rows.
    """
    model._validate_params()  # before C and tol are computed with
    if forward.shape[-1] == 0:
        forward = np.zeros((X.shape[1], 1))
    small = forward.shape[-1] <= FEW_COORDINATES and model.solver == "lbfgs"
    dtype = np.dtype(np.float64) if small else X.dtype
    mapped = _times(np.subtract(X, centre, dtype=dtype), forward.astype(dtype))
    if small and len(np.unique(y)) == 2:
        _fit_by_newton(model, mapped, y, sample_weight)
    else:
        LogisticRegression.fit(model, mapped, y, sample_weight)
    coef = _times(model.coef_, forward.T)
    model.coef_ = coef.astype(X.dtype)
    if model.fit_intercept:
        model.intercept_ = (model.intercept_ - coef @ centre).astype(X.dtype)


def weighted_covariance(
    X: FloatArray, mean: FloatArray, weights: Float64Array | None = None
) -> Float64Array:
    """Return the covariance of rows about their mean, (d, d), divided by their weight.

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
    weighted = centred if weights is None else centred * weights[:, None]
    total = len(X) if weights is None else weights.sum()
    return np.asarray(weighted.T @ centred / total)


def _times(rows: FloatArray, forward: FloatArray) -> FloatArray:
    return np.asarray(rows * forward if forward.ndim == 1 else rows @ forward)


def _fit_by_newton(
    model: LogisticRegression, X: FloatArray, y: LabelArray, sample_weight: Any
) -> None:
    """Fit a model of two classes and few weights.

    Newton's steps do not mind correlated features, and three or four of them do from a good start.
    The start is the solution for every eighth row, with a penalty that is as strong for each row.
    """
    changed = {
        "solver": "newton-cholesky",
        "tol": min(model.tol, SOLVED_BY_NEWTON),
        "warm_start": True,
    }
    solver = LogisticRegression(**model.get_params()).set_params(**changed)
    weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
    part, share = y[::PART], weights[::PART].sum() / weights.sum()
    if share > 0 and len(np.unique(part[weights[::PART] > 0])) == 2:
        solver.set_params(C=model.C / share)
        own = None if sample_weight is None else weights[::PART]
        with warnings.catch_warnings():  # what is wrong with a start is mended by what follows
            warnings.simplefilter("ignore")
            solver.fit(X[::PART], part, own)
        solver.set_params(C=model.C)
    solver.fit(X, y, sample_weight)
    model.__dict__.update({k: v for k, v in vars(solver).items() if k.endswith("_")})
