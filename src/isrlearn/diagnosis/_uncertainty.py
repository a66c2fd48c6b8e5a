"""How sure a fit is: what chance alone shows, and how far a subspace may turn."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.linalg import subspace_angles

from isrlearn.moments import Evidence
from isrlearn.subspace import (
    RankChoice,
    Recovery,
    Workings,
    choose_rank,
    joint_directions,
    joint_values,
)
from isrlearn.typing import Float64Array

MOST_DRAWS: Final = 100
BAND: Final = (0.025, 0.975)


@dataclass(frozen=True, eq=False)
class Chance:
    """What the null draws of a fit say: all that is kept of them in a saved estimator.

    Parameters
    ----------
    means, covariances : RankChoice
        What means alone, and covariances alone, find.
    angle : tuple of float or None
        Angle that the subspace may be off by, in radians: 2.5, 50 and 97.5 % quantiles.
    spectrum : ndarray of shape (3, n)
        How much differs, in units of noise, step by step, and what chance alone shows: the 2.5 and
        97.5 % quantiles.
    """

    means: RankChoice
    covariances: RankChoice
    angle: tuple[float, float, float] | None
    spectrum: Float64Array


def chance_of(found: Recovery) -> Chance | None:
    """Return what the null draws of a fit say; None if there were none."""
    subspace, choice, workings = found
    if choice is None or workings is None:
        return None
    if isinstance(workings, Chance):
        return workings
    angle = None
    if subspace.rank:
        quantiles = np.quantile(angle_draws(workings, subspace.rank), [0.025, 0.5, 0.975])
        low, middle, high = quantiles.tolist()
        angle = low, middle, high
    values, nulls = null_spectra(workings, choice.rank)
    bands = np.quantile(nulls, BAND, axis=0)
    return Chance(
        found_by(workings, "means", choice.alpha),
        found_by(workings, "covariances", choice.alpha),
        angle,
        np.vstack([values, bands]),
    )


def found_by(workings: Workings, orders: str, alpha: float) -> RankChoice:
    """Return what means alone, or covariances alone, find."""
    joint, most = workings.joint(orders), workings.frame.n_leading
    if orders == "means":
        most = int(np.linalg.matrix_rank(joint.means))
    return choose_rank(
        workings.observed,
        workings.null,
        workings.frame,
        lambda rank: joint_directions(joint, rank) @ joint.to_frame,
        alpha=alpha,
        most=min(most, joint.means.shape[1] - 1),
        n_rows=workings.n_rows,
        orders=orders,
    )


def null_spectra(workings: Workings, rank: int) -> tuple[Float64Array, Float64Array]:
    """Return how much differs, in units of noise, step by step, and how much chance alone shows.

    As the tests do, each direction is looked at after those before it are removed: value k is the
    leading eigenvalue of what is left after k directions; after `rank` directions all that are left
    follow. Otherwise the strongest draws of chance, which come first in the nulls, would be
    compared with true differences, and what is left with the weak ones.

    Parameters
    ----------
    workings : Workings
        Of the fit.
    rank : int
        Directions that the tests found.

    Returns
    -------
    values : ndarray of shape (q,)
        Of the data.
    nulls : ndarray of shape (B, q)
        The same of data sets in which environments do not differ.
    """
    joint = workings.joint(workings.orders)
    steps = [joint_directions(joint, k) @ joint.to_frame if k else None for k in range(rank + 1)]
    draws = [Evidence(*pair) for pair in zip(*(n[:MOST_DRAWS] for n in workings.null), strict=True)]
    every = [_stepwise(workings, evidence, steps) for evidence in (workings.observed, *draws)]
    shortest = min(map(len, every))
    table = np.array([values[:shortest] for values in every])
    return table[0], table[1:]


def _stepwise(
    workings: Workings, evidence: Evidence, steps: list[Float64Array | None]
) -> Float64Array:
    *first, last = (_rest_values(workings, evidence, removed) for removed in steps)
    return np.concatenate([[values[0] for values in first], last])


def _rest_values(
    workings: Workings, evidence: Evidence, removed: Float64Array | None
) -> Float64Array:
    """Return the eigenvalues of evidence after rows (r, q) of the frame are removed from it."""
    means, covariances = (np.asarray(part, dtype=np.float64) for part in evidence)
    n_gone = 0
    if removed is not None:
        n_gone, p = len(removed), workings.frame.n_leading
        basis = np.linalg.qr(removed.T)[0]
        means = means - (means @ basis) @ basis.T
        inside = np.linalg.qr(removed[:, :p].T)[0]
        keep = np.eye(p) - inside @ inside.T
        covariances = keep @ covariances @ keep
    without = workings._replace(observed=Evidence(means, covariances))
    values = joint_values(without.joint(workings.orders))
    return values[: max(1, len(values) - n_gone)]


def angle_draws(workings: Workings, rank: int) -> Float64Array:
    """Return the largest angle between what the evidence and noisier evidence show, one per draw.

    Each draw adds to the evidence what chance alone gives, and finds the subspace again. The angles
    are as large as those to the true subspace would be.

    Parameters
    ----------
    workings : Workings
        Of the fit.
    rank : int
        Number of directions.
    """
    joint, angles = workings.joint(workings.orders), []
    leading = joint.from_frame[: workings.frame.n_leading]
    on_means, on_covariances = joint.means.any(), joint.covariances.any()
    here = joint_directions(joint, rank) @ joint.to_frame @ workings.frame.backward
    for means, covariances in zip(*(null[:MOST_DRAWS] for null in workings.null), strict=True):
        noisier = joint._replace(
            means=joint.means + on_means * (means @ joint.from_frame),
            covariances=joint.covariances + on_covariances * (leading.T @ covariances @ leading),
        )
        there = joint_directions(noisier, rank) @ joint.to_frame @ workings.frame.backward
        angles.append(subspace_angles(here.T, there.T).max())
    return np.array(angles)
