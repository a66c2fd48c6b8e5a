"""Accuracies per (class, environment) group, counted."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from isrlearn._arrays import refuse_kind, refuse_ragged
from isrlearn._html import figure, table
from isrlearn._labels import UNKNOWN, as_labels, encode_labels
from isrlearn._text import brief
from isrlearn._typing import Float64Array, IntArray, LabelArray
from isrlearn._validation import encode_environments, refuse_continuous
from isrlearn._weights import check_weights


@dataclass(frozen=True, eq=False)
class GroupScores:
    """Accuracies of the (class, environment) groups.

    Parameters
    ----------
    classes : ndarray of shape (k,)
        Sorted labels.
    environments : ndarray of shape (E,)
        Sorted environments.
    sizes : ndarray of shape (k, E)
        Weight of the rows in each group; their number without weights.
    correct : ndarray of shape (k, E)
        Weight of the rows that were predicted right.

    Examples
    --------
    >>> from isrlearn.metrics import group_scores
    >>> scores = group_scores([0, 0, 1, 1], [0, 1, 1, 1], environments=["a", "b", "a", "b"])
    >>> scores.accuracies
    array([[1., 0.],
           [1., 1.]])
    >>> scores.worst, scores.average
    (0.0, 0.75)
    >>> scores.worst_group
    (0, 'b')
    """

    classes: LabelArray
    environments: LabelArray
    sizes: Float64Array
    correct: Float64Array

    @property
    def accuracies(self) -> Float64Array:
        """Accuracy of each group, (k, E); NaN for a group without rows."""
        empty = np.full_like(self.sizes, np.nan)
        return np.divide(self.correct, self.sizes, out=empty, where=self.sizes > 0)

    @property
    def worst(self) -> float:
        """Smallest accuracy over the groups that have rows."""
        return float(np.nanmin(self.accuracies))

    @property
    def worst_group(self) -> tuple[Any, Any]:
        """Class and environment of the worst group, the first of several."""
        place = np.nanargmin(self.accuracies)
        c, e = np.unravel_index(place, self.sizes.shape)
        return self.classes[c].item(), self.environments[e].item()

    @property
    def average(self) -> float:
        """Plain accuracy over the rows."""
        return float(self.correct.sum() / self.sizes.sum())

    @property
    def per_environment(self) -> Float64Array:
        """Accuracy in each environment, (E,)."""
        return np.asarray(self.correct.sum(axis=0) / self.sizes.sum(axis=0))

    def adjusted_average(self, y_train: Any, environments_train: Any) -> float:
        """Return the mean of the group accuracies, weighted by the sizes of the training groups.

        Parameters
        ----------
        y_train, environments_train : array-like of shape (n_train,)
            Labels and environments of the training rows; rows of unknown environment do not count.

        Returns
        -------
        float
        """
        y_train = as_labels(y_train, "y_train")
        environments_train = as_labels(environments_train, "environments_train", len(y_train))
        training = group_scores(y_train, y_train, environments=environments_train)
        weights = np.zeros(self.sizes.shape)
        for (c, e), size in np.ndenumerate(training.sizes):
            if size > 0:
                weights[self._place(training.classes[c], training.environments[e])] = size
        return float(np.sum(weights * np.nan_to_num(self.accuracies)) / weights.sum())

    def _repr_html_(self) -> str:
        label, environment = self.worst_group
        rows = [
            (c, [f"{figure(a)} of {n:g}" for a, n in zip(*cells, strict=True)])
            for c, *cells in zip(self.classes.tolist(), self.accuracies, self.sizes, strict=True)
        ]
        return table(
            f"Accuracy by class and environment: average {self.average:.3f}, worst group "
            f"{self.worst:.3f} (class {label}, environment {environment})",
            self.environments.tolist(),
            rows,
            corner="class",
        )

    def _place(self, label: Any, environment: Any) -> tuple[int, int]:
        c = np.flatnonzero(self.classes == label)
        e = np.flatnonzero(self.environments == environment)
        if len(c) == 0 or len(e) == 0 or self.sizes[c[0], e[0]] == 0:
            raise ValueError(
                f"the training group (class {brief(label)}, environment {brief(environment)}) has "
                "no scored rows, so the average weighted by training groups is not defined. Score "
                "rows of every training group, or use the plain average."
            )
        return int(c[0]), int(e[0])


def group_scores(
    y_true: Any, y_pred: Any, *, environments: Any, sample_weight: Any = None
) -> GroupScores:
    """Score predictions per (class, environment) group.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        True and predicted labels.
    environments : array-like of shape (n,)
        Environments; rows with None, NaN or NA belong to no group and are left out.
    sample_weight : array-like of shape (n,), default=None
        Weights of the rows.

    Returns
    -------
    GroupScores

    Examples
    --------
    >>> from isrlearn.metrics import group_scores
    >>> hospitals = ["north", "north", "south", None]
    >>> scores = group_scores([1, 1, 1, 1], [1, 0, 1, 0], environments=hospitals)
    >>> scores.environments.tolist(), scores.accuracies.tolist()
    (['north', 'south'], [[0.5, 1.0]])
    """
    right = right_or_not(y_true, y_pred)
    n_rows = len(right)
    weights = check_weights(sample_weight, n_rows)
    weights = np.ones(n_rows) if weights is None else weights
    _, environment_codes = encode_environments(environments, n_rows)
    scored = (environment_codes != UNKNOWN) & (weights > 0)
    if not scored.any():
        raise ValueError("no row with positive weight has a known environment: nothing to score.")
    classes, class_codes = encode_labels(as_labels(y_true, "y_true")[scored], "y_true")
    if np.any(class_codes == UNKNOWN):
        raise ValueError("y_true has missing labels (None or NaN): drop those rows first.")
    refuse_continuous(classes, "y_true", "score a regression by its errors in each environment")
    seen = as_labels(environments, "environments")[scored]
    labels, environment_codes = encode_labels(seen, "environments")
    shape = len(classes), len(labels)
    cells = class_codes * shape[1] + environment_codes
    return GroupScores(
        classes=classes,
        environments=labels,
        sizes=_table(cells, weights[scored], shape),
        correct=_table(cells, (right * weights)[scored], shape),
    )


def right_or_not(y_true: Any, y_pred: Any) -> Float64Array:
    """Return 1 where a prediction is right and 0 elsewhere, (n,)."""
    refuse_ragged(y_true, "y_true")
    refuse_ragged(y_pred, "y_pred")
    true, predicted = np.asarray(y_true), np.asarray(y_pred)
    numbers = [labels.dtype.kind in "biuf" for labels in (true, predicted)]
    strings = [labels.dtype.kind == "U" for labels in (true, predicted)]
    if any(numbers) and any(strings):
        raise TypeError(
            "one of y_true and y_pred holds numbers, the other strings: compare labels of the same "
            "type."
        )
    if true.shape != predicted.shape or true.ndim != 1:
        raise ValueError(
            f"y_true has shape {true.shape} and y_pred {predicted.shape}: give one label per row."
        )
    refuse_kind(true, "y_true")
    if len(true) == 0:
        raise ValueError("y_true has no rows: nothing to score.")
    if predicted.dtype.kind == "f":
        _refuse_other_than_labels(true, predicted)
    return (true == predicted).astype(np.float64)


def _refuse_other_than_labels(true: LabelArray, predicted: Float64Array) -> None:
    if np.isnan(predicted).any():
        raise ValueError("y_pred has missing labels (NaN): give a prediction for every row.")
    fractions = predicted[predicted != np.round(predicted)]
    if len(fractions) and true.dtype.kind != "f":
        raise ValueError(
            f"y_pred holds {fractions[0]:g}, which is no label: give predicted labels, not "
            "probabilities or decision values."
        )


def _table(cells: IntArray, weights: Float64Array, shape: tuple[int, int]) -> Float64Array:
    """Sum weights per cell."""
    sums = np.bincount(cells, weights, shape[0] * shape[1])
    return np.asarray(sums, dtype=np.float64).reshape(shape)
