r"""Kernel: the linear classifier whose worst group is best, with a certificate.

.. math:: \min_W \max_g\; L_g(W) + \rho\|W\|^2 / 2
          = \max_{q \in \Delta} \min_W\; \sum_g q_g L_g(W) + \rho\|W\|^2 / 2

with :math:`L_g` the mean loss of group g. With few weights the left side is solved as "least t with
:math:`L_g \le t`" by a primal-dual interior-point method [1]_. With many, the maximum is
smoothed, :math:`\tau \log \sum_g \exp(L_g / \tau)`, and :math:`\tau` falls by stages of L-BFGS.

References
----------
.. [1] S. Boyd, L. Vandenberghe. Convex optimization. 2004. Section 11.7.
"""

from typing import Final, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import logsumexp, softmax

from isrlearn.baselines._softmax import SoftmaxLosses, descend
from isrlearn.typing import Float64Array, IntArray

GOAL: Final = 1e-6
"""Gap, relative to the objective, at which the search ends."""
CERTIFIED: Final = 1e-4
"""Gap up to which a solution counts as one."""
MOST_STEPS: Final = 100
MOST_HALVINGS: Final = 30
CENTRING: Final = 0.1  # share of the complementarity that a step aims at
MOST_WEIGHTS: Final = 3000  # whose second derivatives are formed
COOLING: Final = 0.2
MOST_STAGES: Final = 12
MOST_DESCENT: Final = 1000
STILL: Final = 1e-9


class WorstGroup(NamedTuple):
    """A solution with its certificate."""

    point: Float64Array
    """(m, d + 1)"""
    group_weights: Float64Array
    """(G,) the dual q."""
    gap: float
    """Duality gap relative to the objective."""


def best_worst_group(losses: SoftmaxLosses, groups: IntArray, ridge: float) -> WorstGroup:
    """Return the classifier whose worst group has the least mean loss, penalty included.

    Parameters
    ----------
    losses : SoftmaxLosses
        Losses of the rows.
    groups : ndarray of shape (n,)
        Group of each row: 0, ..., G - 1, none of them empty.
    ridge : float
        Strength of the penalty.
    """
    problem = GroupLosses(losses, groups, ridge)
    few = losses.targets.shape[1] * losses.columns.shape[1] <= MOST_WEIGHTS
    found = interior_point(problem) if few else cooling_descent(problem)
    if few and found.gap > CERTIFIED:
        return min(found, cooling_descent(problem), key=lambda solution: solution.gap)
    return found


class GroupLosses:
    """Mean losses of the groups, their derivatives and the certificate.

    Parameters
    ----------
    losses, groups, ridge
        As in `best_worst_group`.
    """

    def __init__(self, losses: SoftmaxLosses, groups: IntArray, ridge: float) -> None:
        self.losses, self.groups, self.ridge = losses, groups, ridge
        self.sizes = np.bincount(groups)
        self.equal_weights = np.full(len(self.sizes), 1 / len(self.sizes))
        self._members = [np.flatnonzero(groups == g) for g in range(len(self.sizes))]

    def at(self, point: Float64Array) -> Float64Array:
        """Return the mean loss of each group, (G,)."""
        by_row = self.losses.losses(self.losses.scores(point))
        return np.asarray(np.bincount(self.groups, by_row) / self.sizes)

    def penalty(self, point: Float64Array) -> float:
        """Return the penalty at a point."""
        return self.ridge / 2 * float(np.sum(point[:, :-1] ** 2))

    def row_weights(self, group_weights: Float64Array) -> Float64Array:
        """Return the weight of each row, (n,), for given weights of the groups."""
        return np.asarray((group_weights / self.sizes)[self.groups])

    def gradient(self, point: Float64Array, group_weights: Float64Array) -> Float64Array:
        """Return the gradient of the weighted losses with the penalty, (m, d + 1)."""
        errors = self.losses.errors(self.losses.scores(point))
        found = self.losses.gradient(errors * self.row_weights(group_weights)[:, None])
        found[:, :-1] += self.ridge * point[:, :-1]
        return found

    def gradients(self, point: Float64Array) -> Float64Array:
        """Return the gradient of each group's loss, (G, m (d + 1))."""
        errors = self.losses.errors(self.losses.scores(point)) / self.sizes[self.groups, None]
        columns = self.losses.columns
        return np.stack([(errors[rows].T @ columns[rows]).ravel() for rows in self._members])

    def curvature(self, point: Float64Array, group_weights: Float64Array) -> Float64Array:
        """Return the second derivatives of the weighted losses with the penalty."""
        shares = self.losses.shares(self.losses.scores(point))
        found = self.losses.curvature(shares, self.row_weights(group_weights))
        m, p = point.shape
        diagonal = np.einsum("ii->i", found).reshape(m, p)
        bias = np.arange(p - 1, m * p, p)
        if m > 1:  # a constant added to every bias changes nothing: the matrix would be singular
            found[np.ix_(bias, bias)] += diagonal[:, -1].mean()
        diagonal[:, :-1] += self.ridge
        diagonal[:, -1] += np.finfo(np.float64).eps
        return found

    def certified(self, point: Float64Array, group_weights: Float64Array) -> WorstGroup:
        r"""Return a point with a bound on how much better any other could be.

        With the bias at its optimum for the group weights q, the right side of the duality is
        strongly convex in W: its minimum is at least
        :math:`f_q(W) - \|\nabla_W f_q\|^2 / (2\rho)`.

        Parameters
        ----------
        point : ndarray of shape (m, d + 1)
            Weights and bias.
        group_weights : ndarray of shape (G,)
            The dual q, on the simplex.
        """
        point = self._with_best_bias(point, group_weights)
        slope = self.gradient(point, group_weights)[:, :-1]
        by_group = self.at(point)
        excess = by_group.max() - group_weights @ by_group + np.sum(slope**2) / (2 * self.ridge)
        objective = by_group.max() + self.penalty(point)
        # Losses below all numbers: the objective is zero, and so is the gap.
        return WorstGroup(point, group_weights, float(excess / max(objective, 1e-300)))

    def _with_best_bias(self, point: Float64Array, group_weights: Float64Array) -> Float64Array:
        by_row = self.row_weights(group_weights)
        point = point.copy()
        for _ in range(MOST_STEPS):
            shares = self.losses.shares(self.losses.scores(point))
            slope = by_row @ (shares - self.losses.targets)
            if np.abs(slope).max() <= 1e-13:
                break
            curvature = np.diag(by_row @ shares) - (shares * by_row[:, None]).T @ shares
            point[:, -1] -= np.linalg.lstsq(curvature, slope, rcond=1e-12)[0]
        return point


class _State(NamedTuple):
    """Where the interior-point method is."""

    point: Float64Array
    level: float
    """The bound t that every group's loss stays below."""
    weights: Float64Array
    """(G,) positive multipliers."""


def interior_point(problem: GroupLosses) -> WorstGroup:
    """Solve a problem of few weights by steps of Newton's method.

    Parameters
    ----------
    problem : GroupLosses
        The problem.
    """
    point = _best_for_equal_weights(problem)
    state = _State(point, 1.1 * float(problem.at(point).max()), problem.equal_weights)
    best = problem.certified(point, state.weights)
    for _ in range(MOST_STEPS):
        ahead = _newton_step(problem, state)
        if ahead is None:
            break
        state = ahead
        found = problem.certified(state.point, state.weights / state.weights.sum())
        best = found if found.gap < best.gap else best
        if best.gap <= GOAL:
            break
    return best


def _newton_step(problem: GroupLosses, state: _State) -> _State | None:
    """Return the state after a step, or None where rounding leaves no way ahead."""
    weights, jacobian = state.weights, problem.gradients(state.point)
    slack = state.level - problem.at(state.point)
    aim = CENTRING * float(slack @ weights) / len(weights)
    ratio, push = weights / slack, aim / slack
    slope = jacobian.T @ push + _ridge_slope(problem, state.point)
    matrix = problem.curvature(state.point, weights) + (jacobian.T * ratio) @ jacobian
    try:
        factor = cho_factor(matrix, overwrite_a=True)
    except LinAlgError:
        return None
    pull = cho_solve(factor, jacobian.T @ ratio)
    rest = cho_solve(factor, slope)
    # Least t and the weights together: the step of t follows from the sum of the multipliers.
    by_level = float(ratio.sum() - ratio @ jacobian @ pull)
    level = float(push.sum() - 1 - ratio @ jacobian @ rest) / by_level
    step = level * pull - rest
    change = push - weights + ratio * (jacobian @ step - level)
    return _backtrack(problem, state, _State(step.reshape(state.point.shape), level, change), aim)


def _backtrack(problem: GroupLosses, state: _State, step: _State, aim: float) -> _State | None:
    """Shorten a step until it stays inside and what is unsolved becomes less."""
    falling = step.weights < 0
    length = min(
        1.0, 0.99 * np.min(-state.weights[falling] / step.weights[falling], initial=np.inf)
    )
    before = _unsolved(problem, state, aim)
    for _ in range(MOST_HALVINGS):
        ahead = _State(
            state.point + length * step.point,
            state.level + length * step.level,
            state.weights + length * step.weights,
        )
        if _unsolved(problem, ahead, aim) <= (1 - 0.01 * length) * before:
            return ahead
        length /= 2
    return None


def _unsolved(problem: GroupLosses, state: _State, aim: float) -> float:
    """Return the length of the residuals of the optimality conditions; inf outside."""
    slack = state.level - problem.at(state.point)
    if slack.min() <= 0:
        return np.inf
    stationary = problem.gradient(state.point, state.weights).ravel()
    apart = np.append(state.weights * slack - aim, state.weights.sum() - 1)
    return float(np.sqrt(stationary @ stationary + apart @ apart))


def _ridge_slope(problem: GroupLosses, point: Float64Array) -> Float64Array:
    slope = problem.ridge * point
    slope[:, -1] = 0.0
    return np.asarray(slope.ravel())


def cooling_descent(problem: GroupLosses) -> WorstGroup:
    """Solve a problem of many weights by descent on smoother problems.

    Parameters
    ----------
    problem : GroupLosses
        The problem.
    """
    point = _best_for_equal_weights(problem)
    temperature = COOLING * float(problem.at(point).max())
    best = problem.certified(point, problem.equal_weights)
    for _ in range(MOST_STAGES):
        point = _best_when_smoothed(problem, point, temperature)
        found = problem.certified(point, softmax(problem.at(point) / temperature))
        best = found if found.gap < best.gap else best
        if best.gap <= GOAL:
            break
        temperature *= COOLING
    return best


def _best_for_equal_weights(problem: GroupLosses) -> Float64Array:
    def objective(point: Float64Array) -> tuple[float, Float64Array]:
        value = float(problem.at(point).mean()) + problem.penalty(point)
        return value, problem.gradient(point, problem.equal_weights)

    return descend(objective, np.zeros(problem.losses.shape), most=MOST_DESCENT, still=STILL).point


def _best_when_smoothed(
    problem: GroupLosses, start: Float64Array, temperature: float
) -> Float64Array:
    def objective(point: Float64Array) -> tuple[float, Float64Array]:
        powers = problem.at(point) / temperature
        value = temperature * float(logsumexp(powers)) + problem.penalty(point)
        return value, problem.gradient(point, softmax(powers))

    return descend(objective, start, most=MOST_DESCENT, still=STILL).point
