"""Heads that follow from moments alone: no pass over the rows is left to do."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Self

import numpy as np
import sklearn
from scipy.linalg import solve
from sklearn.base import clone

from isrlearn.heads._row_weights import GroupFactors
from isrlearn.moments import AllMoments, principal_axes
from isrlearn.subspace import Subspace
from isrlearn.typing import Float64Array, LabelArray


@dataclass(frozen=True, eq=False)
class Pooled:
    """Weight and mean of each class, and the scatter about these means.

    Parameters
    ----------
    weights : ndarray of shape (k,)
        Weight of each class.
    means : ndarray of shape (k, d)
        Their means.
    within : ndarray of shape (d, d) or None
        Scatter of all rows about the mean of their class; None where only means are known.
    rounding : ndarray of shape (d,)
        Rounding error of each feature.
    n_rows : int
        Number of rows.
    """

    weights: Float64Array
    means: Float64Array
    within: Float64Array | None
    rounding: Float64Array
    n_rows: int

    @classmethod
    def of(cls, moments: AllMoments, factors: GroupFactors, *, scatters: bool) -> Self:
        """Return the moments of all rows, weighted by factors of their groups.

        Parameters
        ----------
        moments : AllMoments
            Of all rows.
        factors : GroupFactors
            By class and environment.
        scatters : bool
            Whether more than means is needed.
        """
        parts, k = (moments.known, moments.others), len(factors.classes)
        index = [np.searchsorted(factors.classes, m.classes)[m.class_index] for m in parts]
        columns = moments.known.environment_index, np.full(len(moments.others.weights), -1)
        totals, sums, weights = np.zeros(k), np.zeros((k, moments.known.n_features)), []
        for part, codes, column in zip(parts, index, columns, strict=True):
            own = 1.0 if factors.table is None else factors.table[codes, column]
            weights.append(part.weights * own)
            np.add.at(totals, codes, weights[-1])
            np.add.at(sums, codes, weights[-1][:, None] * part.means)
        means = sums / totals[:, None]
        within = None
        if scatters:
            within = np.zeros((moments.known.n_features,) * 2)
            for part, codes, weight in zip(parts, index, weights, strict=True):
                for cell, w in enumerate(weight):
                    away = part.means[cell] - means[codes[cell]]
                    within += (w / part.weights[cell]) * part.known_scatters()[cell]
                    within += np.outer(w * away, away)
        rounding = np.max([m.precision * m.largest for m in parts], axis=0)
        return cls(totals, means, within, rounding, moments.n_rows)

    @property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.weights.sum())

    def mean(self) -> Float64Array:
        """Return the mean of all rows, (d,)."""
        return np.asarray(self.weights @ self.means / self.total)

    def covariance(self) -> Float64Array:
        """Return the covariance of all rows about their mean, (d, d)."""
        away = self.means - self.mean()
        between = (away * self.weights[:, None]).T @ away
        return np.asarray((self.known_within() + between) / self.total)

    def known_within(self) -> Float64Array:
        """Return the scatter within classes; moments without scatters are refused."""
        if self.within is None:
            raise ValueError("these moments hold means only, and scatters are needed.")
        return self.within

    def without(self, subspace: Subspace) -> "Pooled":
        r"""Return the moments of the rows without their spurious part.

        With :math:`P = I - U`, :math:`U = (1-s) D^T F` of low rank,
        :math:`PSP^T = S - US - (US)^T + U S U^T`: no product of two d x d matrices.

        Parameters
        ----------
        subspace : Subspace
            What is removed.
        """
        means = np.asarray(subspace.project(self.means), dtype=np.float64)
        if self.within is None or subspace.rank == 0:
            return replace(self, means=means)
        kept = 1 - subspace.scale
        amounts = subspace.functionals @ self.within
        removed = kept * (subspace.directions.T @ amounts)
        both = kept**2 * (amounts @ subspace.functionals.T)
        within = self.within - removed - removed.T
        within += subspace.directions.T @ both @ subspace.directions
        # What is left of a variance that was taken out whole is rounding of that variance.
        left = np.sqrt(np.finfo(np.float64).eps * np.diag(self.within).clip(0) / self.total)
        return replace(self, means=means, within=within, rounding=np.maximum(self.rounding, left))


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
