"""The default head: logistic regression whose penalty does not depend on units."""

from typing import Any, Final, Self

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from isrlearn._blocks import largest_values
from isrlearn._frame import FEW_COORDINATES, ROWS_PER_COORDINATE, frame_of
from isrlearn._typing import Float64Array, FloatArray
from isrlearn._validation import FLOATS, check_weights, refuse_sparse

SOLVED: Final = 1e-6
"""Largest entry of the gradient of the mean loss at which a fit counts as solved. With the usual
1e-4 the error in a new environment can be off by several hundredths: along directions in which the
training environments differ the loss is flat."""


class LogisticHead(LogisticRegression):
    r"""Logistic regression in coordinates where the spread of the features is white.

    The penalty of plain logistic regression falls on weights in the units of the features: a
    feature of small scale is hardly used, however well it tells the classes apart, and features of
    mixed scales take many steps to fit. Here the same penalty falls on weights in units of spread,
    and scaling or mixing the features changes nothing in the predictions. The weights are given in
    the coordinates of X.

    With more than 20 features, or fewer than 10 rows for each, it is plain logistic regression:
    whitening would raise the noise of weak directions to the level of the strong ones, and the
    penalty could not tell them apart. So it is with ``warm_start=True``.

    Parameters and attributes are those of :class:`sklearn.linear_model.LogisticRegression`.

    Examples
    --------
    >>> from isrlearn import LogisticHead
    >>> from isrlearn.datasets import load_penguins
    >>> X, y, _ = load_penguins()
    >>> grams = LogisticHead().fit(X, y)
    >>> kilograms = LogisticHead().fit(X / [1, 1, 1, 1000], y)
    >>> bool((grams.predict(X) == kilograms.predict(X / [1, 1, 1, 1000])).all())
    True
    """

    coef_: Any
    intercept_: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self
        """
        refuse_sparse(X)
        X, y = validate_data(self, X, y, dtype=FLOATS)
        check_classification_targets(y)
        few_rows = len(X) < ROWS_PER_COORDINATE * X.shape[1]
        if X.shape[1] > FEW_COORDINATES or few_rows or self.warm_start:
            return self._fit_plain(X, y, sample_weight)
        weights = check_weights(sample_weight, len(X))
        mean = np.average(X, axis=0, weights=weights)
        rounding = np.finfo(X.dtype).eps * largest_values(X)
        frame = frame_of(_covariance(X, mean, weights), rounding, float(len(X)), 1)
        centre = mean if self.fit_intercept else np.zeros_like(mean)
        white = (X - centre.astype(X.dtype)) @ frame.forward.astype(X.dtype)
        if white.shape[1] == 0:  # no feature varies: only the intercept is left to fit
            white = np.zeros((len(X), 1), dtype=X.dtype)
        self._fit_plain(white, y, sample_weight)
        forward = frame.forward if frame.forward.shape[1] else np.zeros((X.shape[1], 1))
        self.coef_ = (self.coef_ @ forward.T).astype(X.dtype)
        if self.fit_intercept:
            self.intercept_ = self.intercept_ - (self.coef_ @ centre).astype(X.dtype)
        return self

    def _fit_plain(self, X: FloatArray, y: Any, sample_weight: Any) -> Self:
        """Fit plain logistic regression, and keep what is known of the features."""
        known = {k: v for k, v in self.__dict__.items() if k.endswith("_in_")}
        super().fit(X, y, sample_weight)
        self.__dict__.update(known)
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


def _covariance(X: FloatArray, mean: FloatArray, weights: Float64Array | None) -> Float64Array:
    centred = (X - mean.astype(X.dtype)).astype(np.float64)
    weighted = centred if weights is None else centred * weights[:, None]
    total = len(X) if weights is None else weights.sum()
    return np.asarray(weighted.T @ centred / total)
