"""From moments to the spurious subspace: the paper's algorithms, steps I to III."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from isrlearn.moments import CellMoments, class_positions, comparable, given_classes, given_response
from isrlearn.subspace._pairs import Pair, choose_pairs, only_cells_of, pair_difference
from isrlearn.subspace._precision import (
    turn_of_covariances,
    turn_of_flag_mean,
    turn_of_means,
    warn_of_pairs_left_out,
    warn_of_turn,
)
from isrlearn.subspace._rank import check_rank, covariance_rounding, mean_rounding, n_identified
from isrlearn.subspace._search import Found, Search, find_rank, joint_subspace
from isrlearn.subspace._spectra import (
    Spectrum,
    flag_mean,
    mean_contrasts,
    mean_spectrum,
    pair_spectrum,
)
from isrlearn.subspace._subspace import Subspace


class Leading(NamedTuple):
    """The leading directions of a method."""

    spectrum: Spectrum
    identified: int
    """How many directions differ by more than rounding errors."""
    turn: float
    """Radians that rounding errors may turn them by."""
    n_left_out: int = 0
    """Pairs of environments that show some directions, but fewer."""
    n_pairs: int = 1


def subspace_from_means(
    moments: CellMoments,
    n_spurious: int | Search,
    *,
    condition_on: Any = None,
    scale: float = 0.0,
) -> Found:
    r"""ISR-Mean (Algorithm 1, steps I to III): directions in which class means differ.

    Needs Assumption 1 (environment means in general position) and :math:`E \ge d_s + 1`; it needs
    nothing of the covariances unless the rank is to be found.

    Parameters
    ----------
    moments : CellMoments
        Means are enough for a given rank.
    n_spurious : int or Search
        Directions to remove, at most :math:`\sum_c (E_c - 1)`, or how to find their number.
    condition_on : label or sequence of labels, default=None
        Classes to use. With one class every environment counts once, as in the paper; with several
        the cells are pooled with their weights. None uses all.
    scale : float, default=0.0
        What is left of the removed part.
    """
    cells = comparable(moments, condition_on)
    as_in_paper = len(class_positions(moments, condition_on)) == 1
    weights = np.ones(len(cells.means)) if as_in_paper else cells.weights
    spectrum = mean_spectrum(mean_contrasts(cells.means, weights, cells.class_index))
    identified, sizes = _n_spanned(cells), np.sqrt(spectrum.values)

    def leading(rank: int) -> Leading:
        return Leading(spectrum, identified, turn_of_means(sizes, rank, cells))

    return _of_rank(n_spurious, cells, moments, leading, "means", scale)


def subspace_from_covariances(
    moments: CellMoments,
    n_spurious: int | Search,
    *,
    condition_on: Any = None,
    pairs: Any = "all",
    scale: float = 0.0,
) -> Found:
    r"""ISR-Cov (Algorithm 2, steps I to III), made robust by the flag mean over pairs.

    Needs Assumption 2 (a pair of environments with different variances) and :math:`E \ge 2`; it
    needs nothing of the means.

    Parameters
    ----------
    moments : CellMoments
        With scatters.
    n_spurious : int or Search
        Directions to remove, or how to find their number.
    condition_on : label or sequence of labels, default=None
        Classes to use; None pools all with their weights.
    pairs : {"all", "distinct"} or (environment, environment), default="all"
        Flag mean over all pairs, over those whose covariances differ significantly, or one pair.
    scale : float, default=0.0
        What is left of the removed part.
    """
    cells = comparable(moments, condition_on, needs_spread=True)
    chosen = choose_pairs(cells, pairs)
    if isinstance(n_spurious, Search):  # test the environments that are compared, and no others
        cells, chosen = only_cells_of(cells, chosen)
    return _of_rank(
        n_spurious,
        cells,
        moments,
        lambda rank: _shared_by_pairs(cells, chosen, rank),
        "covariances",
        scale,
    )


def subspace_from_both(
    moments: CellMoments,
    n_spurious: int | Search,
    *,
    condition_on: Any = None,
    scale: float = 0.0,
) -> Found:
    """ISR: directions in which means or covariances differ, weighed by their noise.

    Parameters
    ----------
    moments : CellMoments
        With scatters.
    n_spurious : int or Search
        Directions to remove, or how to find their number.
    condition_on : label or sequence of labels, default=None
        Classes to use; None uses all.
    scale : float, default=0.0
        What is left of the removed part.
    """
    cells = comparable(moments, condition_on, needs_spread=True)
    return joint_subspace(cells, given_classes(cells), moments.centre(), n_spurious, scale=scale)


def subspace_given_response(
    moments: CellMoments, n_spurious: int | Search, *, scale: float = 0.0
) -> Found:
    """ISR for a continuous target: directions whose relation to it, or whose spread, differ.

    Parameters
    ----------
    moments : CellMoments
        Of rows (x, y), one cell per environment.
    n_spurious : int or Search
        Directions to remove, or how to find their number.
    scale : float, default=0.0
        What is left of the removed part.
    """
    cells = comparable(moments, needs_spread=True)
    centre = moments.centre()[:-1]
    return joint_subspace(cells, given_response(cells), centre, n_spurious, scale=scale)


def _of_rank(
    n_spurious: int | Search,
    cells: CellMoments,
    moments: CellMoments,
    leading: Callable[[int], Leading],
    orders: str,
    scale: float,
) -> Found:
    """Return the removal of a given or found number of a method's own directions.

    `leading` gives at least the first directions of a rank.
    """
    choice = workings = None
    if isinstance(n_spurious, Search):
        choice, workings = find_rank(
            cells,
            given_classes(cells),
            n_spurious,
            lambda rank: leading(rank).spectrum.vectors[:rank],
            most=min(leading(0).identified, cells.n_features - 1),
            orders=orders,
        )
        n_spurious = choice.rank
    found = leading(n_spurious)
    where = f"the {orders} of {len(cells.environments)} environments"
    check_rank(n_spurious, found.identified, cells.n_features, where)
    warn_of_turn(found.turn, orders)
    warn_of_pairs_left_out(found.n_left_out, found.n_pairs, n_spurious)
    return Found(_removal(found.spectrum, n_spurious, moments, scale), choice, workings)


def _shared_by_pairs(cells: CellMoments, pairs: list[Pair], rank: int) -> Leading:
    """Return the flag mean of the leading directions of pairs, and how many the best identifies."""
    found = [_leading(cells, pair, rank) for pair in pairs]
    if len(found) == 1:
        return found[0]
    # A pair that differs in fewer directions would add an arbitrary basis of its null space.
    used = [pair for pair in found if pair.identified >= rank] or found[:1]
    spectrum = flag_mean([pair.spectrum.vectors for pair in used])
    return Leading(
        spectrum,
        max(pair.identified for pair in found),
        turn_of_flag_mean(spectrum.values, rank, [pair.turn for pair in used]),
        sum(0 < pair.identified < rank for pair in found),
        len(found),
    )


def _n_spanned(cells: CellMoments) -> int:
    r"""Return how many directions the means span: at most :math:`\sum_c (E_c - 1)`.

    Every environment counts once, since weights cannot change what is spanned.
    """
    every = np.ones(len(cells.means))
    values, vectors = mean_spectrum(mean_contrasts(cells.means, every, cells.class_index))
    rounding = mean_rounding(vectors, cells.largest, cells.precision, cells.counts.min())
    # Singular values, not their squares, are differences of means: that is where rounding acts.
    return n_identified(np.sqrt(values), rounding)


def _leading(cells: CellMoments, pair: Pair, rank: int) -> Leading:
    """Return the first `rank` directions of a pair, and how many it identifies."""
    values, vectors = pair_spectrum(pair_difference(cells, pair))
    members = np.concatenate([pair.first, pair.second])
    spreads = np.sqrt(cells.variances()[members].max(axis=0))
    rounding = covariance_rounding(
        vectors, cells.largest, spreads, cells.precision, cells.counts[members].min()
    )
    # A copy, so that the d x d matrix of all vectors is released.
    return Leading(
        Spectrum(values, vectors[:rank].copy()),
        n_identified(values, rounding),
        turn_of_covariances(values, rank, cells, spreads),
    )


def _removal(spectrum: Spectrum, rank: int, moments: CellMoments, scale: float) -> Subspace:
    # The centre is that of all cells, also of classes that were not compared: else conditioning on
    # one class would move every row to where that class is.
    return Subspace.orthogonal(
        spectrum.vectors[:rank], centre=moments.centre(), spectrum=spectrum.values, scale=scale
    )
