"""Which pairs of environments ISR-Cov compares (Algorithm 2, step I)."""

from collections.abc import Callable
from itertools import combinations
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.special import chdtrc

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


def only_cells_of(cells: CellMoments, pairs: list[Pair]) -> tuple[CellMoments, list[Pair]]:
    """Return the cells that some pairs compare, and the same pairs among these."""
    members = np.unique([cell for pair in pairs for cell in (*pair.first, *pair.second)])
    moved = [
        Pair(np.searchsorted(members, first), np.searchsorted(members, second), precisions)
        for first, second, precisions in pairs
    ]
    return cells.take(np.isin(np.arange(len(cells.means)), members)), moved


def pair_difference(cells: CellMoments, pair: Pair) -> Float64Array:
    r"""Return the pooled covariance difference of a pair, (d, d) (Algorithm 2, step I).

    :math:`\Delta\Sigma = \sum_c \omega_c (\Sigma_{c,e_1} - \Sigma_{c,e_2})`, with class weights
    that are the same for both environments: a change in the class proportions alone makes no
    difference.
    """
    shares = pair.precisions / pair.precisions.sum()
    difference = np.zeros((cells.n_features, cells.n_features))
    for share, first, second in zip(shares, pair.first, pair.second, strict=True):
        for cell, sign in ((first, 1.0), (second, -1.0)):
            difference += (sign * share / cells.weights[cell]) * cells.known_scatters()[cell]
    return difference


def _pairs_in_common(cells: CellMoments) -> list[Pair]:
    """Return the pairs of environments that share a class."""
    pairs = (_pair(cells, a, b) for a, b in combinations(range(len(cells.environments)), 2))
    return [pair for pair in pairs if len(pair.first)]


def _pair(cells: CellMoments, first: int, second: int) -> Pair:
    a = np.flatnonzero(cells.environment_index == first)
    b = np.flatnonzero(cells.environment_index == second)
    _, in_a, in_b = np.intersect1d(cells.class_index[a], cells.class_index[b], return_indices=True)
    a, b = a[in_a], b[in_b]
    return Pair(a, b, cells.weights[a] / (1 + cells.weights[a] / cells.weights[b]))


def _named_pair(cells: CellMoments, pairs: Any) -> Pair:
    labels = cells.environments.tolist()
    named = np.asarray(pairs, dtype=object).tolist() if np.ndim(pairs) == 1 else []
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
    r"""Return the test of equal covariances given the class.

    :math:`\sum_c \frac{h_c}{2} tr (W_c^{-1} \Delta_c)^2` is about chi-square, with :math:`W_c` the
    pooled covariance of class c, :math:`\Delta_c` the difference and :math:`h_c` its precision.
    Weights count as numbers of rows. The law holds for many Gaussian rows. Heavy tails make the
    test reject too often, which keeps a pair that brings only noise: the harmless error. With few
    rows for the number of features it cannot reject at all, so it is refused.
    """
    _refuse_few_rows(cells)
    roots = {c: _inverse_root(cells, c) for c in np.unique(cells.class_index)}

    def p_value(pair: Pair) -> float:
        statistic, entries = 0.0, 0.0
        for a, b, precision in zip(pair.first, pair.second, pair.precisions, strict=True):
            root = roots[cells.class_index[a]]
            first, second = cells.covariances(np.array([a, b]))
            whitened = root.T @ (first - second) @ root
            statistic += precision / 2 * float(np.sum(whitened**2))
            entries += root.shape[1] * (root.shape[1] + 1) / 2
        return float(chdtrc(entries, statistic))

    return p_value


def _refuse_few_rows(cells: CellMoments) -> None:
    rows = np.bincount(cells.class_index, cells.weights)
    least = rows[rows > 0].min()
    if least < 4 * cells.n_features:
        raise ValueError(
            f"pairs='distinct' cannot tell covariances of {cells.n_features} features apart with "
            f"{least:g} rows of a class (their weights, if given): it needs "
            f"{4 * cells.n_features}. Reduce the features by PCA, or use pairs='all'."
        )


def _inverse_root(cells: CellMoments, c: np.intp) -> Float64Array:
    """Return R with R R' the (pseudo-)inverse of the pooled covariance of a class."""
    members = np.flatnonzero(cells.class_index == c)
    weights = cells.weights[members] / cells.weights[members].sum()
    values, vectors = eigh(np.tensordot(weights, cells.covariances(members), axes=1))
    used = values > values[-1] * len(values) * np.finfo(np.float64).eps
    return np.asarray(vectors[:, used] / np.sqrt(values[used]))
