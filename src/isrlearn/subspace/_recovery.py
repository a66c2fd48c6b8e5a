"""From moments to the spurious subspace: the paper's algorithms, steps I to III.

Each function takes a rank, or a `RankTest` that finds one. A test comes with the cells that it
compares; for a rank they are chosen here.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from isrlearn.moments import (
    CellEvidence,
    CellMoments,
    Conditioned,
    Frame,
    class_positions,
    comparable,
    evidence_in,
    given_classes,
    given_response,
    noise_frame,
    rounding_errors,
)
from isrlearn.subspace._joint import (
    Joint,
    improved,
    joint_directions,
    joint_space,
    joint_values,
    n_identified_jointly,
)
from isrlearn.subspace._pairs import Pair, choose_pairs, only_cells_of, pair_difference
from isrlearn.subspace._rank_test import RankChoice, RankTest
from isrlearn.subspace._rounding import (
    EPSILON,
    check_rank,
    covariance_rounding,
    hides_weak_ones,
    is_suspicious,
    mean_rounding,
    n_identified,
    norms,
    rounding_unit,
    turn_between,
    turn_by_rounding,
    turn_of_covariances,
    turn_of_flag_mean,
    turn_over_gap,
    warn_of_dropped,
    warn_of_little_noise,
    warn_of_pairs_left_out,
    warn_of_turn,
    warn_of_unsettled,
)
from isrlearn.subspace._spectra import (
    Spectrum,
    flag_mean,
    mean_contrasts,
    mean_spectrum,
    pair_spectrum,
)
from isrlearn.subspace._subspace import Subspace
from isrlearn.typing import Float64Array


class Recovery(NamedTuple):
    """A subspace, how its rank was chosen, and from what: None if the rank was given."""

    subspace: Subspace
    choice: RankChoice | None = None
    workings: Any = None
    """`Workings`; of a saved estimator what they say, a `Chance`."""


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
    rank: int | RankTest,
    *,
    condition_on: Any = None,
    scale: float = 0.0,
) -> Recovery:
    r"""ISR-Mean (Algorithm 1, steps I to III): directions in which class means differ.

    Needs Assumption 1 (environment means in general position) and :math:`E \ge d_s + 1`; it needs
    nothing of the covariances unless the rank is to be found.

    Parameters
    ----------
    moments : CellMoments
        Means are enough for a given rank.
    rank : int or RankTest
        Directions to remove, at most :math:`\sum_c (E_c - 1)`, or how to find their number.
    condition_on : label or sequence of labels, default=None
        Classes to use. With one class every environment counts once, as in the paper; with several
        the cells are pooled with their weights. None uses all.
    scale : float, default=0.0
        What is left of the removed part.
    """
    cells = _cells(moments, rank, condition_on)
    as_in_paper = len(class_positions(moments, condition_on)) == 1
    weights = np.ones(len(cells.means)) if as_in_paper else cells.weights
    spectrum = mean_spectrum(mean_contrasts(cells.means, weights, cells.class_index))
    # Weights cannot change what is spanned: for that every environment counts once.
    alone = spectrum
    if not as_in_paper:
        every = np.ones(len(cells.means))
        alone = mean_spectrum(mean_contrasts(cells.means, every, cells.class_index))
    rounding = mean_rounding(alone.vectors, cells.largest, cells.precision, cells.counts.min())
    # Singular values, not their squares, are differences of means: that is where rounding acts.
    identified = n_identified(np.sqrt(alone.values), rounding)
    sizes = np.sqrt(spectrum.values)

    def leading(rank: int) -> Leading:
        off = rounding_unit(cells) * (float(norms(cells.largest)) + sizes[0])
        return Leading(spectrum, identified, turn_over_gap(off, sizes, rank))

    return _own_directions(rank, cells, moments.centre(), leading, "means", scale)


def subspace_from_covariances(
    moments: CellMoments,
    rank: int | RankTest,
    *,
    condition_on: Any = None,
    pairs: Any = "all",
    scale: float = 0.0,
) -> Recovery:
    r"""ISR-Cov (Algorithm 2, steps I to III), made robust by the flag mean over pairs.

    Needs Assumption 2 (a pair of environments with different variances) and :math:`E \ge 2`; it
    needs nothing of the means.

    Parameters
    ----------
    moments : CellMoments
        With scatters.
    rank : int or RankTest
        Directions to remove, or how to find their number.
    condition_on : label or sequence of labels, default=None
        Classes to use; None pools all with their weights.
    pairs : {"all", "distinct"} or (environment, environment), default="all"
        Flag mean over all pairs, over those whose covariances differ significantly, or one pair.
    scale : float, default=0.0
        What is left of the removed part.
    """
    cells = _cells(moments, rank, condition_on, needs_spread=True)
    chosen = rank.evidence.pairs if isinstance(rank, RankTest) else choose_pairs(cells, pairs)
    return _own_directions(
        rank,
        cells,
        moments.centre(),
        lambda rank: _shared_by_pairs(cells, chosen, rank),
        "covariances",
        scale,
    )


def evidence_of_pairs(moments: CellMoments, condition_on: Any, pairs: Any) -> CellEvidence:
    """Return the evidence of the environments that ISR-Cov compares, and of no others."""
    cells = comparable(moments, condition_on, needs_spread=True)
    cells, chosen = only_cells_of(cells, choose_pairs(cells, pairs))
    return CellEvidence.of(cells, given_classes(cells))._replace(pairs=chosen)


def subspace_from_both(
    moments: CellMoments,
    rank: int | RankTest,
    *,
    condition_on: Any = None,
    scale: float = 0.0,
) -> Recovery:
    """ISR: directions in which means or covariances differ, weighed by their noise.

    Parameters
    ----------
    moments : CellMoments
        With scatters.
    rank : int or RankTest
        Directions to remove, or how to find their number.
    condition_on : label or sequence of labels, default=None
        Classes to use; None uses all.
    scale : float, default=0.0
        What is left of the removed part.
    """
    cells = _cells(moments, rank, condition_on, needs_spread=True)
    return _joint_subspace(rank, cells, given_classes, moments.centre(), scale)


def subspace_given_response(
    moments: CellMoments, rank: int | RankTest, *, scale: float = 0.0
) -> Recovery:
    """ISR for a continuous target: directions whose relation to it, or whose spread, differ.

    Parameters
    ----------
    moments : CellMoments
        Of rows (x, y), one cell per environment.
    rank : int or RankTest
        Directions to remove, or how to find their number.
    scale : float, default=0.0
        What is left of the removed part.
    """
    cells = _cells(moments, rank, None, needs_spread=True)
    return _joint_subspace(rank, cells, given_response, moments.centre()[:-1], scale)


def _cells(
    moments: CellMoments, rank: int | RankTest, condition_on: Any, *, needs_spread: bool = False
) -> CellMoments:
    if isinstance(rank, RankTest):
        return rank.evidence.cells
    return comparable(moments, condition_on, needs_spread=needs_spread)


def _own_directions(
    rank: int | RankTest,
    cells: CellMoments,
    centre: Float64Array,
    leading: Callable[[int], Leading],
    orders: str,
    scale: float,
) -> Recovery:
    """Return the removal of a given or found number of a method's own directions."""
    choice = workings = None
    if isinstance(rank, RankTest):
        forward = rank.evidence.frame.forward
        choice, workings = rank.choose(
            lambda rank: leading(rank).spectrum.vectors[:rank] @ forward,
            most=min(leading(0).identified, len(centre) - 1),
            orders=orders,
        )
        rank = choice.rank
    found = leading(rank)
    where = f"the {orders} of {len(cells.environments)} environments"
    check_rank(rank, found.identified, len(centre), where)
    warn_of_turn(found.turn, orders)
    if found.n_left_out:
        warn_of_pairs_left_out(found.n_left_out, found.n_pairs, rank)
    # The centre is that of all cells, also of classes that were not compared: else conditioning on
    # one class would move every row to where that class is.
    values, vectors = found.spectrum
    removal = Subspace.orthogonal(vectors[:rank], centre=centre, spectrum=values, scale=scale)
    return Recovery(removal, choice, workings)


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


def _joint_subspace(
    rank: int | RankTest,
    cells: CellMoments,
    given_target: Callable[[CellMoments], Conditioned],
    centre: Float64Array,
    scale: float,
) -> Recovery:
    """Return the subspace in which means and covariances differ most, of a given or found rank."""
    evidence = (
        rank.evidence if isinstance(rank, RankTest) else CellEvidence.of(cells, given_target(cells))
    )
    _, cond, frame, observed, n_rows, _ = evidence
    n_features = len(centre)
    rounding, spectrum = rounding_errors(cells)[:n_features], np.zeros(n_features)
    where = f"the means and covariances of {len(np.unique(cond.environment))} environments"
    warn_of_dropped(cond, frame, rounding)
    if evidence.frame.n_leading == 0:
        if not isinstance(rank, RankTest):
            check_rank(rank, 0, n_features, where)
        return Recovery(Subspace.nothing(n_features))
    joint = joint_space(*observed, frame, n_rows)
    warn_of_little_noise(joint, frame, cond, rounding)
    values = joint_values(joint)[:n_features]
    spectrum[: len(values)] = values
    own = EPSILON * cells.largest[:n_features]
    identified = n_identified_jointly(joint, frame, values, own, n_rows)
    choice = workings = None
    if isinstance(rank, RankTest):
        choice, workings = rank.choose(
            lambda rank: joint_directions(joint, rank) @ joint.to_frame,
            most=min(identified, n_features - 1, len(values) - 1),
        )
        rank = choice.rank
    else:
        check_rank(rank, identified, n_features, where)
    if rank == 0:
        none = np.empty((0, n_features))
        return Recovery(
            Subspace.orthogonal(none, centre=centre, spectrum=spectrum, scale=scale),
            choice,
            workings,
        )
    removal = _joint_removal(joint, frame, rank, centre, spectrum, scale)
    _warn_of_rounding(evidence, removal, rounding, own)
    return Recovery(removal, choice, workings)


def _joint_removal(
    joint: Joint,
    frame: Frame,
    rank: int,
    centre: Float64Array,
    spectrum: Float64Array,
    scale: float,
) -> Subspace:
    r"""Map directions of white noise back to the coordinates of X: an oblique removal.

    What is removed of x is as much of the directions as the noise does not explain: with noise
    covariance W the functionals are :math:`(D W^{-1} D^T)^{-1} D W^{-1}`.
    """
    found = joint_directions(joint, rank, converged=True)
    warn_of_unsettled(improved(joint, found)[1])
    directions = found @ joint.to_frame @ frame.backward
    functionals = found @ (frame.forward @ joint.from_frame).T
    orthonormal, triangle = np.linalg.qr(directions.T)
    signs = np.sign(np.diag(triangle))
    directions, functionals = (orthonormal * signs).T, (triangle * signs[:, None]) @ functionals
    amounts = functionals @ directions.T
    if not np.allclose(amounts, np.eye(rank), atol=0.1):
        raise ValueError(
            "the scales of the features differ so much that rounding errors spoil the removal: "
            "scale the features first, for example with StandardScaler."
        )
    # Mixed units leave small rounding errors in the amounts: put them right.
    exact = np.asarray(np.linalg.solve(amounts, functionals))
    return Subspace(directions, exact, centre, spectrum, scale)


def _warn_of_rounding(
    evidence: CellEvidence, removal: Subspace, data: Float64Array, own: Float64Array
) -> None:
    """Warn if a change of the moments by rounding errors makes another subspace."""
    _, cond, frame, _, n_rows, _ = evidence

    def again(cond: Conditioned, rounding: Float64Array = data) -> Float64Array:
        frame = noise_frame(cond, rounding)
        joint = joint_space(*evidence_in(cond, frame), frame, n_rows)
        if joint.means.shape[1] < removal.rank:  # what was removed is not even seen
            return np.empty((0, removal.n_features))
        found = joint_directions(joint, removal.rank, converged=True)
        return np.asarray(found @ joint.to_frame @ frame.backward)

    turn = 0.0
    if is_suspicious(cond, frame, own):
        turn = turn_by_rounding(cond, frame, own, removal.directions, again)
    if hides_weak_ones(frame, data, own):
        turn = max(turn, turn_between(removal.directions, again(cond, own)))
    warn_of_turn(turn, "means and covariances")
