"""The predictors: a subspace, and a linear head on the rest, in one estimator."""

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Final, Self, cast

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    clone,
    is_classifier,
    is_regressor,
)
from sklearn.linear_model import Ridge
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from isrlearn.diagnosis import Diagnosis
from isrlearn.display import brief
from isrlearn.estimators._folding import fold
from isrlearn.estimators._transformers import (
    ISR,
    ISRTransformer,
    SubspaceAttributes,
    default_isr,
    names_of_features,
    set_features,
)
from isrlearn.heads import (
    SOLVED,
    LogisticHead,
    fit_from_sums,
    fit_head,
    is_solved_without_rows,
    needs_scatters,
    scheme_weights,
    takes_environments,
    why_not,
)
from isrlearn.moments import AddMoments, in_safe_precision
from isrlearn.rows import (
    InMemory,
    Rows,
    as_source,
    check_features,
    check_rows,
    check_scored,
    refuse_continuous,
    refuse_text,
)
from isrlearn.subspace import RankChoice, Subspace
from isrlearn.typing import Float64Array, FloatArray, LabelArray

GROUP_WEIGHTS: Final = ("balanced", "class", None)


class ISRPredictor(SubspaceAttributes, BaseEstimator):
    """A fitted `isr_` and a fitted `head_`; a subclass says how both are found."""

    __metadata_request__fit: ClassVar = {"environments": True}

    isr: ISRTransformer | None
    head: Any
    n_features_in_: int
    isr_: ISRTransformer
    head_: Any

    @staticmethod
    @abstractmethod
    def _default_head() -> Any:
        """Return the head that None stands for."""

    def predict(self, X: Any) -> LabelArray:
        """Return the prediction for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of any environment, also one never seen.
        """
        return np.asarray(self._of_head("predict", X))

    def _of_head(self, method: str, X: Any) -> Any:
        """Return what a method of the head says of rows without their spurious part."""
        check_is_fitted(self, "head_")
        return getattr(self.head_, method)(self.isr_._remove(check_features(X, self)))

    @property
    def coef_(self) -> Float64Array:
        """Weights of the head in the original coordinates."""
        return self._folded()[0]

    @property
    def intercept_(self) -> Float64Array:
        """Bias of the head in the original coordinates."""
        return self._folded()[1]

    def _folded(self) -> tuple[Float64Array, Float64Array]:
        check_is_fitted(self, "head_")
        try:
            return self.isr_.fold_into(*fold(self.head_))
        except TypeError as error:
            # AttributeError, so that hasattr(clf, "coef_") is False for a head that is not linear.
            raise AttributeError(str(error)) from error

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

    @property
    def environments_(self) -> LabelArray:
        """Sorted environments."""
        check_is_fitted(self, "head_")
        return self.isr_.environments_

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
        # Before the removal: its rounding errors must be those of the precision of the head.
        X = self.isr_._remove(in_safe_precision(rows.X))
        self.head_ = fit_head(clone(self._head_or_default()), X, rows, weights)


def check_group_weight(group_weight: Any) -> None:
    """Raise `ValueError` unless a weighting of groups is known."""
    if not isinstance(group_weight, str | None) or group_weight not in GROUP_WEIGHTS:
        raise ValueError(f"group_weight={brief(group_weight)} must be 'balanced', 'class' or None.")


def _head_has(method: str) -> Any:
    def check(self: "ISRClassifier") -> bool:
        return hasattr(getattr(self, "head_", self._head_or_default()), method)

    return available_if(check)


class ISRClassifier(ClassifierMixin, ISRPredictor):
    r"""Remove the directions in which environments differ given the class; fit a linear head.

    With `ISRMean` or `ISRCov` these are Algorithms 1 and 2 of the paper with their last step, IV.
    Moments come from the rows whose environment is known; the head is fitted on all rows.

    Parameters
    ----------
    isr : transformer, default=None
        `ISR`, `ISRMean` or `ISRCov`, not fitted. None is ``ISR()`` up to 20 features, and with more
        ``ISRMean(1)``: among many features the tests of `ISR` find nearly all directions different
        and remove the signal with them.
    head : classifier, default=None
        Fitted on the rows without their spurious part, and used as it is. None is
        ``LogisticHead(C="scale")``: logistic regression whose penalty is set by how far apart the
        classes are in these rows, so that no unit matters. Where a group is missing and
        `group_weight` is "balanced", it compares classes within the environments that have both:
        those of the others count by the share of the other classes that they have. A head whose
        ``fit`` takes ``environments``, such as `isrlearn.baselines.GroupDRO`, gets them and weighs
        groups in its own way, whatever `group_weight` says.
    group_weight : {"balanced", "class", None}, default="balanced"
        How rows count in the head; the mean weight is one. "balanced": classes count alike, and
        within a class the environments that it has, so that a class with a missing group is not
        halved. A row of unknown environment gets the mean weight of its class. Where no group is
        missing, these are inverse group sizes. "class": classes count alike, and no environment is
        read. None: rows count alike, which is better for the average over rows like the training
        rows.

    Attributes
    ----------
    isr_ : transformer
        The fitted `isr`.
    head_ : classifier
        The fitted `head`, in the coordinates of ``isr_.transform``.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights in the original coordinates, removal included, if the head is linear.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Bias in the original coordinates.
    subspace_, n_spurious_, spurious_components_, spectrum_, rank_choice_, environments_
        As in `isr_`.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    See Also
    --------
    select : Choose removal and head by validation.
    fold : The same for a whole pipeline.
    repair_head : Change an existing head without refitting.

    Examples
    --------
    >>> from isrlearn import ISRClassifier
    >>> from isrlearn.datasets import load_colored_digits
    >>> train, test = load_colored_digits(random_state=0)
    >>> clf = ISRClassifier().fit(train.X, train.y, environments=train.environments)
    >>> clf.predict(test.X).shape == test.y.shape
    True
    """

    def __init__(
        self,
        isr: ISRTransformer | None = None,
        head: Any = None,
        *,
        group_weight: str | None = "balanced",
    ) -> None:
        self.isr = isr
        self.head = head
        self.group_weight = group_weight

    @staticmethod
    def _default_head() -> LogisticHead:
        return LogisticHead(C="scale", max_iter=1000, tol=SOLVED)

    def _default_isr(self, n_features: int) -> ISRTransformer:
        return default_isr(n_features)

    def fit(
        self, X: Any, y: Any = None, *, environments: Any = None, sample_weight: Any = None
    ) -> Self:
        """Find the spurious subspace and fit the head without it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or ChunkedRows
            Features; or rows with all that belongs to them, read chunk by chunk. Then the head must
            be `LogisticHead`, `LogisticRegression`, `LinearDiscriminantAnalysis` or
            `RidgeClassifier`, and the tests of ``n_spurious="auto"`` recombine parts of the rows.
        y : array-like of shape (n_samples,)
            Class labels; not with `ChunkedRows`, which have their own, as they have environments
            and weights.
        environments : array-like of shape (n_samples,), default=None
            Environment of each row; None, NaN or NA where it is unknown. Such rows train the head
            only. None: nothing is removed, with a `SingleEnvironmentWarning`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, in the moments and in the head. A weight of zero is the same as no
            row.

        Returns
        -------
        self
        """
        self._check_parts()
        self._forget()
        head, scheme, given = self._head_or_default(), self._scheme, None
        source = as_source(X, y, environments, sample_weight)
        if source is None:
            rows = check_rows(X, y, environments, sample_weight, estimator=self)
            check_classification_targets(rows.y)  # not the labels alone: they would look continuous
            source, given = InMemory(rows), environments is not None
        else:
            self._refuse_chunks(head, mapped=source is not X)
            set_features(self, source)
        isr = self._fresh_isr()
        if isinstance(source, InMemory):
            if isr.reduced or not is_solved_without_rows(head, source.rows.X):
                self.isr_ = isr._fit_source(source, given)
                self._fit_head(source.rows, self._head_weights(source.rows))
                return self
        elif isr.reduced:
            raise ValueError(
                "reduced=True is not there for chunks: leave it out, the predictions are the same."
            )
        second_order = isr._second_order or needs_scatters(head, source.n_features)
        moments = source.total(AddMoments(second_order))
        refuse_continuous(moments.known.classes, "y", "use ISRRegressor, or bin it to classes")
        known = moments.known
        if isinstance(source, InMemory) and not isr._second_order:  # scatters are the head's alone
            known = replace(known, scatters=None)
        self.isr_ = isr._fit_source(source, given, known)
        subspace = self.isr_.subspace_
        self.head_ = fit_from_sums(clone(head), source, subspace, moments, scheme)
        return self

    @staticmethod
    def _refuse_chunks(head: Any, mapped: bool) -> None:
        reason = why_not(head)
        if reason:
            hint = " X is a large memory map; np.array(X) has all rows at once." if mapped else ""
            raise ValueError(f"head={brief(head)} cannot be fitted chunk by chunk: {reason}.{hint}")

    @_head_has("decision_function")
    def decision_function(self, X: Any) -> FloatArray:
        """Return the head's decision values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of any environment.
        """
        return np.asarray(self._of_head("decision_function", X))

    @_head_has("predict_proba")
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the head's class probabilities, (n_samples, n_classes).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of any environment.
        """
        return np.asarray(self._of_head("predict_proba", X))

    @_head_has("predict_log_proba")
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithm of the head's class probabilities, (n_samples, n_classes).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of any environment.
        """
        return np.asarray(self._of_head("predict_log_proba", X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose class is predicted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of any environment.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        """
        check_scored(X, y, sample_weight)
        return float(super().score(X, y, sample_weight))

    @property
    def classes_(self) -> LabelArray:
        """Sorted class labels."""
        check_is_fitted(self, "head_")
        return np.asarray(self.head_.classes_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        head_tags = get_tags(self._head_or_default())
        if head_tags.classifier_tags is not None:
            tags.classifier_tags.multi_class = head_tags.classifier_tags.multi_class
        tags.non_deterministic = head_tags.non_deterministic
        return tags

    def _check_parts(self) -> None:
        isr, head = self.isr, self._head_or_default()
        if isr is not None and not isinstance(isr, ISRTransformer):
            raise TypeError(
                f"isr={brief(isr)} is not an ISR transformer: give ISR(), ISRMean() or ISRCov(), "
                "and put other steps before the ISRClassifier in a Pipeline."
            )
        if isinstance(head, type) or not hasattr(head, "fit") or not is_classifier(head):
            raise TypeError(
                f"head={brief(head)} is not a classifier: give one such as LogisticRegression()."
            )

    @property
    def _counts_classes_alike(self) -> bool | None:
        """Whether the head counts classes alike; None where it does so in a way of its own."""
        if takes_environments(self._head_or_default()):
            return None
        return self.group_weight is not None

    @property
    def _scheme(self) -> str | None:
        """What counts alike in the head; a head that takes environments weighs groups itself."""
        check_group_weight(self.group_weight)
        if self.head is None:
            return "matched" if self.group_weight == "balanced" else self.group_weight
        return None if takes_environments(self.head) else self.group_weight

    def _head_weights(self, rows: Rows) -> Float64Array | None:
        scheme = self._scheme
        return rows.sample_weight if scheme is None else scheme_weights(rows, scheme)


class ISRRegressor(RegressorMixin, ISRPredictor):
    r"""Remove the spurious subspace given a continuous target, then fit a linear head.

    In each environment X is regressed on :math:`\varphi(y) = (1, y)`. Directions in which the
    coefficients or the residual covariances differ between environments are removed as in `ISR`.
    With E environments the coefficients alone show at most 2 (E - 1) directions. The authors of ISR
    describe such an extension (arXiv 2311.00966); the steps here are our reconstruction of it.

    It assumes that the target stands before the features: some directions relate to y in the same
    way everywhere. Where features cause y instead, all directions may differ given y; `diagnose`
    warns where the data show it.

    Parameters
    ----------
    isr : ISR, default=None
        How to find the subspace, not fitted; None is ``ISR()``.
    head : regressor, default=None
        Fitted on the rows without their spurious part; None is ``Ridge()``.

    Attributes
    ----------
    isr_ : ISR
        The fitted `isr`.
    head_ : regressor
        The fitted `head`, in the coordinates of ``isr_.transform``.
    coef_ : ndarray of shape (n_features,)
        Weights in the original coordinates, removal included, if the head is linear.
    intercept_ : float
        Bias in the original coordinates.
    subspace_, n_spurious_, spurious_components_, spectrum_, rank_choice_, environments_
        As in `isr_`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    See Also
    --------
    ISRClassifier : The same for class labels.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn import ISRRegressor
    >>> random = np.random.default_rng(0)
    >>> e = np.repeat([0, 1, 2], 1000)
    >>> y = random.normal(size=3000)
    >>> cause = y + random.normal(size=3000)
    >>> cue = np.array([2.0, 1.0, -1.0])[e] * y + 0.5 * random.normal(size=3000)
    >>> X = np.column_stack([cause, cue])
    >>> reg = ISRRegressor().fit(X, y, environments=e)
    >>> reg.n_spurious_
    1
    >>> bool(abs(reg.coef_[1]) < 0.05 * abs(reg.coef_[0]))
    True
    """

    def __init__(self, isr: ISR | None = None, head: Any = None) -> None:
        self.isr = isr
        self.head = head

    @staticmethod
    def _default_head() -> Ridge:
        return Ridge()

    def fit(self, X: Any, y: Any, *, environments: Any = None, sample_weight: Any = None) -> Self:
        """Find the spurious subspace and fit the head without it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Target.
        environments : array-like of shape (n_samples,), default=None
            Environment of each row; None, NaN or NA where it is unknown. Such rows train the head
            only. None: nothing is removed, with a `SingleEnvironmentWarning`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, in the moments and in the head.

        Returns
        -------
        self
        """
        isr, head = self.isr, self._head_or_default()
        if isr is not None and not isinstance(isr, ISR):
            raise TypeError(f"isr={brief(isr)} is not an ISR(), the only one for a continuous y.")
        if isinstance(head, type) or not hasattr(head, "fit") or not is_regressor(head):
            raise TypeError(f"head={brief(head)} is not a regressor: give one such as Ridge().")
        self._forget()
        given = X, y, environments, sample_weight
        rows = check_rows(*given, estimator=self, numeric=True)
        self.isr_ = cast(ISR, self._fresh_isr())._fit_response(rows, environments is not None)
        self._fit_head(rows, rows.sample_weight)
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination of the predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of any environment.
        y : array-like of shape (n_samples,)
            Target.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        """
        check_scored(X, y, sample_weight)
        refuse_text(y)
        return float(super().score(X, y, sample_weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = get_tags(self._head_or_default()).non_deterministic
        return tags
