r"""Logistic regression from sums over rows: L-BFGS that never sees a row.

The objective is scikit-learn's, divided by the sum of the weights:
:math:`\frac1W \sum_i \omega_i \ell_i + \frac{1}{2CW} |w|^2`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, solve_triangular
from scipy.optimize import minimize

from isrlearn.heads._coordinates import HeadCoordinates
from isrlearn.heads._slopes import Slope
from isrlearn.heads._threads import one_thread_in_scipy
from isrlearn.typing import Float64Array, FloatArray

MOST_TRIALS: Final = 50  # along a step, as in scikit-learn
FEW_TRIALS: Final = 8  # where the curvature is known, and each is a pass over a file
MOST_IDLE: Final = 20  # points over chunks that are not flatter, where values hardly differ
NEAR: Final = 1e-7  # of a value: steps that gain less are measured by gradients
ROUNDED: Final = 1e-6  # of a curvature
LEAST_CURVATURE: Final = 1e-3  # of a loss, at most 1/4: where a sample is sure of all its labels

SlopeAt = Callable[[Float64Array, Float64Array], Slope]


class Solution(NamedTuple):
    """Where L-BFGS ends."""

    weight: Float64Array
    """(m, q) on the coordinates of the head."""
    bias: Float64Array
    """(m,)"""
    n_iter: int
    steepest: float
    """Largest entry of the gradient there."""


@dataclass(frozen=True)
class Problem:
    """What is minimised, apart from the rows.

    Parameters
    ----------
    coordinates : HeadCoordinates
        In which the penalty falls on the weights.
    n_vectors : int
        Vectors of weights m: one for two classes, else one for each.
    strength : float
        :math:`1 / (CW)`, the penalty against the mean loss.
    total : float
        The sum of the weights W.
    fit_intercept : bool
        Whether there is a bias.
    """

    coordinates: HeadCoordinates
    n_vectors: int
    strength: float
    total: float
    fit_intercept: bool = True

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of a point: weights, and the bias in the last column."""
        return self.n_vectors, self.coordinates.n_coordinates + 1

    def value_and_gradient(
        self, slope_at: SlopeAt, point: Float64Array
    ) -> tuple[float, Float64Array]:
        """Return the objective and its gradient at a point, (m, q + 1)."""
        weight, bias = point[:, :-1], point[:, -1]
        slope = slope_at(*self.coordinates.on_rows(weight, bias))
        gradient = np.empty_like(point)
        gradient[:, :-1] = self.coordinates.pull_back(slope.coef, slope.bias) / self.total
        gradient[:, :-1] += self.strength * weight
        gradient[:, -1] = slope.bias / self.total if self.fit_intercept else 0.0
        value = slope.loss / self.total + self.strength / 2 * float(np.sum(weight**2))
        return value, gradient


def solve(
    problem: Problem,
    slope_at: SlopeAt,
    *,
    tol: float,
    max_iter: int,
    start: Float64Array | None = None,
    curvature: Float64Array | None = None,
) -> Solution:
    """Minimise the objective by L-BFGS, until the gradient is small.

    Parameters
    ----------
    problem : Problem
        What to minimise.
    slope_at : callable
        The slope of all rows for weights (m, d) and bias (m,): one pass over them.
    tol : float
        Largest entry of the gradient at which to end.
    max_iter : int
        Most iterations.
    start : ndarray of shape (m, q + 1), default=None
        Where to begin; None is zero.
    curvature : ndarray of shape (q + 1, q + 1), default=None
        About the second derivatives by one vector of weights. Steps are then taken in coordinates
        in which it is the identity, and few of them are needed.
    """
    begin = np.zeros(problem.shape) if start is None else start
    root = None if curvature is None else _root(curvature, problem.fit_intercept)
    looked = _LookedAt(*problem.value_and_gradient(slope_at, begin), begin)
    first = accepted = flattest = looked
    n_iter = n_idle = 0
    if looked.steepest <= tol:
        return looked.solution(0)
    # The first step of L-BFGS is one unit long. Where the curvature is known the right length is
    # that of the gradient: make it the unit, and values from the start in its square.
    unit = 1.0 if root is None else float(np.linalg.norm(_to_steps(looked.gradient, root)))
    origin = _from_point(begin, root).ravel() / unit

    def objective(flat: Float64Array) -> tuple[float, Float64Array]:
        nonlocal looked, flattest, n_idle
        if np.array_equal(flat, origin):
            looked = first
        else:
            point = _to_point(unit * flat.reshape(problem.shape), root)
            looked = _LookedAt(*problem.value_and_gradient(slope_at, point), point)
            looked = looked.measured_from(accepted)
            flatter = looked.steepest < flattest.steepest
            flattest = looked if flatter else flattest
            n_idle = n_idle + 1 if looked.is_near(accepted) and not flatter else 0
        if flattest.steepest <= tol or (root is not None and n_idle >= MOST_IDLE):
            raise _EndError
        return (looked.value - first.value) / unit**2, _to_steps(
            looked.gradient, root
        ).ravel() / unit

    def accept(intermediate_result: Any) -> None:
        nonlocal accepted, n_iter
        accepted, n_iter = looked, n_iter + 1

    options = {
        "maxiter": max_iter,
        "maxls": MOST_TRIALS if root is None else FEW_TRIALS,
        "gtol": 0.0,
        "ftol": 0.0,  # gradients say when it is enough
    }
    how = {"jac": True, "method": "L-BFGS-B", "callback": accept, "options": options}
    try:
        with one_thread_in_scipy():
            minimize(objective, origin, **how)
    except _EndError:
        accepted, n_iter = flattest, n_iter + 1
    return accepted.solution(n_iter)


class _EndError(Exception):
    """The gradient is small enough, whatever the value is; or it does not get smaller."""


class _LookedAt(NamedTuple):
    """A point that L-BFGS has looked at."""

    value: float
    gradient: Float64Array
    """(m, q + 1)"""
    point: Float64Array
    """(m, q + 1)"""

    def is_near(self, other: "_LookedAt") -> bool:
        """Whether two values are so close that rounding may be the difference."""
        return abs(self.value - other.value) <= NEAR * abs(other.value)

    def measured_from(self, other: "_LookedAt") -> "_LookedAt":
        r"""Return the same with a value that follows from the gradients, if the values are near.

        Sums of float32 products have values that are off by more than the last steps gain, and a
        search for one that is less would not end. Gradients are not off by as much as they change:
        :math:`f(x) = f(a) + (\nabla f(a) + \nabla f(x)) \cdot (x - a) / 2`, up to third order.

        Parameters
        ----------
        other : _LookedAt
            The point a.
        """
        if not self.is_near(other):
            return self
        gain = float(np.sum((self.gradient + other.gradient) * (self.point - other.point)) / 2)
        return self._replace(value=other.value + gain)

    @property
    def steepest(self) -> float:
        """Largest entry of the gradient."""
        return float(np.abs(self.gradient).max())

    def solution(self, n_iter: int) -> Solution:
        """Return the point as the end of a descent."""
        return Solution(self.point[:, :-1], self.point[:, -1], n_iter, self.steepest)


def sample_curvature(
    Z: FloatArray, shares: FloatArray, weights: Float64Array | None, strength: float
) -> Float64Array:
    r"""Return about the second derivatives of the objective, from a sample of rows.

    Of one vector of weights, averaged over the vectors:
    :math:`\sum_i \omega_i \bar{s_i(1 - s_i)}\, (z_i, 1)(z_i, 1)^T / W + 1/(CW)`.

    Parameters
    ----------
    Z : ndarray of shape (n, q)
        Rows in the coordinates of the head.
    shares : ndarray of shape (n, m)
        Probabilities of the classes.
    weights : ndarray of shape (n,) or None
        Weights of the rows.
    strength : float
        The penalty 1 / (CW).
    """
    bend = np.maximum((shares * (1 - shares)).mean(axis=1), LEAST_CURVATURE)
    if weights is not None:
        bend = bend * weights / weights.mean()
    columns = np.column_stack([Z, np.ones(len(Z), Z.dtype)])
    weighted = columns * (bend / len(Z)).astype(Z.dtype)[:, None]
    curvature = (weighted.T @ columns).astype(np.float64)
    # The trace keeps it invertible where the rows do not span all coordinates.
    least = strength + 1e-6 * np.trace(curvature) / len(curvature)
    curvature[np.diag_indices(len(curvature))] += least
    return np.asarray(curvature)


def _root(curvature: Float64Array, fit_intercept: bool) -> Float64Array:
    if not fit_intercept:  # the bias stays zero, and out of the other steps
        curvature = curvature.copy()
        curvature[-1] = curvature[:, -1] = 0.0
        curvature[-1, -1] = 1.0
    added = np.zeros(len(curvature))
    while True:  # sums of a sample in single precision may be a little off
        try:
            return np.asarray(cho_factor(curvature + np.diag(added), lower=True)[0])
        except np.linalg.LinAlgError:
            added = np.maximum(10 * added, ROUNDED * np.diag(curvature))


def _to_point(steps: Float64Array, root: Float64Array | None) -> Float64Array:
    if root is None:
        return steps
    return np.asarray(solve_triangular(root, steps.T, lower=True, trans=1).T)


def _from_point(point: Float64Array, root: Float64Array | None) -> Float64Array:
    return point if root is None else np.asarray(point @ np.tril(root))


def _to_steps(gradient: Float64Array, root: Float64Array | None) -> Float64Array:
    if root is None:
        return gradient
    return np.asarray(solve_triangular(root, gradient.T, lower=True).T)
