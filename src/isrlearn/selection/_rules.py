"""Rules that say on which rows a setting is judged, and by what; none looks at test rows."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from isrlearn.display import brief
from isrlearn.heads import labelled_environments
from isrlearn.metrics import group_scores
from isrlearn.rows import encode_environments, encode_labels
from isrlearn.typing import IntArray, LabelArray

WORST_GROUP: Final = "worst-group"
AVERAGE: Final = "average"
LEAVE_ONE_OUT: Final = "leave-one-environment-out"
RULES: Final = {
    WORST_GROUP: "accuracy of the worst (class, environment) group of the validation rows",
    AVERAGE: "accuracy over the validation rows; no environment of theirs is looked at",
    LEAVE_ONE_OUT: "mean accuracy in each training environment, predicted from the others",
}
"""The names that `select` takes, and what each means."""
FEWEST_ROWS: Final = 10
"""Of a group, to be counted by the rule "worst-group": the accuracy of fewer says little."""


class Fold(NamedTuple):
    """Rows to fit on and rows to score, by position."""

    fitted: IntArray
    scored: IntArray


class Score(NamedTuple):
    """A share of rows that are right, and what one row more would add to it."""

    value: float
    one_row: float


def check_rule(rule: Any) -> None:
    """Raise a ValueError unless `rule` is the name of a rule."""
    if not isinstance(rule, str) or rule not in RULES:
        raise ValueError(f"rule={brief(rule)} must be one of {', '.join(RULES)}.")


def stratified_part(
    labels: Any, environments: Any, share: float, random_state: np.random.Generator
) -> IntArray:
    """Draw a share of every (class, environment) group, at least one row of two or more.

    Parameters
    ----------
    labels, environments : array-like of shape (n,)
        Groups; rows of unknown environment are groups of their class alone.
    share : float
        Between 0 and 1.
    random_state : numpy Generator
        Draws.

    Returns
    -------
    ndarray of int
        Positions of the rows drawn, sorted.
    """
    _, classes = encode_labels(labels, "y")
    names, codes = encode_environments(environments, len(classes))
    groups = classes * (len(names) + 1) + codes + 1
    drawn = []
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        wanted = int(round(share * len(rows)))
        size = min(max(wanted, 1), len(rows) - 1)
        drawn.append(random_state.permutation(rows)[:size])
    found = np.sort(np.concatenate(drawn))
    if len(found) == 0:
        raise ValueError(
            "every (class, environment) group has a single row, so none can be set apart to choose "
            "on or to test: give more rows, or environments that group them."
        )
    return found


def environment_folds(environments: Any, n_rows: int) -> list[Fold]:
    """Return one fold for each environment: it is scored, all others are fitted on.

    Parameters
    ----------
    environments : array-like of shape (n,)
        At least three; rows of unknown environment are always fitted on.
    n_rows : int
        How many rows there are.

    Returns
    -------
    list of Fold
    """
    names, codes = encode_environments(environments, n_rows)
    if len(names) < 3:
        raise ValueError(
            f"the rule {LEAVE_ONE_OUT!r} leaves out one of {len(names)} training environment(s), "
            "and fewer than two would be left to compare: it needs three. Use the rule "
            f"{WORST_GROUP!r} or {AVERAGE!r}."
        )
    return [Fold(np.flatnonzero(codes != e), np.flatnonzero(codes == e)) for e in range(len(names))]


def scorer(rule: str) -> Callable[[LabelArray, LabelArray, Any], Score]:
    """Return the function of true labels, predictions and environments that a rule scores by."""
    return _worst_group if rule == WORST_GROUP else _average


def _worst_group(y: LabelArray, predicted: LabelArray, environments: Any) -> Score:
    if len(encode_environments(environments, len(y))[0]) == 0:
        raise ValueError(
            f"the rule {WORST_GROUP!r} needs environments of the validation rows, and none is "
            f"known: use the rule {AVERAGE!r}."
        )
    scores = group_scores(y, predicted, environments=environments)
    fewest = FEWEST_ROWS if scores.sizes.max() >= FEWEST_ROWS else 1
    large = scores.sizes >= fewest
    accuracies = np.where(large, scores.accuracies, np.inf)
    worst = int(np.argmin(accuracies))
    return Score(float(accuracies.flat[worst]), 1 / float(scores.sizes.flat[worst]))


def _average(y: LabelArray, predicted: LabelArray, environments: Any) -> Score:
    return Score(float(np.mean(y == predicted)), 1 / len(y))


def known(environments: Any, n_rows: int) -> LabelArray:
    """Return environments as an array of objects with None where unknown."""
    found = labelled_environments(*encode_environments(environments, n_rows))
    return np.full(n_rows, None, dtype=object) if found is None else found
