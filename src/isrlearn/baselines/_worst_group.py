r"""Group distributionally robust optimisation of the last layer, with a certificate.

The largest mean loss of a group is smoothed to :math:`T \log \sum_g e^{\ell_g / T}` and solved for
falling temperatures T, each from where the last one ended. Whatever the point, the weights
:math:`q_g \propto e^{\ell_g / T}` of the groups bound how much better any other could be.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning

from isrlearn.baselines._rival import Head, LastLayerRival, group_codes
from isrlearn.exceptions import warn_user
from isrlearn.heads import losses_of, shares_of
from isrlearn.rows import Rows
from isrlearn.typing import Float64Array, FloatArray, IntArray

GOAL: Final = 1e-6
"""Gap, relative to the objective, at which the search ends."""
CERTIFIED: Final = 1e-4
"""Gap up to which a solution counts as one."""
COOLING: Final = 0.2
MOST_STAGES: Final = 12
MOST_DESCENT: Final = 1000
STILL: Final = 1e-9
BIAS_STEPS: Final = 100

Objective = Callable[[Float64Array], tuple[float, Float64Array]]


class Descent(NamedTuple):
    """Where L-BFGS ends."""

    point: Float64Array
    """(m, d + 1)"""
    steepest: float
    """Largest entry of the gradient there."""


def descent_of(objective: Objective, start: Float64Array, *, most: int, still: float) -> Descent:
    """Return where L-BFGS ends, after `most` steps or where the gradient is below `still`."""

    def flat(point: Float64Array) -> tuple[float, Float64Array]:
        value, slope = objective(point.reshape(start.shape))
        return value, slope.ravel()

    options = {"maxiter": most, "maxfun": 2 * most, "maxcor": 30, "ftol": 0.0, "gtol": still}
    found = minimize(flat, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    return Descent(found.x.reshape(start.shape), float(np.abs(found.jac).max()))


class GroupLosses:
    r"""Mean logistic losses of groups of rows, as functions of the weights.

    A point is (m, d + 1): weights, and the bias in the last column, on rows about their mean.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features.
    class_codes : ndarray of shape (n,)
        Class of each row.
    n_classes : int
        Number of classes k; m = 1 for two.
    groups : ndarray of shape (n,)
        Group of each row: 0, ..., G - 1, none of them empty.
    ridge : float
        Factor of half the squared norm of the weights.
    """

    def __init__(
        self, X: FloatArray, class_codes: IntArray, n_classes: int, groups: IntArray, ridge: float
    ) -> None:
        self.centre = X.mean(axis=0, dtype=np.float64)
        self.columns = np.column_stack([X - self.centre, np.ones(len(X))])
        self.codes, self.groups, self.ridge = class_codes, groups, ridge
        self.shape = 1 if n_classes == 2 else n_classes, self.columns.shape[1]
        self.sizes = np.bincount(groups)

    def means(self, values: Float64Array) -> Float64Array:
        """Return the mean of values (n,) in each group, (G,)."""
        return np.asarray(np.bincount(self.groups, values) / self.sizes)

    def spread(self, by_group: Float64Array) -> Float64Array:
        """Return the factor of each row, (n, 1), where means of groups have these factors."""
        return np.asarray((by_group / self.sizes)[self.groups, None])

    def at(self, point: Float64Array) -> tuple[Float64Array, Float64Array, Float64Array]:
        """Return the mean loss of each group, (G,), and scores and errors of the rows, (n, m)."""
        scores = np.asarray(self.columns @ point.T)
        losses, errors = losses_of(scores, self.codes)
        return self.means(losses), scores, errors

    def ridged(
        self, point: Float64Array, value: float, by_scores: Float64Array
    ) -> tuple[float, Float64Array]:
        """Return value and gradient with the penalty, from derivatives by the scores."""
        gradient = by_scores.T @ self.columns
        gradient[:, :-1] += self.ridge * point[:, :-1]
        return float(value + self.ridge / 2 * np.sum(point[:, :-1] ** 2)), gradient

    def smoothed(self, temperature: float) -> Objective:
        """Return the smoothed loss of the worst group; the mean of all at temperature infinity."""

        def objective(point: Float64Array) -> tuple[float, Float64Array]:
            losses, _, errors = self.at(point)
            if np.isinf(temperature):
                value, shares = float(losses.mean()), np.full(len(losses), 1 / len(losses))
            else:
                value = temperature * float(logsumexp(losses / temperature))
                shares = softmax(losses / temperature)
            return self.ridged(point, value, errors * self.spread(shares))

        return objective

    def certified(self, point: Float64Array, group_weights: Float64Array) -> "WorstGroup":
        r"""Return a point with a bound on how much better any other could be.

        With weights q of the groups the objective is never below
        :math:`\min_w \sum_g q_g \ell_g(w) + \tfrac\rho2 |w|^2`, which is strongly convex in w: at a
        point whose bias is best its least value is at most
        :math:`|\nabla|^2 / 2\rho` below the value there.
        """
        point, by_row = point.copy(), self.spread(group_weights)
        targets = np.eye(max(2, self.shape[0]))[self.codes][:, -self.shape[0] :]
        for _ in range(BIAS_STEPS):
            shares = shares_of(self.columns @ point.T)
            slope = np.sum(by_row * (shares - targets), axis=0)
            if np.abs(slope).max() <= 1e-13:
                break
            curvature = np.diag(np.sum(by_row * shares, axis=0)) - (shares * by_row).T @ shares
            point[:, -1] -= np.linalg.lstsq(curvature, slope, rcond=1e-12)[0]
        losses, _, errors = self.at(point)
        penalty, gradient = self.ridged(point, 0.0, errors * by_row)
        steep = np.sum(gradient[:, :-1] ** 2) / (2 * self.ridge)
        excess = losses.max() - group_weights @ losses + steep
        # Losses below all numbers: the objective is zero, and so is the gap.
        return WorstGroup(point, group_weights, float(excess / max(losses.max() + penalty, 1e-300)))

    def weights_of(self, point: Float64Array) -> Head:
        """Return the weights (m, d) and the bias (m,) in the coordinates of X."""
        coef = point[:, :-1].copy()
        return coef, point[:, -1] - coef @ self.centre


class WorstGroup(NamedTuple):
    """A solution with its certificate."""

    point: Float64Array
    """(m, d + 1)"""
    group_weights: Float64Array
    """(G,) the dual q."""
    gap: float
    """Duality gap relative to the objective."""


def best_worst_group(problem: GroupLosses) -> WorstGroup:
    """Return the classifier whose worst group has the least mean loss, penalty included."""
    start, temperature = np.zeros(problem.shape), np.inf
    found = []
    for _ in range(MOST_STAGES):
        smoothed = problem.smoothed(temperature)
        start = descent_of(smoothed, start, most=MOST_DESCENT, still=STILL).point
        losses = problem.at(start)[0]
        found.append(problem.certified(start, softmax(losses / temperature)))
        if found[-1].gap <= GOAL:
            break
        temperature = COOLING * (float(losses.max()) if np.isinf(temperature) else temperature)
    return min(found, key=lambda solution: solution.gap)


class GroupDRO(LastLayerRival):
    r"""The last layer whose worst (class, environment) group has the least mean loss.

    .. math:: \min_W \max_g\; n L_g(W) + \|W\|^2 / (2C)

    with :math:`L_g` the mean loss of group g and n the number of rows used. The problem is convex
    and is solved, not descended on: `gap_` bounds how far the objective is from its minimum. It
    sees features, labels and environments; rows of unknown environment are left out.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty.

    Attributes
    ----------
    group_weights_ : ndarray of shape (G,)
        Weights q of the groups, which sum to one: logistic regression with these weights has the
        same solution. Groups are sorted by class, then by environment; empty ones are not there.
    gap_ : float
        Duality gap relative to the objective. Above 1e-4 there is a `ConvergenceWarning`.
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
    .. [1] S. Sagawa, P. W. Koh, T. B. Hashimoto, P. Liang. Distributionally robust neural networks
       for group shifts. ICLR 2020.

    Examples
    --------
    >>> from isrlearn.baselines import GroupDRO
    >>> from isrlearn.datasets import load_penguins
    >>> X, y, environments = load_penguins()
    >>> model = GroupDRO().fit(X / X.std(axis=0), y, environments=environments)
    >>> model.gap_ < 1e-4
    True
    """

    uses = "labels and environments"

    def _solve(self, rows: Rows) -> Head:
        known = self._known(rows)
        problem = GroupLosses(
            known.X,
            known.class_codes,
            len(known.classes),
            group_codes(known),
            1 / (self.C * len(known.X)),
        )
        found = best_worst_group(problem)
        self.group_weights_, self.gap_ = found.group_weights, found.gap
        if found.gap > CERTIFIED:
            warn_user(
                f"GroupDRO may be {found.gap:.1e} of its objective away from the optimum: scale "
                "the features, or make C smaller.",
                ConvergenceWarning,
            )
        return problem.weights_of(found.point)
