"""What a fit keeps so that it can be diagnosed."""

from typing import Final, NamedTuple

import numpy as np
from scipy.linalg import subspace_angles

from isrlearn._conditioning import Conditioned, common_coefs
from isrlearn._frame import Frame
from isrlearn._joint import Joint, joint_directions, joint_space
from isrlearn._nulls import Evidence
from isrlearn._rank_test import RankChoice, choose_rank
from isrlearn._typing import Float64Array
from isrlearn.subspace import Subspace

MOST_DRAWS: Final = 100


class Workings(NamedTuple):
    """Evidence of a fit and of its nulls, in the frame that both were compared in."""

    observed: Evidence
    null: Evidence
    frame: Frame
    n_rows: float
    target: Float64Array
    """(t, q): how the mean of x in the frame moves with the target."""
    orders: str
    """What the method looks at: "both", "means" or "covariances"."""

    def compact(self) -> "Workings":
        """Return the same with nulls in single precision, for a fitted estimator to keep."""
        means, covariances = (np.asarray(part, dtype=np.float32) for part in self.null)
        return self._replace(null=Evidence(means, covariances))  # type: ignore[arg-type]

    def joint(self, orders: str = "both") -> Joint:
        """Return the evidence in the space of white noise, of both orders or of one alone."""
        joint = joint_space(*self.observed, self.frame, self.n_rows)
        if orders == "means":
            return joint._replace(covariances=np.zeros_like(joint.covariances))
        if orders == "covariances":
            return joint._replace(means=np.zeros_like(joint.means))
        return joint


def target_contrasts(cond: Conditioned, frame: Frame) -> Float64Array:
    """Return how the mean of x moves with the target, rows (t, q) in a frame.

    For classes, the deviations of the class means from their mean, weighed by the root of the
    class weight; for a continuous target, its slopes.
    """
    coefs = common_coefs(cond)
    if coefs.shape[-2] > 1:
        return np.asarray(coefs[0, 1:] @ frame.forward)
    groups, first = np.unique(cond.group, return_index=True)
    weights = np.array([cond.grams[cond.group == g, 0, 0].sum() for g in groups])
    means = coefs[first, 0]
    centred = means - weights @ means / weights.sum()
    return np.asarray((np.sqrt(weights / weights.sum())[:, None] * centred) @ frame.forward)


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


def share_removed(workings: Workings, subspace: Subspace) -> float:
    r"""Return the share of the target's separation that lies along the removed directions.

    Separation is the squared distance of the class means (or of the slopes) in units of noise,
    :math:`\delta^T W^{-1} \delta`: what a linear head could use.
    """
    joint = workings.joint()
    target = workings.target @ joint.from_frame
    removed = subspace.directions @ workings.frame.forward @ joint.from_frame
    basis = np.linalg.qr(removed.T)[0]
    total = float(np.sum(target**2))
    return float(np.sum((target @ basis) ** 2) / total) if total > 0 else 0.0
