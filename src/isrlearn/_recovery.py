"""From moments to the spurious subspace: the paper's algorithms, steps I to III."""

from typing import Any

import numpy as np

from isrlearn._comparison import comparable
from isrlearn._pairs import Pair, choose_pairs, pair_difference, with_spread
from isrlearn._rank import check_n_spurious, check_rank, mean_limit, n_identified
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
    one_class = len(np.unique(cells.class_index)) == 1
    weights = np.ones(len(cells.means)) if one_class else cells.weights
    spectrum = mean_spectrum(mean_contrasts(cells.means, weights, cells.class_index))
    # Singular values, not their squares, are differences of means: that is where rounding acts.
    spanned = n_identified(np.sqrt(spectrum.values), np.abs(cells.means).max())
    identified = min(spanned, mean_limit(cells.class_index))
    where = f"the means of {len(cells.environments)} environments"
    check_rank(n_spurious, identified, cells.n_features, where)
    return _removal(spectrum, n_spurious, cells, scale)


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
    cells = with_spread(comparable(moments, condition_on))
    chosen = choose_pairs(cells, pairs)
    spectra, found = zip(*(_leading(cells, pair, n_spurious) for pair in chosen), strict=True)
    where = f"the covariances of {len(cells.environments)} environments"
    check_rank(n_spurious, max(found), cells.n_features, where)
    # A pair that differs in fewer directions would add an arbitrary basis of its null space.
    full = [s for s, n in zip(spectra, found, strict=True) if n >= n_spurious]
    alone = len(full) == 1 or n_spurious == 0
    spectrum = full[0] if alone else flag_mean([s.vectors for s in full])
    return _removal(spectrum, n_spurious, cells, scale)


def _leading(cells: CellMoments, pair: Pair, rank: int) -> tuple[Spectrum, int]:
    """Return the first `rank` directions of a pair, and how many it identifies."""
    values, vectors = pair_spectrum(pair_difference(cells, pair))
    # A copy, so that the d x d matrix of all vectors is released.
    return Spectrum(values, vectors[:rank].copy()), n_identified(values, pair.size)


def _removal(spectrum: Spectrum, rank: int, cells: CellMoments, scale: float) -> Subspace:
    return Subspace.orthogonal(
        spectrum.vectors[:rank], centre=cells.centre(), spectrum=spectrum.values, scale=scale
    )
