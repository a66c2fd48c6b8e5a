"""Scores of groups as a report shows them, with intervals."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from isrlearn.leaderboard import Comparison
from isrlearn.leaderboard._bootstrap import interval
from isrlearn.metrics import GroupScores
from isrlearn.reporting._content import Estimate, Group, Method, Verdict

DRAWS: Final = 4000


def worst_estimate(scores: GroupScores, *, random_state: int = 0) -> Estimate:
    """Return the worst group with its bootstrap interval.

    Rows are resampled within groups; of a group with n rows, a of them right, n·binomial(n, a/n).

    Parameters
    ----------
    scores : GroupScores
        Of rows without weights.
    random_state : int, default=0
        Seed of the draws.

    Examples
    --------
    >>> from isrlearn.metrics import group_scores
    >>> y = [0] * 50 + [1] * 50
    >>> worst_estimate(group_scores(y, [0] * 90 + [1] * 10, environments=["a", "b"] * 50)).value
    0.2
    """
    filled = scores.sizes > 0
    sizes = np.round(scores.sizes[filled]).astype(np.int64)
    shares = np.clip(scores.accuracies[filled], 0, 1)
    drawn = np.random.default_rng(random_state).binomial(sizes, shares, (DRAWS, len(sizes)))
    return Estimate(*interval(scores.worst, (drawn / sizes).min(axis=1)))


def groups_of(scores: GroupScores) -> tuple[Group, ...]:
    """Return the groups that have rows, class by class."""
    return tuple(
        Group(str(scores.classes[c]), str(scores.environments[e]), round(float(size)))
        for (c, e), size in np.ndenumerate(scores.sizes)
        if size > 0
    )


def method_of(name: str, scores: GroupScores, groups: tuple[Group, ...], *, ours: bool) -> Method:
    """Return a model's line, its accuracies in the order of the groups."""
    own = {
        (str(scores.classes[c]), str(scores.environments[e])): float(scores.accuracies[c, e])
        for (c, e), size in np.ndenumerate(scores.sizes)
        if size > 0
    }
    label, environment = scores.worst_group
    return Method(
        name,
        scores.average,
        worst_estimate(scores),
        f"{label}, {environment}",
        tuple(own.get((g.label, g.environment)) for g in groups),
        ours,
    )


def methods_of(
    models: Mapping[str, GroupScores], *, ours: str
) -> tuple[tuple[Group, ...], tuple[Method, ...]]:
    """Return groups and lines of several models scored on the same rows."""
    groups = groups_of(next(iter(models.values())))
    lines = (method_of(n, scores, groups, ours=n == ours) for n, scores in models.items())
    return groups, tuple(lines)


def compared(result: Comparison) -> tuple[tuple[Group, ...], tuple[Method, ...]]:
    """Return groups and lines of a comparison."""
    groups = tuple(Group(str(g.label), str(g.environment), g.size) for g in result.groups)
    lines = (
        Method(
            entry.title,
            entry.average,
            Estimate(*entry.worst_group),
            entry.worst,
            tuple(None if np.isnan(value) else value for value in entry.groups),
            entry.key == "isr",
        )
        for entry in result.entries
    )
    return groups, tuple(lines)


def verdict_on(before: Method | None, after: Method | None, rows: str, extra: str = "") -> Verdict:
    """Say whether the worst group is better, in a sentence that the figures bear out."""
    return Verdict(before, after, f"{_standing(before, after)} {extra}".strip(), rows)


def _standing(before: Any, after: Any) -> str:
    if before is None or after is None:
        return ""
    if after.worst.low > before.worst.high:
        return "The worst group is served better, by more than chance explains."
    if after.worst.high < before.worst.low:
        return "The worst group is served worse, by more than chance explains: do not ship this."
    if after.worst.value > before.worst.value:
        return "The worst group is better in these rows; the intervals overlap: it may be chance."
    return "The worst group is not better in these rows; the intervals overlap."
