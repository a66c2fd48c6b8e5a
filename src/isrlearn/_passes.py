"""What a fit adds up over the rows: each pass is a function of a chunk whose results add up.

A pass is a frozen object that holds what it needs, so that it can be sent to another process.
"""

import zlib
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from isrlearn._comparison import CellTable
from isrlearn._frame import Frame
from isrlearn._labels import UNKNOWN
from isrlearn._parts import N_PARTS, rows_where, turns
from isrlearn._resampling import Units, add_up_units
from isrlearn._slopes import Slope, slope_by_block
from isrlearn._typing import Float64Array, FloatArray, IntArray, LabelArray
from isrlearn._validation import Rows
from isrlearn.moments import CellMoments


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


@dataclass(frozen=True, eq=False)
class GroupFactors:
    """Factors of the weights of rows, by class and environment.

    Parameters
    ----------
    classes : ndarray of shape (k,)
        Sorted labels.
    environments : ndarray of shape (E,)
        Sorted environments.
    table : ndarray of shape (k, E + 1) or None
        The factor of each; the last column is for rows of unknown environment. None: all are one.
    """

    classes: LabelArray
    environments: LabelArray
    table: Float64Array | None

    def labels_of(self, rows: Rows) -> "RowLabels":
        """Return classes and weights of rows, to be looked up block by block."""
        classes = np.searchsorted(self.classes, rows.classes)
        environments = np.append(np.searchsorted(self.environments, rows.environments), -1)
        return RowLabels(self.table, classes, environments, rows)


@dataclass(frozen=True, eq=False)
class RowLabels:
    """Class of each row among all classes, and its weight; what is not asked for is not there.

    Parameters
    ----------
    table : ndarray of shape (k, E + 1) or None
        Factors, as in `GroupFactors`.
    classes, environments : ndarray
        Places of the classes and environments of the rows among all; the last environment is the
        unknown one.
    rows : Rows
        The rows.
    """

    table: Float64Array | None
    classes: IntArray
    environments: IntArray
    rows: Rows

    def __getitem__(self, own: Any) -> tuple[IntArray, Float64Array | None]:
        """Return classes and weights of some rows; None for weights that are all one."""
        codes = self.classes[self.rows.class_codes[own]]
        given = self.rows.sample_weight
        weights = None if given is None else given[own]
        if self.table is None:
            return codes, weights
        factors = self.table[codes, self.environments[self.rows.environment_codes[own]]]
        return codes, factors if weights is None else factors * weights


@dataclass(frozen=True, eq=False)
class AddSlopes:
    """Logistic loss of a head and its slope.

    Parameters
    ----------
    factors : GroupFactors
        Weights of the rows, and the classes.
    coef : ndarray of shape (m, d)
        Weights of the head on the rows as they are.
    bias : ndarray of shape (m,)
        Its bias.
    """

    title: ClassVar = "Head"
    factors: GroupFactors
    coef: Float64Array
    bias: Float64Array

    def __call__(self, rows: Rows) -> Slope:
        """Return the slope of a chunk."""
        labels = self.factors.labels_of(rows)
        return slope_by_block(rows.X, labels.__getitem__, self.coef, self.bias)


@dataclass(frozen=True, eq=False)
class Sample:
    """Some of the rows.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features.
    codes : ndarray of shape (n,)
        Class of each among all classes.
    weights : ndarray of shape (n,)
        Weights.
    """

    X: FloatArray
    codes: Any
    weights: Float64Array

    def __add__(self, other: "Sample") -> "Sample":
        """Return the rows of both."""
        return Sample(
            np.concatenate([self.X, other.X]),
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.weights, other.weights]),
        )


@dataclass(frozen=True, eq=False)
class TakeSample:
    """Every so manyth row of each chunk.

    Parameters
    ----------
    factors : GroupFactors
        Weights of the rows, and the classes.
    every : int
        One row out of so many.
    """

    title: ClassVar = "Sample"
    factors: GroupFactors
    every: int

    def __call__(self, rows: Rows) -> Sample:
        """Return the sample of a chunk."""
        first = zlib.crc32(rows.X[0].tobytes()) % self.every if self.every > 1 else 0
        first = min(first, len(rows.X) - 1)
        chosen = slice(first, None, self.every)
        codes, weights = self.factors.labels_of(rows)[chosen]
        ones = np.ones(len(codes))
        return Sample(rows.X[chosen].copy(), codes, ones if weights is None else weights)
