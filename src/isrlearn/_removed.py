"""What a removal takes away: of each feature, and of what tells the target."""

import numpy as np
from scipy.stats import f as f_distribution

from isrlearn._conditioning import Conditioned, common_coefs, mean_evidence, unit_of_weight
from isrlearn._frame import Frame, total_covariance
from isrlearn._joint import joint_space
from isrlearn._typing import Float64Array
from isrlearn.moments import CellMoments
from isrlearn.subspace import Subspace


def shares_of_features(cond: Conditioned, subspace: Subspace) -> Float64Array:
    r"""Return the share of each feature that is removed, (d,), in [0, 1].

    It is the squared multiple correlation of the feature with the removed coordinates, given the
    target: :math:`R_j^2 = (TF^T)_j (FTF^T)^{-1} (FT)_j / T_{jj}` with the functionals F and the
    total covariance T.

    Parameters
    ----------
    cond : Conditioned
        Moments with covariances.
    subspace : Subspace
        What is removed.
    """
    total = total_covariance(cond)
    crossed = total @ subspace.functionals.T
    inverse = np.linalg.pinv(subspace.functionals @ crossed, hermitian=True)
    explained = np.einsum("jr,rs,js->j", crossed, inverse, crossed)
    variance = np.diag(total)
    shares = np.divide(explained, variance, out=np.zeros(len(variance)), where=variance > 0)
    return np.asarray(np.clip(shares, 0, 1))


def share_of_target(cond: Conditioned, frame: Frame, subspace: Subspace) -> float:
    r"""Return the share of the target's separation that lies along the removed directions.

    Separation is the squared distance of the class means (or of the slopes) in units of noise,
    :math:`\delta^T W^{-1} \delta`: what a linear head could use.

    Parameters
    ----------
    cond : Conditioned
        Moments with covariances.
    frame : Frame
        Coordinates made from them.
    subspace : Subspace
        What is removed.
    """
    n_rows, none = float(cond.grams[:, 0, 0].sum()), np.zeros((0, frame.n_leading, frame.n_leading))
    joint = joint_space(mean_evidence(cond) @ frame.forward, none, frame, n_rows)
    target = _target_contrasts(cond) @ frame.forward @ joint.from_frame
    removed = subspace.directions @ frame.forward @ joint.from_frame
    basis = np.linalg.qr(removed.T)[0]
    total = float(np.sum(target**2))
    return float(np.sum((target @ basis) ** 2) / total) if total > 0 else 0.0


def stability_of_target(cells: CellMoments) -> float:
    r"""Test whether the regression of y on all features is the same in all environments.

    The F test of equal coefficients (Chow), from moments alone. A large p-value says that a plain
    regression is as stable in these environments as can be seen.

    Parameters
    ----------
    cells : CellMoments
        Of rows (x, y), the target last, one cell per environment.

    Returns
    -------
    float
        The p-value; NaN where rows are too few to tell.
    """
    weights = cells.weights * unit_of_weight(cells)
    n_coefs = cells.n_features
    free = float(weights.sum() - len(weights) * n_coefs)
    if weights.min() <= n_coefs or free <= 0:
        return float("nan")
    within = weights[:, None, None] * cells.covariances()
    centred = cells.means - weights @ cells.means / weights.sum()
    total = within.sum(axis=0) + (weights[:, None] * centred).T @ centred
    apart = float(sum(_residual(scatter) for scatter in within))
    used = (len(weights) - 1) * n_coefs
    if apart <= 0 or used == 0:
        return float("nan")
    ratio = (_residual(total) - apart) / used / (apart / free)
    return float(f_distribution.sf(max(ratio, 0.0), used, free))


def _residual(scatter: Float64Array) -> float:
    """Return the sum of squares of the last column that the others do not explain."""
    crossed = scatter[:-1, -1]
    return float(scatter[-1, -1] - crossed @ np.linalg.pinv(scatter[:-1, :-1]) @ crossed)


def _target_contrasts(cond: Conditioned) -> Float64Array:
    """Return how the mean of x moves with the target, rows (t, d).

    For classes, the deviations of the class means from their mean, weighed by the root of the
    class weight; for a continuous target, its slopes.
    """
    coefs = common_coefs(cond)
    if coefs.shape[-2] > 1:
        return np.asarray(coefs[0, 1:])
    groups, first = np.unique(cond.group, return_index=True)
    weights = np.array([cond.grams[cond.group == g, 0, 0].sum() for g in groups])
    means = coefs[first, 0]
    centred = means - weights @ means / weights.sum()
    return np.asarray(np.sqrt(weights / weights.sum())[:, None] * centred)
