"""Which pairs of environments ISR-Cov compares (Algorithm 2, step I)."""

from collections.abc import Callable
from itertools import combinations
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.special import chdtrc

from isrlearn.display import brief
from isrlearn.moments import CellMoments
from isrlearn.typing import Float64Array, IntArray

MAX_PAIRS: Final = 190  # all pairs of 20 environments; of more, the most informative
MOST_ENTRIES: Final = 2**20  # of differences of covariances at a time
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
        "distinct": those of them whose covariances differ significantly. Or two environments by
        name.

    Returns
    -------
    list of Pair
        At least one.
    """
    if isinstance(pairs, str) and pairs == "all":
        return _most_informative(cells)
    if isinstance(pairs, str) and pairs == "distinct":
        return _distinct(cells, _most_informative(cells))
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


def _pair(cells: CellMoments, first: int, second: int) -> Pair:
    a = np.flatnonzero(cells.environment_index == first)
    b = np.flatnonzero(cells.environment_index == second)
    _, in_a, in_b = np.intersect1d(cells.class_index[a], cells.class_index[b], return_indices=True)
    a, b = a[in_a], b[in_b]
    return Pair(a, b, cells.weights[a] / (1 + cells.weights[a] / cells.weights[b]))


def _named_pair(cells: CellMoments, pairs: Any) -> Pair:
    labels = cells.environments.tolist()
    given = np.asarray(pairs, dtype=object)
    named = given.tolist() if given.ndim == 1 else []
    if len(named) != 2 or named[0] == named[1] or any(name not in labels for name in named):
        raise ValueError(
            f"pairs={brief(pairs)} must be 'all', 'distinct', or two different environments out of "
            f"{brief(labels)}."
        )
    pair = _pair(cells, *(labels.index(name) for name in named))
    if len(pair.first) == 0:
        raise ValueError(
            f"pairs={brief(pairs)}: these environments have no class in common, so their "
            "covariances given the class cannot be compared. Name another pair or use pairs='all'."
        )
    return pair


def _most_informative(cells: CellMoments) -> list[Pair]:
    """Return the pairs that share a class, of many those with most difference for their precision.

    At most MAX_PAIRS.
    """
    n_environments = len(cells.environments)
    if n_environments * (n_environments - 1) // 2 <= MAX_PAIRS:
        every = [_pair(cells, a, b) for a, b in combinations(range(n_environments), 2)]
        return [pair for pair in every if len(pair.first)]
    scores = np.concatenate([_scores(cells, a) for a in range(n_environments - 1)])
    order = np.argsort(-scores, kind="stable")[:MAX_PAIRS]
    firsts, seconds = np.triu_indices(n_environments, 1)
    return [_pair(cells, firsts[i], seconds[i]) for i in order if scores[i] >= 0]


def _scores(cells: CellMoments, first: int) -> Float64Array:
    r"""Return how much is known of the difference between an environment and each later one.

    :math:`|\sum_c h_c \Delta_c|^2 / \sum_c h_c`, with :math:`h_c` the precision of the difference
    :math:`\Delta_c` in class c; -1 where no class is shared. Environments are taken in blocks: of
    small matrices many at a time.
    """
    place = np.full((len(cells.classes), len(cells.environments)), -1, dtype=np.intp)
    place[cells.class_index, cells.environment_index] = np.arange(len(cells.weights))
    classes = np.flatnonzero(place[:, first] >= 0)
    own, others = place[classes, first], place[classes, first + 1 :]
    scatters, weights, d = cells.known_scatters(), cells.weights, cells.n_features
    scores = np.full(others.shape[1], -1.0)
    step = max(1, MOST_ENTRIES // d**2)
    for start in range(0, len(scores), step):
        block = slice(start, start + step)
        difference, total = np.zeros((len(scores[block]), d, d)), np.zeros(len(scores[block]))
        for cell, theirs in zip(own, others[:, block], strict=True):
            shared = np.flatnonzero(theirs >= 0)
            them = theirs[shared]
            precision = weights[cell] / (1 + weights[cell] / weights[them])
            here, there = precision / weights[cell], precision / weights[them]
            difference[shared] += here[:, None, None] * scatters[cell]
            difference[shared] -= there[:, None, None] * scatters[them]
            total[shared] += precision
        known = np.flatnonzero(total)
        scores[start + known] = np.sum(difference[known] ** 2, axis=(1, 2)) / total[known]
    return scores


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
            f"{4 * cells.n_features}. Reduce the features by PCA, scale the weights to the numbers "
            "of rows that they stand for, or use pairs='all'."
        )


def _inverse_root(cells: CellMoments, c: np.intp) -> Float64Array:
    """Return R with R R' the (pseudo-)inverse of the pooled covariance of a class."""
    members = np.flatnonzero(cells.class_index == c)
    weights = cells.weights[members] / cells.weights[members].sum()
    values, vectors = eigh(np.tensordot(weights, cells.covariances(members), axes=1))
    used = values > values[-1] * len(values) * np.finfo(np.float64).eps
    return np.asarray(vectors[:, used] / np.sqrt(values[used]))
