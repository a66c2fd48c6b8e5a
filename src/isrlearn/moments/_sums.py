"""Kernels of stage 1: weight, mean and centred scatter of rows, block by block.

Rows are read once, in blocks that stay in a cache; X is never copied as a whole. Up to 256 features
all sums are taken in double precision, and how rows are cut into blocks changes nothing that
matters. Beyond, the d x d products are most of the work, and rows in single precision keep theirs:
products of a block in single, sums over blocks in double.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from isrlearn.rows import WIDE, block_rows
from isrlearn.typing import Float64Array, FloatArray, IntArray

BLOCK_BYTES: Final = 2**22  # of a block: what a cache holds
ROWS_OF_STACK: Final = 128  # a product that no thread would be started for, by an old BLAS too
FEW_CELLS: Final = 32  # whose means are one product with their indicators
FAR: Final = 16.0  # spreads between mean and zero beyond which sums in single precision lose digits
SAMPLE: Final = 256
LARGEST_IN_SINGLE: Final = 1e15  # what can be squared and summed in float32
SMALLEST_IN_SINGLE: Final = 1e-15
SMALLEST_OF_SINGLE: Final = 1e-30  # whose inverse is a number of float32
LOOKED_AT: Final = 4  # of many features, the largest values of every fourth block
PANEL: Final = 256
ROWS_FOLDED: Final = 64
FEW_COLUMNS: Final = 64


class CellSums(NamedTuple):
    """Moments of the rows of one cell."""

    weight: float
    mean: Float64Array
    """(d,)"""
    largest: Float64Array
    """(d,) max |x| of each column."""


class CellMeans(NamedTuple):
    """Weights and means of m cells, from one pass over all rows."""

    weights: Float64Array
    """(m,)"""
    means: Float64Array
    """(m, d)"""
    largest: Float64Array
    """(d,)"""


def whole_stacks(n_rows: int) -> int:
    """Return a number of rows, one at least; of many, as many as fill the stacks of `in_stacks`.

    Parameters
    ----------
    n_rows : int
        Rows.
    """
    return max(n_rows - n_rows % ROWS_OF_STACK, min(n_rows, ROWS_OF_STACK), 1)


def blocks_of_stacks(n_rows: int, rows: int) -> Iterator[slice]:
    """Yield blocks of whole stacks, and at last the rows that fill none.

    Parameters
    ----------
    n_rows : int
        Rows in all.
    rows : int
        Rows of a block.
    """
    whole = n_rows - n_rows % ROWS_OF_STACK
    for start in range(0, whole, rows):
        yield slice(start, min(start + rows, whole))
    if whole < n_rows:
        yield slice(whole, n_rows)


def cell_sums(
    X: FloatArray,
    members: IntArray,
    weights: Float64Array | None,
    scatter: Float64Array | None,
) -> CellSums:
    r"""Return weight and mean of some rows, and add up their centred scatter.

    Every block is centred about the mean p of the first, which is nearly exact for values close to
    it; with weights about the weighted mean of all, from a pass of its own, for rows of little
    weight may lie anywhere. What p missed, :math:`\delta`, is put right once, in double precision:
    :math:`S = \sum_i w_i (x_i - p)(x_i - p)^T - w\,\delta\delta^T`.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows, float32 or float64.
    members : ndarray of shape (n_members,)
        Which of them, at least one.
    weights : ndarray of shape (n,) or None
        Positive weights; None for ones.
    scatter : ndarray of shape (d, d) or None
        Zeros, in which the scatter is put; None if only the mean is wanted.

    Returns
    -------
    CellSums
    """
    unit = 1.0 if weights is None else float(weights[members].max())
    d, total, missed = X.shape[1], 0.0, np.zeros(X.shape[1])
    largest = np.zeros(d)
    provisional: FloatArray | None = None
    if weights is not None and scatter is not None:
        provisional = cell_sums(X, members, weights, None).mean
    for block in _gathered(X, members):
        values = block.values
        largest = np.maximum(largest, block.largest)
        if provisional is None:
            with np.errstate(over="ignore", invalid="ignore"):
                provisional = values.mean(axis=0)
        with np.errstate(invalid="ignore"):  # infinite values: the caller looks for them
            values -= provisional.astype(values.dtype)
        # Weights of order one, so that float32 neither over- nor underflows.
        shares = None if weights is None else weights[block.rows] / unit
        total += len(values) if shares is None else float(shares.sum())
        ones = np.ones(len(values), values.dtype) if shares is None else shares.astype(values.dtype)
        stacks = in_stacks(values)
        missed += (ones.reshape(len(stacks), 1, -1) @ stacks).sum(axis=(0, 1))
        if scatter is not None:
            if shares is not None:
                values *= np.sqrt(ones)[:, None]
            # NumPy multiplies one triangle and mirrors it. SciPy's BLAS could add in place, but its
            # threads would wait for those of NumPy's, which spin for a while after each product.
            with np.errstate(over="ignore", invalid="ignore"):  # the caller looks for overflow
                scatter += values.T @ values
    missed /= total
    if scatter is not None:
        # What the provisional mean missed is taken out in panels, without a d x d matrix.
        with np.errstate(over="ignore", invalid="ignore"):  # the caller looks for what overflowed
            for start in range(0, d, PANEL):
                own = slice(start, start + PANEL)
                scatter[own] -= np.outer(total * missed[own], missed)
                scatter[own] *= unit
    centre = np.zeros(d) if provisional is None else provisional.astype(values.dtype)
    with np.errstate(invalid="ignore"):  # the caller looks for what is not finite
        return CellSums(total * unit, centre.astype(np.float64) + missed, largest)


def cell_means(
    X: FloatArray, codes: IntArray, n_cells: int, weights: Float64Array | None
) -> CellMeans:
    """Return weights and means of all cells at once: rows are read where they are, none is moved.

    The sum over the rows of a cell is the product of its indicator with X.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows, float32 or float64.
    codes : ndarray of shape (n,)
        Cell of each row; `n_cells` for a row of none. A value that is not finite in any row makes a
        mean that is not finite.
    n_cells : int
        Number of cells m.
    weights : ndarray of shape (n,) or None
        Positive weights; None for ones.

    Returns
    -------
    CellMeans
    """
    sample = X[:SAMPLE]
    double = X.dtype == np.float64 or X.shape[1] <= WIDE or _extreme(sample)
    if not double:  # sums in single precision lose digits far from zero
        double = bool(np.any(np.abs(sample.mean(axis=0)) > FAR * sample.std(axis=0)))
    found = _cell_means(X, codes, n_cells, weights, double)
    if not np.isfinite(found.means).all():  # perhaps in single precision only
        found = _cell_means(X, codes, n_cells, weights, True)
    return found


def _cell_means(
    X: FloatArray, codes: IntArray, n_cells: int, weights: Float64Array | None, double: bool
) -> CellMeans:
    dtype = np.dtype(np.float64) if double else X.dtype
    unit = 1.0 if weights is None else float(weights.max())
    sums, totals = np.zeros((n_cells + 1, X.shape[1])), np.zeros(n_cells + 1)
    largest = np.zeros(X.shape[1])
    sum_block = _StackedSums(X, n_cells + 1, dtype)
    with np.errstate(over="ignore", invalid="ignore"):  # the caller looks for what overflowed
        for number, own in enumerate(blocks_of_stacks(len(X), sum_block.rows)):
            shares = None if weights is None else weights[own] / unit
            totals += np.bincount(codes[own], shares, n_cells + 1)
            sums += sum_block(X[own], codes[own], shares)
            if X.shape[1] <= WIDE or number % LOOKED_AT == 0:
                largest = np.maximum(largest, largest_values(X[own]))
        sums[:-1] += 0.0 * sums[-1]  # rows of no cell say only whether they are finite
    return CellMeans(totals[:-1] * unit, sums[:-1] / totals[:-1, None], largest)


def in_stacks(block: FloatArray) -> FloatArray:
    """Return a block as a stack of products to take, (k, s, d): few rows each, or all at once.

    A product of many rows of few features would be shared out to threads, which cost more than they
    save there, and at times many times more.

    Parameters
    ----------
    block : ndarray of shape (n, d)
        Rows.
    """
    n_rows, d = block.shape
    stack = ROWS_OF_STACK if d <= WIDE and n_rows % ROWS_OF_STACK == 0 else n_rows
    return block.reshape(-1, stack, d)


class _StackedSums:
    """Sums of the rows of each cell in a block: products of indicators with rows.

    Buffers are used again: memory that is asked for anew is filled with zeros by the system first.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        All rows.
    n_cells : int
        Number of cells m.
    dtype : dtype
        Precision of the products.
    """

    def __init__(self, X: FloatArray, n_cells: int, dtype: np.dtype[Any]) -> None:
        self.rows = whole_stacks(max(ROWS_OF_STACK, BLOCK_BYTES // (X.shape[1] * X.itemsize)))
        self.cells = np.arange(n_cells, dtype=np.min_scalar_type(n_cells))[:, None]
        used = min(self.rows, len(X))
        self.converted = None if X.dtype == dtype else np.empty((used, X.shape[1]), dtype)
        self.indicators = np.empty(used * n_cells, dtype)

    def __call__(
        self, block: FloatArray, codes: IntArray, shares: Float64Array | None
    ) -> Float64Array:
        """Return the sums of a block, (m, d)."""
        stacks = in_stacks(block if self.converted is None else _as_type(block, self.converted))
        k, rows = stacks.shape[:2]
        indicators = self.indicators[: len(block) * len(self.cells)].reshape(k, -1, rows)
        np.equal(codes.reshape(k, 1, rows), self.cells, out=indicators)
        if shares is not None:
            indicators *= shares.reshape(k, 1, rows).astype(indicators.dtype)
        return np.asarray((indicators @ stacks).sum(axis=0, dtype=np.float64))


def mapped(X: FloatArray, matrix: Float64Array) -> FloatArray:
    """Return the product of rows with a matrix, (n, p): up to 256 features in double precision.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.
    matrix : ndarray of shape (d, p)
        The matrix.
    """
    double = X.shape[1] <= WIDE or X.dtype == np.float64
    dtype = np.dtype(np.float64) if double else X.dtype
    matrix = matrix.astype(dtype)
    result = np.empty((len(X), matrix.shape[1]), dtype)
    rows = whole_stacks(BLOCK_BYTES // (X.shape[1] * X.itemsize))
    for start in range(0, len(X), rows):
        own = slice(start, start + rows)
        np.matmul(X[own].astype(dtype, copy=False), matrix, out=result[own])
    return result


class _Block(NamedTuple):
    rows: IntArray
    values: FloatArray
    largest: Float64Array


def _gathered(X: FloatArray, members: IntArray) -> Iterator[_Block]:
    """Yield the rows of a cell in blocks, in a buffer of their own and a precision that is safe."""
    d, size = X.shape[1], X.itemsize
    step = whole_stacks(BLOCK_BYTES // (d * size)) if d <= WIDE else block_rows(d, size)
    step = min(step, len(members))
    buffer = np.empty((step, X.shape[1]), X.dtype)
    sample = X[members[:SAMPLE]]
    double = X.dtype != np.float64 and (X.shape[1] <= WIDE or _extreme(sample))
    wide = np.empty(buffer.shape) if double else None
    for start in range(0, len(members), step):
        rows = members[start : start + step]
        # "clip" lets NumPy write to the buffer without one of its own; members are in range.
        values = np.take(X, rows, axis=0, out=buffer[: len(rows)], mode="clip")
        yield _Block(rows, _as_type(values, wide), largest_values(values))


def _as_type(block: FloatArray, buffer: FloatArray | None) -> FloatArray:
    """Return a block in the precision of a buffer, there; None leaves it as it is."""
    if buffer is None:
        return block
    converted = buffer[: len(block)]
    converted[...] = block
    return converted


def _extreme(sample: FloatArray) -> bool:
    """Whether squares of such values leave the range of float32."""
    largest = float(np.abs(sample).max(initial=0.0))
    return not SMALLEST_IN_SINGLE < largest < LARGEST_IN_SINGLE


def largest_values(block: FloatArray) -> Float64Array:
    """Return max |x| of each column, (d,)."""
    # Along columns NumPy goes row by row, which is slow where a row has few entries: many rows of
    # few columns are read as fewer, longer rows, and the last ones again.
    folded, n_folded = block, len(block) // ROWS_FOLDED
    few = block.shape[1] <= FEW_COLUMNS and block.flags.c_contiguous
    if n_folded >= ROWS_FOLDED and few:
        folded = block[: n_folded * ROWS_FOLDED].reshape(n_folded, -1)
    largest = np.maximum(folded.max(axis=0), -folded.min(axis=0))
    if folded is not block:
        largest = largest.reshape(ROWS_FOLDED, -1).max(axis=0)
        largest = np.maximum(largest, np.abs(block[-ROWS_FOLDED:]).max(axis=0))
    return np.asarray(largest, dtype=np.float64)


def in_safe_precision(X: FloatArray) -> FloatArray:
    """Return rows in double precision where squares, or weights, leave the range of float32."""
    if X.dtype == np.float64:
        return X
    largest = largest_values(X)
    used = largest[largest > 0]
    fits = np.all((used > SMALLEST_OF_SINGLE) & (used < LARGEST_IN_SINGLE))
    return X if fits else X.astype(np.float64)
