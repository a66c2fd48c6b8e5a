"""The default head: logistic regression whose penalty does not depend on units."""

from typing import Any, Self

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Tags
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from isrlearn.heads._logistic import (
    RIDGE,
    class_means,
    fit_in_coordinates,
    is_scaled,
    separation,
    weighted_covariance,
)
from isrlearn.moments import FEW_COORDINATES, ROWS_PER_COORDINATE, frame_of, largest_values
from isrlearn.rows import check_weights, refuse_sparse
from isrlearn.typing import FLOATS, Float64Array, FloatArray


class LogisticHead(LogisticRegression):
    r"""Logistic regression in coordinates where the spread of the features is white.

    The penalty of plain logistic regression falls on weights in the units of the features: a
    feature of small scale is hardly used, however well it tells the classes apart, and features of
    mixed scales take many steps to fit. Here the same penalty falls on weights in units of spread,
    and scaling or mixing the features changes nothing in the predictions. The weights are given in
    the coordinates of X.

    With more than 20 features, or fewer than 10 rows for each, the features stay as they are:
    whitening would raise the noise of weak directions to the level of the strong ones, and the
    penalty could not tell them apart. So it is with ``warm_start=True``. Otherwise, with two
    classes, the default solver begins at the optimum, which Newton's method finds to a gradient
    of 1e-8.

    Parameters and attributes are those of :class:`sklearn.linear_model.LogisticRegression`, but
    for one value of ``C``. With ``C="scale"``, the head of `ISRClassifier`, the objective is

    .. math:: \frac1W \sum_i \omega_i \ell_i + \frac{0.1}{2}\, B\, \|w\|^2,
        \qquad B = \sum_c \pi_c \|\mu_c - \bar\mu\|^2,

    with weights :math:`\omega` that sum to W, the share :math:`\pi_c` and mean :math:`\mu_c` of
    class c. So the penalty is measured by how far apart the classes are. Multiplying all of X or
    all weights by a number changes no prediction; nor does repeating the rows or adding constant
    features, unless there are then ten rows for each feature, or more than 20 features.
    `warm_start` has no effect. ``docs/method.md`` has the study behind 0.1.

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
        known = {k: v for k, v in self.__dict__.items() if k.endswith("_in_")}
        few_rows = len(X) < ROWS_PER_COORDINATE * X.shape[1]
        as_they_are = X.shape[1] > FEW_COORDINATES or few_rows or self.warm_start
        if as_they_are and not is_scaled(self):
            super().fit(X, y, sample_weight)
        else:
            self._fit_mapped(X, y, check_weights(sample_weight, len(X)), whiten=not as_they_are)
        self.__dict__.update(known)  # the inner fit may know other features
        return self

    def _fit_mapped(
        self, X: FloatArray, y: Any, weights: Float64Array | None, *, whiten: bool
    ) -> None:
        names = LogisticRegression().get_params()  # a subclass may have others
        solver = LogisticRegression(**{name: getattr(self, name) for name in names})
        if is_scaled(self) and self.class_weight is not None:
            own = compute_sample_weight(self.class_weight, y)
            weights = own if weights is None else weights * own
            solver.set_params(class_weight=None)
        mean = np.average(X, axis=0, weights=weights).astype(np.float64)
        # A removal leaves the rounding error of a sum over the features.
        rounding = np.sqrt(X.shape[1]) * np.finfo(X.dtype).eps * largest_values(X)
        forward = self._whitening(X, mean, rounding, weights) if whiten else np.ones(X.shape[1])
        if is_scaled(self):
            forward = forward / separation(*class_means(X, y, weights), forward, rounding)
            total = len(X) if weights is None else float(weights.sum())
            solver.set_params(C=1 / (RIDGE * total))
        centre = mean if self.fit_intercept else np.zeros_like(mean)
        fit_in_coordinates(solver, X, y, centre, forward, weights)
        self.__dict__.update({k: v for k, v in vars(solver).items() if k.endswith("_")})
        self.coef_, self.intercept_ = (a.astype(X.dtype) for a in (self.coef_, self.intercept_))

    @staticmethod
    def _whitening(
        X: FloatArray, mean: Float64Array, rounding: Float64Array, weights: Float64Array | None
    ) -> Float64Array:
        covariance = weighted_covariance(X, mean, weights)
        if not np.isfinite(covariance).all():
            raise ValueError(
                f"X is so large (up to {largest_values(X).max():.3g}) that squares of it overflow: "
                "scale the features first, for example with StandardScaler."
            )
        return frame_of(covariance, rounding, float(len(X)), 1).forward

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags
