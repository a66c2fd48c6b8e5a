"""Which pairs of environments ISR-Cov compares (Algorithm 2, step I)."""

from collections.abc import Callable
from itertools import combinations
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.special import chdtrc

from isrlearn._comparison import comparable
from isrlearn._spectra import covariance_difference
from isrlearn._typing import Float64Array, IntArray
from isrlearn.moments import CellMoments

MAX_PAIRS: Final = 190  # all pairs of 20 environments; of more, the most informative
DISTINCT_LEVEL: Final = 0.01


class Pair(NamedTuple):
    """Two environments, by the cells of the classes that both have."""

    first: IntArray
    """(k,) cells of the first environment."""
    second: IntArray
    """(k,) cells of the second environment, of the same classes."""
    precisions: Float64Array
    r"""(k,) :math:`w_1 w_2 / (w_1 + w_2)`, the inverse variance of a difference up to a factor."""
    size: float
    """Largest total variance of these cells: rounding errors are relative to it."""


def choose_pairs(cells: CellMoments, pairs: Any) -> list[Pair]:
    """Return the pairs that the parameter `pairs` asks for.

    Parameters
    ----------
    cells : CellMoments
        Cells with scatters.
    pairs : {"all", "distinct"} or (environment, environment)
        "all": every pair that shares a class, for many environments the most informative.
        "distinct": those whose covariances differ significantly. Or two environments by name.

    Returns
    -------
    list of Pair
        At least one.
    """
    if isinstance(pairs, str) and pairs == "all":
        return _most_informative(cells, _pairs_in_common(cells))
    if isinstance(pairs, str) and pairs == "distinct":
        return _most_informative(cells, _distinct(cells, _pairs_in_common(cells)))
    return [_named_pair(cells, pairs)]


def pair_difference(cells: CellMoments, pair: Pair) -> Float64Array:
    """Return the pooled covariance difference of a pair, (d, d)."""
    return covariance_difference(
        cells.covariances(pair.first),
        cells.covariances(pair.second),
        pair.precisions / pair.precisions.sum(),
    )


def with_spread(cells: CellMoments) -> CellMoments:
    """Leave out cells without spread, such as those of one row: they have no covariance."""
    spread = cells.total_variances() > 0
    if not spread.any():
        raise ValueError(
            "no cell has two rows that differ, so there are no covariances to compare: add rows, "
            "or use coarser environments."
        )
    return cells if spread.all() else comparable(cells.take(spread))


def _pairs_in_common(cells: CellMoments) -> list[Pair]:
    """Return the pairs of environments that share a class."""
    pairs = (_pair(cells, a, b) for a, b in combinations(range(len(cells.environments)), 2))
    return [pair for pair in pairs if len(pair.first)]


def _pair(cells: CellMoments, first: int, second: int) -> Pair:
    a = np.flatnonzero(cells.environment_index == first)
    b = np.flatnonzero(cells.environment_index == second)
    _, in_a, in_b = np.intersect1d(cells.class_index[a], cells.class_index[b], return_indices=True)
    a, b = a[in_a], b[in_b]
    precisions = cells.weights[a] * cells.weights[b] / (cells.weights[a] + cells.weights[b])
    size = cells.total_variances()[np.concatenate([a, b])].max(initial=0.0)
    return Pair(a, b, precisions, float(size))


def _named_pair(cells: CellMoments, pairs: Any) -> Pair:
    labels = cells.environments.tolist()
    named = list(pairs) if isinstance(pairs, tuple | list) else []
    if len(named) != 2 or named[0] == named[1] or any(name not in labels for name in named):
        raise ValueError(
            f"pairs={pairs!r} must be 'all', 'distinct', or two different environments out of "
            f"{labels}."
        )
    pair = _pair(cells, *(labels.index(name) for name in named))
    if len(pair.first) == 0:
        raise ValueError(
            f"pairs={pairs!r}: these environments have no class in common, so their covariances "
            "given the class cannot be compared. Name another pair or use pairs='all'."
        )
    return pair


def _most_informative(cells: CellMoments, pairs: list[Pair]) -> list[Pair]:
    """Keep at most MAX_PAIRS, those with the largest difference for their precision."""
    if len(pairs) <= MAX_PAIRS:
        return pairs
    scores = [-p.precisions.sum() * np.sum(pair_difference(cells, p) ** 2) for p in pairs]
    return [pairs[i] for i in np.argsort(scores, kind="stable")[:MAX_PAIRS]]


def _distinct(cells: CellMoments, pairs: list[Pair]) -> list[Pair]:
    """Keep the pairs whose covariances differ significantly."""
    p_value = _equality_test(cells)
    chosen = [pair for pair in pairs if p_value(pair) < DISTINCT_LEVEL]
    if not chosen:
        raise ValueError(
            "pairs='distinct': no two environments have covariances that differ at level "
            f"{DISTINCT_LEVEL}. Use ISRMean, which needs means only, or pairs='all'."
        )
    return chosen


def _equality_test(cells: CellMoments) -> Callable[[Pair], float]:
    r"""Return the test of equal covariances: :math:`\frac h2 tr(W^{-1}\Delta)^2` as chi-square.

    W is the pooled within-cell covariance, h the precision of the pair. The law holds for Gaussian
    rows. Heavy tails make it reject too often, which keeps a pair that brings only noise: an error
    on the harmless side.
    """
    pooled = np.tensordot(cells.weights, cells.covariances(), axes=1) / cells.weights.sum()
    values, vectors = eigh(pooled)
    used = values > values[-1] * len(values) * np.finfo(np.float64).eps
    root = vectors[:, used] / np.sqrt(values[used])
    n_entries = root.shape[1] * (root.shape[1] + 1) / 2

    def p_value(pair: Pair) -> float:
        whitened = root.T @ pair_difference(cells, pair) @ root
        return float(chdtrc(n_entries, pair.precisions.sum() / 2 * np.sum(whitened**2)))

    return p_value
