"""Kernels of stage 1: moments of one block of rows."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from isrlearn._typing import Float64Array, FloatArray, IntArray

BLOCK_BYTES: Final = 2**24  # rows gathered at a time: large enough for BLAS, small beside X
ROWS_FOLDED: Final = 64
FEW_COLUMNS: Final = 64


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
    folded = _folded(block)
    largest = np.maximum(folded.max(axis=0), -folded.min(axis=0))
    if folded is not block:
        largest = largest.reshape(ROWS_FOLDED, -1).max(axis=0)
        largest = np.maximum(largest, np.abs(block[-ROWS_FOLDED:]).max(axis=0))
    return np.asarray(largest, dtype=np.float64)


def _folded(block: FloatArray) -> FloatArray:
    """Return many rows of few columns as fewer, longer rows; the last ones may be left out.

    Along columns NumPy goes row by row, which is slow where a row has few entries.
    """
    n_folded = len(block) // ROWS_FOLDED
    if n_folded < ROWS_FOLDED or block.shape[1] > FEW_COLUMNS or not block.flags.c_contiguous:
        return block
    return block[: n_folded * ROWS_FOLDED].reshape(n_folded, -1)
