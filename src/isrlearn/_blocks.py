"""Kernels of stage 1: moments of one block of rows."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from isrlearn._typing import Float64Array, FloatArray, IntArray

BLOCK_BYTES: Final = 2**24  # rows gathered at a time: large enough for BLAS, small beside X


def blocks(members: IntArray, X: FloatArray) -> Iterator[IntArray]:
    """Cut the row numbers `members` into blocks whose rows of X take bounded memory."""
    rows = max(1, BLOCK_BYTES // (X.itemsize * X.shape[1]))
    return (members[start : start + rows] for start in range(0, len(members), rows))


def block_moments(
    block: FloatArray, weights: Float64Array | None, second_order: bool
) -> tuple[float, Float64Array, Float64Array | None]:
    """Return weight, mean and centred scatter of one block of rows.

    The block is centred in its own precision about a provisional mean, which is nearly exact for
    values close to it; what the provisional mean missed is put right in float64.

    Parameters
    ----------
    block : ndarray of shape (n, d)
        Rows, float32 or float64. The d x d product is taken in this precision.
    weights : ndarray of shape (n,) or None
        Positive weights; None for ones.
    second_order : bool
        Whether to compute the scatter.

    Returns
    -------
    weight : float
    mean : ndarray of shape (d,), float64
    scatter : ndarray of shape (d, d), float64, or None
    """
    if weights is None:
        weights = np.ones(len(block))
    largest = weights.max()
    shares = weights / largest  # of order one, so that float32 neither over- nor underflows
    total = float(shares.sum())
    provisional = np.average(block, axis=0, weights=shares).astype(block.dtype)
    centred = block - provisional
    missed = (shares @ centred) / total
    mean = provisional.astype(np.float64) + missed
    if not second_order:
        return total * largest, mean, None
    root = centred * np.sqrt(shares).astype(block.dtype)[:, None]
    with np.errstate(over="ignore", invalid="ignore"):  # the caller looks for what overflowed
        scatter = (root.T @ root).astype(np.float64) - total * np.outer(missed, missed)
    return total * largest, mean, scatter * largest


def largest_values(block: FloatArray) -> Float64Array:
    """Return max |x| of each column, (d,)."""
    return np.asarray(np.maximum(block.max(axis=0), -block.min(axis=0)), dtype=np.float64)
