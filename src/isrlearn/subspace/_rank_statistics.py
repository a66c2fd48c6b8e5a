"""Statistics of the tests of the rank, of the data and of nulls at once."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from scipy.stats import rankdata

from isrlearn.moments import FEW_COORDINATES
from isrlearn.typing import Float64Array

AKAIKE: Final = 2.0  # that a parameter must explain


TIE: Final = 1e-3  # of standardised statistics: nulls are in single precision


MOSTLY: Final = 0.9  # quantile of chance that counts as nothing left


EQUAL: Final = 1e-5  # relative spread of statistics that differ by rounding only


LEAST_SIZE: Final = 1e-8


def mean_scores(means: Sequence[Float64Array], removed: Float64Array) -> Float64Array:
    """Return the standardised statistic of the means, (1 + B,).

    It is the larger of two: the leading eigenvalue of the scatter that is left, which is strong
    against one direction, and its trace, which is strong against many.

    Parameters
    ----------
    means : sequence of ndarray of shape (..., m, q)
        Together 1 + B: the data, then the nulls.
    removed : ndarray of shape (r, q)
        Directions, independent rows.
    """
    basis = np.linalg.qr(removed.T)[0]
    n_cells, q = means[0].shape[1:]
    inside = np.concatenate([part @ basis for part in means])
    if n_cells <= q:  # products of cells: the coordinates are gone at once
        all_of_it = np.concatenate([_gram(part) for part in means])
        scatter = all_of_it - _gram(inside)
        gone = _used_up_contrasts(
            inside[0], all_of_it, lambda c: np.einsum("ic,bij,jc->bc", c, scatter, c), q
        )
        keep = np.eye(n_cells) - gone @ gone.T
        scatter = keep @ scatter @ keep
    else:  # products of coordinates: with thousands of cells those of cells would fill the memory
        rows = np.concatenate(means)
        all_of_it, rest = _gram(np.swapaxes(rows, 1, 2)), rows - inside @ basis.T
        gone = _used_up_contrasts(
            inside[0], all_of_it, lambda c: np.sum((c.T @ rest) ** 2, axis=-1), q
        )
        scatter = _gram(np.swapaxes(rest - gone @ (gone.T @ rest), 1, 2))
    leading = np.linalg.eigvalsh(scatter)[:, -1]
    trace = np.trace(scatter, axis1=1, axis2=2).copy()
    squares = np.trace(all_of_it, axis1=1, axis2=2)
    nothing_left = trace <= EQUAL**2 * squares  # but rounding errors
    leading[nothing_left] = trace[nothing_left] = 0.0
    # The cube root of a sum of squares is nearly normal (Wilson and Hilferty).
    return np.asarray(standardise(np.cbrt(np.stack([leading, trace], axis=1))).max(axis=1))


def _gram(rows: Float64Array) -> Float64Array:
    """Return products of rows with rows, (..., m, m)."""
    return np.asarray(rows @ np.swapaxes(rows, -1, -2))


def _used_up_contrasts(
    inside: Float64Array,
    before: Float64Array,
    left: Callable[[Float64Array], Float64Array],
    n_coordinates: int,
) -> Float64Array:
    """Return contrasts, orthonormal columns (m, c), which strong directions have used up.

    A direction that is removed takes along the noise of its own contrast, and the data are left
    with less of it than the nulls: by Bartlett's count (q - r)(m - r) degrees of freedom, not
    (q - r)m. Contrasts that stand out from all nulls, and of which nothing is left, are taken from
    both. In few coordinates this is not done: there is power to spare, and errors cost more.

    Parameters
    ----------
    inside : ndarray of shape (m, r)
        The data along the removed directions.
    before : ndarray of shape (1 + B, m, m) or (1 + B, q, q)
        Products of cells or of coordinates, of the data first and then of the nulls.
    left : callable
        Returns the squares, (1 + B, c), that are left of contrasts after removal.
    n_coordinates : int
        Number of coordinates q.
    """
    if n_coordinates <= FEW_COORDINATES:
        return np.empty((len(inside), 0))
    contrasts, size, _ = np.linalg.svd(inside, full_matrices=False)
    contrasts = contrasts[:, size**2 > np.linalg.eigvalsh(before[1:])[:, -1].max()]
    rest = left(contrasts)
    return np.asarray(contrasts[:, rest[0] <= np.quantile(rest[1:], MOSTLY, axis=0)])


def partial_traces(differences: Float64Array) -> Float64Array:
    r"""Return :math:`\max_U \mathrm{tr}(U^T D_a U)/\sqrt b` for b = 1, ..., q: shape (1 + B, q).

    :math:`D_a = \sum_e a_e D_e` is the contrast of environments that differs most. The best U of
    b columns has its b largest eigenvalues, of one sign. From b = 1, the leading eigenvalue, to
    b = q, the trace, this is strong against a change that b directions have in common.

    Parameters
    ----------
    differences : ndarray of shape (1 + B, E, q, q)
        The data, then the nulls.
    """
    values = np.linalg.eigvalsh(contrast(differences))
    roots = np.sqrt(np.arange(1, values.shape[1] + 1))
    up, down = np.cumsum(values[:, ::-1], axis=1), np.cumsum(-values, axis=1)
    return np.asarray(np.maximum(up, down) / roots)


def standardise(statistics: Float64Array) -> Float64Array:
    """Put statistics, (1 + B, ...), on one scale.

    The data take part in mean and spread as each null does: otherwise they would stand out by
    being left out, and the test would not be exact. Statistics that are all the same, but for
    rounding, become zero: the permutations then change nothing.
    """
    spread, mean = statistics.std(axis=0), statistics.mean(axis=0)
    centred, differ = statistics - mean, spread > EQUAL * np.abs(mean)
    return np.asarray(np.divide(centred, spread, out=np.zeros_like(centred), where=differ))


def p_value(statistics: Float64Array) -> float:
    """Return the share of all, the data included, that are as large as the data.

    Examples
    --------
    >>> import numpy as np
    >>> p_value(np.array([3.0, 1.0, 2.0, 0.0]))
    0.25
    """
    return float(np.mean(statistics >= statistics[0] - TIE))


def more_extreme(scores: list[Float64Array]) -> float:
    """Return the p-value of the smallest p-value of several statistics, (1 + B,) each.

    By ranks: of standardised statistics the one with the heaviest tails would drown the others.
    Equal ranks are told apart by the statistics, so that the least p-value is 1 / (1 + B).
    """
    if not scores:
        return 1.0
    rank = np.max([rankdata(np.round(score / TIE), method="max") for score in scores], axis=0)
    largest = np.max(scores, axis=0)
    as_extreme = (rank > rank[0]) | ((rank == rank[0]) & (largest >= largest[0] - TIE))
    return float(np.mean(as_extreme))


def contrast(differences: Float64Array) -> Float64Array:
    """Return the contrast of environments that differs most, (1 + B, q, q); its sign is free."""
    n_environments, q = differences.shape[1:3]
    flat = differences.reshape(len(differences), n_environments, -1)
    if n_environments <= q * q:
        weights = np.linalg.eigh(_gram(flat))[1][:, :, -1]
        return np.asarray(np.einsum("be,beij->bij", weights, differences))
    values, vectors = np.linalg.eigh(_gram(np.swapaxes(flat, 1, 2)))
    leading = np.sqrt(np.maximum(values[:, -1:], 0)) * vectors[:, :, -1]
    return np.asarray(leading.reshape(-1, q, q))


def complement(rows: Float64Array) -> Float64Array:
    """Return an orthonormal basis, as rows, of what is orthogonal to some rows."""
    if len(rows) == 0:
        return np.eye(rows.shape[1])
    _, size, basis = np.linalg.svd(rows)
    return np.asarray(basis[int(np.sum(size > LEAST_SIZE)) :])


def block_size(traces: Float64Array) -> int:
    r"""Return how many directions share the change, from their partial traces :math:`t_b`.

    A change by one factor in b of q directions has :math:`b(q - b)` parameters, those of the
    subspace, and explains :math:`t_b^2`. The best b is that of Akaike's criterion, with
    the restriction that more directions never cost less: else noise would often take nearly all.
    """
    sizes = np.arange(1, len(traces) + 1)
    parameters = np.maximum.accumulate(sizes * (len(traces) - sizes))
    return 1 + int(np.argmax(traces**2 - AKAIKE * parameters))
