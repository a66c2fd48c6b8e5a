"""What a fit keeps so that it can be diagnosed."""

from typing import Final, NamedTuple

import numpy as np
from scipy.linalg import subspace_angles

from isrlearn._frame import Frame
from isrlearn._joint import Joint, joint_directions, joint_space, joint_values
from isrlearn._nulls import Evidence
from isrlearn._rank_test import RankChoice, choose_rank
from isrlearn._typing import Float64Array

MOST_DRAWS: Final = 100


class Workings(NamedTuple):
    """Evidence of a fit and of its nulls, in the frame that both were compared in."""

    observed: Evidence
    null: Evidence
    frame: Frame
    n_rows: float
    orders: str
    """What the method looks at: "both", "means" or "covariances"."""

    def compact(self) -> "Workings":
        """Return the same with nulls in single precision, for a fitted estimator to keep."""
        means, covariances = (np.asarray(part, dtype=np.float32) for part in self.null)
        return self._replace(null=Evidence(means, covariances))  # type: ignore[arg-type]

    def joint(self, orders: str = "both") -> Joint:
        """Return the evidence in the space of white noise, of both orders or of one alone."""
        return _of_orders(joint_space(*self.observed, self.frame, self.n_rows), orders)


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


def _of_orders(joint: Joint, orders: str) -> Joint:
    if orders == "means":
        return joint._replace(covariances=np.zeros_like(joint.covariances))
    if orders == "covariances":
        return joint._replace(means=np.zeros_like(joint.means))
    return joint


def null_spectra(workings: Workings) -> tuple[Float64Array, Float64Array]:
    """Return the eigenvalues of what differs, in units of noise, and those of chance alone.

    Parameters
    ----------
    workings : Workings
        Of the fit.

    Returns
    -------
    values : ndarray of shape (q,)
        Descending, of the data.
    nulls : ndarray of shape (B, q)
        The same of data sets in which environments do not differ.
    """
    values = joint_values(workings.joint(workings.orders))
    nulls = []
    for means, covariances in zip(*(null[:MOST_DRAWS] for null in workings.null), strict=True):
        drawn = means.astype(np.float64), covariances.astype(np.float64)
        joint = joint_space(*drawn, workings.frame, workings.n_rows)
        nulls.append(joint_values(_of_orders(joint, workings.orders)))
    shortest = min(len(values), *map(len, nulls))
    return values[:shortest], np.array([null[:shortest] for null in nulls])


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
