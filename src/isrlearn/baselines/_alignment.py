"""Alignment of the environments' first two moments before the last layer."""

from dataclasses import replace
from typing import Final

import numpy as np
from scipy.linalg import eigh

from isrlearn.baselines._rival import Head, WeightedRival, covariance_of
from isrlearn.rows import UNKNOWN, Rows
from isrlearn.typing import Float64Array, FloatArray, IntArray

RIDGE: Final = 1e-3  # share of the mean variance that is added to every variance


class CORAL(WeightedRival):
    r"""Correlation alignment of the training environments, then logistic regression.

    Rows of environment e are given the mean and covariance that all rows of known environment have
    together,

    .. math:: x' = \mu + \Sigma^{1/2} \Sigma_e^{-1/2} (x - \mu_e),

    where a thousandth of the mean variance of all rows is added to the diagonal of every
    covariance. New rows are taken as they are, since their environment is unknown; so are training
    rows of unknown environment. It sees features, labels and environments.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty.
    weight : {None, "class", "group", "balanced"}, default=None
        Weights of the rows in the head, as in `LinearProbe`.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Bias.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    environments_ : ndarray of shape (E,)
        Sorted environments.

    References
    ----------
    .. [1] B. Sun, J. Feng, K. Saenko. Return of frustratingly easy domain adaptation. AAAI 2016.

    Examples
    --------
    >>> from isrlearn.baselines import CORAL
    >>> from isrlearn.datasets import load_penguins
    >>> X, y, environments = load_penguins()
    >>> CORAL().fit(X / X.std(axis=0), y, environments=environments).coef_.shape
    (1, 4)
    """

    uses = "labels and environments"

    def _solve(self, rows: Rows) -> Head:
        return self._head(replace(rows, X=aligned(rows.X, rows.environment_codes)))


def aligned(X: FloatArray, environment_codes: IntArray) -> FloatArray:
    """Return rows whose mean and covariance are nearly the same in all environments.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.
    environment_codes : ndarray of shape (n,)
        Environment of each row; -1 leaves a row as it is.
    """
    known, result = X[environment_codes != UNKNOWN], X.copy()
    mean = known.mean(axis=0)
    covariance = covariance_of(known, mean)
    added = RIDGE * float(np.trace(covariance)) / X.shape[1]
    if added == 0:
        return result
    colour = _power(covariance, added, 0.5)
    for e in np.unique(environment_codes[environment_codes != UNKNOWN]):
        rows = environment_codes == e
        own = X[rows].mean(axis=0)
        white = _power(covariance_of(X[rows], own), added, -0.5)
        result[rows] = (X[rows] - own) @ white @ colour + mean
    return result


def _power(covariance: Float64Array, added: float, exponent: float) -> Float64Array:
    """Return a power of a covariance to whose diagonal something is added."""
    values, vectors = eigh(covariance)
    # Rounding may go below zero.
    return np.asarray((vectors * (np.maximum(values, 0) + added) ** exponent) @ vectors.T)
