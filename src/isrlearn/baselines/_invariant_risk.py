"""Invariant risk minimisation and V-REx on frozen features, for any number of classes."""

from collections.abc import Callable
from typing import Final

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from isrlearn.baselines._rival import MOST_ITERATIONS, Head, LastLayerRival, logistic_head
from isrlearn.baselines._worst_group import GroupLosses, descent_of
from isrlearn.exceptions import warn_user
from isrlearn.heads import bent, shares_of
from isrlearn.rows import Rows, check_number
from isrlearn.typing import Float64Array

STILL: Final = 1e-5
STEEP: Final = 1e-4
"""Largest entry of the gradient at which a descent counts as finished."""


def extrapolated(
    risks: GroupLosses, point: Float64Array, penalty: float
) -> tuple[float, Float64Array]:
    r"""Return mean and variance of the risks, :math:`\bar R + \lambda \mathrm{Var}_e R_e`.

    Parameters
    ----------
    point : ndarray of shape (m, d + 1)
        Weights and bias.

    Returns
    -------
    value : float
    gradient : ndarray of shape (m, d + 1)
    """
    means, _, errors = risks.at(point)
    apart = means - means.mean()
    by_risk = (1 + 2 * penalty * apart) / len(means)
    value = float(means.mean() + penalty * np.mean(apart**2))
    return risks.ridged(point, value, errors * risks.spread(by_risk))


def invariant(
    risks: GroupLosses, point: Float64Array, penalty: float
) -> tuple[float, Float64Array]:
    r"""Return :math:`\bar R + \lambda\, \mathrm{mean}_e (\partial_a R_e(a f))^2` at a = 1.

    With scores z and errors :math:`\epsilon = \partial \ell / \partial z`, the derivative by
    the scale is the mean of :math:`\epsilon^T z`, and its own derivative by the scores is
    :math:`\epsilon + \nabla^2 \ell\, z`.

    Parameters
    ----------
    point : ndarray of shape (m, d + 1)
        Weights and bias.

    Returns
    -------
    value : float
    gradient : ndarray of shape (m, d + 1)
    """
    means, scores, errors = risks.at(point)
    by_scale = risks.means(np.sum(errors * scores, axis=1))
    n = len(means)
    by_scores = errors * risks.spread(np.full(n, 1 / n))
    moved = errors + bent(shares_of(scores), scores)
    by_scores += moved * risks.spread(2 * penalty * by_scale / n)
    value = float(means.mean() + penalty * np.mean(by_scale**2))
    return risks.ridged(point, value, by_scores)


class PenalisedRival(LastLayerRival):
    """Descend from logistic regression on a risk with a penalty."""

    penalty: float
    _objective: Callable[[GroupLosses, Float64Array, float], tuple[float, Float64Array]]
    """Value and gradient of what is minimised, at a point and for a penalty."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("penalty", self.penalty, 0)

    def _solve(self, rows: Rows) -> Head:
        known = self._known(rows)
        codes = np.unique(known.environment_codes, return_inverse=True)[1]
        ridge = 1 / (self.C * len(known.X))
        risks = GroupLosses(known.X, known.class_codes, len(known.classes), codes, ridge)
        coef, bias = logistic_head(known, self.C, start=self._start)
        start = np.column_stack([coef, bias + coef @ risks.centre])
        found = descent_of(
            lambda point: self._objective(risks, point, self.penalty),
            start,
            most=MOST_ITERATIONS,
            still=STILL,
        )
        if found.steepest > STEEP:
            warn_user(
                f"{type(self).__name__} stopped where the gradient is {found.steepest:.1e}: scale "
                "the features, or make C or penalty smaller.",
                ConvergenceWarning,
            )
        return risks.weights_of(found.point)


class LastLayerVREx(PenalisedRival):
    r"""Risk extrapolation on frozen features: risks that vary little between environments.

    .. math:: \bar R + \lambda \mathrm{Var}_e(R_e) + \|W\|^2 / (2Cn)

    with :math:`R_e` the mean loss of environment e and :math:`\bar R` the mean of these, by L-BFGS
    from logistic regression. It sees features, labels and environments; rows of unknown
    environment are left out. `VREx` is the same by Adam, for two classes.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty on weights.
    penalty : float, default=10.0
        :math:`\lambda`.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Bias.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    environments_ : ndarray of shape (E,)
        Sorted environments.

    References
    ----------
    .. [1] D. Krueger et al. Out-of-distribution generalization via risk extrapolation. ICML 2021.

    Examples
    --------
    >>> from isrlearn.baselines import LastLayerVREx
    >>> from isrlearn.datasets import LinearUnitTest
    >>> X, y, environments = LinearUnitTest("3", 4, seed=0).sample(200)
    >>> LastLayerVREx().fit(X, y, environments=environments).coef_.shape
    (1, 10)
    """

    uses = "labels and environments"
    _objective = staticmethod(extrapolated)

    def __init__(self, C: float = 1.0, *, penalty: float = 10.0) -> None:
        super().__init__(C)
        self.penalty = penalty


class LastLayerIRM(PenalisedRival):
    r"""Invariant risk minimisation on frozen features: no environment wants other score scales.

    .. math:: \bar R + \lambda\, \mathrm{mean}_e \big(\partial_a R_e(a f)\big|_{a=1}\big)^2
              + \|W\|^2 / (2Cn)

    with :math:`R_e` the mean loss of environment e and :math:`\bar R` the mean of these, by L-BFGS
    from logistic regression; the objective is not convex. It sees features, labels and
    environments; rows of unknown environment are left out. `IRMv1` is a variant by Adam, for two
    classes.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty on weights.
    penalty : float, default=100.0
        :math:`\lambda`. The objective is not divided by it, however large.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Bias.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    environments_ : ndarray of shape (E,)
        Sorted environments.

    References
    ----------
    .. [1] M. Arjovsky, L. Bottou, I. Gulrajani, D. Lopez-Paz. Invariant risk minimization. 2019.

    Examples
    --------
    >>> from isrlearn.baselines import LastLayerIRM
    >>> from isrlearn.datasets import LinearUnitTest
    >>> X, y, environments = LinearUnitTest("3", 4, seed=0).sample(200)
    >>> LastLayerIRM().fit(X, y, environments=environments).coef_.shape
    (1, 10)
    """

    uses = "labels and environments"
    _objective = staticmethod(invariant)

    def __init__(self, C: float = 1.0, *, penalty: float = 100.0) -> None:
        super().__init__(C)
        self.penalty = penalty
