"""Scores of a model on rows whose labels are known: of all rows, and of each group."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

from isrlearn.metrics import GroupScores, group_scores
from isrlearn.typing import Float64Array, IntArray, LabelArray


class PredictionScores(NamedTuple):
    """What predictions are worth; the AUC is None where a class has no rows."""

    n_rows: int
    accuracy: float
    balanced_accuracy: float
    """Mean of the accuracies of the classes that have rows."""
    log_loss: float
    auc: float | None
    """One-vs-rest mean for more than two classes."""
    groups: GroupScores | None
    """None where no environment is known."""


def prediction_scores(
    codes: IntArray,
    predicted: LabelArray,
    shares: Float64Array,
    classes: LabelArray,
    environments: LabelArray | None,
) -> PredictionScores:
    """Score predictions.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Class of each row, as a place in `classes`.
    predicted : ndarray of shape (n,)
        Predicted labels.
    shares : ndarray of shape (n, k)
        Probability of each class.
    classes : ndarray of shape (k,)
        Classes of the model.
    environments : ndarray of shape (n,) or None
        None in it where unknown.
    """
    right = predicted == classes[codes]
    sizes, hits = np.bincount(codes), np.bincount(codes, right)
    return PredictionScores(
        n_rows=len(codes),
        accuracy=float(right.mean()),
        balanced_accuracy=float(np.mean(hits[sizes > 0] / sizes[sizes > 0])),
        log_loss=float(log_loss(codes, shares, labels=np.arange(len(classes)))),
        auc=_auc(codes, shares),
        groups=_groups(classes[codes], predicted, environments),
    )


def _auc(codes: IntArray, shares: Float64Array) -> float | None:
    if len(np.unique(codes)) < shares.shape[1]:
        return None
    scores = shares[:, 1] if shares.shape[1] == 2 else shares
    return float(roc_auc_score(codes, scores, multi_class="ovr"))


def _groups(true: LabelArray, predicted: LabelArray, environments: Any) -> GroupScores | None:
    if environments is None or all(environment is None for environment in environments):
        return None
    return group_scores(true, predicted, environments=environments)
