"""From moments to the spurious subspace: the paper's algorithms, steps I to III."""

from typing import Any

import numpy as np

from isrlearn._comparison import class_positions, comparable
from isrlearn._pairs import Pair, choose_pairs, pair_difference
from isrlearn._rank import (
    check_n_spurious,
    check_rank,
    covariance_rounding,
    mean_rounding,
    n_identified,
)
from isrlearn._spectra import Spectrum, flag_mean, mean_contrasts, mean_spectrum, pair_spectrum
from isrlearn.moments import CellMoments
from isrlearn.subspace import Subspace


def subspace_from_means(
    moments: CellMoments, n_spurious: int, *, condition_on: Any = None, scale: float = 0.0
) -> Subspace:
    r"""ISR-Mean (Algorithm 1, steps I to III): directions in which class means differ.

    Needs Assumption 1 (environment means in general position) and :math:`E \ge d_s + 1`; it needs
    nothing of the covariances.

    Parameters
    ----------
    moments : CellMoments
        Means are enough.
    n_spurious : int
        Directions to remove, at most :math:`\sum_c (E_c - 1)`.
    condition_on : label or sequence of labels, default=None
        Classes to use. With one class every environment counts once, as in the paper; with several
        the cells are pooled with their weights. None uses all.
    scale : float, default=0.0
        What is left of the removed part.

    Returns
    -------
    Subspace
    """
    n_spurious = check_n_spurious(n_spurious)
    cells = comparable(moments, condition_on)
    as_in_paper = len(class_positions(moments, condition_on)) == 1
    weights = np.ones(len(cells.means)) if as_in_paper else cells.weights
    spectrum = mean_spectrum(mean_contrasts(cells.means, weights, cells.class_index))
    where = f"the means of {len(cells.environments)} environments"
    check_rank(n_spurious, _n_spanned(cells), cells.n_features, where)
    return _removal(spectrum, n_spurious, moments, scale)


def subspace_from_covariances(
    moments: CellMoments,
    n_spurious: int,
    *,
    condition_on: Any = None,
    pairs: Any = "all",
    scale: float = 0.0,
) -> Subspace:
    r"""ISR-Cov (Algorithm 2, steps I to III), made robust by the flag mean over pairs.

    Needs Assumption 2 (a pair of environments with different variances) and :math:`E \ge 2`; it
    needs nothing of the means.

    Parameters
    ----------
    moments : CellMoments
        With scatters.
    n_spurious : int
        Directions to remove.
    condition_on : label or sequence of labels, default=None
        Classes to use; None pools all with their weights.
    pairs : {"all", "distinct"} or (environment, environment), default="all"
        Flag mean over all pairs, over those whose covariances differ significantly, or one pair.
    scale : float, default=0.0
        What is left of the removed part.

    Returns
    -------
    Subspace
    """
    n_spurious = check_n_spurious(n_spurious)
    cells = comparable(moments, condition_on, needs_spread=True)
    chosen = choose_pairs(cells, pairs)
    spectra, found = zip(*(_leading(cells, pair, n_spurious) for pair in chosen), strict=True)
    where = f"the covariances of {len(cells.environments)} environments"
    check_rank(n_spurious, max(found), cells.n_features, where)
    # A pair that differs in fewer directions would add an arbitrary basis of its null space.
    bases = [s.vectors for s, n in zip(spectra, found, strict=True) if n >= n_spurious]
    spectrum = spectra[0] if len(spectra) == 1 else flag_mean(bases)
    return _removal(spectrum, n_spurious, moments, scale)


def _n_spanned(cells: CellMoments) -> int:
    r"""Return how many directions the means span: at most :math:`\sum_c (E_c - 1)`.

    Every environment counts once, since weights cannot change what is spanned.
    """
    every = np.ones(len(cells.means))
    values, vectors = mean_spectrum(mean_contrasts(cells.means, every, cells.class_index))
    rounding = mean_rounding(vectors, cells.largest, cells.precision, cells.counts.min())
    # Singular values, not their squares, are differences of means: that is where rounding acts.
    return n_identified(np.sqrt(values), rounding)


def _leading(cells: CellMoments, pair: Pair, rank: int) -> tuple[Spectrum, int]:
    """Return the first `rank` directions of a pair, and how many it identifies."""
    values, vectors = pair_spectrum(pair_difference(cells, pair))
    members = np.concatenate([pair.first, pair.second])
    spreads = np.sqrt(cells.variances()[members].max(axis=0))
    rounding = covariance_rounding(
        vectors, cells.largest, spreads, cells.precision, cells.counts[members].min()
    )
    # A copy, so that the d x d matrix of all vectors is released.
    return Spectrum(values, vectors[:rank].copy()), n_identified(values, rounding)


def _removal(spectrum: Spectrum, rank: int, moments: CellMoments, scale: float) -> Subspace:
    # The centre is that of all cells, also of classes that were not compared: else conditioning on
    # one class would move every row to where that class is.
    return Subspace.orthogonal(
        spectrum.vectors[:rank], centre=moments.centre(), spectrum=spectrum.values, scale=scale
    )
