"""Scores of groups as a report shows them, with intervals."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from scipy.stats import beta

from isrlearn.display import isolated
from isrlearn.leaderboard import Comparison
from isrlearn.leaderboard._bootstrap import interval
from isrlearn.metrics import GroupScores
from isrlearn.reporting._content import Estimate, Group, Method, Verdict

DRAWS: Final = 4000


def worst_estimate(scores: GroupScores, *, random_state: int = 0) -> Estimate:
    """Return the worst group with its bootstrap interval.

    Rows are resampled within groups. The interval is at least as wide as that of the worst group
    by itself (Jeffreys), so that few rows never seem certain.

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
    >>> found = worst_estimate(group_scores(y, [0] * 90 + [1] * 10, environments=["a", "b"] * 50))
    >>> found.value, found.low < 0.1, found.high > 0.35
    (0.2, True, True)
    """
    filled = scores.sizes > 0
    sizes = np.round(scores.sizes[filled]).astype(np.int64)
    shares = np.clip(scores.accuracies[filled], 0, 1)
    random, least = np.random.default_rng(random_state), np.ones(DRAWS)
    for size, share in zip(sizes, shares, strict=True):
        np.minimum(least, random.binomial(size, share, DRAWS) / size, out=least)
    _, low, high = interval(scores.worst, least)
    # Resampling knows no doubt where all rows or none are right: that of the group alone is kept.
    worst = int(np.argmin(shares))
    right = shares[worst] * sizes[worst]
    alone = beta.ppf([0.025, 0.975], right + 0.5, sizes[worst] - right + 0.5)
    return Estimate(scores.worst, float(min(low, alone[0])), float(max(high, alone[1])))


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
        f"{isolated(str(label))}, {isolated(str(environment))}",
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
    n_left_out = len(result.entries[0].left_out)
    counts = [(result.n_seeds, "seeds"), (n_left_out, "groups left out")]
    over = " and ".join(f"{n} {what}" for n, what in counts if n > 1)
    lines = (
        Method(
            entry.title,
            entry.average,
            Estimate(*entry.worst_group),
            f"mean over {over}" if over else entry.worst,
            tuple(None if np.isnan(value) else value for value in entry.groups),
            entry.key == result.recommendation.key,
        )
        for entry in result.entries
    )
    return groups, tuple(lines)


def verdict_on(
    before: Method | None, after: Method | None, rows: str, extra: str = "", *, seen: bool = False
) -> Verdict:
    """Say whether the worst group is better, in a sentence that the figures bear out.

    Of rows that were fitted on nothing is said: they prove nothing.
    """
    standing = "" if seen else _standing(before, after)
    return Verdict(before, after, f"{standing} {extra}".strip(), rows)


def recommended(result: Comparison, methods: tuple[Method, ...], rows: str) -> Verdict:
    """Return the method that a comparison recommends beside plain training, and why.

    Parameters
    ----------
    result : Comparison
        What was compared.
    methods : tuple of Method
        Its lines, in the same order.
    rows : str
        Which rows were scored, in words.
    """
    found = result.recommendation
    named = dict(zip((entry.key for entry in result.entries), methods, strict=True))
    plain = next((named[key] for key in ("erm", "isr-head") if key in named), None)
    after = named[found.key]
    sentence = " ".join(filter(None, (found.reason, found.removal)))
    return Verdict(None if plain is after else plain, after, sentence, rows, found.headline)


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
