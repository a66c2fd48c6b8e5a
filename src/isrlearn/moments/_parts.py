"""The null of the rank tests from parts of the cells, which add up: no row is needed.

Each cell is dealt out to 32 parts in turn. How much the parts of one cell differ from each other
says how much cells would differ if only chance were at work.
"""

import zlib
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np

from isrlearn.moments._cells import CellMoments
from isrlearn.moments._evidence import (
    CellEvidence,
    CellTable,
    Evidence,
    Frame,
    covariance_evidence,
    joined,
    mean_evidence,
    symmetric,
)
from isrlearn.moments._sums import mapped
from isrlearn.rows import Rows, encode_labels
from isrlearn.typing import Float64Array, IntArray

N_PARTS: Final = 32
LEAST_PARTS: Final = 4
ENOUGH_PARTS: Final = 8
MOST_SCATTERS: Final = 2**28  # numbers of all scatters together: 2 GiB
MOST_DRAWN: Final = 2**20  # of the deviations that are drawn at a time


class Units(NamedTuple):
    """Moments of parts of cells: what chance alone does to a cell is seen in how they differ."""

    owners: IntArray
    """(u,) cell of each part."""
    weights: Float64Array
    """(u,)"""
    means: Float64Array
    """(u, d)"""
    covariances: Float64Array
    """(u, p, p) in the leading coordinates of a frame."""


def resampled(
    units: Units, evidence: CellEvidence, n_draws: int, random: np.random.Generator
) -> Evidence:
    r"""Return the evidence of cells that differ by chance alone.

    The parts of a cell deviate from it in mean and covariance; times their weights, these
    deviations add up to zero. In a draw, the deviation of the cell is the sum of as many of them,
    drawn with replacement, over the weight of the cell: no normal law, no fourth moments and no
    equal weights are assumed. Cells of few parts draw from those of all cells of their class.

    Parameters
    ----------
    units : Units
        Parts of all cells.
    evidence : CellEvidence
        The cells, and the coordinates in which they are compared.
    n_draws : int
        How many.
    random : Generator
        Source of randomness.
    """
    cells, cond, frame = evidence[:3]
    deviations, owners = _deviations(units, cells, frame)
    step = max(1, MOST_DRAWN // (len(cells.means) * deviations.shape[1]))
    q, p = frame.forward.shape[1], frame.n_leading

    def drawn(size: int) -> Evidence:
        sums = np.zeros((size, len(cells.means), deviations.shape[1]))
        for c in np.unique(cells.class_index):
            own = cells.class_index[owners] == c
            members = np.flatnonzero(cells.class_index == c)
            _add_draws(sums, members, deviations[own], owners[own], random)
        sums /= np.sqrt(cells.weights)[:, None]
        null = cond._replace(
            grams=np.broadcast_to(cond.grams, (size, *cond.grams.shape)),
            coefs=sums[:, :, None, :q],
            scatters=symmetric(sums[..., q:], p),
            freedom=np.ones(sums.shape[:2]),
        )
        return Evidence(mean_evidence(null), covariance_evidence(null))

    sizes = (min(step, n_draws - start) for start in range(0, n_draws, step))
    return joined(map(drawn, sizes), n_draws)


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
    """The pass that adds up parts of the cells that are compared.

    Parameters
    ----------
    table : CellTable
        Which cells these are.
    leading : ndarray of shape (d, p)
        Map to the coordinates in which covariances are compared.
    by_chance : bool, default=True
        Whether each chunk begins with another part.
    """

    title: ClassVar = "Rank test"
    table: CellTable
    leading: Float64Array
    by_chance: bool = True

    @classmethod
    def of(cls, evidence: CellEvidence, *, by_chance: bool = True) -> Self:
        """Return the pass for some cells and a frame."""
        frame = evidence.frame
        return cls(CellTable.of(evidence.cells), frame.forward[:, : frame.n_leading], by_chance)

    def __call__(self, rows: Rows) -> UnitSums:
        """Return the sums of a chunk."""
        shift = zlib.crc32(rows.X[0].tobytes()) if self.by_chance else 0
        cell_of = self.table.codes_of(rows)
        used, cell_of = rows.where(cell_of >= 0), cell_of[cell_of >= 0]
        codes = cell_of * N_PARTS + (turns(cell_of) + shift) % N_PARTS
        classes, places = encode_labels(codes, "codes")
        one = np.zeros(1, dtype=np.intp)
        parts = Rows(used.X, classes, places, one, np.zeros_like(places), used.sample_weight)
        inside = replace(parts, X=mapped(used.X, self.leading))
        means = CellMoments.from_checked(parts, second_order=False)
        return UnitSums(means, CellMoments.from_checked(inside))


@dataclass(eq=False)
class PartMoments:
    """Moments of 32 parts of the rows: what a stream keeps to test how many directions differ.

    Parameters
    ----------
    parts : tuple of CellMoments
        Of equal columns. They add up part by part, and all together they are the moments of all
        rows.
    dealt : dict
        Rows seen so far of each (class, environment).
    """

    parts: tuple[CellMoments, ...]
    dealt: dict[tuple[Any, Any], int] = field(default_factory=dict)

    @classmethod
    def empty(cls, n_features: int) -> Self:
        """Return parts without rows."""
        return cls(tuple(CellMoments.empty(n_features) for _ in range(N_PARTS)))

    @classmethod
    def beginning_with(cls, moments: CellMoments) -> Self:
        """Return parts the first of which has the rows of `moments`."""
        if moments.scatters is None:
            raise ValueError(
                "n_spurious='auto' needs covariances, and of the rows so far there are none: set "
                "it before the first partial_fit. A saved estimator leaves out scatters that are "
                "large: fit it again on all rows."
            )
        return cls((moments, *cls.empty(moments.n_features).parts[1:]))

    def update_checked(self, rows: Rows) -> Self:
        """Add rows that `check_rows` has passed, in place."""
        turn, dealt = self._deal(rows)
        d = rows.X.shape[1]
        if N_PARTS * len(dealt) * d * d > MOST_SCATTERS:
            raise ValueError(
                f"n_spurious='auto' without the rows keeps {N_PARTS} x {len(dealt)} matrices of "
                f"{d} x {d} numbers, more than 2 GiB. Reduce the features first (for example "
                "sklearn.decomposition.IncrementalPCA), give n_spurious, or fit all rows at once "
                "with rank_test='permutation'."
            )
        # First all moments of the chunk, then all sums: rows that are refused change nothing.
        chunks = [CellMoments.from_checked(rows.where(turn == number)) for number in range(N_PARTS)]
        for part, chunk in zip(self.parts, chunks, strict=True):
            part.absorb(chunk)
        self.dealt = dealt
        return self

    def total(self) -> CellMoments:
        """Return the moments of all rows."""
        return sum(self.parts[1:], start=self.parts[0])

    def units(self, evidence: CellEvidence) -> Units:
        """Return the parts of the cells that are compared."""
        frame, table = evidence.frame, CellTable.of(evidence.cells)
        leading = frame.forward[:, : frame.n_leading]
        found: list[tuple[int, float, Float64Array, Float64Array]] = []
        for part in self.parts:
            owners = table.codes(
                part.classes, part.class_index, part.environments, part.environment_index
            )
            for cell in np.flatnonzero(owners >= 0):
                inside = leading.T @ part.covariances(np.array([cell]))[0] @ leading
                weight = float(part.weights[cell])
                found.append((int(owners[cell]), weight, part.means[cell], inside))
        return Units(*(np.array(column) for column in zip(*found, strict=True)))

    def _deal(self, rows: Rows) -> tuple[IntArray, dict[tuple[Any, Any], int]]:
        """Return the part of each row, and the rows dealt then; unknown environments go first."""
        dealt = dict(self.dealt)
        codes, cells = rows.cells()
        firsts = np.zeros(len(cells) + 1, dtype=np.intp)
        counts = np.bincount(codes, minlength=len(cells) + 1)
        for number, place in enumerate(cells):
            c, e = divmod(int(place), len(rows.environments))
            cell = rows.classes[c].item(), rows.environments[e].item()
            firsts[number] = dealt.get(cell, 0)
            dealt[cell] = int(firsts[number] + counts[number])
        turn = turns(codes, firsts)
        turn[codes == len(cells)] = 0
        return turn, dealt


def turns(codes: IntArray, firsts: IntArray | None = None) -> IntArray:
    """Return the part of each row, (n,): the rows of a cell go to the parts in turn.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Cell of each row.
    firsts : ndarray of shape (m,), default=None
        Rows of each cell that were dealt before; None for none.

    Examples
    --------
    >>> import numpy as np
    >>> turns(np.array([0, 1, 0, 0])).tolist()
    [0, 0, 1, 2]
    """
    counts = np.bincount(codes)
    order = np.argsort(codes, kind="stable")
    starts = np.cumsum(counts) - counts
    if firsts is not None:
        starts = starts - firsts[: len(starts)]
    turn = np.empty(len(codes), dtype=np.intp)
    turn[order] = np.arange(len(codes)) - np.repeat(starts, counts)
    return np.asarray(turn % N_PARTS)


def _deviations(units: Units, cells: CellMoments, frame: Frame) -> tuple[Float64Array, IntArray]:
    """Return the deviations of parts from their cells, (u, columns), in one unit, and these cells.

    Each is stretched by the degree of freedom that the parts lose to their cell.
    """
    leading = frame.forward[:, : frame.n_leading]
    i, j = np.triu_indices(frame.n_leading)
    inside = leading.T @ cells.known_scatters() @ leading / cells.weights[:, None, None]
    shifts = (units.means - cells.means[units.owners]) @ frame.forward
    ahead = shifts[:, : frame.n_leading]
    spreads = units.covariances - inside[units.owners] + ahead[:, :, None] * ahead[:, None, :]
    rows = units.weights[:, None] * np.concatenate([shifts, spreads[:, i, j]], axis=1)
    count = np.bincount(units.owners, minlength=len(cells.weights))
    mean_weight = cells.weights / np.maximum(count, 1)
    stretch = np.sqrt(count / np.maximum(count - 1, 1) / mean_weight)
    telling = count[units.owners] > 1
    return (rows * stretch[units.owners][:, None])[telling], units.owners[telling]


def _add_draws(
    sums: Float64Array,
    cells: IntArray,
    deviations: Float64Array,
    owners: IntArray,
    random: np.random.Generator,
) -> None:
    """Give each cell as many deviations as it has parts, drawn with replacement."""
    n = len(deviations)
    if n < LEAST_PARTS:
        raise ValueError(
            f"{n} parts of the cells of a class have rows to compare, too few to tell chance from "
            "a difference. Add rows, or give n_spurious instead of 'auto'."
        )
    for cell in cells:
        own = deviations[owners == cell]
        g = max(LEAST_PARTS, len(own))
        if len(own) < ENOUGH_PARTS:
            drawn = deviations[random.integers(n, size=(len(sums), g))].sum(axis=1)
        else:
            drawn = random.multinomial(g, np.full(g, 1 / g), size=len(sums)) @ own
        sums[:, cell] = drawn / np.sqrt(g)
