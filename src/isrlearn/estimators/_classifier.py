"""Stage 3: removal and a linear classifier in one estimator."""

from typing import Any, Final, Self

import numpy as np
from sklearn.base import ClassifierMixin, clone, is_classifier
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from isrlearn.display import brief, is_one_of
from isrlearn.estimators._predictor_base import ISRPredictor, takes_environments
from isrlearn.estimators._transformers import ISRTransformer, default_isr, set_features
from isrlearn.heads import (
    SOLVED,
    LogisticHead,
    Pooled,
    Removed,
    fit_from_sums,
    group_factors,
    needs_scatters,
    scheme_weights,
    solved_by_slopes,
    why_not,
)
from isrlearn.moments import AddMoments, AllMoments
from isrlearn.rows import (
    InMemory,
    Rows,
    RowSource,
    as_source,
    check_rows,
    check_scored,
    refuse_continuous,
)
from isrlearn.typing import Float64Array, FloatArray, LabelArray

GROUP_WEIGHTS: Final = ("balanced", "class", None)
LARGE: Final = 2**28  # bytes of rows that a head is to be fitted without a copy of


def check_group_weight(group_weight: Any) -> None:
    """Raise `ValueError` unless a weighting of groups is known."""
    if not is_one_of(group_weight, GROUP_WEIGHTS):
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

    @staticmethod
    def _default_head() -> LogisticHead:
        return LogisticHead(C="scale", max_iter=1000, tol=SOLVED)

    def _default_isr(self, n_features: int) -> ISRTransformer:
        return default_isr(n_features)

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

    def fit(
        self, X: Any, y: Any = None, *, environments: Any = None, sample_weight: Any = None
    ) -> Self:
        """Find the spurious subspace and fit the head without it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or RowSource
            Features; or rows with all that belongs to them, read chunk by chunk. Then the head must
            be `LogisticHead`, `LogisticRegression`, `LinearDiscriminantAnalysis` or
            `RidgeClassifier`, and the tests of ``n_spurious="auto"`` recombine parts of the rows.
        y : array-like of shape (n_samples,)
            Class labels; not with `RowSource`, which have their own, as they have environments
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
        chunks = as_source(X, y, environments, sample_weight)
        if chunks is not None:
            return self._fit_chunks(chunks, mapped=chunks is not X)
        rows = check_rows(X, y, environments, sample_weight, estimator=self)
        check_classification_targets(rows.y)  # not the labels alone, which would look continuous
        weights, head = self._head_weights(rows), self._head_or_default()
        self.isr_ = self._fresh_isr()._fit_source(InMemory(rows), environments is not None)
        if (
            rows.X.nbytes < LARGE
            or self.isr_.reduced
            or not solved_by_slopes(head, rows.X.shape[1])
        ):
            self._fit_head(rows, weights)
        else:  # without a copy of the rows
            moments = AllMoments.with_others(self.isr_.moments_, rows)
            self._fit_head_from_sums(InMemory(rows), moments)
        return self

    def _fit_chunks(self, rows: RowSource, mapped: bool) -> Self:
        head = self._head_or_default()
        reason = why_not(head)
        if reason:
            way_out = (
                " X is a large memory map; np.array(X) has all rows at once." if mapped else ""
            )
            raise ValueError(
                f"head={brief(head)} cannot be fitted chunk by chunk: {reason}.{way_out}"
            )
        set_features(self, rows)
        isr = self._fresh_isr()
        if isr.reduced:
            raise ValueError(
                "reduced=True is not there for chunks: leave it out, the predictions are the same."
            )
        second_order = isr._second_order or needs_scatters(head, rows.n_features)
        moments = rows.total(AddMoments(second_order))
        refuse_continuous(moments.known.classes, "y", "use ISRRegressor, or bin it to classes")
        self.isr_ = isr._fit_source(rows, None, moments.known)
        self._fit_head_from_sums(rows, moments)
        return self

    def _fit_head_from_sums(self, rows: RowSource, moments: AllMoments) -> None:
        head = clone(self._head_or_default())
        factors = group_factors(moments, self._scheme)
        pooled = Pooled.of(moments, factors, scatters=needs_scatters(head, rows.n_features))
        removed = Removed(rows, self.isr_.subspace_, factors, pooled)
        self.head_ = fit_from_sums(head, removed)

    @_head_has("decision_function")
    def decision_function(self, X: Any) -> FloatArray:
        """Return the head's decision values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of any environment.
        """
        X = self._without_spurious(X)
        return np.asarray(self.head_.decision_function(X))

    @_head_has("predict_proba")
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the head's class probabilities, (n_samples, n_classes).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of any environment.
        """
        X = self._without_spurious(X)
        return np.asarray(self.head_.predict_proba(X))

    @_head_has("predict_log_proba")
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithm of the head's class probabilities, (n_samples, n_classes).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of any environment.
        """
        X = self._without_spurious(X)
        return np.asarray(self.head_.predict_log_proba(X))

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
        if takes_environments(self._head_or_default()):
            return None
        matched = self.head is None and self.group_weight == "balanced"
        return "matched" if matched else self.group_weight

    def _head_weights(self, rows: Rows) -> Float64Array | None:
        scheme = self._scheme
        return rows.sample_weight if scheme is None else scheme_weights(rows, scheme)
