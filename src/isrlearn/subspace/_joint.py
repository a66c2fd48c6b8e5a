r"""The joint estimate of the spurious subspace from means and covariances together.

In coordinates with white noise the likelihood ratio of "environments do not differ given the
target" is, to second order, :math:`|M|^2 + \sum_e |D_e|^2`: M stacks the differences of means,
:math:`D_e` those of covariances, both in units of their noise. A subspace with basis U explains

.. math:: L(U) = |MU|^2 + \sum_e \Big[\frac{(\mathrm{tr}\,U^T D_e U)^2}{r}
          + \omega\,\big|U^T D_e U - \tfrac{\mathrm{tr}\,U^T D_e U}{r} I\big|^2\Big],

and the estimate is the U of rank r that explains most. With :math:`\omega = 1` all of
:math:`U^T D_e U` counts. In the paper's model all spurious directions change by one factor
:math:`\sigma_e^2`, and then what deviates from its trace is noise alone: :math:`\omega` shrinks it
as James and Stein would, by how much of it is more than noise.
"""

from typing import Final, NamedTuple

import numpy as np
from scipy.linalg import eigh

from isrlearn.moments import SMALLEST, Evidence, Frame
from isrlearn.typing import Float64Array

SHRINKAGE: Final = 2.0  # above 1, since the directions were chosen for how much they deviate
STEPS: Final = 50
TURN: Final = 1e-5  # of the last step, enough for a test
MOST_STEPS: Final = 500
LEAST_TURN: Final = 1e-13  # of the last step of the directions that are removed
STEPS_BETWEEN: Final = 5  # extrapolations
SLOW: Final = 0.5  # factor by which steps shrink
NEAR: Final = 0.01  # turn, from which on no other optimum is in reach
REACH: Final = 0.03  # of an extrapolation, in radians
LEAST_NOISE: Final = 1e-8
UNIDENTIFIED: Final = 1e-10  # relative singular value
OF_SUMS: Final = 64.0  # rounding errors of a difference of means


class Joint(NamedTuple):
    """Evidence in one space of white noise, with maps from and to the frame."""

    means: Float64Array
    """(m, q')"""
    covariances: Float64Array
    """(E, q', q')"""
    to_frame: Float64Array
    """(q', q): a direction u of this space is ``u @ to_frame`` in the frame."""
    from_frame: Float64Array
    """(q, q'): coordinates of this space are ``z @ from_frame``."""


def joint_space(
    means: Float64Array, covariances: Float64Array, frame: Frame, n_rows: float
) -> Joint:
    r"""Whiten the evidence by the noise within cells.

    The frame is white for the total covariance, which contains the differences of means. In it the
    noise is :math:`I - M^TM/n`. Covariances are compared in the first p coordinates only, so the
    space needed is these and the span of the differences of means: at most p + m dimensions.

    Parameters
    ----------
    means : ndarray of shape (m, q)
        Differences of means in the frame.
    covariances : ndarray of shape (E, p, p)
        Differences of covariances in its leading coordinates.
    frame : Frame
        Says p.
    n_rows : float
        Weight of all rows.
    """
    p = frame.n_leading
    # The first p coordinates, and what the rows of means span beyond them.
    basis, outside = np.eye(p, means.shape[1]), means[:, p:]
    if outside.shape[1]:
        _, size, rows = np.linalg.svd(outside, full_matrices=False)
        rows = rows[size > UNIDENTIFIED * max(1.0, size[0])]
        basis = np.vstack([basis, np.hstack([np.zeros((len(rows), p)), rows])])
    inside = means @ basis.T
    noise, vectors = eigh(np.eye(len(basis)) - inside.T @ inside / n_rows)
    root = np.sqrt(np.maximum(noise, LEAST_NOISE))
    whiten, unwhiten = (vectors / root) @ vectors.T, (vectors * root) @ vectors.T
    padded = np.zeros((len(covariances), len(basis), len(basis)))
    padded[:, :p, :p] = covariances
    return Joint(inside @ whiten, whiten @ padded @ whiten, unwhiten @ basis, basis.T @ whiten)


def joint_values(joint: Joint) -> Float64Array:
    r"""Return the eigenvalues of :math:`M^TM + \sum_e D_e^2`, descending."""
    # By singular values: squares of small ones would drown in the rounding of large ones.
    stacked = np.concatenate([joint.means, *joint.covariances])
    values = np.zeros(stacked.shape[1])
    singular = np.linalg.svd(stacked, compute_uv=False)
    values[: len(singular)] = singular**2
    return values


def n_identified_jointly(
    joint: Joint, frame: Frame, values: Float64Array, rounding: Float64Array, n_rows: float
) -> int:
    """Return how many directions differ by more than rounding errors.

    Parameters
    ----------
    joint, frame
        The evidence and its coordinates.
    values : ndarray of shape (q',)
        From `joint_values`.
    rounding : ndarray of shape (d,)
        Rounding error of sums over each feature.
    n_rows : float
        Weight of all rows.
    """
    size = np.sqrt(values)
    # Means are rounded where the rows are, and differ in units of the noise.
    of_means = np.linalg.norm(rounding[:, None] * (frame.forward @ joint.from_frame), axis=0)
    least = OF_SUMS * np.sqrt(n_rows) * float(of_means.max(initial=0.0))
    return int(np.sum(size > max(least, UNIDENTIFIED * max(size[0], UNIDENTIFIED))))


def joint_directions(joint: Joint, rank: int, *, converged: bool = False) -> Float64Array:
    """Return orthonormal rows (rank, q') that explain most, the strongest first.

    Directions are found one by one inside what is left; then all are improved together, by the
    leading eigenvectors of the gradient, until they stay what they are.

    Parameters
    ----------
    joint : Joint
        The evidence.
    rank : int
        Number of directions.
    converged : bool, default=False
        Whether to go on until rounding errors alone are left. A test needs no more than a few
        digits.
    """
    found = before = _one_by_one(joint, rank)
    steps, least_turn = (MOST_STEPS, LEAST_TURN) if converged else (STEPS, TURN)
    last = np.inf
    for step in range(1, steps + 1):
        better, turn = improved(joint, found)
        # Where steps shrink slowly many small ones add up: only rounding errors do not shrink.
        if turn < least_turn and (not converged or turn >= last):
            return better
        ahead = converged and turn < NEAR and step % STEPS_BETWEEN == 0
        start = _extrapolated(before, found, better) if ahead else better
        before, found, last = found, start, turn
    return better


def improved(joint: Joint, found: Float64Array) -> tuple[Float64Array, float]:
    """Return the leading eigenvectors of the gradient at rows (r, q'), and how far they turn."""
    better = eigh(_explained(joint, found))[1][:, ::-1][:, : len(found)].T
    # The sine, not the cosine: that is one to eight digits at an angle of 1e-8.
    return better, float(np.linalg.norm(better - (better @ found.T) @ found))


def _extrapolated(first: Float64Array, second: Float64Array, third: Float64Array) -> Float64Array:
    r"""Return where three iterates, rows (r, q'), lead to if that is near, else the third.

    Near their end each step is :math:`\rho` times the one before, often with :math:`\rho` near -1:
    those to come add up to :math:`\rho / (1 - \rho)` times the last one (Aitken). Subspaces are
    compared by what they have beside the third.
    """
    away, here = (np.linalg.solve(rows @ third.T, rows) - third for rows in (first, second))
    step = here - away
    rate = -float(np.sum(here * step)) / max(float(np.sum(step**2)), SMALLEST)
    if abs(rate) < SLOW or rate >= 1:
        return third
    rest = here * (-rate / (1 - rate))
    if np.linalg.norm(rest) > REACH:
        return third
    return np.asarray(np.linalg.qr((third + rest).T)[0].T)


def shrinkage(blocks: Float64Array) -> float:
    r"""Return :math:`\omega` in [0, 1]: the credible part of what is not a common change.

    Parameters
    ----------
    blocks : ndarray of shape (E, r, r)
        :math:`U^T D_e U`.

    Examples
    --------
    >>> import numpy as np
    >>> shrinkage(30 * np.stack([np.eye(3), -np.eye(3)]))  # all three change by one factor
    0.0
    >>> shrinkage(30 * np.stack([np.diag([1, 0, -1]), np.diag([-1, 0, 1])])) > 0.9
    True
    """
    n_environments, r, _ = blocks.shape
    trace = np.trace(blocks, axis1=1, axis2=2)
    deviation = float(np.sum(blocks**2) - np.sum(trace**2) / r)
    noise = (n_environments - 1) * (r * (r + 1) / 2 - 1)
    if noise == 0:
        return 1.0
    return max(0.0, 1 - SHRINKAGE * noise / deviation) if deviation > noise else 0.0


def _explained(joint: Joint, found: Float64Array) -> Float64Array:
    r"""Return the gradient of L by :math:`UU^T`: its leading eigenvectors explain more.

    L is linear in :math:`UU^T` by the means, and quadratic by the covariances: hence the 2.
    """
    halves = joint.covariances @ found.T
    blocks = found @ halves
    omega = shrinkage(blocks)
    common = np.trace(blocks, axis1=1, axis2=2) / len(found)
    own = np.einsum("eir,ejr->ij", halves, halves)
    shared = np.tensordot(common, joint.covariances, axes=1)
    return np.asarray(joint.means.T @ joint.means + 2 * (omega * own + (1 - omega) * shared))


def _one_by_one(joint: Joint, rank: int) -> Float64Array:
    left = np.eye(joint.means.shape[1])
    found = []
    for _ in range(rank):
        means = joint.means @ left.T
        inside = left @ joint.covariances @ left.T
        vectors = eigh(means.T @ means + (inside @ inside).sum(axis=0))[1]
        found.append(vectors[:, -1] @ left)
        left = vectors[:, :-1].T @ left
    return np.array(found).reshape(rank, joint.means.shape[1])


class Workings(NamedTuple):
    """Evidence of a fit and of its nulls, in the frame that both were compared in."""

    observed: Evidence
    null: Evidence
    frame: Frame
    n_rows: float
    orders: str
    """What the method looks at: "both", "means" or "covariances"."""

    def joint(self, orders: str = "both") -> Joint:
        """Return the evidence in the space of white noise, of both orders or of one alone."""
        joint = joint_space(*self.observed, self.frame, self.n_rows)
        if orders == "means":
            return joint._replace(covariances=np.zeros_like(joint.covariances))
        if orders == "covariances":
            return joint._replace(means=np.zeros_like(joint.means))
        return joint
