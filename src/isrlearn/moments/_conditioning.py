r"""Moments of X given the target, in one form for classes and for a continuous target.

Let :math:`\varphi(y)` be a vector of s functions of the target. In each cell X is regressed on it:
coefficients C (s, d), Gram matrix :math:`G = \sum \varphi\varphi^T` and the covariance S of what is
left. A class is :math:`\varphi = 1` within the rows of that class, so that C is the mean;
regression is :math:`\varphi = (1, y)`.

Leading axes are allowed everywhere: one call serves the data and all permutations of it.
"""

from typing import Final, NamedTuple

import numpy as np

from isrlearn.moments._cells import CellMoments
from isrlearn.typing import Float64Array, IntArray

LARGEST_WEIGHT: Final = 1e6
LEAST_ROWS: Final = 10  # of a cell whose covariance is compared


class Conditioned(NamedTuple):
    """Moments of X given the target in each of m cells."""

    group: IntArray
    """(m,) cells of one group share the relation of X to the target: the class of each cell."""
    environment: IntArray
    """(m,) environment of each cell."""
    grams: Float64Array
    """(..., m, s, s); the first entry is the weight of the cell."""
    coefs: Float64Array
    """(..., m, s, d)"""
    scatters: Float64Array
    """(..., m, p, p) of the residuals; as they are in `CellMoments`, so that none is copied."""
    freedom: Float64Array
    """(..., m) what a scatter is divided by to be a covariance: less by what the coefficients use
    up than the weight."""
    before: Float64Array | float = 0.0
    """(d,) spreads before the target was regressed out: their rounding errors stay."""


def given_classes(cells: CellMoments) -> Conditioned:
    """Return means and covariances of cells as moments given the class."""
    unit = unit_of_weight(cells)
    weights = cells.weights * unit
    return Conditioned(
        group=cells.class_index,
        environment=cells.environment_index,
        grams=weights[:, None, None],
        coefs=cells.means[:, None, :],
        scatters=cells.known_scatters(),
        freedom=degrees_of_freedom(weights, 1) / unit,
    )


def given_response(cells: CellMoments) -> Conditioned:
    r"""Return moments of X given a continuous target, :math:`\varphi(y) = (1, y)`.

    Parameters
    ----------
    cells : CellMoments
        Of rows (x, y) with d + 1 columns, one cell per environment. The regression in each cell
        needs nothing but their joint means and scatters.
    """
    weights, d = cells.weights * unit_of_weight(cells), cells.n_features - 1
    means, joint = cells.means, cells.covariances()
    variance, rounding = joint[:, d, d], rounding_errors(cells)[d]
    # Where y is constant there is no slope to compare; then phi(y) has one function too many.
    varies = (variance > rounding**2) & (variance > 0)
    slopes = np.divide(
        joint[:, d, :d], variance[:, None], out=np.zeros((len(weights), d)), where=varies[:, None]
    )
    intercepts = means[:, :d] - slopes * means[:, d:]
    residual = joint[:, :d, :d] - slopes[:, :, None] * joint[:, d, None, :d]
    first = np.stack([np.ones(len(weights)), means[:, d]], axis=-1)
    second = np.stack([means[:, d], variance + means[:, d] ** 2], axis=-1)
    grams = weights[:, None, None] * np.stack([first, second], axis=1)
    return Conditioned(
        group=np.zeros(len(weights), dtype=np.intp),
        environment=cells.environment_index,
        grams=grams,
        coefs=np.stack([intercepts, slopes], axis=1),
        scatters=weights[:, None, None] * residual,
        freedom=degrees_of_freedom(weights, 2),
        before=np.sqrt(np.diagonal(joint, axis1=1, axis2=2)[:, :d].max(axis=0)),
    )


def unit_of_weight(cells: CellMoments) -> float:
    """Return the factor that makes weights count as rows.

    A weight of 2 is the row twice. A mean weight below one, or far above, cannot be a number of
    rows: then the weights are scaled to mean one.
    """
    mean = float(cells.weights.sum() / cells.counts.sum())
    return 1.0 if 1 <= mean <= LARGEST_WEIGHT else 1 / mean


def rounding_errors(cells: CellMoments) -> Float64Array:
    """Return the rounding error of each column."""
    return np.asarray(cells.precision * cells.largest)


def degrees_of_freedom(weights: Float64Array, n_used: int) -> Float64Array:
    """Return weight - n_used, but never less than half the weight: weights count as rows."""
    return np.asarray(np.maximum(weights - n_used, weights / 2))


def within_scatter(cond: Conditioned) -> Float64Array:
    """Return the scatter of all cells about their own relation to the target, (p, p)."""
    weights = cond.grams[:, 0, 0]
    ratio = degrees_of_freedom(weights, cond.grams.shape[-1]) / cond.freedom
    return np.asarray(np.tensordot(ratio, cond.scatters, axes=1))


def common_coefs(cond: Conditioned) -> Float64Array:
    r"""Return the coefficients common to the cells of a group, (..., m, s, d).

    :math:`\bar C = (\sum_e G_e)^{-1} \sum_e G_e C_e`, repeated for each cell of the group.
    """
    result = np.empty_like(cond.coefs)
    for g in np.unique(cond.group):
        own = cond.group == g
        grams = cond.grams[..., own, :, :]
        products = (grams @ cond.coefs[..., own, :, :]).sum(axis=-3)
        inverse = np.linalg.pinv(grams.sum(axis=-3), hermitian=True)
        result[..., own, :, :] = (inverse @ products)[..., None, :, :]
    return result


def mean_evidence(cond: Conditioned) -> Float64Array:
    r"""Return rows :math:`G_e^{1/2}(C_e - \bar C)`, (..., m s, d): what differs in the first order.

    For classes these are :math:`\sqrt{n_{ce}}\,(m_{ce} - m_c)`. The sum of squares of a column is
    the likelihood ratio of equal means when the noise has unit variance.
    """
    rows = _root(cond.grams) @ (cond.coefs - common_coefs(cond))
    return np.asarray(rows.reshape(*rows.shape[:-3], -1, rows.shape[-1]))


def covariance_evidence(cond: Conditioned) -> Float64Array:
    r"""Return :math:`D_e = \sum_c n_{ce}(S_{ce} - S_c) / \sqrt{2 n_e}`, (..., E, p, p).

    The classes are pooled within each environment. With white Gaussian noise an entry on the
    diagonal has variance about one, and the sum of the squares of all of them is the likelihood
    ratio of equal covariances. Cells of fewer than ten rows are left out: a covariance of so few
    rows is far from normal, and the test would take that for a difference.
    """
    weights = cond.grams[..., 0, 0]
    weights = np.where(weights < LEAST_ROWS, 0.0, weights)
    ratio = np.divide(weights, cond.freedom, out=np.zeros_like(weights), where=weights > 0)
    scaled = ratio[..., None, None] * cond.scatters
    for g in np.unique(cond.group):
        own = cond.group == g
        share = weights[..., own] / np.maximum(weights[..., own].sum(axis=-1, keepdims=True), 1.0)
        scaled[..., own, :, :] -= share[..., None, None] * scaled[..., own, :, :].sum(
            axis=-3, keepdims=True
        )
    pooled = []
    for e in np.unique(cond.environment):
        own = cond.environment == e
        total = np.maximum(weights[..., own].sum(axis=-1), 1.0)[..., None, None]
        pooled.append(scaled[..., own, :, :].sum(axis=-3) / np.sqrt(2 * total))
    return np.stack(pooled, axis=-3)


def _root(grams: Float64Array) -> Float64Array:
    """Return the symmetric root of each Gram matrix."""
    values, vectors = np.linalg.eigh(grams)
    scaled = vectors * np.sqrt(np.maximum(values, 0))[..., None, :]
    return np.asarray(scaled @ np.swapaxes(vectors, -1, -2))
