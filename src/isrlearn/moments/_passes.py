"""What a fit adds up first: the moments of all rows."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from isrlearn.moments._cells import CellMoments
from isrlearn.rows import UNKNOWN, Rows


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
        found = rows.take(unknown)
        one, codes = np.zeros(1, dtype=np.intp), np.zeros_like(found.environment_codes)
        found = replace(found, environments=one, environment_codes=codes)
        return cls(known, CellMoments.from_checked(found, second_order=second_order))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.known.counts.sum() + self.others.counts.sum())


@dataclass(frozen=True)
class AddCells:
    """The moments of the rows of known environment.

    Parameters
    ----------
    second_order : bool
        Whether scatters are needed.
    """

    title: ClassVar = "Moments"
    works_on_device: ClassVar = True
    second_order: bool

    def __call__(self, rows: Rows) -> CellMoments:
        """Return the moments of a chunk."""
        return CellMoments.from_checked(rows, second_order=self.second_order)


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
