r"""How many directions the data identify at most, and what rounding errors may do to them.

A subspace turns by the rounding error of the matrix that it was found in, over the gap between the
values that are taken and those that are left (Davis and Kahan). Where rows are far from zero, where
columns are nearly combinations of each other, or where two values are nearly equal, that may be
more than a user should not know of.
"""

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Final

import numpy as np
from scipy.linalg import subspace_angles

from isrlearn.display import brief
from isrlearn.exceptions import PrecisionWarning, warn_user
from isrlearn.moments import (
    FEW_COORDINATES,
    CellMoments,
    Conditioned,
    Frame,
    covariance_evidence,
    feature_scales,
    mean_evidence,
)
from isrlearn.rows import WIDE
from isrlearn.subspace._joint import Joint
from isrlearn.typing import Float64Array, IntArray

NUMBER: Any = Real  # with an order that type checkers do not know
AUTO: Final = "auto"
MOST_PERMUTATIONS: Final = 100_000
RANK_TESTS: Final = ("permutation", "moments")
FLOAT64_ROUNDING: Final = 64 * float(np.finfo(np.float64).eps)


def n_identified(values: Float64Array, rounding: Float64Array) -> int:
    """Count the leading values that are larger than their rounding errors.

    Parameters
    ----------
    values : ndarray of shape (d,)
        By descending absolute value.
    rounding : ndarray of shape (m,)
        Rounding error of the first m; the others are zero by construction.
    """
    size = np.abs(values[: len(rounding)])
    if len(size) == 0:
        return 0
    beyond = size > np.maximum(rounding, FLOAT64_ROUNDING * size[0])
    return int(np.argmin(beyond)) if not beyond.all() else len(beyond)


def rounding_unit(cells: CellMoments) -> float:
    """Return the relative rounding error of sums: beyond 256 features that of the rows."""
    wide = len(cells.largest) > WIDE
    return max(cells.precision if wide else 0.0, float(np.finfo(np.float64).eps))


def norms(rows: Float64Array) -> Float64Array:
    """Return the length of each row, (..., d): also where the square of a number overflows."""
    exponent = int(np.frexp(np.abs(rows).max(initial=0.0))[1])
    lengths = np.linalg.norm(np.ldexp(rows, -exponent), axis=-1)
    return np.asarray(np.ldexp(lengths, exponent))


def mean_rounding(
    vectors: Float64Array, largest: Float64Array, precision: float, n_rows: int
) -> Float64Array:
    r"""Return the rounding error of differences of means along each vector.

    A value of column j is off by :math:`\epsilon\,|x_j|`, the mean of n of them by
    :math:`\sqrt n` less; sums add their own, which beyond 256 features are those of the rows'
    precision.

    Parameters
    ----------
    vectors : ndarray of shape (m, d)
        Directions.
    largest : ndarray of shape (d,)
        Largest absolute value of each column.
    precision : float
        Relative rounding error of the rows.
    n_rows : int
        Rows of the smallest cell.
    """
    sizes = norms(vectors * largest)
    summed = 4 * precision if len(largest) > WIDE else FLOAT64_ROUNDING
    return np.asarray(sizes * (precision / np.sqrt(n_rows) + max(summed, FLOAT64_ROUNDING)))


def covariance_rounding(
    vectors: Float64Array,
    largest: Float64Array,
    spreads: Float64Array,
    precision: float,
    n_rows: int,
) -> Float64Array:
    r"""Return the rounding error of differences of covariances along each vector.

    Errors q of the values enter as 2 q s + q^2, less by the root of n; the products of rows are
    off by a few :math:`\epsilon s^2`.

    Parameters
    ----------
    vectors, largest, precision, n_rows
        As in `mean_rounding`.
    spreads : ndarray of shape (d,)
        Largest standard deviation of each column.
    """
    q = precision * np.linalg.norm(vectors * largest, axis=1)
    s = np.linalg.norm(vectors * spreads, axis=1)
    products = (4 * precision + FLOAT64_ROUNDING) * s**2
    return np.asarray((2 * q * s + q**2) / np.sqrt(n_rows) + products)


def check_n_spurious(n_spurious: Any) -> None:
    """Raise an error unless `n_spurious` is an integer >= 0 or "auto"."""
    if isinstance(n_spurious, str) and n_spurious == AUTO:
        return
    if isinstance(n_spurious, bool) or not isinstance(n_spurious, Integral) or n_spurious < 0:
        raise ValueError(f"n_spurious={brief(n_spurious)} must be an integer >= 0 or 'auto'.")


def check_search(alpha: Any, rank_test: Any, n_permutations: Any) -> None:
    """Raise an error unless the parameters of the rank test make sense together."""
    if not isinstance(alpha, NUMBER) or not 0 < alpha < 1:
        raise ValueError(f"alpha={brief(alpha)} must be a number between 0 and 1, such as 0.01.")
    if not isinstance(rank_test, str) or rank_test not in RANK_TESTS:
        raise ValueError(f"rank_test={brief(rank_test)} must be one of {RANK_TESTS}.")
    if float(alpha) * (MOST_PERMUTATIONS + 1) < 1:
        raise ValueError(
            f"alpha={float(alpha):g} is too small to be tested by permutations: it must be at "
            f"least {1 / MOST_PERMUTATIONS:g}."
        )
    least = math.ceil(1 / float(alpha)) - 1
    whole = isinstance(n_permutations, Integral) and not isinstance(n_permutations, bool)
    if not whole or n_permutations > MOST_PERMUTATIONS:
        raise ValueError(
            f"n_permutations={brief(n_permutations)} must be an integer from {least} to "
            f"{MOST_PERMUTATIONS}."
        )
    if n_permutations < least:
        raise ValueError(
            f"n_permutations={n_permutations} cannot give a p-value of alpha={float(alpha):g}: use "
            f"at least {least}, or a larger alpha."
        )


def check_rank(n_spurious: int, identified: int, n_features: int, where: str) -> None:
    """Raise an error unless the data identify `n_spurious` directions and one more stays.

    Parameters
    ----------
    n_spurious : int
        Directions asked for.
    identified : int
        Directions that the data identify.
    n_features : int
        Number of features d.
    where : str
        What `identified` was counted in, for the message.
    """
    most = min(identified, n_features - 1)
    if n_spurious <= most:
        return
    if identified == 0:
        raise ValueError(
            f"n_spurious={brief(n_spurious)}, but no direction is identified: {where} do not "
            "differ given the class by more than rounding errors. Use n_spurious=0, or an "
            "environment that makes a difference; if features are large against their differences, "
            "centre and scale them."
        )
    if identified < n_features:
        raise ValueError(
            f"n_spurious={brief(n_spurious)} is more than the data identify: at most {identified}, "
            f"the directions in which {where} differ given the class. Lower n_spurious to "
            f"{identified} or less, or add environments."
        )
    raise ValueError(
        f"n_spurious={brief(n_spurious)} would leave nothing of {n_features} feature(s): at most "
        f"{most} can be removed."
    )


MOST_TURN: Final = 0.01  # radians that rounding errors may turn a subspace by, unsaid
MOST_UNSETTLED: Final = 1e-6  # radians of a last step, unsaid
MOST_SPREADS: Final = 3000.0  # between means: beyond, most digits of the noise are gone
SUSPICIOUS: Final = 1e-9  # rounding error of whitened moments
MIXED: Final = 8.0  # rounding errors by which coordinates are turned
SHARE: Final = 1e-6  # of a column that is left out
NUDGE: Final = 4.0  # rounding errors
EPSILON: Final = float(np.finfo(np.float64).eps)
NAMED: Final = 3  # columns in a message


def turn_of_covariances(
    values: Float64Array, rank: int, cells: CellMoments, spreads: Float64Array
) -> float:
    """Return the same for a difference of covariances.

    Parameters
    ----------
    values : ndarray of shape (d,)
        Eigenvalues by descending absolute value.
    rank, cells
        As in `turn_over_gap`.
    spreads : ndarray of shape (d,)
        Largest standard deviation of each column.
    """
    far, spread = float(np.linalg.norm(cells.largest)), float(np.linalg.norm(spreads))
    # Means are rounded where chunks are merged, and the spread of the chunks' means is multiplied.
    merged = 2 * EPSILON * far * spread / float(np.sqrt(cells.counts.min()))
    # Entries are rounded by chance: the norm of all is far less than the sum of their sizes.
    off = merged + rounding_unit(cells) * spread * float(spreads.max())
    return turn_over_gap(off, np.abs(values), rank)


def turn_of_flag_mean(values: Float64Array, rank: int, turns: list[float]) -> float:
    """Return the same for the flag mean of several subspaces.

    Parameters
    ----------
    values : ndarray of shape (d,)
        Eigenvalues of the mean projection, descending.
    rank : int
        As in `turn_over_gap`.
    turns : list of float
        Of the subspaces.
    """
    return turn_over_gap(EPSILON + float(np.mean(turns)), values, rank)


def turn_over_gap(off: float, sizes: Float64Array, rank: int) -> float:
    """Return the error of a matrix over the gap after the first `rank` of its values."""
    if not 0 < rank < len(sizes):
        return 0.0
    gap = float(sizes[rank - 1] - sizes[rank])
    return off / gap if gap > off else 1.0


def warn_of_turn(turn: float, what: str) -> None:
    """Warn if a subspace may be turned by more than a hundredth.

    Parameters
    ----------
    turn : float
        Radians.
    what : str
        What was compared.
    """
    if turn > MOST_TURN:
        warn_user(
            f"rounding errors may turn the removed directions by {min(turn, 1.0):.2g} radians "
            f"(at most {MOST_TURN:g} is left unsaid): the {what} have digits for no more. Centre "
            "and scale the features, drop columns that are nearly combinations of others, pass "
            "float64, or choose another n_spurious if two directions differ as much.",
            PrecisionWarning,
        )


def warn_of_unsettled(turn: float) -> None:
    """Warn if the directions of `ISR` still turn where the iteration ends.

    Parameters
    ----------
    turn : float
        Radians of one more step.
    """
    if turn > MOST_UNSETTLED:
        warn_user(
            "the removed directions did not settle: one more step would turn them by "
            f"{min(turn, 1.0):.2g} radians (at most {MOST_UNSETTLED:g} is left unsaid). Several "
            "sets of directions explain the differences about as well: choose another n_spurious.",
            PrecisionWarning,
        )


def warn_of_pairs_left_out(n_left_out: int, n_pairs: int, rank: int) -> None:
    """Warn if some pairs of environments differ in too few directions to be averaged.

    Parameters
    ----------
    n_left_out, n_pairs : int
        Pairs that do, and all pairs. Those that do not differ at all are no loss.
    rank : int
        Directions that a pair must have.
    """
    if n_left_out:
        warn_user(
            f"{n_left_out} of {n_pairs} pairs of environments differ in fewer than {rank} "
            "direction(s) by more than rounding errors, and are left out of the average. Lower "
            "n_spurious, or centre and scale the features.",
            PrecisionWarning,
        )


def warn_of_dropped(cond: Conditioned, frame: Frame, rounding: Float64Array) -> None:
    """Warn if environments differ in what the coordinates leave out as constant or combination.

    Parameters
    ----------
    cond : Conditioned
        The moments.
    frame : Frame
        Coordinates, which may be fewer than features.
    rounding : ndarray of shape (d,)
        Rounding error of each feature.
    """
    if frame.forward.shape[1] == len(rounding):
        return
    sizes = np.linalg.norm(frame.backward, axis=0)
    differences = mean_evidence(cond)
    if len(rounding) <= FEW_COORDINATES:  # of more, weak coordinates are not raised to the others
        relative = covariance_evidence(cond) / np.where(sizes > rounding, sizes, np.inf)[:, None]
        differences = np.vstack([differences, *relative])
    differences /= np.sqrt(cond.grams[:, 0, 0].sum())
    lost = np.abs(differences - (differences @ frame.forward) @ frame.backward).max(axis=0)
    lost = np.minimum(lost, np.abs(differences).max(axis=0))  # none in a column of zeros
    least = _rounding_left_out(frame, rounding, sizes)
    columns = np.flatnonzero(lost > least)
    if len(columns):
        warn_user(
            f"environments differ by up to {lost[columns].max():.2g} in columns "
            f"{_some(columns)}, but only in a part that is below the precision of the other "
            f"columns (a share of 1e-13 of the variance, or {rounding[columns].max():.2g} of "
            "rounding): that difference is not seen. Subtract the column that the others nearly "
            "add up to, or centre the features, and pass float64.",
            PrecisionWarning,
        )


def _rounding_left_out(frame: Frame, rounding: Float64Array, sizes: Float64Array) -> Float64Array:
    """Return the differences that rounding errors make in what coordinates leave out, (d,)."""
    shares = 1 - np.einsum("jk,kj->j", frame.forward, frame.backward)
    involved = (shares > SHARE) & (sizes > rounding)
    of_rows = float((rounding[involved] / sizes[involved]).max(initial=0.0))
    # Weak coordinates are mixed with those left out by as much as rounding turns them.
    mixed = MIXED * EPSILON / np.sqrt(frame.weakest)
    return np.asarray(rounding + (of_rows + mixed) * sizes)


def warn_of_little_noise(
    joint: Joint, frame: Frame, cond: Conditioned, rounding: Float64Array
) -> None:
    """Warn if means of environments differ by more than thousands of standard deviations.

    A column that is constant in each cell is no such case: there is no noise that could be lost.

    Parameters
    ----------
    joint : Joint
        The evidence.
    frame : Frame
        Coordinates.
    cond : Conditioned
        The moments.
    rounding : ndarray of shape (d,)
        Rounding error of each feature.
    """
    axes, in_spreads, _ = np.linalg.svd(joint.from_frame, full_matrices=False)
    sizes = np.linalg.norm(frame.backward, axis=0)
    within = np.diagonal(cond.scatters, axis1=-2, axis2=-1).sum(axis=0) / cond.freedom.sum()
    silent = feature_scales(within, rounding)[1] & (sizes > rounding)
    if np.sum(in_spreads > MOST_SPREADS) > np.sum(silent):
        share = np.abs(axes[:, 0] @ frame.backward) / np.where(
            silent | (sizes <= rounding), np.inf, sizes
        )
        warn_user(
            f"means of environments differ by more than {MOST_SPREADS:.0f} standard deviations of "
            f"the rows within cells, mostly in column {np.argmax(share)}: noise so small is known "
            "to few digits, and what is removed beside this direction may be off. Drop a column "
            "that names the environment, or use ISRMean, which needs no noise.",
            PrecisionWarning,
        )


def is_suspicious(cond: Conditioned, frame: Frame, rounding: Float64Array) -> bool:
    """Whether whitening may raise rounding errors to more than the ninth digit.

    Parameters
    ----------
    cond : Conditioned
        The moments.
    frame : Frame
        Coordinates.
    rounding : ndarray of shape (d,)
        Rounding error of each feature.
    """
    of_rows = np.linalg.norm(rounding[:, None] * frame.forward, axis=0).max(initial=0.0)
    before = np.broadcast_to(cond.before, len(rounding))[:, None]
    of_target = EPSILON * np.linalg.norm(before * frame.forward, axis=0).max(initial=0.0) ** 2
    return bool(max(EPSILON / frame.weakest, of_rows, of_target) > SUSPICIOUS)


def turn_by_rounding(
    cond: Conditioned,
    frame: Frame,
    rounding: Float64Array,
    directions: Float64Array,
    found_in: Callable[[Conditioned], Float64Array],
) -> float:
    """Return the angle that a subspace turns by when the moments are nudged by rounding errors.

    Parameters
    ----------
    cond : Conditioned
        The moments.
    frame : Frame
        Coordinates that they were compared in.
    rounding : ndarray of shape (d,)
        Rounding error of each feature.
    directions : ndarray of shape (r, d)
        What was found.
    found_in : callable
        Returns directions from moments.
    """
    return turn_between(directions, found_in(_nudged(cond, frame, rounding)))


def turn_between(here: Float64Array, there: Float64Array) -> float:
    """Return the sine of the largest angle between rows (r, d) and rows that may be fewer."""
    if len(there) < len(here):
        return 1.0
    return float(np.sin(subspace_angles(here.T, there.T).max(initial=0.0)))


def hides_weak_ones(frame: Frame, data: Float64Array, own: Float64Array) -> bool:
    """Whether coordinates were left out that rows in single precision may show.

    They vary by about the rounding errors of such rows, which are few enough for noise, but not
    for a difference of means of many rows.

    Parameters
    ----------
    frame : Frame
        Coordinates.
    data, own : ndarray of shape (d,)
        Rounding error of each feature in the rows, and in sums over them.
    """
    # Of more features weak coordinates are not raised to the others.
    left_out = frame.forward.shape[1] < len(data) <= FEW_COORDINATES
    return left_out and bool(np.any(data > own))


def _nudged(cond: Conditioned, frame: Frame, rounding: Float64Array) -> Conditioned:
    """Return moments that are off by a few rounding errors, the same in each call.

    Scatters are added to the scatter of the means, so the spread of all rows says how much of them
    is lost; so does the spread before the target was regressed out. Means that are off by their
    rounding error add it times the spread of means. What the coordinates leave out stays out.
    """
    random = np.random.default_rng(0)
    inside = frame.forward @ frame.backward
    spreads = np.maximum(np.linalg.norm(frame.backward, axis=0), cond.before)
    signs = np.asarray(random.uniform(-1, 1, cond.scatters.shape))
    # Freedom is in units of the weights, whatever these are; a cell has a row at least.
    n_rows = np.maximum(cond.grams[:, 0, :1], 1.0)
    errors = cond.freedom[:, None] * (NUDGE * EPSILON * spreads + rounding / np.sqrt(n_rows))
    off = signs * errors[:, :, None] * spreads
    off += np.swapaxes(off, -1, -2)
    moved = np.asarray(random.uniform(-1, 1, cond.coefs.shape)) * rounding
    return cond._replace(
        scatters=cond.scatters + inside.T @ off @ inside, coefs=cond.coefs + moved @ inside
    )


def _some(columns: IntArray) -> str:
    more = ", ..." if len(columns) > NAMED else ""
    return ", ".join(str(j) for j in columns[:NAMED].tolist()) + more
