"""Stage 3: removal and a linear classifier in one estimator."""

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, is_classifier
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from isrlearn._base import ISRTransformer
from isrlearn._heads import LogisticHead
from isrlearn._labels import UNKNOWN
from isrlearn._logistic import SOLVED
from isrlearn._predictor_base import ISRPredictor, takes_environments
from isrlearn._transformers import default_isr
from isrlearn._typing import Float64Array, FloatArray, LabelArray
from isrlearn._validation import Rows, check_rows


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
        Fitted on the rows without their spurious part; None is `LogisticHead`,
        logistic regression whose penalty does not depend on units. One whose ``fit`` takes
        ``environments``, such as `isrlearn.baselines.GroupDRO`, gets them and weighs groups in its
        own way, whatever `group_weight` says.
    group_weight : {"balanced", None}, default="balanced"
        "balanced" weighs rows in the head by the inverse size of their (class, environment) group,
        so that all groups count the same; without environments the groups are the classes. A row
        of unknown environment gets the mean weight of its class. The mean weight is one. None: all
        rows count the same, which is better for the average over rows like the training rows.

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
        return LogisticHead(max_iter=1000, tol=SOLVED)

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

    def fit(self, X: Any, y: Any, *, environments: Any = None, sample_weight: Any = None) -> Self:
        """Find the spurious subspace and fit the head without it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Class labels.
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
        rows = check_rows(X, y, environments, sample_weight, estimator=self)
        check_classification_targets(rows.classes)
        weights = self._head_weights(rows)
        self.isr_ = self._fresh_isr()._fit_rows(rows, environments is not None)
        self._fit_head(rows, weights)
        return self

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
                f"isr={isr!r} is not an ISR transformer: give ISR(), ISRMean() or ISRCov(), "
                "and put other steps before the ISRClassifier in a Pipeline."
            )
        if isinstance(head, type) or not is_classifier(head):
            raise TypeError(
                f"head={head!r} is not a classifier: give one such as LogisticRegression()."
            )

    def _head_weights(self, rows: Rows) -> Float64Array | None:
        if self.group_weight not in (None, "balanced"):
            raise ValueError(f"group_weight={self.group_weight!r} must be None or 'balanced'.")
        if self.group_weight is None or takes_environments(self._head_or_default()):
            return rows.sample_weight
        return balanced_weights(rows)


def balanced_weights(rows: Rows) -> Float64Array:
    """Return weights that make every (class, environment) group count the same.

    Rows of unknown environment get the mean weight of their class, or of all known rows where the
    whole class is unknown. Without any known environment, the classes are the groups. The mean
    weight is one.

    Parameters
    ----------
    rows : Rows
        Checked rows; their own weights are multiplied in.

    Returns
    -------
    ndarray of shape (n,)
    """
    own = np.ones(len(rows.X)) if rows.sample_weight is None else rows.sample_weight
    environment = rows.environment_codes
    if len(rows.environments) == 0:
        environment = np.zeros_like(environment)
    known = environment != UNKNOWN
    group = rows.class_codes * (environment.max() + 1) + environment
    _, place = np.unique(group[known], return_inverse=True)
    result = np.ones(len(own))
    result[known] = 1 / np.bincount(place, own[known])[place]
    totals = np.bincount(rows.class_codes[known], (own * result)[known], len(rows.classes))
    counts = np.bincount(rows.class_codes[known], own[known], len(rows.classes))
    overall = np.full_like(totals, totals.sum() / counts.sum())
    class_factors = np.divide(totals, counts, out=overall, where=counts > 0)
    result[~known] = class_factors[rows.class_codes[~known]]
    return own * result * (own.sum() / np.sum(own * result))
