"""Where the null of a rank test comes from: rows, parts of a stream, or chunks."""

from typing import Final, Protocol

import numpy as np

from isrlearn.moments._cells import CellMoments
from isrlearn.moments._comparison import CellTable
from isrlearn.moments._conditioning import Conditioned, unit_of_weight
from isrlearn.moments._frame import Frame
from isrlearn.moments._nulls import Evidence, TargetRows, permuted
from isrlearn.moments._parts import PartMoments
from isrlearn.moments._passes import AddUnits
from isrlearn.moments._resampling import resampled, units_of_rows, units_of_stream
from isrlearn.rows import ChunkedRows, Rows
from isrlearn.typing import BoolArray

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
