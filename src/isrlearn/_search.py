"""Rank and subspace together: what `n_spurious="auto"` and `ISR` do with moments and nulls."""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

import numpy as np

from isrlearn._chunks import ChunkedRows
from isrlearn._comparison import CellTable
from isrlearn._conditioning import Conditioned, rounding_errors, unit_of_weight
from isrlearn._frame import Frame, noise_frame
from isrlearn._joint import (
    Joint,
    improved,
    joint_directions,
    joint_space,
    joint_values,
    n_identified_jointly,
)
from isrlearn._nulls import Evidence, TargetRows, evidence_in, permuted
from isrlearn._parts import PartMoments
from isrlearn._passes import AddUnits
from isrlearn._precision import (
    hides_weak_ones,
    is_suspicious,
    turn_between,
    turn_by_rounding,
    warn_of_dropped,
    warn_of_little_noise,
    warn_of_turn,
    warn_of_unsettled,
)
from isrlearn._rank import check_rank
from isrlearn._rank_test import RankChoice, choose_rank
from isrlearn._resampling import resampled, units_of_rows, units_of_stream
from isrlearn._typing import BoolArray, Float64Array
from isrlearn._validation import Rows
from isrlearn._workings import Workings
from isrlearn.moments import CellMoments
from isrlearn.subspace import Subspace

MOST_STRATA: Final = 20
ROWS_PER_STRATUM: Final = 20  # of each environment


class NullSource(Protocol):
    """Something that draws evidence without differences."""

    def __call__(
        self,
        cells: CellMoments,
        cond: Conditioned,
        frame: Frame,
        n_permutations: int,
        random: np.random.Generator,
    ) -> Evidence:
        """Return `n_permutations` draws."""


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


def row_nulls(rows: Rows) -> NullSource:
    """Return the source that permutes the environments of rows within their class."""
    return lambda cells, *how: permuted(_target_rows(rows, cells)[0], *how)


def response_nulls(rows: Rows) -> NullSource:
    """Return the source that permutes the environments of rows with similar targets."""

    def draw(
        cells: CellMoments,
        cond: Conditioned,
        frame: Frame,
        n_permutations: int,
        random: np.random.Generator,
    ) -> Evidence:
        target = _similar_targets(rows, cells, random)
        return permuted(target, cond, frame, n_permutations, random)

    return draw


def part_nulls(parts: PartMoments) -> NullSource:
    """Return the source that recombines the parts of cells that a stream has kept."""
    return lambda cells, cond, frame, *how: resampled(
        units_of_stream(parts, cells, frame), cells, cond, frame, *how
    )


def row_part_nulls(rows: Rows) -> NullSource:
    """Return the source that recombines parts of cells, added up in a second pass over the rows."""

    def draw(
        cells: CellMoments,
        cond: Conditioned,
        frame: Frame,
        n_permutations: int,
        random: np.random.Generator,
    ) -> Evidence:
        target, used = _target_rows(rows, cells)
        weights = None if rows.sample_weight is None else rows.sample_weight[used]
        units = units_of_rows(target.X, target.cells, weights, frame)
        return resampled(units, cells, cond, frame, n_permutations, random)

    return draw


def chunk_nulls(rows: ChunkedRows) -> NullSource:
    """Return the source that recombines parts of cells, added up in a pass over chunks."""
    return lambda cells, cond, frame, *how: resampled(
        rows.total(AddUnits.of(cells, frame)).units(), cells, cond, frame, *how
    )


def _similar_targets(rows: Rows, cells: CellMoments, random: np.random.Generator) -> TargetRows:
    """Return rows with phi(y) = (1, y), in strata of neighbouring y."""
    target, used = _target_rows(rows, cells)
    y = rows.y[used].astype(np.float64)
    n_strata = int(np.clip(len(y) // (ROWS_PER_STRATUM * len(cells.means)), 1, MOST_STRATA))
    ranks = np.empty(len(y), dtype=np.intp)
    ranks[np.lexsort((random.uniform(size=len(y)), y))] = np.arange(len(y))  # ties by chance
    phi = np.stack([np.ones(len(y)), y], axis=1)
    return target._replace(phi=phi, strata=ranks * n_strata // len(y))


def _target_rows(rows: Rows, cells: CellMoments) -> tuple[TargetRows, BoolArray]:
    """Return the rows that are in one of the cells, and the mask of these rows."""
    code = CellTable.of(cells).codes_of(rows)
    used = code >= 0
    weights = None
    if rows.sample_weight is not None:
        weights = rows.sample_weight[used] * unit_of_weight(cells)
    X = rows.X if used.all() else rows.X[used]
    classes = rows.class_codes[used]
    return TargetRows(X, np.ones((len(X), 1)), code[used], classes, weights), used


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
