"""Stage 3: what the predictors share: a subspace, and a linear head on the rest."""

import warnings
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Final, Self

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from isrlearn.diagnosis import Diagnosis
from isrlearn.estimators._folding import fold
from isrlearn.estimators._transformers import (
    ISR,
    ISRTransformer,
    SubspaceAttributes,
    names_of_features,
)
from isrlearn.exceptions import PrecisionWarning, warn_user
from isrlearn.heads import bearable_weights
from isrlearn.moments import LARGEST_IN_SINGLE, largest_values
from isrlearn.rows import UNKNOWN, Rows, check_features
from isrlearn.subspace import RankChoice, Subspace
from isrlearn.typing import Float64Array, FloatArray, IntArray, LabelArray

SMALLEST_OF_SINGLE: Final = 1e-30  # whose inverse is a number of float32


class ISRPredictor(SubspaceAttributes, BaseEstimator):
    """A fitted `isr_` and a fitted `head_`; a subclass says how both are found."""

    __metadata_request__fit: ClassVar = {"environments": True}

    @staticmethod
    @abstractmethod
    def _default_head() -> Any:
        """Return the head that None stands for."""

    isr: ISRTransformer | None
    head: Any
    n_features_in_: int
    isr_: ISRTransformer
    head_: Any

    def predict(self, X: Any) -> LabelArray:
        """Return the prediction for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of any environment, also one never seen.
        """
        X = self._without_spurious(X)
        return np.asarray(self.head_.predict(X))

    @property
    def coef_(self) -> Float64Array:
        """Weights of the head in the original coordinates."""
        return self._folded()[0]

    @property
    def intercept_(self) -> Float64Array:
        """Bias of the head in the original coordinates."""
        return self._folded()[1]

    @property
    def subspace_(self) -> Subspace:
        """The spurious subspace, a frozen `Subspace`."""
        check_is_fitted(self, "head_")
        return self.isr_.subspace_

    @property
    def rank_choice_(self) -> RankChoice | None:
        """How the rank was chosen: the tests and their p-values; None if it was given."""
        check_is_fitted(self, "head_")
        return self.isr_.rank_choice_

    def diagnose(self) -> Diagnosis:
        """Say what was found, how sure it is, and which assumption fails.

        Returns
        -------
        Diagnosis
            A report to print or to show in a notebook. Tests and intervals need
            ``n_spurious="auto"``.
        """
        check_is_fitted(self, "head_")
        return replace(
            self.isr_.diagnose(), method=type(self).__name__, feature_names=names_of_features(self)
        )

    @property
    def environments_(self) -> LabelArray:
        """Sorted environments."""
        check_is_fitted(self, "head_")
        return self.isr_.environments_

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of the default parts, such as ``isr__n_spurious``.

        Parameters
        ----------
        **params : dict
            Names and values, as in scikit-learn.

        Returns
        -------
        self
        """
        for name, default in (("isr", ISR), ("head", self._default_head)):
            # A parameter of a part that is left to its default: write the default out first.
            nested = any(key.startswith(f"{name}__") for key in params)
            if nested and params.get(name, getattr(self, name)) is None:
                params[name] = default()
        return super().set_params(**params)

    def _default_isr(self, n_features: int) -> ISRTransformer:
        """Return the removal that None stands for."""
        return ISR()

    def _head_or_default(self) -> Any:
        return self._default_head() if self.head is None else self.head

    def _forget(self) -> None:
        """Drop the results of an earlier fit: one that fails must not look like a fit."""
        for name in ("isr_", "head_"):
            self.__dict__.pop(name, None)

    def _fresh_isr(self) -> ISRTransformer:
        """Return the `isr` to be fitted, with the features that this estimator was given."""
        isr = self._default_isr(self.n_features_in_) if self.isr is None else clone(self.isr)
        isr._check_parameters()
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(isr, name, getattr(self, name))
        return isr

    def _fit_head(self, rows: Rows, weights: Float64Array | None) -> None:
        head = clone(self._head_or_default())
        # Before the removal: its rounding errors must be those of the precision of the head.
        X = self.isr_._remove(_in_safe_precision(rows.X))
        with _telling_of_scales(head):
            self.head_ = fit_head(head, X, rows, bearable_weights(weights))

    def _without_spurious(self, X: Any) -> FloatArray:
        check_is_fitted(self, "head_")
        return self.isr_._remove(check_features(X, self))

    def _folded(self) -> tuple[Float64Array, Float64Array]:
        check_is_fitted(self, "head_")
        try:
            return self.isr_.fold_into(*fold(self.head_))
        except TypeError as error:
            # AttributeError, so that hasattr(clf, "coef_") is False for a head that is not linear.
            raise AttributeError(str(error)) from error


def _in_safe_precision(X: FloatArray) -> FloatArray:
    """Return rows in double precision where squares, or weights, leave the range of float32."""
    if X.dtype == np.float64:
        return X
    largest = largest_values(X)
    used = largest[largest > 0]
    fits = np.all((used > SMALLEST_OF_SINGLE) & (used < LARGEST_IN_SINGLE))
    return X if fits else X.astype(np.float64)


@contextmanager
def _telling_of_scales(head: Any) -> Iterator[None]:
    """Say what to do where a head warns that its system is nearly singular."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    of_scales = [_is_of_scales(warning) for warning in caught]
    for warning, told in zip(caught, of_scales, strict=True):
        if not told:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    if any(of_scales):
        warn_user(
            f"head={head!r} solves a system that is singular up to rounding errors: features "
            "differ in scale by more than about 1e8, or nearly add up to others. Scale them "
            "first, for example head=make_pipeline(StandardScaler(), Ridge()).",
            PrecisionWarning,
        )


def _is_of_scales(warning: warnings.WarningMessage) -> bool:
    """Whether a library warns of a singular system; Ridge's dual has no class for that."""
    singular = str(warning.message).startswith("Singular matrix")
    return singular or issubclass(warning.category, LinAlgWarning)


def fit_head(head: Any, X: FloatArray, rows: Rows, weights: Float64Array | None) -> Any:
    """Fit a head on rows without their spurious part.

    Parameters
    ----------
    head : estimator
        Not fitted. One whose ``fit`` takes ``environments`` gets them.
    X : ndarray of shape (n, d)
        The rows without their spurious part.
    rows : Rows
        Labels and environments.
    weights : ndarray of shape (n,) or None
        Weights of the rows.

    Returns
    -------
    head
    """
    arguments: dict[str, Any] = {}
    if takes_environments(head):
        arguments["environments"] = labelled_environments(rows.environments, rows.environment_codes)
    if weights is not None:
        arguments[_weight_argument(head)] = weights
    # These are ours, not metadata that the user sent: they go by name whatever is requested.
    with config_context(enable_metadata_routing=False):
        head.fit(X, rows.y, **arguments)
    return head  # not what fit returns: it may be None in a head of the user's own


def labelled_environments(labels: LabelArray, codes: IntArray) -> LabelArray | None:
    """Return the environment of each row as an object, None where unknown; None if all are."""
    if len(labels) == 0:
        return None
    column = np.full(len(codes), None, dtype=object)
    known = codes != UNKNOWN
    column[known] = labels[codes[known]]
    return column


def takes_environments(head: Any) -> bool:
    """Whether a head weighs groups in its own way, such as `GroupDRO`."""
    return not hasattr(head, "steps") and has_fit_parameter(head, "environments")


def _weight_argument(head: Any) -> str:
    """Return the name under which the `fit` of a head takes weights without metadata routing."""
    if hasattr(head, "steps"):
        name, last = head.steps[-1]
        return f"{name}__{_weight_argument(last)}"
    if hasattr(head, "param_grid") or hasattr(head, "param_distributions"):
        return _weight_argument(head.estimator)
    if has_fit_parameter(head, "sample_weight"):
        return "sample_weight"
    raise ValueError(
        f"{type(head).__name__}.fit takes no sample_weight, which group_weight and "
        "sample_weight need: choose another head, or group_weight=None and no sample_weight."
    )
