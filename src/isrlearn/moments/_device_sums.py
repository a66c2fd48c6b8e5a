"""Kernels of moments for rows that live on an accelerator: only sums come to the host.

Rows may be of any library with the functions of the array API (torch, CuPy, JAX). They are read in
blocks where they are; products keep the precision of the rows (in torch, that which is set by
`torch.set_float32_matmul_precision`), sums over blocks are taken in double precision on the host.
"""

from typing import Any, Final

import numpy as np

from isrlearn.rows import block_rows_on_device, namespace, summed, taken, to_device
from isrlearn.typing import Float64Array, IntArray

SAMPLE: Final = 1024  # most rows of a cell whose mean is the provisional one


MOST_BITS: Final = 100  # of a unit, so that float32 holds it and its inverse


def device_moments(
    X: Any, codes: IntArray, n_cells: int, weights: Float64Array | None, second_order: bool
) -> tuple[Float64Array, Float64Array, Float64Array | None, Float64Array]:
    """Return the moments of rows that stay on their device; all results are on the host.

    Parameters
    ----------
    X : array of shape (n, d)
        Rows, float32 or float64, of any library with the array API.
    codes : ndarray of shape (n,)
        Cell of each row; `n_cells` for a row of none. A value that is not finite in any row makes a
        mean that is not finite.
    n_cells : int
        Number of cells m, each of which has a row.
    weights : ndarray of shape (n,) or None
        Positive weights; None for ones.
    second_order : bool
        Whether scatters are wanted.

    Returns
    -------
    weights : ndarray of shape (m,)
    means : ndarray of shape (m, d)
    scatters : ndarray of shape (m, d, d) or None
    largest : ndarray of shape (d,)
        Largest absolute value of each column in the rows of the cells.
    """
    X = X.detach() if hasattr(X, "detach") else X  # torch: no gradients of sums
    d, order = X.shape[1], np.argsort(codes, kind="stable")
    *cells, others = np.split(order, np.cumsum(np.bincount(codes, minlength=n_cells + 1))[:-1])
    totals, means, largest = np.zeros(n_cells), np.zeros((n_cells, d)), np.zeros(d)
    scatters = np.zeros((n_cells, d, d)) if second_order else None
    # Where the "device" is a CPU, NumPy would warn of what the caller looks for.
    with np.errstate(over="ignore", invalid="ignore"):
        for cell, members in enumerate(cells):
            scatter = None if scatters is None else scatters[cell]
            totals[cell], means[cell], own = _cell(X, members, weights, scatter)
            largest = np.maximum(largest, own)
        if len(others):  # rows of no cell say only whether they are finite
            means += 0.0 * _cell(X, others, None, None)[1]
    return totals, means, scatters, largest


def _cell(
    X: Any, members: IntArray, weights: Float64Array | None, scatter: Float64Array | None
) -> tuple[float, Float64Array, Float64Array]:
    """Return weight, mean and largest values of some rows; add their scatter to zeros."""
    xp, (units, provisional) = namespace(X), _start(X, members)
    if weights is not None and scatter is not None:  # rows of little weight may lie anywhere
        provisional = _cell(X, members, weights, None)[1] / units
    unit = 1.0 if weights is None else float(weights[members].max())
    total, missed, largest = 0.0, np.zeros(len(units)), np.zeros(len(units))
    scale, centre = to_device(1 / units, X), to_device(provisional, X)
    for rows in np.array_split(members, -(-len(members) // block_rows_on_device(X))):
        values = taken(X, rows)
        largest = np.maximum(largest, summed(xp.max(xp.abs(values), axis=0)))
        values = values * scale - centre
        shares = np.ones(len(rows)) if weights is None else weights[rows] / unit
        total += float(shares.sum())
        weighted = values if weights is None else values * to_device(shares[:, None], X)
        missed += summed(xp.sum(weighted, axis=0))
        if scatter is not None:
            scatter += summed(xp.matmul(values.T, weighted))
    missed /= total
    if scatter is not None:
        scatter -= np.outer(total * missed, missed)
        scatter += scatter.T.copy()  # a device may add up the two triangles in different orders
        scatter *= np.outer(0.5 * unit * units, units)
    # What was subtracted is the provisional mean as the device rounds it.
    return total * unit, units * (summed(centre) + missed), largest


def _start(X: Any, members: IntArray) -> tuple[Float64Array, Float64Array]:
    """Return a unit of each column, (d,), and the mean of some rows in these units.

    The units are powers of two: nothing is rounded, and no square leaves the range of float32.
    """
    every = -(-len(members) // SAMPLE)  # from all over the cell: rows may be sorted
    xp, sample = namespace(X), taken(X, members[::every])
    exponents = np.frexp(summed(xp.max(xp.abs(sample), axis=0)))[1]
    units = np.ldexp(1.0, exponents.clip(-MOST_BITS, MOST_BITS))
    return units, summed(xp.mean(sample * to_device(1 / units, X), axis=0))
