"""Heads that follow from moments alone: no pass over the rows is left to do."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import sklearn
from scipy.linalg import solve
from sklearn.base import clone

from isrlearn.heads._row_weights import Pooled
from isrlearn.moments import principal_axes
from isrlearn.typing import Float64Array, LabelArray

SKLEARN: Final = tuple(map(int, sklearn.__version__.split(".")[:2]))


class ClosedForm(NamedTuple):
    """How a head is fitted from moments, and why not."""

    fit: Callable[[Any, Pooled, LabelArray], None]
    why_not: Callable[[Any], str]


def fit_discriminant(head: Any, rows: Pooled, classes: LabelArray) -> None:
    r"""Fit scikit-learn's ``LinearDiscriminantAnalysis`` from moments.

    :math:`w_c = \Sigma^{+}\mu_c`, :math:`b_c = -\tfrac12 \mu_c^T\Sigma^{+}\mu_c + \log \pi_c`, with
    the within-class covariance :math:`\Sigma`; two classes have the difference of both.

    Parameters
    ----------
    head : LinearDiscriminantAnalysis
        It is changed.
    rows : Pooled
        Moments of the rows.
    classes : ndarray of shape (k,)
        Sorted labels.
    """
    priors = rows.weights / rows.total if head.priors is None else np.asarray(head.priors)
    mean = priors @ rows.means
    covariance = rows.known_within() / _divisor(head, rows)
    values, vectors, scale = principal_axes(covariance, rows.rounding)
    white = vectors / scale[:, None] / np.sqrt(values)
    inside = (rows.means - mean) @ white
    coef = inside @ white.T
    bias = -0.5 * np.sum(inside**2, axis=1) + np.log(priors) - coef @ mean
    head.priors_, head.means_, head.xbar_ = priors, rows.means, mean
    head.classes_, head.n_features_in_ = classes, rows.means.shape[1]
    head.coef_, head.intercept_ = _of_two(coef, bias)


def _divisor(head: Any, rows: Pooled) -> float:
    """Return what the installed scikit-learn divides the scatter of the rows by."""
    less = len(rows.weights) if head.solver == "svd" and SKLEARN < (1, 9) else 0
    return float(rows.total - less)


def fit_ridge(head: Any, rows: Pooled, classes: LabelArray) -> None:
    r"""Fit scikit-learn's ``RidgeClassifier`` from moments: targets of 1 and -1 for each class.

    :math:`w_c = (S + \alpha I)^{-1} \sum_i \omega_i (x_i - \bar x) t_{ic}`, S the scatter of all
    rows.

    Parameters
    ----------
    head : RidgeClassifier
        It is changed.
    rows : Pooled
        Moments of the rows.
    classes : ndarray of shape (k,)
        Sorted labels.
    """
    mean = rows.mean() if head.fit_intercept else np.zeros(rows.means.shape[1])
    away = rows.means - mean
    scatter = rows.known_within() + (away * rows.weights[:, None]).T @ away
    scatter[np.diag_indices(len(scatter))] += head.alpha
    targets = 2 * np.eye(len(rows.weights)) - 1  # (class of the row, class of the head)
    centre = rows.weights @ targets / rows.total if head.fit_intercept else 0.0
    crossed = (away * rows.weights[:, None]).T @ (targets - centre)
    coef = solve(scatter, crossed, assume_a="sym").T
    bias = centre - coef @ mean
    if len(rows.weights) == 2:
        coef, bias = coef[1:], bias[1:] if head.fit_intercept else bias
    # A fit of one row per class tells it the classes by public means, with a penalty to be regular.
    told = clone(head).set_params(alpha=1.0).fit(np.zeros_like(rows.means), classes)
    head.__dict__.update({k: v for k, v in vars(told).items() if k not in head.get_params()})
    head.coef_, head.intercept_ = coef, bias if head.fit_intercept else 0.0


def _of_two(coef: Float64Array, bias: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return one vector of weights for two classes: that of the second less that of the first."""
    if len(bias) != 2:
        return coef, bias
    return coef[1:] - coef[:1], bias[1:] - bias[:1]


def _not_a_discriminant(head: Any) -> str:
    if head.shrinkage is not None or head.covariance_estimator is not None:
        return "shrinkage and covariance_estimator need all rows at once; leave them out"
    return ""


def _not_a_ridge(head: Any) -> str:
    if head.class_weight is not None or head.positive:
        return "class_weight and positive need all rows at once; leave them out"
    return ""


CLOSED_FORMS: Final[Mapping[str, ClosedForm]] = {
    "LinearDiscriminantAnalysis": ClosedForm(fit_discriminant, _not_a_discriminant),
    "RidgeClassifier": ClosedForm(fit_ridge, _not_a_ridge),
}
