"""Evidence as it would be if the environments did not differ, by permuting them among rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array

from isrlearn.moments._cells import CellMoments
from isrlearn.moments._evidence import (
    CellEvidence,
    CellTable,
    Conditioned,
    Evidence,
    Frame,
    common_coefs,
    covariance_evidence,
    degrees_of_freedom,
    joined,
    mean_evidence,
    symmetric,
    unit_of_weight,
)
from isrlearn.rows import Rows
from isrlearn.typing import Float64Array, FloatArray, IntArray

MOST_STRATA: Final = 20
ROWS_PER_STRATUM: Final = 20  # of each environment
MOST_UNITS: Final = 1500  # of each class: so many can be permuted in little time
MOST_CODES: Final = 2**20  # entries of the matrix of codes at a time: what a cache holds
MOST_ROWS: Final = 2**13  # gathered at a time
MOST_ENTRIES: Final = 2**20  # of sums that are turned into evidence at a time
MOST_SINGLE: Final = 1e30  # sums of many such numbers do not overflow in single precision
DENSE_CELLS: Final = 32  # of more, most indicators are zero


class TargetRows(NamedTuple):
    """Rows that enter the moments, with their target as the method conditions on it."""

    X: FloatArray
    """(n, d)"""
    phi: Float64Array
    """(n, s), a one in the first column."""
    cells: IntArray
    """(n,) cell of each row."""
    strata: IntArray
    """(n,) environments are permuted among rows of one stratum: a class, or similar targets."""
    weights: Float64Array | None
    """(n,)"""

    @classmethod
    def of(cls, rows: Rows, cells: CellMoments, random: np.random.Generator) -> Self:
        """Return the rows that are in one of the cells."""
        codes = CellTable.of(cells).codes_of(rows)
        rows, codes = rows.where(codes >= 0), codes[codes >= 0]
        weights = rows.sample_weight
        weights = None if weights is None else weights * unit_of_weight(cells)
        ones = np.ones((len(codes), 1))
        if rows.response is None:
            return cls(rows.X, ones, codes, rows.class_codes, weights)
        # For a number: phi(y) = (1, y), in strata of neighbouring y, ties by chance.
        y, n = rows.response, len(codes)
        n_strata = int(np.clip(n // (ROWS_PER_STRATUM * len(cells.means)), 1, MOST_STRATA))
        ranks = np.empty(n, dtype=np.intp)
        ranks[np.lexsort((random.uniform(size=n), y))] = np.arange(n)
        return cls(rows.X, np.column_stack([ones, y]), codes, ranks * n_strata // n, weights)


@dataclass(frozen=True, eq=False)
class PermuteEnvironments:
    """The pass that gives rows of the same class, or of similar targets, new environments.

    For the means the rows are taken about the common relation to the target: where nothing differs
    the test is exact. For the covariances they are taken about that of their own cell, scaled to
    their degrees of freedom, so that differences of means do not count as spread.

    A row takes its weight along, relative to the usual weight of its cell: weights may depend on
    the features, and on class and environment by a factor.

    Beyond 1500 rows of a class, rows are first put together by chance in units of equal size, and
    units are permuted: every cell still gets a random sample of its own size.

    Parameters
    ----------
    evidence : CellEvidence
        The cells, and the coordinates in which they are compared.
    n_permutations : int
        How many.
    random : Generator
        Source of randomness.
    """

    evidence: CellEvidence
    n_permutations: int
    random: np.random.Generator

    def __call__(self, rows: Rows) -> Evidence:
        """Return the evidence of permuted environments, for rows that are all in memory."""
        _, cond, frame = self.evidence[:3]
        target = TargetRows.of(rows, self.evidence.cells, self.random)
        usual = np.ones(len(cond.group))
        if target.weights is not None:  # the median: a mean would follow a few large ones
            for cell in np.unique(target.cells):
                usual[cell] = np.median(target.weights[target.cells == cell])
        features = _features_of(target, cond, frame, usual)
        s, q, p = cond.grams.shape[-1], frame.forward.shape[1], frame.n_leading
        sizes = s * s, s * q, s * p, p * (p + 1) // 2  # columns of phi phi', phi x, phi r, r r'
        sums = np.zeros((self.n_permutations, len(cond.group), sum(sizes)))
        for units, cells in _units(target, cond, self.random):
            _add_permuted(sums, features(units), cells, self.random)
        sums *= usual[:, None]
        step = max(1, MOST_ENTRIES // sums[0].size)
        starts = range(0, len(sums), step)
        return joined((_evidence(sums[s : s + step], sizes, cond) for s in starts), len(sums))


def _features_of(
    rows: TargetRows, cond: Conditioned, frame: Frame, usual: Float64Array
) -> Callable[[IntArray], FloatArray]:
    """Return the function that gives the sums of units of rows, (u, g) -> (u, columns)."""
    common = common_coefs(cond)
    leading = frame.forward[:, : frame.n_leading]
    weights = cond.grams[:, 0, 0]
    stretch = np.sqrt(weights / degrees_of_freedom(weights, cond.grams.shape[-1]))
    upper = np.triu_indices(frame.n_leading)

    relative = None if rows.weights is None else rows.weights / usual[rows.cells]

    inside = cond.coefs @ leading

    def sums(units: IntArray) -> FloatArray:
        cells, phi = rows.cells[units], rows.phi[units]
        X = rows.X[units].astype(np.float64)
        own = 1.0 if relative is None else relative[units][..., None]
        transposed = np.swapaxes(phi * own, 1, 2)
        gram = transposed @ phi
        # The rows of a unit are of one stratum, and what they have in common is the same for all.
        about_common = transposed @ X - gram @ common[cells[:, 0]]
        about_cell = X @ leading - np.einsum("ugs,ugsp->ugp", phi, inside[cells])
        about_cell *= stretch[cells][..., None]
        square = np.swapaxes(about_cell * own, 1, 2) @ about_cell
        parts = (
            gram,
            about_common @ frame.forward,
            transposed @ about_cell,
            square[:, upper[0], upper[1]],
        )
        return np.concatenate([part.reshape(len(units), -1) for part in parts], axis=1)

    def in_pieces(units: IntArray) -> FloatArray:
        step = max(1, MOST_ROWS // units.shape[1])
        pieces = [sums(units[i : i + step]) for i in range(0, len(units), step)]
        found = np.concatenate(pieces)
        # Single precision is twice as fast; weights that differ widely are beyond its range.
        fits = np.abs(found).max(initial=0.0) < MOST_SINGLE
        return found.astype(np.float32) if fits else found

    return in_pieces


def _units(
    rows: TargetRows, cond: Conditioned, random: np.random.Generator
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield units of rows, (u, g), and the cells, (u,), that they are to be shared out to.

    A cell of n rows has n // g places for units of g rows and n % g for single rows, so its size
    stays.
    """
    n_strata = np.bincount(cond.group[rows.cells[np.unique(rows.strata, return_index=True)[1]]])
    for stratum in np.unique(rows.strata):
        members = random.permutation(np.flatnonzero(rows.strata == stratum))
        counts = np.bincount(rows.cells[members], minlength=len(cond.group))
        group = cond.group[rows.cells[members[0]]]
        size = max(1, len(members) * int(n_strata[group]) // MOST_UNITS)
        whole, rest = np.divmod(counts, size)
        n_whole = int(whole.sum()) * size
        for units, share in (
            (members[:n_whole].reshape(-1, size), whole),
            (members[n_whole:].reshape(-1, 1), rest),
        ):
            if len(units):
                yield units, np.repeat(np.arange(len(counts)), share)


def _add_permuted(
    sums: Float64Array,
    features: FloatArray,
    cells: IntArray,
    random: np.random.Generator,
) -> None:
    """Share out units to places by chance, once for each permutation, and add up their features."""
    present, codes = np.unique(cells, return_inverse=True)
    step = max(1, MOST_CODES // (len(cells) * len(present)))
    total = features.sum(axis=0, dtype=np.float64)  # what one cell gets, the others leave
    for start in range(0, len(sums), step):
        n = min(step, len(sums) - start)
        shared_out = random.permuted(np.tile(codes, (n, 1)), axis=1)
        added = _one_hot(shared_out, len(present)) @ features
        added = added.reshape(n, len(present) - 1, features.shape[1])
        sums[start : start + n, present[1:]] += added
        sums[start : start + n, present[0]] += total - added.sum(axis=1)


def _one_hot(codes: IntArray, n_cells: int) -> Any:
    """Return the indicators of all cells but the first, (n (n_cells - 1), u), of codes (n, u)."""
    n, u = codes.shape
    if n_cells <= DENSE_CELLS:
        one_hot = codes[:, None, :] == np.arange(1, n_cells)[:, None]
        return one_hot.reshape(-1, u).astype(np.float32)
    permutation, unit = np.nonzero(codes)
    rows = permutation * (n_cells - 1) + codes[permutation, unit] - 1
    ones = np.ones(len(rows), np.float32)
    return csr_array((ones, (rows, unit)), shape=(n * (n_cells - 1), u))


def _evidence(sums: Float64Array, sizes: tuple[int, ...], cond: Conditioned) -> Evidence:
    """Turn sums over the rows of each cell into evidence."""
    s = cond.grams.shape[-1]
    gram, product, inner, upper = np.split(sums, np.cumsum(sizes)[:-1], axis=-1)
    grams = gram.reshape(*gram.shape[:-1], s, s)
    inverse = np.linalg.pinv(grams, hermitian=True)
    products = product.reshape(*grams.shape[:-1], -1)
    inners = inner.reshape(*grams.shape[:-1], -1)
    explained = np.swapaxes(inners, -1, -2) @ inverse @ inners
    null = cond._replace(
        grams=grams,
        coefs=inverse @ products,
        scatters=symmetric(upper, inners.shape[-1]) - explained,
        freedom=degrees_of_freedom(grams[..., 0, 0], s),
    )
    return Evidence(mean_evidence(null), covariance_evidence(null))
