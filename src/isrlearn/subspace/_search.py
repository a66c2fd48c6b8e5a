"""Rank and subspace together: what `n_spurious="auto"` and `ISR` do with moments and nulls."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from isrlearn.moments import (
    CellMoments,
    Conditioned,
    Frame,
    NullSource,
    evidence_in,
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
from isrlearn.subspace._precision import (
    hides_weak_ones,
    is_suspicious,
    turn_between,
    turn_by_rounding,
    warn_of_dropped,
    warn_of_little_noise,
    warn_of_turn,
    warn_of_unsettled,
)
from isrlearn.subspace._rank import check_rank
from isrlearn.subspace._rank_test import RankChoice, choose_rank
from isrlearn.subspace._subspace import Subspace
from isrlearn.subspace._workings import Workings
from isrlearn.typing import Float64Array


class Search(NamedTuple):
    """How to find the rank."""

    nulls: NullSource
    alpha: float
    n_permutations: int
    random: np.random.Generator


class Found(NamedTuple):
    """A subspace, how its rank was chosen, and from what: None if the rank was given."""

    subspace: Subspace
    choice: RankChoice | None = None
    workings: Workings | None = None


def find_rank(
    cells: CellMoments,
    cond: Conditioned,
    search: Search,
    directions: Callable[[int], Float64Array],
    *,
    most: int,
    orders: str,
) -> tuple[RankChoice, Workings | None]:
    """Test how many of a method's own directions to remove.

    Parameters
    ----------
    cells, cond
        The moments, with covariances.
    search : Search
        Nulls and level.
    directions : callable
        Rows (r, d), in the coordinates of X, that the method removes for rank r.
    most : int
        Largest rank.
    orders : {"means", "covariances"}
        What the method looks at.
    """
    frame = noise_frame(cond, rounding_errors(cells))
    if frame.forward.shape[1] == 0:  # no feature varies
        return RankChoice(0, search.alpha, 0, ()), None
    workings = _workings(cells, cond, frame, search, orders)
    choice = choose_rank(
        *workings[:3],
        lambda rank: directions(rank) @ frame.forward,
        alpha=search.alpha,
        most=most,
        n_rows=workings.n_rows,
        orders=orders,
    )
    return choice, workings.compact()


def _workings(
    cells: CellMoments, cond: Conditioned, frame: Frame, search: Search, orders: str
) -> Workings:
    return Workings(
        observed=evidence_in(cond, frame),
        null=search.nulls(cells, cond, frame, search.n_permutations, search.random),
        frame=frame,
        n_rows=float(cond.grams[:, 0, 0].sum()),
        orders=orders,
    )


def joint_subspace(
    cells: CellMoments,
    cond: Conditioned,
    centre: Float64Array,
    rank: int | Search,
    *,
    scale: float = 0.0,
) -> Found:
    """Return the subspace in which means and covariances differ most, of a given or found rank.

    Parameters
    ----------
    cells, cond
        The moments, with covariances.
    centre : ndarray of shape (d,)
        Point that stays where it is.
    rank : int or Search
        Number of directions, or how to find it.
    scale : float, default=0.0
        What is left of the removed part.
    """
    n_features = len(centre)
    rounding, spectrum = rounding_errors(cells)[:n_features], np.zeros(n_features)
    frame = noise_frame(cond, rounding)
    warn_of_dropped(cond, frame, rounding)
    if frame.forward.shape[1] == 0:
        _refuse(rank, 0, n_features, cond)
        return Found(Subspace.nothing(n_features))
    observed, n_rows = evidence_in(cond, frame), float(cond.grams[:, 0, 0].sum())
    joint = joint_space(*observed, frame, n_rows)
    warn_of_little_noise(joint, frame, cond, rounding)
    values = joint_values(joint)[:n_features]
    spectrum[: len(values)] = values
    own = float(np.finfo(np.float64).eps) * cells.largest[:n_features]
    identified = n_identified_jointly(joint, frame, values, own, n_rows)
    choice = compact = None
    if isinstance(rank, Search):
        workings = _workings(cells, cond, frame, rank, "both")
        choice = choose_rank(
            *workings[:3],
            lambda r: joint_directions(joint, r) @ joint.to_frame,
            alpha=rank.alpha,
            most=min(identified, n_features - 1, len(values) - 1),
            n_rows=n_rows,
        )
        rank, compact = choice.rank, workings.compact()
    _refuse(rank, identified, n_features, cond)
    removal = _removal(joint, frame, rank, centre, spectrum, scale)
    _warn_of_rounding(cells, cond, frame, removal)
    return Found(removal, choice, compact)


def _warn_of_rounding(
    cells: CellMoments, cond: Conditioned, frame: Frame, removal: Subspace
) -> None:
    """Warn if a change of the moments by rounding errors makes another subspace."""
    data, own = rounding_errors(cells), float(np.finfo(np.float64).eps) * cells.largest
    data, own = data[: removal.n_features], own[: removal.n_features]

    def again(cond: Conditioned, rounding: Float64Array = data) -> Float64Array:
        frame = noise_frame(cond, rounding)
        joint = joint_space(*evidence_in(cond, frame), frame, float(cond.grams[:, 0, 0].sum()))
        if joint.means.shape[1] < removal.rank:  # what was removed is not even seen
            return np.empty((0, removal.n_features))
        found = joint_directions(joint, removal.rank, converged=True)
        return np.asarray(found @ joint.to_frame @ frame.backward)

    turn = 0.0
    if removal.rank and is_suspicious(cond, frame, own):
        turn = turn_by_rounding(cond, frame, own, removal.directions, again)
    if removal.rank and hides_weak_ones(frame, data, own):
        turn = max(turn, turn_between(removal.directions, again(cond, own)))
    warn_of_turn(turn, "means and covariances")


def _removal(
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
    if rank == 0:
        none = np.empty((0, len(centre)))
        return Subspace.orthogonal(none, centre=centre, spectrum=spectrum, scale=scale)
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


def _refuse(rank: int | Search, identified: int, n_features: int, cond: Conditioned) -> None:
    if not isinstance(rank, Search):
        n_environments = len(np.unique(cond.environment))
        where = f"the means and covariances of {n_environments} environments"
        check_rank(rank, identified, n_features, where)
