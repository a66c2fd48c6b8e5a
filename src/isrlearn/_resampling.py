"""The null of the rank tests from parts of the cells, without rows."""

from typing import Final

import numpy as np

from isrlearn._conditioning import Conditioned, covariance_evidence, mean_evidence
from isrlearn._frame import Frame
from isrlearn._nulls import Evidence, symmetric
from isrlearn._parts import PartMoments
from isrlearn._typing import Float64Array, IntArray
from isrlearn.moments import CellMoments

LEAST_PARTS: Final = 4
ENOUGH_PARTS: Final = 8


def resampled(
    parts: PartMoments,
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
    parts : PartMoments
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
    q, p = frame.forward.shape[1], frame.n_leading
    deviations, owners = _deviations(parts, cells, frame)
    sums = np.zeros((n_draws, len(cells.means), deviations.shape[1]))
    for c in np.unique(cells.class_index):
        own = cells.class_index[owners] == c
        members = np.flatnonzero(cells.class_index == c)
        _add_draws(sums, members, deviations[own], owners[own], random)
    scaled = sums / np.sqrt(cells.weights)[:, None]
    null = cond._replace(
        grams=np.broadcast_to(cond.grams, (n_draws, *cond.grams.shape)),
        coefs=scaled[:, :, None, :q],
        covariances=symmetric(scaled[..., q:], p),
    )
    return Evidence(mean_evidence(null), covariance_evidence(null))


def _deviations(
    parts: PartMoments, cells: CellMoments, frame: Frame
) -> tuple[Float64Array, IntArray]:
    """Return the deviations of all parts from their cells, (u, columns), and these cells, (u,)."""
    leading = frame.forward[:, : frame.n_leading]
    i, j = np.triu_indices(frame.n_leading)
    covariances = cells.covariances()
    codes = _codes(cells, cells)
    rows, owners = [], []
    for part in parts.parts:
        own = _codes(part, cells)
        for cell in np.flatnonzero(np.isin(own, codes)):
            owner = int(np.searchsorted(codes, own[cell]))
            shift = part.means[cell] - cells.means[owner]
            spread = part.covariances(np.array([cell]))[0] - covariances[owner]
            inside = leading.T @ spread @ leading + np.outer(shift @ leading, shift @ leading)
            row = np.concatenate([shift @ frame.forward, inside[i, j]])
            rows.append(part.weights[cell] * row)
            owners.append(owner)
    return _stretched(np.array(rows), np.array(owners, dtype=np.intp), cells.weights)


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
        source = own if len(own) >= ENOUGH_PARTS else deviations
        shares = np.full(len(source), 1 / len(source))
        sums[:, cell] = random.multinomial(g, shares, size=len(sums)) @ source / np.sqrt(g)


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
