r"""The logistic loss: value, gradient and curvature, with weights, for two classes or more.

Two classes have one vector of weights and the logistic loss; k > 2 have k vectors and the softmax,
as in scikit-learn. All is summed over rows, so that blocks of rows add up.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from scipy.special import expit, softmax

from isrlearn.heads._row_weights import GroupFactors
from isrlearn.moments import blocks_of_stacks, in_stacks, whole_stacks
from isrlearn.rows import Rows
from isrlearn.typing import Float64Array, FloatArray, IntArray

LOSS_BYTES: Final = 2**23  # read from memory once: scores and gradient are both taken of a block
FEW_VECTORS: Final = 2
MOST_SCORES: Final = 2**13  # more are memory that the system fills with zeros for each block

LabelsOf = Callable[[slice], tuple[IntArray, Float64Array | None]]


@dataclass(frozen=True, eq=False)
class Loss:
    r"""The sum :math:`\sum_i \omega_i \ell_i` over rows, and its derivatives.

    Parameters
    ----------
    value : float
        The sum.
    coef : ndarray of shape (m, d)
        Derivatives by the weights.
    bias : ndarray of shape (m,)
        Derivatives by the bias.
    """

    value: float
    coef: Float64Array
    bias: Float64Array

    def __add__(self, other: "Loss") -> "Loss":
        """Return the loss of the rows of both."""
        return Loss(self.value + other.value, self.coef + other.coef, self.bias + other.bias)


def losses_of(scores: FloatArray, codes: Any) -> tuple[Any, Any]:
    """Return the loss of each row, (n,), and its derivatives by the scores, (n, m).

    Parameters
    ----------
    scores : ndarray of shape (n, m)
        m = 1 for two classes, else the number of classes.
    codes : ndarray of shape (n,)
        Class of each row.
    """
    if scores.shape[1] == 1:  # from one exponential of -|score|
        score = scores[:, 0]
        small = np.abs(score)
        np.exp(np.negative(small, out=small), out=small)
        losses = np.maximum(score, 0)
        losses -= codes * score
        rest = small + 1
        np.copyto(small, 1.0, where=score >= 0)
        small /= rest
        losses += np.log(rest, out=rest)
        small -= codes
        return losses, small[:, None]
    every = np.arange(len(scores))
    scores = scores - scores.max(axis=1, keepdims=True)
    powers = np.exp(scores)
    sums = powers.sum(axis=1)
    errors = powers / sums[:, None]
    errors[every, codes] -= 1
    return np.log(sums) - scores[every, codes], errors


def shares_of(scores: FloatArray) -> Any:
    """Return the probabilities, (n, m): of the second class alone where there are two."""
    return np.asarray(expit(scores) if scores.shape[-1] == 1 else softmax(scores, axis=-1))


def bent(shares: FloatArray, along: FloatArray) -> Any:
    r"""Return the second derivatives by the scores times a vector of each row, (n, m)."""
    if shares.shape[-1] == 1:
        return shares * (1 - shares) * along
    moved = shares * along
    return moved - shares * moved.sum(axis=-1, keepdims=True)


def curvature_of(
    columns: Float64Array, shares: Float64Array, weights: Float64Array
) -> Float64Array:
    """Return the second derivatives of the weighted sum of losses, (m p, m p).

    Parameters
    ----------
    columns : ndarray of shape (n, p)
        Rows, with a column of ones if there is a bias.
    shares : ndarray of shape (n, m)
        Probabilities.
    weights : ndarray of shape (n,)
        Weights of the rows.
    """
    m, p = shares.shape[1], columns.shape[1]
    found = np.empty((m, p, m, p))
    for a in range(m):
        for b in range(a, m):
            bend = shares[:, a] * (float(a == b) - shares[:, b])
            block = (columns * (weights * bend)[:, None]).T @ columns
            found[a, :, b], found[b, :, a] = block, block.T
    return found.reshape(m * p, m * p)


def loss_of(X: FloatArray, labels_of: LabelsOf, coef: Float64Array, bias: Float64Array) -> Loss:
    """Return the loss of rows whose labels are looked up block by block.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features, in double or single precision: products keep it.
    labels_of : callable
        Classes and weights, or None, of a slice of the rows.
    coef, bias : ndarray of shape (m, d) and (m,)
        The head.
    """
    value, by_coef, by_bias = 0.0, np.zeros_like(coef), np.zeros_like(bias)
    vectors = coef
    if X.dtype != np.float64:  # what single precision holds, and the rest
        held = coef.astype(X.dtype)
        vectors = np.vstack([held, (coef - held).astype(X.dtype)])
    # Blocks that stay in a cache, as what is made of them does.
    rows = whole_stacks(min(MOST_SCORES, LOSS_BYTES // (X.itemsize * X.shape[1])))
    for own in blocks_of_stacks(len(X), rows):
        stacks, (codes, weights) = in_stacks(X[own]), labels_of(own)
        products = _products(stacks, vectors)
        scores: Float64Array = np.asarray(products[:, : len(bias)] + bias)
        if products.shape[1] > len(bias):
            scores += products[:, len(bias) :]
        losses, errors = losses_of(scores, codes)
        if weights is not None:
            losses *= weights
            errors *= weights[:, None]
        turned = errors.astype(X.dtype).reshape(*stacks.shape[:2], -1).swapaxes(1, 2)
        value += float(losses.sum())
        by_coef += (turned @ stacks).sum(axis=0, dtype=np.float64)
        by_bias += errors.sum(axis=0)
    return Loss(value, by_coef, by_bias)


def _products(stacks: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return products of rows, in stacks, with vectors, (n, len(vectors))."""
    if len(stacks) > 1 or len(vectors) > FEW_VECTORS:
        return np.asarray(stacks @ vectors.T).reshape(-1, len(vectors))
    # Many features: two passes over a block that is in a cache are faster than a thin product.
    return np.stack([stacks[0] @ vector for vector in vectors], axis=1)


@dataclass(frozen=True, eq=False)
class AddLoss:
    """The pass that adds up the loss of a head.

    Parameters
    ----------
    factors : GroupFactors
        Weights of the rows, and the classes.
    coef, bias : ndarray of shape (m, d) and (m,)
        The head on the rows as they are.
    """

    title: ClassVar = "Head"
    factors: GroupFactors
    coef: Float64Array
    bias: Float64Array

    def __call__(self, rows: Rows) -> Loss:
        """Return the loss of a chunk."""
        return loss_of(rows.X, self.factors.labels_of(rows), self.coef, self.bias)


@dataclass(frozen=True, eq=False)
class Sample:
    """Some of the rows.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features.
    codes : ndarray of shape (n,)
        Class of each among all classes.
    weights : ndarray of shape (n,)
        Weights.
    """

    X: FloatArray
    codes: IntArray
    weights: Float64Array

    def __add__(self, other: "Sample") -> "Sample":
        """Return the rows of both."""
        return Sample(
            np.concatenate([self.X, other.X]),
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.weights, other.weights]),
        )


@dataclass(frozen=True, eq=False)
class TakeSample:
    """The pass that takes every so manyth row of each chunk.

    Parameters
    ----------
    factors : GroupFactors
        Weights of the rows, and the classes.
    every : int
        One row out of so many.
    """

    title: ClassVar = "Sample"
    factors: GroupFactors
    every: int

    def __call__(self, rows: Rows) -> Sample:
        """Return the sample of a chunk."""
        first = zlib.crc32(rows.X[0].tobytes()) % self.every if self.every > 1 else 0
        chosen = slice(min(first, len(rows.X) - 1), None, self.every)
        codes, weights = self.factors.labels_of(rows)(chosen)
        ones = np.ones(len(codes))
        return Sample(rows.X[chosen].copy(), codes, ones if weights is None else weights)
