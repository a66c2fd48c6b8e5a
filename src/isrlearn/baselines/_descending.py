"""Rivals that descend on an objective with a penalty: one trial of `fit_trials` each."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets

from isrlearn.baselines._environments import compared_environments
from isrlearn.baselines._linear import LinearRival
from isrlearn.baselines._trials import Trial, descend, starting_weights
from isrlearn.rows import UNKNOWN, Rows, check_number, check_rows, refuse_large_features, seeded
from isrlearn.typing import BoolArray, FloatArray, IntArray


class DescendingRival(LinearRival):
    """Full-batch descent on the objective that `recipe` names. Two classes."""

    recipe: ClassVar[str]
    strength: ClassVar[str | None] = None
    """Name of the parameter that weighs the penalty, if there is one."""
    largest_strength: ClassVar[float] = np.inf
    needs_environments: ClassVar[bool] = True

    learning_rate: float
    weight_decay: float
    n_steps: int
    random_state: Any

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features; float32 is computed in single precision.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        environments : array-like of shape (n_samples,), default=None
            One label per row. Rows of unknown environment are left out where the objective needs
            the environment. None: all rows are one environment.

        Returns
        -------
        self
        """
        rows = check_rows(X, y, environments, estimator=self)
        refuse_large_features(rows.X)
        self._check(rows)
        codes = self._codes(rows, environments is not None)
        used = codes != UNKNOWN
        self._check_classes_left(rows, used)
        start = starting_weights(seeded(self.random_state), rows.X.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):  # looked for below
            weights = descend(
                self.recipe,
                rows.X[used],
                rows.class_codes[used] == 1,
                codes[used],
                [self._trial()],
                start[None],
                self.n_steps,
            )
        self._refuse_overflow(weights)
        self.coef_, self.intercept_ = weights[:, :-1], weights[:, -1]
        self.classes_, self.environments_ = rows.classes, rows.environments
        return self

    def _trial(self) -> Trial:
        penalty = 0.0 if self.strength is None else getattr(self, self.strength)
        return Trial(self.learning_rate, self.weight_decay, penalty)

    def _codes(self, rows: Rows, given: bool) -> IntArray:
        """Return the environment of each row that is used, -1 for the others."""
        if not self.needs_environments:
            return np.zeros(len(rows.y), np.intp)
        return compared_environments(rows, given, type(self).__name__)

    def _check(self, rows: Rows) -> None:
        check_classification_targets(rows.y)
        if len(rows.classes) != 2:
            raise ValueError(
                f"Only binary classification is supported by {type(self).__name__}; y has "
                f"{len(rows.classes)} class(es)."
            )
        check_number("learning_rate", self.learning_rate, 0)
        check_number("weight_decay", self.weight_decay, 0)
        check_number("n_steps", self.n_steps, 1, whole=True)
        if self.strength is not None:
            check_number(self.strength, getattr(self, self.strength), 0, self.largest_strength)

    def _refuse_overflow(self, weights: FloatArray) -> None:
        if not np.isfinite(weights).all():
            raise ValueError(
                f"the steps of {type(self).__name__} left the range of numbers, with learning_rate="
                f"{self.learning_rate:g} and weight_decay={self.weight_decay:g}: lower them, or "
                "scale the features."
            )

    def _check_classes_left(self, rows: Rows, used: BoolArray) -> None:
        if len(np.unique(rows.class_codes[used])) < 2:
            raise ValueError(
                f"{(~used).sum()} rows of unknown environment are left out by "
                f"{type(self).__name__}, and the others are all of one class: label the "
                "environments of rows of both classes."
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
