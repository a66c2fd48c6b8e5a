r"""Kernel: the losses of a linear classifier of k classes, with first and second derivatives.

Two classes have one vector of weights and the logistic loss; k > 2 have k vectors and the softmax.
So it is in scikit-learn, and so the penalty means the same in both.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from isrlearn.typing import Float64Array, FloatArray, IntArray

Objective = Callable[[Float64Array], tuple[float, Float64Array]]


class Descent(NamedTuple):
    """Where L-BFGS ends."""

    point: Float64Array
    """(m, d + 1)"""
    steepest: float
    """Largest entry of the gradient there."""


def descend(objective: Objective, start: Float64Array, *, most: int, still: float) -> Descent:
    """Return where L-BFGS ends.

    Parameters
    ----------
    objective : callable
        Maps a point (m, d + 1) to a value and its gradient (m, d + 1).
    start : ndarray of shape (m, d + 1)
        Where to begin.
    most : int
        Most iterations.
    still : float
        Largest entry of the gradient at which to end.
    """

    def flat(point: Float64Array) -> tuple[float, Float64Array]:
        value, slope = objective(point.reshape(start.shape))
        return value, slope.ravel()

    options = {"maxiter": most, "maxfun": 2 * most, "maxcor": 30, "ftol": 0.0, "gtol": still}
    found = minimize(flat, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    return Descent(found.x.reshape(start.shape), float(np.abs(found.jac).max()))


class SoftmaxLosses:
    r"""Loss :math:`\ell_i` of each row as a function of the weights.

    A point is an array of shape (m, d + 1), the last column being the bias: m = 1 for two classes,
    else m = k. The rows are centred, which changes the bias only and makes descent short.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.
    class_codes : ndarray of shape (n,)
        Class of each row: 0, ..., k - 1.
    n_classes : int
        Number of classes k.
    """

    def __init__(self, X: FloatArray, class_codes: IntArray, n_classes: int) -> None:
        self.centre = X.mean(axis=0, dtype=np.float64)
        self.columns = np.column_stack([X - self.centre, np.ones(len(X))])
        one_hot = np.eye(n_classes)[class_codes]
        self.targets = one_hot[:, 1:] if n_classes == 2 else one_hot

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of a point, (m, d + 1)."""
        return self.targets.shape[1], self.columns.shape[1]

    def scores(self, point: Float64Array) -> Float64Array:
        """Return the scores of the rows, (n, m)."""
        return np.asarray(self.columns @ point.T)

    def losses(self, scores: Float64Array) -> Float64Array:
        """Return the losses of the rows, (n,)."""
        own = np.sum(self.targets * scores, axis=1)
        if scores.shape[1] == 1:
            return np.asarray(np.logaddexp(0, scores[:, 0]) - own)
        top = scores.max(axis=1)
        return np.asarray(top + np.log(np.exp(scores - top[:, None]).sum(axis=1)) - own)

    def shares(self, scores: Float64Array) -> Float64Array:
        """Return the probabilities, (n, m): of the second class alone where there are two."""
        if scores.shape[1] == 1:
            return np.asarray(expit(scores))
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def errors(self, scores: Float64Array) -> Float64Array:
        """Return the derivatives of the losses by the scores, (n, m)."""
        return self.shares(scores) - self.targets

    def bent(self, shares: Float64Array, along: Float64Array) -> Float64Array:
        r"""Return :math:`\nabla^2_z \ell_i\, v_i` for each row, (n, m).

        Parameters
        ----------
        shares : ndarray of shape (n, m)
            Probabilities.
        along : ndarray of shape (n, m)
            The vectors v.
        """
        if shares.shape[1] == 1:
            return shares * (1 - shares) * along
        moved = shares * along
        return moved - shares * moved.sum(axis=1, keepdims=True)

    def gradient(self, by_scores: Float64Array) -> Float64Array:
        """Return the gradient, (m, d + 1), of what has these derivatives by the scores, (n, m)."""
        return np.asarray(by_scores.T @ self.columns)

    def curvature(self, shares: Float64Array, weights: Float64Array) -> Float64Array:
        """Return the second derivatives of the weighted sum of the losses.

        Parameters
        ----------
        shares : ndarray of shape (n, m)
            Probabilities.
        weights : ndarray of shape (n,)
            Weights of the rows.

        Returns
        -------
        ndarray of shape (m (d + 1), m (d + 1))
        """
        m, p = self.shape
        found = np.empty((m, p, m, p))
        for a in range(m):
            for b in range(a, m):
                bend = shares[:, a] * (float(a == b) - shares[:, b])
                block = (self.columns * (weights * bend)[:, None]).T @ self.columns
                found[a, :, b], found[b, :, a] = block, block.T
        return found.reshape(m * p, m * p)

    def point_of(self, coef: Float64Array, intercept: Float64Array) -> Float64Array:
        """Return the point of weights in the coordinates of X."""
        return np.column_stack([coef, intercept + coef @ self.centre])

    def weights_of(self, point: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return the weights (m, d) and the bias (m,) in the coordinates of X."""
        coef = point[:, :-1].copy()
        return coef, point[:, -1] - coef @ self.centre
