r"""Kernel: logistic loss and its slope, summed over rows, so that blocks of rows add up.

Two classes have one vector of weights and the logistic loss; k > 2 have k vectors and the softmax,
as in scikit-learn.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from isrlearn.moments import blocks_of_stacks, in_stacks, whole_stacks
from isrlearn.typing import Float64Array, FloatArray, IntArray

BLOCK_BYTES: Final = 2**23  # read from memory once: scores and slope are both taken of a block
FEW_VECTORS: Final = 2
MOST_ROWS: Final = 2**13  # more scores are memory that the system fills with zeros for each block

LabelsOf = Callable[[slice], tuple[IntArray, Float64Array | None]]


@dataclass(frozen=True, eq=False)
class Slope:
    r"""The sum :math:`\sum_i \omega_i \ell_i` over rows, and its derivatives.

    Parameters
    ----------
    loss : float
        The sum.
    coef : ndarray of shape (m, d)
        By the weights; m = 1 for two classes, else m = k.
    bias : ndarray of shape (m,)
        By the bias.
    """

    loss: float
    coef: Float64Array
    bias: Float64Array

    def __add__(self, other: "Slope") -> "Slope":
        """Return the slope of the rows of both."""
        return Slope(self.loss + other.loss, self.coef + other.coef, self.bias + other.bias)


def slope_of(
    X: FloatArray,
    codes: IntArray,
    weights: Float64Array | None,
    coef: Float64Array,
    bias: Float64Array,
) -> Slope:
    """Return the slope of the loss of rows.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows, float32 or float64. Products with X are taken in this precision block by block, all
        else in float64.
    codes : ndarray of shape (n,)
        Class of each row.
    weights : ndarray of shape (n,) or None
        Weights of the rows; None for ones.
    coef : ndarray of shape (m, d)
        Weights of the model; m = 1 for two classes, else m = k.
    bias : ndarray of shape (m,)
        Its bias.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([1, 0])
    >>> slope_of(X, y, None, np.zeros((1, 1)), np.zeros(1)).coef
    array([[-1.]])
    """
    return slope_by_block(
        X, lambda own: (codes[own], None if weights is None else weights[own]), coef, bias
    )


def slope_by_block(
    X: FloatArray, labels_of: LabelsOf, coef: Float64Array, bias: Float64Array
) -> Slope:
    """Return the slope of the loss of rows whose labels are looked up block by block.

    Parameters
    ----------
    X, coef, bias
        As in `slope_of`.
    labels_of : callable
        Returns codes and weights of a slice of the rows.
    """
    loss, by_coef, by_bias = 0.0, np.zeros_like(coef), np.zeros_like(bias)
    halves = _in_precision_of(X, coef)
    for own in _cache_blocks(X):
        stacks, (codes, weights) = in_stacks(X[own]), labels_of(own)
        scores = _sum_of_halves(_products(stacks, halves), bias)
        losses, errors = _losses(scores, codes)
        if weights is not None:
            losses *= weights
            errors *= weights[:, None]
        turned = errors.astype(X.dtype).reshape(*stacks.shape[:2], -1).swapaxes(1, 2)
        loss += float(losses.sum())
        by_coef += (turned @ stacks).sum(axis=0, dtype=np.float64)
        by_bias += errors.sum(axis=0)
    return Slope(loss, by_coef, by_bias)


def _cache_blocks(X: FloatArray) -> Iterator[slice]:
    """Return blocks of rows that stay in a cache, as what is made of them does."""
    rows = whole_stacks(min(MOST_ROWS, BLOCK_BYTES // (X.itemsize * X.shape[1])))
    return blocks_of_stacks(len(X), rows)


def _in_precision_of(X: FloatArray, coef: Float64Array) -> FloatArray:
    """Return weights, (m, d), or (2 m, d): what single precision holds, and the rest.

    Rounded weights would be off in the same direction for every row. Near its end, a descent would
    go up and down these steps instead of the slope.
    """
    if X.dtype == np.float64:
        return coef
    held = coef.astype(X.dtype)
    return np.vstack([held, (coef - held).astype(X.dtype)])


def _products(stacks: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return products of rows, in stacks, with vectors, (n, len(vectors))."""
    if len(stacks) > 1 or len(vectors) > FEW_VECTORS:
        return np.asarray(stacks @ vectors.T).reshape(-1, len(vectors))
    # Many features: two passes over a block that is in a cache are faster than a thin product.
    return np.stack([stacks[0] @ vector for vector in vectors], axis=1)


def _sum_of_halves(products: FloatArray, bias: Float64Array) -> Float64Array:
    """Return scores, (n, m), from products with what `_in_precision_of` made."""
    scores = products[:, : len(bias)] + bias
    if products.shape[1] > len(bias):
        scores += products[:, len(bias) :]
    return np.asarray(scores)


def _losses(scores: Float64Array, codes: IntArray) -> tuple[Float64Array, Float64Array]:
    """Return the losses, (n,), and their derivatives by the scores, (n, m)."""
    if scores.shape[1] == 1:
        return _logistic(scores[:, 0], codes)
    every = np.arange(len(scores))
    scores = scores - scores.max(axis=1, keepdims=True)
    powers = np.exp(scores)
    sums = powers.sum(axis=1)
    errors = powers / sums[:, None]
    errors[every, codes] -= 1
    return np.log(sums) - scores[every, codes], errors


def _logistic(scores: Float64Array, codes: IntArray) -> tuple[Float64Array, Float64Array]:
    """Return the losses and derivatives of two classes, from one exponential of -|score|."""
    small = np.abs(scores)
    np.exp(np.negative(small, out=small), out=small)
    losses = np.maximum(scores, 0)
    losses -= codes * scores
    rest = small + 1
    np.copyto(small, 1.0, where=scores >= 0)
    small /= rest
    losses += np.log(rest, out=rest)
    small -= codes
    return losses, small[:, None]
