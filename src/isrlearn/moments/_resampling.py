"""The null of the rank tests from parts of the cells, without rows."""

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from isrlearn.moments._cells import CellMoments
from isrlearn.moments._conditioning import Conditioned, covariance_evidence, mean_evidence
from isrlearn.moments._frame import Frame
from isrlearn.moments._nulls import Evidence, joined, symmetric
from isrlearn.moments._parts import N_PARTS, PartMoments, turns
from isrlearn.rows import Rows, mapped
from isrlearn.typing import Float64Array, FloatArray, IntArray

LEAST_PARTS: Final = 4
ENOUGH_PARTS: Final = 8
MOST_ENTRIES: Final = 2**20  # of the deviations that are drawn at a time


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
    units: Units,
    cells: CellMoments,
    cond: Conditioned,
    frame: Frame,
    n_draws: int,
    random: np.random.Generator,
) -> Evidence:
    r"""Return the evidence of cells that differ by chance alone.

    The parts of a cell deviate from it in mean and covariance; times their weights, these
    deviations add up to zero. In a draw, the deviation of the cell is the sum of as many of them,
    drawn with replacement, over the weight of the cell: no normal law, no fourth moments and no
    equal weights are assumed.

    Parameters
    ----------
    units : Units
        Parts of all cells.
    cells : CellMoments
        The cells that are compared.
    cond : Conditioned
        Their moments given the class.
    frame : Frame
        Coordinates.
    n_draws : int
        How many.
    random : Generator
        Source of randomness.
    """
    deviations, owners = _deviations(units, cells, frame)
    step = max(1, MOST_ENTRIES // (len(cells.means) * deviations.shape[1]))
    sizes = [min(step, n_draws - start) for start in range(0, n_draws, step)]
    drawn = (_drawn(size, deviations, owners, cells, random) for size in sizes)
    return joined((_evidence_of(sums, cond, frame) for sums in drawn), n_draws)


def _drawn(
    n_draws: int,
    deviations: Float64Array,
    owners: IntArray,
    cells: CellMoments,
    random: np.random.Generator,
) -> Float64Array:
    """Return deviations of the cells by chance, (n_draws, m, columns)."""
    sums = np.zeros((n_draws, len(cells.means), deviations.shape[1]))
    for c in np.unique(cells.class_index):
        own = cells.class_index[owners] == c
        members = np.flatnonzero(cells.class_index == c)
        _add_draws(sums, members, deviations[own], owners[own], random)
    sums /= np.sqrt(cells.weights)[:, None]
    return sums


def _evidence_of(sums: Float64Array, cond: Conditioned, frame: Frame) -> Evidence:
    q, p = frame.forward.shape[1], frame.n_leading
    null = cond._replace(
        grams=np.broadcast_to(cond.grams, (len(sums), *cond.grams.shape)),
        coefs=sums[:, :, None, :q],
        scatters=symmetric(sums[..., q:], p),
        freedom=np.ones(sums.shape[:2]),
    )
    return Evidence(mean_evidence(null), covariance_evidence(null))


def units_of_stream(parts: PartMoments, cells: CellMoments, frame: Frame) -> Units:
    """Return the parts that a stream has kept.

    Parameters
    ----------
    parts : PartMoments
        Parts of all cells.
    cells : CellMoments
        The cells that are compared.
    frame : Frame
        Coordinates.
    """
    leading = frame.forward[:, : frame.n_leading]
    codes = _codes(cells, cells)
    found: list[tuple[int, float, Float64Array, Float64Array]] = []
    for part in parts.parts:
        own = _codes(part, cells)
        for cell in np.flatnonzero(np.isin(own, codes)):
            inside = leading.T @ part.covariances(np.array([cell]))[0] @ leading
            owner = int(np.searchsorted(codes, own[cell]))
            found.append((owner, float(part.weights[cell]), part.means[cell], inside))
    owners, weights, means, insides = zip(*found, strict=True)
    return Units(np.array(owners), np.array(weights), np.array(means), np.array(insides))


def units_of_rows(
    X: FloatArray, cell_of: IntArray, weights: Float64Array | None, frame: Frame
) -> Units:
    """Deal rows out to parts and add them up, the covariances in leading coordinates alone.

    So a cell takes 32 p x p matrices instead of 32 d x d ones.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.
    cell_of : ndarray of shape (n,)
        Cell of each row.
    weights : ndarray of shape (n,) or None
        Weights of the rows.
    frame : Frame
        Coordinates.
    """
    leading = frame.forward[:, : frame.n_leading]
    codes = cell_of * N_PARTS + turns(cell_of)
    means, inside = add_up_units(X, codes, weights, leading)
    return Units(means.classes // N_PARTS, means.weights, means.means, inside.covariances())


def add_up_units(
    X: FloatArray, codes: IntArray, weights: Float64Array | None, leading: Float64Array
) -> tuple[CellMoments, CellMoments]:
    """Return the means of parts, and their moments in leading coordinates.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.
    codes : ndarray of shape (n,)
        Part of each row: the classes of the results.
    weights : ndarray of shape (n,) or None
        Weights of the rows.
    leading : ndarray of shape (d, p)
        Map to leading coordinates.
    """
    rows = Rows.of_cells(X, codes, weights)
    means = CellMoments.from_checked(rows, second_order=False)
    return means, CellMoments.from_checked(replace(rows, X=mapped(X, leading)))


def _deviations(units: Units, cells: CellMoments, frame: Frame) -> tuple[Float64Array, IntArray]:
    """Return the deviations of all parts from their cells, (u, columns), and these cells, (u,)."""
    leading = frame.forward[:, : frame.n_leading]
    i, j = np.triu_indices(frame.n_leading)
    inside = leading.T @ cells.known_scatters() @ leading / cells.weights[:, None, None]
    shifts = (units.means - cells.means[units.owners]) @ frame.forward
    ahead = shifts[:, : frame.n_leading]
    spreads = units.covariances - inside[units.owners] + ahead[:, :, None] * ahead[:, None, :]
    rows = units.weights[:, None] * np.concatenate([shifts, spreads[:, i, j]], axis=1)
    return _stretched(rows, units.owners, cells.weights)


def _stretched(
    rows: Float64Array, owners: IntArray, weights: Float64Array
) -> tuple[Float64Array, IntArray]:
    """Give the parts of all cells one unit, and the degree of freedom that they lose to their cell.

    A part that is a whole cell does not deviate from it, and says nothing.
    """
    count = np.bincount(owners, minlength=len(weights))
    mean_weight = weights / np.maximum(count, 1)
    stretch = np.sqrt(count / np.maximum(count - 1, 1) / mean_weight)
    telling = count[owners] > 1
    return (rows * stretch[owners][:, None])[telling], owners[telling]


def _add_draws(
    sums: Float64Array,
    cells: IntArray,
    deviations: Float64Array,
    owners: IntArray,
    random: np.random.Generator,
) -> None:
    """Give each cell as many deviations as it has parts, drawn with replacement.

    From its own, so that weights and noise may differ between cells; a cell of few parts borrows
    those of its class.
    """
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


def _codes(moments: CellMoments, of: CellMoments) -> IntArray:
    """Return the place of each cell in the table of the classes and environments of `of`, or -1."""
    places = []
    for labels, index, table in (
        (moments.classes, moments.class_index, of.classes),
        (moments.environments, moments.environment_index, of.environments),
    ):
        place = np.minimum(np.searchsorted(table, labels), len(table) - 1)
        places.append(np.where(table[place] == labels, place, -1)[index])
    code = places[0] * len(of.environments) + places[1]
    return np.asarray(np.where((places[0] < 0) | (places[1] < 0), -1, code), dtype=np.intp)
