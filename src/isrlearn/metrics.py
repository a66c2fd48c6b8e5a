r"""Scores per group: a model is as good as it is for the group it serves worst.

A *group* is a (class, environment) cell of the rows that are scored. "Average accuracy" has two
meanings in this field; both are here, under different names:

* `average_accuracy`: the plain share of rows that are right;
* `adjusted_average_accuracy`: group accuracies weighted by the sizes of the *training* groups.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sklearn.utils.metadata_routing import MetadataRequest

from isrlearn.display import brief, figure, table
from isrlearn.rows import (
    UNKNOWN,
    as_labels,
    check_weights,
    encode_environments,
    encode_labels,
    of_list,
    refuse_continuous,
)
from isrlearn.typing import Float64Array, IntArray, LabelArray

__all__ = [
    "GroupScores",
    "GroupScorer",
    "adjusted_average_accuracy",
    "average_accuracy",
    "environment_accuracies",
    "group_scores",
    "overlapping_group_scores",
    "worst_group_accuracy",
]


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
    for labels, name in ((y_true, "y_true"), (y_pred, "y_pred")):
        if isinstance(labels, list | tuple):
            of_list(labels, name)  # refuses rows that are not equally long
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
    as_labels(true, "y_true")
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


def overlapping_group_scores(
    y_true: Any, y_pred: Any, *, environments: Mapping[str, Any], sample_weight: Any = None
) -> dict[str, GroupScores]:
    """Score predictions by several attributes, one after the other: groups may overlap.

    A row is in one group of each attribute. To look at their combinations instead, cross them into
    one attribute.

    Parameters
    ----------
    y_true, y_pred, sample_weight : array-like of shape (n,)
        As in `group_scores`.
    environments : mapping of str to array-like of shape (n,)
        Attributes by name; a row may be unknown in some of them.

    Returns
    -------
    dict of str to GroupScores

    Examples
    --------
    >>> attributes = {"sex": ["f", "f", "m", "m"], "age": ["old", "young", "old", "young"]}
    >>> scores = overlapping_group_scores([1, 1, 1, 1], [1, 0, 1, 1], environments=attributes)
    >>> {name: found.worst for name, found in scores.items()}
    {'sex': 0.5, 'age': 0.5}
    """
    if not isinstance(environments, Mapping) or len(environments) == 0:
        raise TypeError(
            f"environments={brief(environments)} must be a mapping of names to attributes, with at "
            "least one: for one attribute alone use group_scores."
        )
    return {
        name: group_scores(y_true, y_pred, environments=values, sample_weight=sample_weight)
        for name, values in environments.items()
    }


def worst_group_accuracy(
    y_true: Any, y_pred: Any, *, environments: Any, sample_weight: Any = None
) -> float:
    """Return the smallest accuracy over (class, environment) groups.

    Parameters
    ----------
    y_true, y_pred, sample_weight : array-like of shape (n,)
        As in `group_scores`.
    environments : array-like of shape (n,), or mapping of str to such
        As in `group_scores`, or several attributes as in `overlapping_group_scores`.

    Returns
    -------
    float

    Examples
    --------
    >>> worst_group_accuracy([0, 0, 1, 1], [0, 1, 1, 1], environments=[0, 1, 0, 1])
    0.0
    """
    several = environments if isinstance(environments, Mapping) else {"": environments}
    scores = overlapping_group_scores(
        y_true, y_pred, environments=several, sample_weight=sample_weight
    )
    return min(found.worst for found in scores.values())


def average_accuracy(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    """Return the plain share of rows that are right.

    Parameters
    ----------
    y_true, y_pred, sample_weight : array-like of shape (n,)
        True and predicted labels, and weights of the rows.

    Returns
    -------
    float

    Examples
    --------
    >>> average_accuracy([0, 1, 1], [0, 1, 0], sample_weight=[1, 1, 2])
    0.5
    """
    right = right_or_not(y_true, y_pred)
    return float(np.average(right, weights=check_weights(sample_weight, len(right))))


def adjusted_average_accuracy(
    y_true: Any, y_pred: Any, *, environments: Any, y_train: Any, environments_train: Any
) -> float:
    """Return the group accuracies' mean, weighted by the sizes of the training groups.

    Parameters
    ----------
    y_true, y_pred, environments : array-like of shape (n,)
        As in `group_scores`.
    y_train, environments_train : array-like of shape (n_train,)
        Labels and environments of the training rows.

    Returns
    -------
    float

    Examples
    --------
    >>> adjusted_average_accuracy([0, 1], [0, 0], environments=["a", "a"],
    ...                           y_train=[0, 0, 0, 1], environments_train=["a"] * 4)
    0.75
    """
    scores = group_scores(y_true, y_pred, environments=environments)
    return scores.adjusted_average(y_train, environments_train)


def environment_accuracies(y_true: Any, y_pred: Any, *, environments: Any) -> dict[Any, float]:
    """Return the accuracy in each environment.

    Parameters
    ----------
    y_true, y_pred, environments : array-like of shape (n,)
        As in `group_scores`.

    Returns
    -------
    dict of environment to float

    Examples
    --------
    >>> environment_accuracies([0, 0, 1], [0, 1, 1], environments=["a", "b", "b"])
    {'a': 1.0, 'b': 0.5}
    """
    scores = group_scores(y_true, y_pred, environments=environments)
    return dict(zip(scores.environments.tolist(), scores.per_environment.tolist(), strict=True))


class GroupScorer:
    """Scorer for GridSearchCV and cross_validate that knows the environments.

    With metadata routing on, pass ``environments=`` to the search: the scorer asks for it. With
    routing off scikit-learn gives a scorer no more than X and y; then pass the environments here as
    a pandas Series, and X as a DataFrame with the same index.

    Parameters
    ----------
    score : {"worst_group", "worst_environment", "average"}, default="worst_group"
        What to return: the accuracy of the worst group, of the worst environment, or over the rows
        of known environment.
    environments : pandas.Series, default=None
        Environments by the index of X, for use without metadata routing.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.model_selection import GridSearchCV
    >>> from isrlearn import ISRMean, ISRClassifier
    >>> from isrlearn.datasets import load_penguins
    >>> from isrlearn.metrics import GroupScorer
    >>> X, y, species = load_penguins()
    >>> grid = {"isr__n_spurious": [0, 1, 2]}
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     search = GridSearchCV(ISRClassifier(ISRMean()), grid, scoring=GroupScorer(), cv=3)
    ...     search = search.fit(X / X.std(axis=0), y, environments=species)
    >>> sorted(search.best_params_)
    ['isr__n_spurious']
    """

    def __init__(self, score: str = "worst_group", *, environments: Any = None) -> None:
        if score not in _SCORES:
            raise ValueError(f"score={brief(score)} must be one of {sorted(_SCORES)}.")
        if environments is not None and not hasattr(environments, "loc"):
            raise TypeError(
                f"environments is a {type(environments).__name__}: GroupScorer finds rows by their "
                "index, so it needs a pandas Series with the index of X."
            )
        self.score = score
        self.environments = environments

    def __call__(self, estimator: Any, X: Any, y: Any, *, environments: Any = None) -> float:
        """Return the score of `estimator` on rows X, y."""
        if environments is None:
            environments = self._by_index(X)
        return _SCORES[self.score](group_scores(y, estimator.predict(X), environments=environments))

    def get_metadata_routing(self) -> MetadataRequest:
        """Ask for `environments` when metadata routing is on."""
        request = MetadataRequest(owner=type(self).__name__)
        request.score.add_request(param="environments", alias=True)
        return request

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.score!r})"

    def _by_index(self, X: Any) -> Any:
        if self.environments is None or not hasattr(X, "index"):
            raise ValueError(
                "GroupScorer has no environments for these rows. Either turn on metadata routing "
                "(sklearn.set_config(enable_metadata_routing=True)) and pass environments= to the "
                "search, or pass X as a DataFrame and GroupScorer(environments=Series) with the "
                "same index."
            )
        if not self.environments.index.is_unique or not X.index.isin(self.environments.index).all():
            raise ValueError(
                "the index of GroupScorer(environments=...) has repeated labels or misses rows of "
                "X: give both the same unique index."
            )
        return self.environments.loc[X.index]


_SCORES: Final[dict[str, Callable[[GroupScores], float]]] = {
    "worst_group": lambda scores: scores.worst,
    "worst_environment": lambda scores: float(scores.per_environment.min()),
    "average": lambda scores: scores.average,
}
