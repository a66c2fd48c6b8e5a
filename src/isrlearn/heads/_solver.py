r"""Solvers of logistic regression: Newton's method on rows, and L-BFGS that never sees a row.

The objective is scikit-learn's, divided by the sum of the weights:
:math:`\frac1W \sum_i \omega_i \ell_i + \frac{1}{2CW} |w|^2`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, solve_triangular
from scipy.optimize import minimize
from threadpoolctl import ThreadpoolController

from isrlearn.heads._loss import Loss, curvature_of, losses_of, shares_of
from isrlearn.subspace import Subspace
from isrlearn.typing import Float64Array, FloatArray, IntArray

MOST_TRIALS: Final = 50  # along a step, as in scikit-learn
FEW_TRIALS: Final = 8  # where the curvature is known, and each is a pass over a file
MOST_IDLE: Final = 20  # points over chunks that are not flatter, where values hardly differ
NEAR: Final = 1e-7  # of a value: steps that gain less are measured by gradients
ROUNDED: Final = 1e-6  # of a curvature
LEAST_BEND: Final = 1e-3  # of a loss, at most 1/4: where a sample is sure of all its labels
NEWTON_SOLVED: Final = 1e-8  # largest entry of the gradient where Newton's method ends
NEWTON_STEPS: Final = 50
NEWTON_HALVINGS: Final = 20
WHEELS: Final = ("scipy.libs", "scipy/.dylibs")  # where the wheels of SciPy have their BLAS

LossAt = Callable[[Float64Array, Float64Array], Loss]


class Solution(NamedTuple):
    """Where a solver ends."""

    weight: Float64Array
    """(m, q) on the coordinates of the head."""
    bias: Float64Array
    """(m,)"""
    n_iter: int
    steepest: float
    """Largest entry of the gradient there."""


def times(rows: Any, forward: Any) -> Any:
    """Return rows in other coordinates, by a map (d, q) or by its diagonal (d,)."""
    return np.asarray(rows * forward if forward.ndim == 1 else rows @ forward)


@dataclass(frozen=True, eq=False)
class HeadCoordinates:
    r"""Rows without their spurious part, about a point, and mapped: :math:`z = (Px + p - c)M`.

    The rows are never mapped: a head on z is one on x, and so is its gradient.

    Parameters
    ----------
    subspace : Subspace
        What is removed first.
    centre : ndarray of shape (d,)
        The point c.
    forward : ndarray of shape (d, q) or (d,), default=None
        The map M, or its diagonal; None is the identity.
    """

    subspace: Subspace
    centre: Float64Array
    forward: Float64Array | None = None

    @property
    def n_coordinates(self) -> int:
        """Number of coordinates of z."""
        return len(self.centre) if self.forward is None else int(self.forward.shape[-1])

    def mapped(self, rows: FloatArray) -> FloatArray:
        """Return rows without their spurious part in these coordinates, in their precision."""
        inside: FloatArray = rows - self.centre.astype(rows.dtype)
        if self.forward is None:
            return inside
        return np.asarray(times(inside, self.forward.astype(rows.dtype)))

    def unmapped(
        self, weight: Float64Array, bias: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Return the head on rows without their spurious part that a head on z is."""
        wide = weight if self.forward is None else times(weight, self.forward.T)
        return wide, bias - wide @ self.centre

    def on_rows(
        self, weight: Float64Array, bias: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Return the head on x that a head on z is, (m, d) and (m,)."""
        weight, bias = self.subspace.fold_into(*self.unmapped(weight, bias))
        return weight, bias

    def pull_back(self, by_weight: Float64Array, by_bias: Float64Array) -> Float64Array:
        """Return derivatives by weights on z, (m, q), from those of the head on x."""
        # A sum of n rows, projected, is the sum of the projected rows.
        along = (1 - self.subspace.scale) * self.subspace.functionals.T
        amounts = by_weight @ along - np.outer(by_bias, self.subspace.centre @ along)
        inside = by_weight - amounts @ self.subspace.directions - np.outer(by_bias, self.centre)
        return np.asarray(inside if self.forward is None else times(inside, self.forward))


@dataclass(frozen=True)
class Problem:
    """What is minimised, apart from the rows.

    Parameters
    ----------
    coordinates : HeadCoordinates
        In which the penalty falls on the weights.
    n_vectors : int
        Vectors of weights m: 1 for two classes, else the number of classes.
    strength : float
        Factor of half the squared norm of the weights.
    total : float
        Weight of all rows.
    fit_intercept : bool, default=True
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
        self, loss_at: LossAt, point: Float64Array
    ) -> tuple[float, Float64Array]:
        """Return the objective and its gradient at a point, (m, q + 1)."""
        weight, bias = point[:, :-1], point[:, -1]
        loss = loss_at(*self.coordinates.on_rows(weight, bias))
        gradient = np.empty_like(point)
        gradient[:, :-1] = self.coordinates.pull_back(loss.coef, loss.bias) / self.total
        gradient[:, :-1] += self.strength * weight
        gradient[:, -1] = loss.bias / self.total if self.fit_intercept else 0.0
        value = loss.value / self.total + self.strength / 2 * float(np.sum(weight**2))
        return value, gradient


def newton(
    Z: FloatArray, codes: IntArray, weights: Float64Array | None, problem: Problem
) -> Solution | None:
    """Minimise the objective of two classes by Newton's method, on rows; None where it fails.

    A step is halved until the slope along it falls by half, or changes its sign by no more.

    Parameters
    ----------
    Z : ndarray of shape (n, q)
        Rows in the coordinates of the problem.
    codes : ndarray of shape (n,)
        Class of each.
    weights : ndarray of shape (n,) or None
        Weights; None for ones.
    problem : Problem
        What is minimised. Its second derivatives, (q + 1)², are formed.
    """
    m, p = problem.shape
    columns = np.column_stack([Z, np.full(len(Z), float(problem.fit_intercept))])
    own = (np.ones(len(Z)) if weights is None else weights) / problem.total
    ridge = np.full((m, p), problem.strength)
    ridge[:, -1] = float(not problem.fit_intercept)

    def slope_at(point: Float64Array) -> tuple[Float64Array, Float64Array]:
        scores = columns @ point.T
        errors = losses_of(scores, codes)[1] * own[:, None]
        return errors.T @ columns + ridge * point, scores

    point = np.zeros((m, p))
    slope, scores = slope_at(point)
    for n_steps in range(NEWTON_STEPS):
        steepest = float(np.abs(slope).max())
        if steepest <= NEWTON_SOLVED:
            return Solution(point[:, :-1], point[:, -1], n_steps, steepest)
        curvature = curvature_of(columns, shares_of(scores), own)
        curvature[np.diag_indices(m * p)] += ridge.ravel()
        try:
            step = np.linalg.solve(curvature, slope.ravel()).reshape(m, p)
        except np.linalg.LinAlgError:
            return None
        if not np.isfinite(step).all():
            return None
        for _ in range(NEWTON_HALVINGS):
            ahead, scores = slope_at(point - step)
            if np.sum(ahead * step) >= -0.5 * np.sum(slope * step):
                break
            step = step / 2
        else:
            return None
        point, slope = point - step, ahead
    return None


def descend(
    problem: Problem,
    loss_at: LossAt,
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
    loss_at : callable
        The loss of all rows for weights (m, d) and bias (m,): one pass over them.
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
    looked = _LookedAt(*problem.value_and_gradient(loss_at, begin), begin)
    first = accepted = flattest = looked
    n_iter = n_idle = 0
    if looked.steepest <= tol:
        return looked.solution(0)

    def to_steps(gradient: Float64Array) -> Float64Array:
        return gradient if root is None else solve_triangular(root, gradient.T, lower=True).T

    # The first step of L-BFGS is one unit long. Where the curvature is known the right length is
    # that of the gradient: make it the unit, and values from the start in its square.
    unit = 1.0 if root is None else float(np.linalg.norm(to_steps(looked.gradient)))
    origin = (begin if root is None else begin @ np.tril(root)).ravel() / unit

    def objective(flat: Float64Array) -> tuple[float, Float64Array]:
        nonlocal looked, flattest, n_idle
        if np.array_equal(flat, origin):
            looked = first
        else:
            point = unit * flat.reshape(problem.shape)
            if root is not None:
                point = solve_triangular(root, point.T, lower=True, trans=1).T
            looked = _LookedAt(*problem.value_and_gradient(loss_at, point), point)
            looked = looked.measured_from(accepted)
            flatter = looked.steepest < flattest.steepest
            flattest = looked if flatter else flattest
            n_idle = n_idle + 1 if looked.is_near(accepted) and not flatter else 0
        if flattest.steepest <= tol or (root is not None and n_idle >= MOST_IDLE):
            raise _EndError
        return (looked.value - first.value) / unit**2, to_steps(looked.gradient).ravel() / unit

    def accept(intermediate_result: Any) -> None:
        nonlocal accepted, n_iter
        accepted, n_iter = looked, n_iter + 1

    trials = MOST_TRIALS if root is None else FEW_TRIALS
    # Gradients say when it is enough.
    options = {"maxiter": max_iter, "maxls": trials, "gtol": 0.0, "ftol": 0.0}
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

        :math:`f(b) - f(a) \approx \frac12 (g_a + g_b)(b - a)`: sums of n losses would lose the
        digits of so small a gain.
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

    For several classes, those by the weights of one class, averaged over the classes.

    Parameters
    ----------
    Z : ndarray of shape (n, q)
        Rows in the coordinates of the problem.
    shares : ndarray of shape (n, m)
        Probability of each class at the point.
    weights : ndarray of shape (n,) or None
        Weights; None for ones.
    strength : float
        Of the penalty.
    """
    bend = np.maximum((shares * (1 - shares)).mean(axis=1), LEAST_BEND)
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


@contextmanager
def one_thread_in_scipy() -> Iterator[None]:
    """Let SciPy's linear algebra use one thread: several would wait for those of NumPy's."""
    limit = _shared_limit()
    limit.change(1)
    try:
        yield
    finally:
        limit.change(-1)


class _SharedLimit:
    """A limit that the first of several threads sets, and the last takes back."""

    def __init__(self) -> None:
        self._lock, self._n_inside = Lock(), 0
        self._limit: Any = None
        controller = ThreadpoolController()
        paths = [found["filepath"] for found in controller.info()]
        own = [path for path in paths if any(wheel in path for wheel in WHEELS)]
        self._libraries = controller.select(filepath=own)

    def change(self, by: int) -> None:
        with self._lock:
            self._n_inside += by
            if by > 0 and self._n_inside == 1:
                self._limit = self._libraries.limit(limits=1)
            elif self._n_inside == 0:
                self._limit.restore_original_limits()


@cache
def _shared_limit() -> _SharedLimit:
    import scipy.linalg  # noqa: F401  # so that its libraries are there to be found

    return _SharedLimit()
