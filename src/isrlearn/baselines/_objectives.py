r"""Kernels: the gradient of each rival's objective, for many models at once.

Each function takes the risk, the models (T, d + 1) and one number per model (T,), and returns the
gradient (T, d + 1). :math:`g_e` and :math:`H_e` are those of `EnvironmentRisk`.
"""

from collections.abc import Callable

import numpy as np

from isrlearn.baselines._risk import EnvironmentRisk
from isrlearn.typing import FloatArray

Objective = Callable[[EnvironmentRisk, FloatArray, FloatArray], FloatArray]


def erm_gradient(risk: EnvironmentRisk, weights: FloatArray, penalty: FloatArray) -> FloatArray:
    r"""Return :math:`\sum_e (n_e / n)\, g_e`: the mean loss over all rows; no penalty.

    Parameters
    ----------
    risk : EnvironmentRisk
        The rows.
    weights : ndarray of shape (T, d + 1)
        Models.
    penalty : ndarray of shape (T,)
        Not used.
    """
    shares = (risk.counts / risk.counts.sum()).astype(weights.dtype)
    return np.tensordot(shares, risk.gradients(weights), axes=1)


def irm_gradient(risk: EnvironmentRisk, weights: FloatArray, penalty: FloatArray) -> FloatArray:
    r"""Return the gradient of IRMv1.

    The objective, with :math:`\lambda` in [0, 1], is
    :math:`(1-\lambda)\,\bar R + \lambda \sum_e \|\nabla_{a,b} R_e(a w^T x + b)\|^2` at a = 1,
    b = 0.

    Parameters
    ----------
    risk : EnvironmentRisk
        The rows.
    weights : ndarray of shape (T, d + 1)
        Models.
    penalty : ndarray of shape (T,)
        :math:`\lambda`.
    """
    own = (1 - penalty) / len(risk.counts)
    return risk.rescaling_gradients(weights, own, 2 * penalty).sum(axis=0)


def iga_gradient(risk: EnvironmentRisk, weights: FloatArray, penalty: FloatArray) -> FloatArray:
    r"""Return the gradient of :math:`\bar R + \lambda \sum_e \|g_e - \bar g\|^2` (IGA).

    Parameters
    ----------
    risk : EnvironmentRisk
        The rows.
    weights : ndarray of shape (T, d + 1)
        Models.
    penalty : ndarray of shape (T,)
        :math:`\lambda`.
    """
    gradients = risk.gradients(weights)
    mean = gradients.mean(axis=0)
    # The deviations add up to zero, so the derivative of the mean in the penalty drops out.
    vectors = 2 * penalty[:, None] * (gradients - mean)
    return mean + risk.curvature_products(vectors).sum(axis=0)


def vrex_gradient(risk: EnvironmentRisk, weights: FloatArray, penalty: FloatArray) -> FloatArray:
    r"""Return the gradient of :math:`\bar R + \lambda\,\mathrm{Var}_e(R_e)` (V-REx).

    Parameters
    ----------
    risk : EnvironmentRisk
        The rows.
    weights : ndarray of shape (T, d + 1)
        Models.
    penalty : ndarray of shape (T,)
        :math:`\lambda`; the variance divides by E.
    """
    gradients = risk.gradients(weights)
    losses = risk.losses(weights)
    own = (1 + 2 * penalty * (losses - losses.mean(axis=0))) / len(losses)
    return np.einsum("et,etp->tp", own, gradients)


def and_mask_gradient(
    risk: EnvironmentRisk, weights: FloatArray, penalty: FloatArray
) -> FloatArray:
    r"""Return the mean of :math:`g_e`, zero where the signs of the environments do not agree.

    As in the published code the weight part of each :math:`g_e` is scaled to length one, the bias
    is not; an entry is kept where :math:`|\sum_e \mathrm{sign}\,g_e| > \tau E`.

    Parameters
    ----------
    risk : EnvironmentRisk
        The rows.
    weights : ndarray of shape (T, d + 1)
        Models.
    penalty : ndarray of shape (T,)
        The agreement :math:`\tau`.
    """
    gradients = risk.gradients(weights)
    lengths = np.linalg.norm(gradients[:, :, :-1], axis=2, keepdims=True)
    gradients[:, :, :-1] /= np.where(lengths > 0, lengths, 1)
    agreement = np.abs(np.sign(gradients).sum(axis=0))
    return gradients.mean(axis=0) * (agreement > penalty[:, None] * len(gradients))
