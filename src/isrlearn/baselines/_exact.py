"""Rivals that are solved exactly: ERM, and the oracle that knows what is spurious."""

from typing import Any, Final, Self

import numpy as np
from scipy.linalg import null_space
from sklearn.linear_model import LogisticRegression
from sklearn.utils.multiclass import check_classification_targets

from isrlearn.baselines._rival import MOST_ITERATIONS, LinearRival, covariance_of
from isrlearn.display import brief, is_one_of
from isrlearn.heads import SOLVED, HeadCoordinates, LogisticHead
from isrlearn.moments import FEW_COORDINATES, feature_scales, largest_values, whitening
from isrlearn.rows import Rows, as_numbers, check_rows
from isrlearn.subspace import Subspace
from isrlearn.typing import Float64Array, FloatArray

SCALINGS: Final = (None, "standardised", "whitened")
NEWTON_SOLVED: Final = 1e-8


class ERM(LinearRival):
    """Logistic regression on all features, solved to its optimum: what most people do.

    It sees features and labels of the training rows; environments are taken and not used.

    Parameters
    ----------
    scaling : {None, "standardised", "whitened"}, default=None
        What is done to the features first. The penalty of logistic regression falls on weights in
        the units of the features; "standardised" makes these the standard deviation of each
        feature, "whitened" that of each principal component.
    C : float, default=1.0
        Inverse strength of the penalty.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights in the coordinates of X.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Bias.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.

    Examples
    --------
    >>> from isrlearn.baselines import ERM
    >>> from isrlearn.datasets import LinearUnitTest
    >>> problem = LinearUnitTest("2s", seed=0)
    >>> X, y, environments = problem.sample(1000)
    >>> test = problem.sample(1000, "test")
    >>> plain = ERM().fit(X, y, environments=environments)
    >>> whitened = ERM("whitened").fit(X, y, environments=environments)
    >>> plain.score(test.X, test.y) < whitened.score(test.X, test.y)
    True
    """

    def __init__(self, scaling: str | None = None, *, C: float = 1.0) -> None:
        self.scaling = scaling
        self.C = C

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Class labels.
        environments : array-like of shape (n_samples,), default=None
            Checked, not used.

        Returns
        -------
        self
        """
        if not is_one_of(self.scaling, SCALINGS):
            raise ValueError(f"scaling={brief(self.scaling)} must be one of {SCALINGS}.")
        rows = check_rows(X, y, environments, estimator=self)
        check_classification_targets(rows.y)
        X, head = rows.X, LogisticRegression(C=self.C, tol=SOLVED, max_iter=MOST_ITERATIONS)
        if self.scaling is None:
            head.fit(X, rows.y)
            self.coef_, self.intercept_ = (
                part.astype(np.float64) for part in (head.coef_, head.intercept_)
            )
        else:
            mean = X.mean(axis=0, dtype=np.float64)
            forward = self._coordinates(X, mean)
            forward = forward if forward.size else np.zeros((len(mean), 1))
            inside = HeadCoordinates(Subspace.nothing(len(mean)), mean, forward)
            if inside.n_coordinates <= FEW_COORDINATES:
                # To the last digits: along some directions the loss is nearly flat.
                X = X.astype(np.float64)
                head.set_params(solver="newton-cholesky", tol=NEWTON_SOLVED)
            head.fit(inside.mapped(X), rows.y)
            self.coef_, self.intercept_ = inside.unmapped(
                head.coef_.astype(np.float64), head.intercept_.astype(np.float64)
            )
        self.classes_ = rows.classes
        return self

    def _coordinates(self, X: FloatArray, mean: Float64Array) -> Float64Array:
        """Return the map to coordinates of unit variance, (d, q), or its diagonal, (d,)."""
        largest = largest_values(X)
        if self.scaling == "whitened":
            return whitening(covariance_of(X, mean), np.finfo(X.dtype).eps * largest)
        with np.errstate(over="ignore"):
            variances = X.var(axis=0, dtype=np.float64)
        if not np.isfinite(variances).all():
            raise ValueError(
                f"a feature as large as {largest.max():.3g} cannot be scaled: scale it."
            )
        # Single precision may have few values of a feature left, but these it has exactly.
        return 1 / feature_scales(variances, np.finfo(np.float64).eps * largest)[0]


class Oracle(LinearRival):
    """Logistic regression without the true spurious directions, which it is told.

    No method can know them: this is the mark to compare with, not a rival.

    Parameters
    ----------
    spurious_components : array-like of shape (n_spurious, n_features), default=None
        Directions that span what is spurious; None removes nothing.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights in the coordinates of X; orthogonal to the spurious directions.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Bias.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.

    Examples
    --------
    >>> from isrlearn.baselines import Oracle
    >>> from isrlearn.datasets import LinearUnitTest
    >>> problem = LinearUnitTest("3s", seed=0)
    >>> X, y, environments = problem.sample(1000)
    >>> model = Oracle(problem.B.T).fit(X, y, environments=environments)
    >>> bool(abs(model.coef_ @ problem.B).max() < 1e-10)
    True
    """

    def __init__(self, spurious_components: Any = None) -> None:
        self.spurious_components = spurious_components

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Class labels.
        environments : array-like of shape (n_samples,), default=None
            Checked, not used.

        Returns
        -------
        self
        """
        rows = check_rows(X, y, environments, estimator=self)
        check_classification_targets(rows.y)
        kept = self._kept_directions(rows).astype(rows.X.dtype)
        head = LogisticHead(max_iter=MOST_ITERATIONS, tol=SOLVED)
        head.fit(rows.X @ kept, rows.y)
        self.coef_, self.intercept_ = head.coef_ @ kept.T, head.intercept_
        self.classes_ = rows.classes
        return self

    def _kept_directions(self, rows: Rows) -> Float64Array:
        """Return an orthonormal basis, (d, d - r), of what is orthogonal to the spurious."""
        d = rows.X.shape[1]
        if self.spurious_components is None:
            return np.eye(d)
        spurious = np.atleast_2d(
            np.asarray(
                as_numbers(self.spurious_components, "spurious_components"), dtype=np.float64
            )
        )
        if spurious.ndim != 2 or spurious.shape[1] != d:
            raise ValueError(
                f"spurious_components has shape {spurious.shape}, but X has {d} features: give "
                f"directions of shape (n_spurious, {d})."
            )
        kept = null_space(spurious)
        if kept.shape[1] == 0:
            raise ValueError("spurious_components spans every feature: nothing is left to fit on.")
        return kept
