"""What heads add up over the rows: their loss, and a sample to start from."""

import zlib
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from isrlearn.heads._row_weights import GroupFactors
from isrlearn.heads._slopes import Slope, slope_by_block
from isrlearn.rows import Rows
from isrlearn.typing import Float64Array, FloatArray


@dataclass(frozen=True, eq=False)
class AddSlopes:
    """Logistic loss of a head and its slope.

    Parameters
    ----------
    factors : GroupFactors
        Weights of the rows, and the classes.
    coef : ndarray of shape (m, d)
        Weights of the head on the rows as they are.
    bias : ndarray of shape (m,)
        Its bias.
    """

    title: ClassVar = "Head"
    factors: GroupFactors
    coef: Float64Array
    bias: Float64Array

    def __call__(self, rows: Rows) -> Slope:
        """Return the slope of a chunk."""
        labels = self.factors.labels_of(rows)
        return slope_by_block(rows.X, labels.__getitem__, self.coef, self.bias)


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
    codes: Any
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
    """Every so manyth row of each chunk.

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
        first = min(first, len(rows.X) - 1)
        chosen = slice(first, None, self.every)
        codes, weights = self.factors.labels_of(rows)[chosen]
        ones = np.ones(len(codes))
        return Sample(rows.X[chosen].copy(), codes, ones if weights is None else weights)
