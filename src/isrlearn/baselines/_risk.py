r"""Kernels of the rivals that descend: the logistic risk of many linear models at once.

All is (E, T, ...): for each of E environments and each of T models; a model is (d + 1), the bias
last. Precision is that of the rows.
"""

from collections.abc import Callable, Iterable

import numpy as np

from isrlearn.heads import bent, losses_of, shares_of
from isrlearn.typing import BoolArray, FloatArray, IntArray


class EnvironmentRisk:
    r"""Mean logistic loss :math:`R_e(w)` per environment, for T models at once.

    With :math:`\sigma` the logistic function and a last feature that is always one,

    .. math::
        g_e = \nabla R_e(w) = \frac{1}{n_e}\sum_{i \in e} (\sigma(w^T x_i) - y_i)\, x_i, \qquad
        H_e v = \frac{1}{n_e}\sum_{i \in e} \sigma(1-\sigma)\,(v^T x_i)\, x_i.

    Every objective here has a gradient of the form :math:`\sum_e a_e g_e + H_e v_e`, so that no
    second derivative is ever formed as a matrix.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features; their dtype is the one computed in.
    positive : ndarray of shape (n,)
        Whether a row is of the second class.
    codes : ndarray of shape (n,)
        Environment of each row: 0, ..., E - 1.
    """

    def __init__(self, X: FloatArray, positive: BoolArray, codes: IntArray) -> None:
        places = [np.flatnonzero(codes == e) for e in range(int(codes.max()) + 1)]
        self.counts = np.array([len(rows) for rows in places])
        self._columns = [_with_ones(X[rows]) for rows in places]
        self._positive = [positive[rows].astype(X.dtype) for rows in places]
        self._targets = [
            columns[:, positive[rows]].sum(axis=1, dtype=np.float64).astype(X.dtype)
            for columns, rows in zip(self._columns, places, strict=True)
        ]
        self._shares: list[FloatArray] = []

    def gradients(self, weights: FloatArray) -> FloatArray:
        """Return :math:`g_e`, (E, T, d + 1), at `weights` (T, d + 1), and remember where.

        Parameters
        ----------
        weights : ndarray of shape (T, d + 1)
            Models; the last column is the bias.
        """
        self._shares = [_shares(weights @ columns) for columns in self._columns]
        return self._means([s @ c.T - t for s, c, t in self._parts()])

    def curvature_products(self, vectors: FloatArray) -> FloatArray:
        """Return :math:`H_e v_e`, (E, T, d + 1), at the weights of the last `gradients`.

        Parameters
        ----------
        vectors : ndarray of shape (E, T, d + 1)
            One vector for each environment and model.
        """
        return self._means(
            [
                _bent(shares, vector @ columns) @ columns.T
                for vector, (shares, columns, _) in zip(vectors, self._parts(), strict=True)
            ]
        )

    def rescaling_gradients(
        self, weights: FloatArray, own: FloatArray, strength: FloatArray
    ) -> FloatArray:
        r"""Return the gradient of a risk that is to be stationary in the scale of the model.

        It is that of :math:`o R_e(w) + \tfrac s2 \|\nabla_{a,b} R_e(a w^T x + b)\|^2` at a = 1,
        b = 0, for each environment, (E, T, d + 1). The two derivatives are
        :math:`\alpha = w^T g_e` and :math:`\beta`, the last entry of :math:`g_e`, and the gradient

        .. math:: (o + s\alpha)\, g_e + s H_e(\alpha w + \beta) = \frac{1}{n_e} \sum_{i \in e}
                  \big[(o + s\alpha)(\sigma - y_i) + \sigma(1-\sigma)\,s(\alpha z_i + \beta)\big]
                  x_i

        with :math:`z_i = w^T x_i`: one product with the rows to get z, and one to sum.

        Parameters
        ----------
        weights : ndarray of shape (T, d + 1)
            Models; the last column is the bias.
        own : ndarray of shape (T,)
            Weight o of the risk.
        strength : ndarray of shape (T,)
            Weight s of the penalty.
        """
        found = []
        for columns, target in zip(self._columns, self._targets, strict=True):
            scores = weights @ columns
            shares, factor = _shares(scores), strength / columns.shape[1]
            by_scale = factor * (np.einsum("tn,tn->t", shares, scores) - weights @ target)
            by_shift = factor * (shares @ columns[-1] - target[-1])
            linear = (own + by_scale)[:, None]
            terms = linear * shares
            terms += _bent(shares, by_scale[:, None] * scores + by_shift[:, None])
            found.append(terms @ columns.T - linear * target)
        return self._means(found)

    def losses(self, weights: FloatArray) -> FloatArray:
        """Return :math:`R_e`, (E, T), at `weights` (T, d + 1)."""
        found = []
        for columns, positive in zip(self._columns, self._positive, strict=True):
            scores = weights @ columns
            losses, _ = losses_of(scores.reshape(-1, 1), np.tile(positive, len(weights)))
            found.append(losses.reshape(scores.shape).sum(axis=1))
        return self._means(found)

    def _parts(self) -> "Iterable[tuple[FloatArray, FloatArray, FloatArray]]":
        return zip(self._shares, self._columns, self._targets, strict=True)

    def _means(self, sums: list[FloatArray]) -> FloatArray:
        return np.stack([total / int(n) for total, n in zip(sums, self.counts, strict=True)])


def _shares(scores: FloatArray) -> FloatArray:
    return shares_of(scores[..., None])[..., 0]


def _bent(shares: FloatArray, along: FloatArray) -> FloatArray:
    return bent(shares[..., None], along[..., None])[..., 0]


def _with_ones(X: FloatArray) -> FloatArray:
    """Return the transpose of X (d + 1, n), contiguous, with a last row of ones."""
    columns = np.ones((X.shape[1] + 1, len(X)), X.dtype)
    columns[:-1] = X.T
    return columns


Objective = Callable[[EnvironmentRisk, FloatArray, FloatArray], FloatArray]


def erm_gradient(risk: EnvironmentRisk, weights: FloatArray, penalty: FloatArray) -> FloatArray:
    r"""Return :math:`\sum_e (n_e / n)\, g_e`: the mean loss over all rows; no penalty.

    Parameters
    ----------
    risk : EnvironmentRisk
        The rows.
    weights : ndarray of shape (T, d + 1)
        Models.
    penalty : ndarray of shape (T,)
        Not used.
    """
    shares = (risk.counts / risk.counts.sum()).astype(weights.dtype)
    return np.tensordot(shares, risk.gradients(weights), axes=1)


def irm_gradient(risk: EnvironmentRisk, weights: FloatArray, penalty: FloatArray) -> FloatArray:
    r"""Return the gradient of IRMv1.

    The objective, with :math:`\lambda` in [0, 1], is
    :math:`(1-\lambda)\,\bar R + \lambda \sum_e \|\nabla_{a,b} R_e(a w^T x + b)\|^2` at a = 1,
    b = 0.

    Parameters
    ----------
    risk : EnvironmentRisk
        The rows.
    weights : ndarray of shape (T, d + 1)
        Models.
    penalty : ndarray of shape (T,)
        :math:`\lambda`.
    """
    own = (1 - penalty) / len(risk.counts)
    return risk.rescaling_gradients(weights, own, 2 * penalty).sum(axis=0)


def iga_gradient(risk: EnvironmentRisk, weights: FloatArray, penalty: FloatArray) -> FloatArray:
    r"""Return the gradient of :math:`\bar R + \lambda \sum_e \|g_e - \bar g\|^2` (IGA).

    Parameters
    ----------
    risk : EnvironmentRisk
        The rows.
    weights : ndarray of shape (T, d + 1)
        Models.
    penalty : ndarray of shape (T,)
        :math:`\lambda`.
    """
    gradients = risk.gradients(weights)
    mean = gradients.mean(axis=0)
    # The deviations add up to zero, so the derivative of the mean in the penalty drops out.
    vectors = 2 * penalty[:, None] * (gradients - mean)
    return mean + risk.curvature_products(vectors).sum(axis=0)


def vrex_gradient(risk: EnvironmentRisk, weights: FloatArray, penalty: FloatArray) -> FloatArray:
    r"""Return the gradient of :math:`\bar R + \lambda\,\mathrm{Var}_e(R_e)` (V-REx).

    Parameters
    ----------
    risk : EnvironmentRisk
        The rows.
    weights : ndarray of shape (T, d + 1)
        Models.
    penalty : ndarray of shape (T,)
        :math:`\lambda`; the variance divides by E.
    """
    gradients = risk.gradients(weights)
    losses = risk.losses(weights)
    own = (1 + 2 * penalty * (losses - losses.mean(axis=0))) / len(losses)
    return np.einsum("et,etp->tp", own, gradients)


def and_mask_gradient(
    risk: EnvironmentRisk, weights: FloatArray, penalty: FloatArray
) -> FloatArray:
    r"""Return the mean of :math:`g_e`, zero where the signs of the environments do not agree.

    As in the published code the weight part of each :math:`g_e` is scaled to length one, the bias
    is not; an entry is kept where :math:`|\sum_e \mathrm{sign}\,g_e| > \tau E`.

    Parameters
    ----------
    risk : EnvironmentRisk
        The rows.
    weights : ndarray of shape (T, d + 1)
        Models.
    penalty : ndarray of shape (T,)
        The agreement :math:`\tau`.
    """
    gradients = risk.gradients(weights)
    lengths = np.linalg.norm(gradients[:, :, :-1], axis=2, keepdims=True)
    gradients[:, :, :-1] /= np.where(lengths > 0, lengths, 1)
    agreement = np.abs(np.sign(gradients).sum(axis=0))
    return gradients.mean(axis=0) * (agreement > penalty[:, None] * len(gradients))
