"""What the rivals share: one way to fit, predictions from `coef_` and `intercept_`."""

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Final, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from isrlearn.display import brief, is_one_of
from isrlearn.exceptions import SingleEnvironmentWarning, warn_user
from isrlearn.heads import SOLVED, scheme_weights
from isrlearn.rows import UNKNOWN, Rows, check_features, check_rows, refuse_large_features
from isrlearn.typing import Float64Array, FloatArray, IntArray, LabelArray

MOST_ITERATIONS: Final = 5000
LEAST_C, MOST_C = 1e-100, 1e100
WEIGHTS: Final = (None, "class", "group", "balanced")
Head = tuple[Float64Array, Float64Array]
"""Weights (m, d) and bias (m,): m = 1 for two classes, else the number of classes."""


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

    def _environment_codes(self, rows: Rows, given: bool) -> IntArray:
        """Return the environment of each row, -1 where it is unknown; all are one without any."""
        rival = type(self).__name__
        if not given:
            warn_user(
                f"no environments were given to {rival}: all rows are taken as one.",
                SingleEnvironmentWarning,
            )
            return np.zeros(len(rows.y), np.intp)
        if len(rows.environments) < 2:
            raise ValueError(
                f"environments has {len(rows.environments)} distinct value(s), but {rival} "
                "compares at least 2. Give a label that varies, or leave environments out."
            )
        return rows.environment_codes

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


class LastLayerRival(LinearRival):
    """A linear classifier of k >= 2 classes on features that someone else has trained."""

    uses: ClassVar[str]
    """Which labels of the training rows it sees."""
    C: float
    _doubles: ClassVar[bool] = True
    """Whether single precision is too little for its way to the optimum."""
    _start: "Head | None" = None
    """Where a search over C lets the logistic head begin: it changes the way, not the optimum."""

    def __init__(self, C: float = 1.0) -> None:
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
            One label per row; None, NaN or NA where it is unknown. None: all rows are one
            environment, with a `SingleEnvironmentWarning` where environments are needed.

        Returns
        -------
        self
        """
        self._check_parameters()
        rows = check_rows(X, y, environments, estimator=self)
        refuse_large_features(rows.X)
        check_classification_targets(rows.y)
        if len(rows.classes) < 2:
            raise ValueError(
                f"y has {len(rows.classes)} class, but {type(self).__name__} tells at least 2 "
                "classes apart: give rows of another class."
            )
        self.classes_, self.environments_ = rows.classes, rows.environments
        if self._needs_environments():
            codes = self._environment_codes(rows, environments is not None)
            rows = replace(rows, environment_codes=codes)
        self._dtype = rows.X.dtype
        if self._doubles:
            rows = replace(rows, X=rows.X.astype(np.float64))
        self.coef_, self.intercept_ = self._solve(rows)
        return self

    def _solve(self, rows: Rows) -> Head:
        """Return weights and bias; every subclass has its own way."""
        raise NotImplementedError

    def _needs_environments(self) -> bool:
        return True

    def _check_parameters(self) -> None:
        C = self.C
        if not isinstance(C, Real) or isinstance(C, bool) or not LEAST_C <= C <= MOST_C:
            raise ValueError(
                f"C={brief(C)} must be a positive number from {LEAST_C:g} to {MOST_C:g}: the "
                "inverse strength of the penalty."
            )

    def _known(self, rows: Rows) -> Rows:
        """Return the rows of known environment; refuse to lose a class with the others."""
        known = rows.environment_codes != UNKNOWN
        left = np.bincount(rows.class_codes[known], minlength=len(rows.classes)) > 0
        if not left.all():
            raise ValueError(
                f"{(~known).sum()} rows of unknown environment are left out by "
                f"{type(self).__name__}, and with them all rows of class "
                f"{brief(rows.classes[~left][0])}: label the environment of some of these."
            )
        return rows.take(known)


class WeightedRival(LastLayerRival):
    """A rival that ends in logistic regression with a choice of weights."""

    weight: str | None

    def __init__(self, C: float = 1.0, *, weight: str | None = None) -> None:
        super().__init__(C)
        self.weight = weight

    @property
    def _counts_classes_alike(self) -> bool | None:
        """Whether classes count alike; None where groups do, and a class by how many it has."""
        return None if self.weight == "group" else self.weight is not None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not is_one_of(self.weight, WEIGHTS):
            raise ValueError(f"weight={brief(self.weight)} must be one of {WEIGHTS}.")

    def _head(self, rows: Rows) -> Head:
        weights = None if self.weight is None else scheme_weights(rows, self.weight)
        rows = replace(rows, X=rows.X.astype(self._dtype, copy=False))
        return logistic_head(rows, self.C, weights, self._start)


def group_codes(rows: Rows) -> IntArray:
    """Return the (class, environment) group of each row: 0, ..., G - 1, none of them empty."""
    n_environments = int(rows.environment_codes.max()) + 1
    cells = rows.class_codes * n_environments + rows.environment_codes
    return np.unique(cells, return_inverse=True)[1].astype(np.intp)


def logistic_head(
    rows: Rows, C: float, weights: Float64Array | None = None, start: Head | None = None
) -> Head:
    r"""Minimise :math:`\sum_i w_i \ell_i + \|W\|^2 / (2C)`, the bias free of penalty.

    Parameters
    ----------
    rows : Rows
        Checked rows.
    C : float
        Inverse strength of the penalty.
    weights : ndarray of shape (n,), default=None
        Weights w of the rows.
    start : (weights, bias), default=None
        Where to begin.
    """
    centre = rows.X.mean(axis=0, dtype=np.float64).astype(rows.X.dtype)
    solver = LogisticRegression(C=C, tol=SOLVED, max_iter=MOST_ITERATIONS)
    if start is not None:
        solver.set_params(warm_start=True)
        begin = start[0], start[1] + start[0] @ centre
        solver.coef_, solver.intercept_ = (part.astype(rows.X.dtype) for part in begin)
    # About their mean the rows are better conditioned; the bias takes up the difference.
    solver.fit(rows.X - centre, rows.class_codes, weights)
    coef = solver.coef_.astype(np.float64)
    return coef, solver.intercept_ - coef @ centre


def covariance_of(X: FloatArray, mean: FloatArray) -> Float64Array:
    """Return the covariance of rows about their mean, (d, d), divided by their number."""
    centred = (X - mean.astype(X.dtype)).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):  # the caller looks for what overflowed
        return np.asarray(centred.T @ centred / len(X))
