r"""Kernel: the logistic risk of many linear models at once, in each environment.

The models are the rows of one matrix, so that one product serves them all.
"""

import numpy as np

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
    n_models : int
        Number of models T.
    """

    def __init__(self, X: FloatArray, positive: BoolArray, codes: IntArray, n_models: int) -> None:
        places = [np.flatnonzero(codes == e) for e in range(int(codes.max()) + 1)]
        self._columns = [_with_ones(X[rows]) for rows in places]
        self._targets = [
            columns[:, positive[rows]].sum(axis=1, dtype=np.float64).astype(X.dtype)
            for columns, rows in zip(self._columns, places, strict=True)
        ]
        self._shares = [np.empty((n_models, len(rows)), X.dtype) for rows in places]
        self._scratch = [np.empty((n_models, max(map(len, places))), X.dtype) for _ in range(2)]
        self.counts = np.array([len(rows) for rows in places])

    def gradients(self, weights: FloatArray) -> FloatArray:
        """Return :math:`g_e`, (E, T, d + 1), at `weights` (T, d + 1), and remember where.

        Parameters
        ----------
        weights : ndarray of shape (T, d + 1)
            Models; the last column is the bias.
        """
        found = np.empty((len(self.counts), *weights.shape), weights.dtype)
        for e, (columns, shares) in enumerate(zip(self._columns, self._shares, strict=True)):
            np.matmul(-weights, columns, out=shares)
            _logistic_of_minus(shares, shares)
            np.matmul(shares, columns.T, out=found[e])
            found[e] -= self._targets[e]
            found[e] /= self.counts[e]
        return found

    def curvature_products(self, vectors: FloatArray) -> FloatArray:
        """Return :math:`H_e v_e`, (E, T, d + 1), at the weights of the last `gradients`.

        Parameters
        ----------
        vectors : ndarray of shape (E, T, d + 1)
            One vector for each environment and model.
        """
        found = np.empty_like(vectors)
        for e, (columns, shares) in enumerate(zip(self._columns, self._shares, strict=True)):
            slopes, along = (scratch[:, : self.counts[e]] for scratch in self._scratch)
            np.subtract(1, shares, out=slopes)
            slopes *= shares
            np.matmul(vectors[e], columns, out=along)
            slopes *= along
            np.matmul(slopes, columns.T, out=found[e])
            found[e] /= self.counts[e]
        return found

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
        found = np.empty((len(self.counts), *weights.shape), weights.dtype)
        for e, (columns, shares) in enumerate(zip(self._columns, self._shares, strict=True)):
            minus, terms = (scratch[:, : self.counts[e]] for scratch in self._scratch)
            # The shape is a Python number: one of NumPy would make all that follows double.
            target, factor = self._targets[e], strength / columns.shape[1]
            np.matmul(-weights, columns, out=minus)
            _logistic_of_minus(minus, shares)
            by_scale = -factor * (_row_products(shares, minus) + weights @ target)
            by_shift = factor * (shares @ columns[-1] - target[-1])
            linear = (own + by_scale)[:, None]
            np.subtract(1, shares, out=terms)
            minus *= -by_scale[:, None]
            minus += by_shift[:, None]
            terms *= minus
            terms += linear
            terms *= shares
            np.matmul(terms, columns.T, out=found[e])
            found[e] -= linear * target
            found[e] /= self.counts[e]
        return found

    def losses(self, weights: FloatArray) -> FloatArray:
        """Return :math:`R_e`, (E, T), at the weights of the last `gradients`.

        Parameters
        ----------
        weights : ndarray of shape (T, d + 1)
            The same weights.
        """
        found = np.empty((len(self.counts), len(weights)), weights.dtype)
        for e, (columns, shares) in enumerate(zip(self._columns, self._shares, strict=True)):
            larger, values = (scratch[:, : self.counts[e]] for scratch in self._scratch)
            np.matmul(weights, columns, out=values)
            np.maximum(values, 0, out=values)
            np.subtract(1, shares, out=larger)
            np.maximum(shares, larger, out=larger)
            np.log(larger, out=larger)
            # log(1 + exp(z)) = max(z, 0) - log(max(share, 1 - share)): no infinity on either side
            values -= larger
            found[e] = (values.sum(axis=1) - weights @ self._targets[e]) / self.counts[e]
        return found


def _logistic_of_minus(minus: FloatArray, out: FloatArray) -> None:
    """Put 1 / (1 + exp(minus)) into `out`, which may be `minus` itself."""
    with np.errstate(over="ignore"):  # exp(88) and more: the share is 0, and so it comes
        np.exp(minus, out=out)
    out += 1
    np.reciprocal(out, out=out)


def _row_products(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the inner product of each row of a with the same row of b."""
    return np.asarray((a[:, None, :] @ b[:, :, None])[:, 0, 0])


def _with_ones(X: FloatArray) -> FloatArray:
    """Return the transpose of X (d + 1, n), contiguous, with a last row of ones."""
    columns = np.ones((X.shape[1] + 1, len(X)), X.dtype)
    columns[:-1] = X.T
    return columns
