"""Kernels: full-batch descent of many models at once, each with its own step length."""

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from isrlearn.typing import FloatArray

Gradient = Callable[[FloatArray], FloatArray]
FIRST_DECAY: Final = 0.9
SECOND_DECAY: Final = 0.999
SMALL: Final = 1e-8


def adam(
    gradient: Gradient,
    start: FloatArray,
    learning_rate: FloatArray,
    weight_decay: FloatArray,
    n_steps: int,
) -> FloatArray:
    r"""Return where Adam ends after `n_steps`.

    With :math:`g` the gradient plus `weight_decay` times the weights, :math:`m` and :math:`v` the
    decaying means of :math:`g` and :math:`g^2`, a step is
    :math:`w \leftarrow w - \eta\, \hat m / (\sqrt{\hat v} + 10^{-8})`.

    Parameters
    ----------
    gradient : callable
        Maps the models (T, p) to their gradients (T, p).
    start : ndarray of shape (T, p)
        Where the models begin.
    learning_rate, weight_decay : ndarray of shape (T,)
        Of each model. The decay falls on the bias too, as in the published code.
    n_steps : int
        Number of steps.

    Returns
    -------
    ndarray of shape (T, p)
    """
    weights, first, second = start.copy(), np.zeros_like(start), np.zeros_like(start)
    rate, decay = learning_rate[:, None], weight_decay[:, None]
    for step in range(1, n_steps + 1):
        slope = gradient(weights) + decay * weights
        first += (1 - FIRST_DECAY) * (slope - first)
        second += (1 - SECOND_DECAY) * (slope * slope - second)
        spread = np.sqrt(second) / math.sqrt(1 - SECOND_DECAY**step) + SMALL
        weights -= rate / (1 - FIRST_DECAY**step) * first / spread
    return weights


def plain_descent(
    gradient: Gradient,
    start: FloatArray,
    learning_rate: FloatArray,
    weight_decay: FloatArray,
    n_steps: int,
) -> FloatArray:
    r"""Return where plain descent ends: :math:`w \leftarrow w - \eta\,(g + \delta w)`.

    Parameters
    ----------
    gradient : callable
        Maps the models (T, p) to their gradients (T, p).
    start : ndarray of shape (T, p)
        Where the models begin.
    learning_rate, weight_decay : ndarray of shape (T,)
        :math:`\eta` and :math:`\delta` of each model.
    n_steps : int
        Number of steps.

    Returns
    -------
    ndarray of shape (T, p)
    """
    weights = start.copy()
    rate, decay = learning_rate[:, None], weight_decay[:, None]
    for _ in range(n_steps):
        weights -= rate * (gradient(weights) + decay * weights)
    return weights
