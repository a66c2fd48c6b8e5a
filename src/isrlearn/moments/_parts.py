"""Moments of parts of each cell: what a stream keeps to test how many directions differ."""

from dataclasses import dataclass, field
from typing import Any, Final, Self

import numpy as np

from isrlearn.moments._cells import CellMoments
from isrlearn.rows import Rows
from isrlearn.typing import BoolArray, IntArray

N_PARTS: Final = 32
MOST_ENTRIES: Final = 2**28  # of all scatters together: 2 GiB


@dataclass(eq=False)
class PartMoments:
    """Moments of `N_PARTS` parts of the rows; each cell is dealt out to the parts in turn.

    How much the parts of one cell differ from each other says how much cells would differ if only
    chance were at work. Parts add up part by part, and all together they are the moments of all
    rows.

    Parameters
    ----------
    parts : tuple of CellMoments
        Of equal columns.
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
        self._refuse_too_large(len(dealt), rows.X.shape[1])
        # First all moments of the chunk, then all sums: rows that are refused change nothing.
        chunks = [
            CellMoments.from_checked(rows_where(rows, turn == number)) for number in range(N_PARTS)
        ]
        for part, chunk in zip(self.parts, chunks, strict=True):
            part.absorb(chunk)
        self.dealt = dealt
        return self

    def total(self) -> CellMoments:
        """Return the moments of all rows."""
        return sum(self.parts[1:], start=self.parts[0])

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

    def _refuse_too_large(self, n_cells: int, d: int) -> None:
        if N_PARTS * n_cells * d * d > MOST_ENTRIES:
            raise ValueError(
                f"n_spurious='auto' without the rows keeps {N_PARTS} x {n_cells} matrices of "
                f"{d} x {d} numbers, more than 2 GiB. Reduce the features first (for example "
                "sklearn.decomposition.IncrementalPCA), give n_spurious, or fit all rows at once "
                "with rank_test='permutation'."
            )


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


def rows_where(rows: Rows, mask: BoolArray) -> Rows:
    """Return the rows where a mask, (n,), is true; the labels stay all."""
    return rows if mask.all() else rows.take(mask)
