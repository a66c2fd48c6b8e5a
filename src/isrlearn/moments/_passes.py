"""What a fit adds up over the rows: each pass is a function of a chunk whose results add up.

A pass is a frozen object that holds what it needs, so that it can be sent to another process.
"""

import zlib
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from isrlearn.moments._cells import CellMoments
from isrlearn.moments._comparison import CellTable
from isrlearn.moments._frame import Frame
from isrlearn.moments._parts import N_PARTS, rows_where, turns
from isrlearn.moments._resampling import Units, add_up_units
from isrlearn.rows import UNKNOWN, Rows
from isrlearn.typing import Float64Array


@dataclass(frozen=True, eq=False)
class AllMoments:
    """Moments of the rows of known environment, and by class of the others.

    Parameters
    ----------
    known : CellMoments
        Of each (class, environment).
    others : CellMoments
        Of the rows of unknown environment, by class.
    """

    known: CellMoments
    others: CellMoments

    def __add__(self, other: "AllMoments") -> "AllMoments":
        """Return the moments of the rows of both."""
        return AllMoments(self.known + other.known, self.others + other.others)

    def __iadd__(self, other: "AllMoments") -> Self:
        """Add rows in place: a loop allocates nothing."""
        self.known.absorb(other.known)
        self.others.absorb(other.others)
        return self

    @classmethod
    def with_others(cls, known: CellMoments, rows: Rows) -> Self:
        """Return the moments of all rows, given those of known environment."""
        second_order, unknown = known.scatters is not None, rows.environment_codes == UNKNOWN
        if not unknown.any():
            return cls(known, CellMoments.empty(rows.X.shape[1], second_order=second_order))
        found = rows_where(rows, unknown)
        one, codes = np.zeros(1, dtype=np.intp), np.zeros_like(found.environment_codes)
        found = replace(found, environments=one, environment_codes=codes)
        return cls(known, CellMoments.from_checked(found, second_order=second_order))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.known.counts.sum() + self.others.counts.sum())


@dataclass(frozen=True)
class AddMoments:
    """The moments of all rows.

    Parameters
    ----------
    second_order : bool
        Whether scatters are needed.
    """

    title: ClassVar = "Moments"
    works_on_device: ClassVar = True
    second_order: bool

    def __call__(self, rows: Rows) -> AllMoments:
        """Return the moments of a chunk."""
        known = CellMoments.from_checked(rows, second_order=self.second_order)
        return AllMoments.with_others(known, rows)


@dataclass(frozen=True, eq=False)
class UnitSums:
    """Sums from which the moments of parts of cells follow.

    Parameters
    ----------
    means : CellMoments
        Means of the parts; the class of a row is 32 times its cell and its part.
    inside : CellMoments
        Means and scatters of the parts in leading coordinates.
    """

    means: CellMoments
    inside: CellMoments

    def __add__(self, other: "UnitSums") -> "UnitSums":
        """Return the sums over the rows of both."""
        return UnitSums(self.means + other.means, self.inside + other.inside)

    def units(self) -> Units:
        """Return the moments of the parts."""
        owners = self.means.classes // N_PARTS
        return Units(owners, self.means.weights, self.means.means, self.inside.covariances())


@dataclass(frozen=True, eq=False)
class AddUnits:
    """Moments of parts of the cells that are compared, for the rank test.

    Parameters
    ----------
    table : CellTable
        Which cells these are.
    leading : ndarray of shape (d, p)
        Map to the coordinates in which covariances are compared.
    """

    title: ClassVar = "Rank test"
    table: CellTable
    leading: Float64Array

    @classmethod
    def of(cls, cells: CellMoments, frame: Frame) -> Self:
        """Return the pass for some cells and a frame."""
        return cls(CellTable.of(cells), frame.forward[:, : frame.n_leading])

    def __call__(self, rows: Rows) -> UnitSums:
        """Return the sums of a chunk. Each chunk begins with another part, by chance."""
        cell_of = self.table.codes_of(rows)
        used = rows_where(rows, cell_of >= 0)
        cell_of = cell_of[cell_of >= 0]
        shift = zlib.crc32(rows.X[0].tobytes())
        codes = cell_of * N_PARTS + (turns(cell_of) + shift) % N_PARTS
        return UnitSums(*add_up_units(used.X, codes, used.sample_weight, self.leading))
