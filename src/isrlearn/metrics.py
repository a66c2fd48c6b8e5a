r"""Scores per group: a model is as good as it is for the group it serves worst.

A *group* is a (class, environment) cell of the rows that are scored. "Average accuracy" has two
meanings in this field; both are here, under different names:

* `average_accuracy`: the plain share of rows that are right;
* `adjusted_average_accuracy`: group accuracies weighted by the sizes of the *training* groups.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from sklearn.utils.metadata_routing import MetadataRequest

from isrlearn._group_scores import GroupScores, group_scores, right_or_not
from isrlearn._text import brief
from isrlearn._weights import check_weights

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
