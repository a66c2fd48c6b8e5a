"""What a removal takes away: of each feature, and of what tells the target."""

from typing import Final

import numpy as np
from scipy.stats import f as f_distribution

from isrlearn.moments import (
    CellMoments,
    Conditioned,
    common_coefs,
    degrees_of_freedom,
    rounding_errors,
    total_covariance,
    unit_of_weight,
    whitening,
    within_scatter,
)
from isrlearn.subspace import Subspace
from isrlearn.typing import Float64Array

ROWS_PER_FEATURE: Final = 2
EXACT: Final = 1e-10  # relative size of what rounding leaves


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


def share_of_target(cond: Conditioned, rounding: Float64Array, subspace: Subspace) -> float | None:
    r"""Return the share of the target's separation that lies along the removed directions.

    Separation is the squared distance of the class means (or of the slopes) in units of noise,
    :math:`\delta^T W^{-1} \delta`: what a linear head could use. None with too few rows to know W.

    Parameters
    ----------
    cond : Conditioned
        Moments with covariances.
    rounding : ndarray of shape (d,)
        Rounding error of each feature.
    subspace : Subspace
        What is removed.
    """
    freedom = degrees_of_freedom(cond.grams[:, 0, 0], cond.grams.shape[-1])
    if freedom.sum() < ROWS_PER_FEATURE * subspace.n_features:
        return None
    within = within_scatter(cond) / freedom.sum()
    white = whitening(within, rounding)
    target, removed = _target_contrasts(cond) @ white, subspace.directions @ white
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
    scatters = weights[:, None, None] * cells.covariances()
    centred = cells.means - weights @ cells.means / weights.sum()
    total = scatters.sum(axis=0) + (weights[:, None] * centred).T @ centred
    axes = whitening(total[:-1, :-1], rounding_errors(cells)[:-1])
    together, n_common = _residual(total, axes)
    own = [_residual(scatter, axes) for scatter in scatters]
    apart, n_apart = (float(sum(part)) for part in zip(*own, strict=True))
    used, free = n_apart - n_common, float(weights.sum()) - n_apart
    if used <= 0 or free <= 0 or total[-1, -1] <= 0:
        return float("nan")
    if together <= EXACT * total[-1, -1]:  # y is a linear function of x, the same everywhere
        return 1.0
    ratio = (together - apart) / used / max(apart / free, EXACT * total[-1, -1] / free)
    return float(f_distribution.sf(max(ratio, 0.0), used, free))


def _residual(scatter: Float64Array, axes: Float64Array) -> tuple[float, int]:
    """Return what of y the features do not explain, and how many coefficients explain the rest."""
    inside, crossed = axes.T @ scatter[:-1, :-1] @ axes, axes.T @ scatter[:-1, -1]
    values, vectors = np.linalg.eigh(inside)
    told = values > EXACT * max(values.max(initial=0.0), EXACT)
    explained = np.sum((crossed @ vectors[:, told]) ** 2 / values[told])
    return max(float(scatter[-1, -1] - explained), 0.0), 1 + int(told.sum())


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
