"""What the rivals share: predictions from `coef_` and `intercept_`."""

from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from isrlearn.rows import check_features
from isrlearn.typing import Float64Array, LabelArray


class LinearRival(ClassifierMixin, BaseEstimator):
    """A linear classifier that is fitted with environments and predicts without them."""

    __metadata_request__fit: ClassVar = {"environments": True}

    coef_: Any
    intercept_: Any
    classes_: Any

    def decision_function(self, X: Any) -> Float64Array:
        """Return the decision values: (n_samples,) for two classes, else (n_samples, n_classes).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of any environment.
        """
        check_is_fitted(self, "coef_")
        values = check_features(X, self) @ self.coef_.T + self.intercept_
        return np.asarray(values.ravel() if values.shape[1] == 1 else values)

    def predict(self, X: Any) -> LabelArray:
        """Return the predicted class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of any environment.
        """
        values = self.decision_function(X)
        codes = (values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def predict_proba(self, X: Any) -> Float64Array:
        """Return the probability of each class, (n_samples, n_classes).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of any environment.
        """
        values = self.decision_function(X)
        if values.ndim == 1:
            return np.stack([expit(-values), expit(values)], axis=1)
        return np.asarray(softmax(values, axis=1))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags
