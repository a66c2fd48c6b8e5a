"""Which method to ship: the answer to the question that the test asked."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from isrlearn.leaderboard._bootstrap import Interval
from isrlearn.leaderboard._methods import CHOSEN_KEY, ISR_KEY, TWINS
from isrlearn.leaderboard._splits import LEAVE_GROUP_OUT, RANDOM, SPLIT, Round, empty_groups, rounds
from isrlearn.selection import LEAVE_ONE_OUT, WORST_GROUP, known
from isrlearn.typing import LabelArray

HERE: Final = "environments like these"
QUESTIONS: Final = {
    LEAVE_ONE_OUT: "a new environment",
    LEAVE_GROUP_OUT: "a group without training rows",
}
MOST_NAMED: Final = 3
OURS: Final = (ISR_KEY, CHOSEN_KEY)
UNCHOSEN: Final = {ISR_KEY: "--method isr", TWINS[ISR_KEY]: "--n-spurious 0"}
"""Options of ``isrlearn fit`` that ship what chooses nothing."""

Gain: TypeAlias = Callable[[str, str], Interval | None]
"""Worst group of a method less that of another, on the same resampled rows."""


@dataclass(frozen=True)
class Recommendation:
    """The method to ship, and why.

    Parameters
    ----------
    question : str
        What the model is for: "environments like these", "a new environment" or "a group without
        training rows".
    key, title : str
        The method with the best worst group.
    worst_group : Interval
        Its worst group.
    tied : tuple of str
        Titles of the methods from which chance alone may separate it.
    reason : str
        How it compares with the best of the others.
    removal : str
        What removal itself gained; empty where ISR was not compared.
    rule : str
        How settings were chosen.

    Examples
    --------
    >>> from isrlearn import compare
    >>> from isrlearn.datasets import load_penguins
    >>> X, sex, species = load_penguins()
    >>> options = {"methods": ["erm", "isr"], "n_seeds": 1, "n_draws": 50}
    >>> found = compare(X, sex, environments=species, **options).recommendation
    >>> found.question, found.headline.startswith("For environments like these, ")
    ('environments like these', True)
    """

    question: str
    key: str
    title: str
    worst_group: Interval
    tied: tuple[str, ...]
    reason: str
    removal: str
    rule: str

    @property
    def headline(self) -> str:
        """The answer in a few words."""
        if not self.tied:
            return f"For {self.question}, ship {self.title}"
        names = [self.title, *self.tied]
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        return f"For {self.question}, a tie: {', '.join(names[:MOST_NAMED])}{more}"

    def __str__(self) -> str:
        """Return headline and reasons."""
        return " ".join(filter(None, (f"{self.headline}.", self.reason, self.removal)))

    @property
    def fit_options(self) -> str:
        """Options of ``isrlearn fit`` that ship this method."""
        rule = "" if self.rule == WORST_GROUP else f" --rule {self.rule}"
        return UNCHOSEN.get(self.key, f"--method {self.key}{rule}")


def question_of(test: str, parts: Sequence[Round], environments: LabelArray) -> str:
    """Return what a test asks for.

    Parameters
    ----------
    test : str
        How rows were divided.
    parts : sequence of Round
        The rounds. A split of the user's may keep environments for the test.
    environments : ndarray of shape (n,)
        Environments of all rows; None where unknown.
    """
    if test in QUESTIONS:
        return QUESTIONS[test]
    seen = {environments[row] for part in parts for row in part.training} - {None}
    tested = {environments[row] for part in parts for row in part.test} - {None}
    return QUESTIONS[LEAVE_ONE_OUT] if tested and not tested & seen else HERE


def other_question(
    result: Any, labels: LabelArray, environments: Any, split: Any
) -> tuple[str, str | None] | None:
    """Return the question that a comparison did not ask, and the test that asks it.

    Parameters
    ----------
    result : Comparison
        What was compared.
    labels, environments, split : ndarray of shape (n,)
        As they were given.

    Returns
    -------
    (question, test) or None
        None where the rows allow no other test. The test is None where it is the default one.

    Examples
    --------
    >>> from isrlearn import compare
    >>> from isrlearn.datasets import load_penguins
    >>> from isrlearn.leaderboard import other_question
    >>> X, sex, species = load_penguins()
    >>> found = compare(X, sex, environments=species, methods=["erm"], n_seeds=1, n_draws=50)
    >>> other_question(found, sex, species, None)
    ('a new environment', 'leave-one-environment-out')
    """
    environments = known(environments, len(labels))

    def parts_of(test: str) -> list[Round]:
        return rounds(labels, environments, split, test, 1, result.rule)

    if result.recommendation.question != HERE:
        asks_the_same = (
            split is not None and question_of(SPLIT, parts_of(SPLIT), environments) != HERE
        )
        return HERE, RANDOM if asks_the_same else None
    tests = [*QUESTIONS]
    if empty_groups(labels, environments):
        tests.reverse()  # a group is missing already
    for test in tests:
        with suppress(ValueError):  # the rows do not allow it
            parts_of(test)
            return QUESTIONS[test], test
    return None


def recommend(
    entries: Sequence[Any], gains: Sequence[Gain], question: str, rule: str
) -> Recommendation:
    """Recommend the method with the best worst group, and say which others chance may hide.

    Parameters
    ----------
    entries : sequence of Entry
        All methods, best worst group first.
    gains : sequence of callable
        Paired difference of the worst groups of two methods; where groups have very few test rows,
        also the same without them. A lead counts if it holds in each.
    question : str
        What the model is for.
    rule : str
        How settings were chosen.

    Returns
    -------
    Recommendation
    """
    gain = gains[0]
    # The twin of the chosen head is there for the gain of removal; `fit` has no name for it.
    first, *others = [entry for entry in entries if entry.key != TWINS[CHOSEN_KEY]]
    # The default and what validation rows chose are one method where nothing else comes close.
    rivals = [entry for entry in others if not {first.key, entry.key} <= {*OURS}]
    level = [e for e in others if not all(_leads(found(first.key, e.key)) for found in gains)]
    if any(entry in rivals for entry in level):
        tied, reason = tuple(e.title for e in level), _tie_in_words(first, level, rivals, gain)
    else:
        tied, reason = (), _lead_in_words(first, rivals, level, gain)
    removal = _removal(first.key, gain)
    what = question, first.key, first.title, first.worst_group
    return Recommendation(*what, tied, reason, removal, rule)


def _leads(lead: Interval | None) -> bool:
    return lead is not None and lead.low > 0


def _lead_in_words(first: Any, rivals: Sequence[Any], siblings: Sequence[Any], gain: Gain) -> str:
    words = f"Its worst group{_named(first)} has an accuracy of {percent(first.worst_group)}"
    for rival in rivals[:1]:
        words += f", that of {rival.title} {percent(rival.worst_group)}: a difference of "
        words += points(gain(first.key, rival.key))
    for sibling in siblings:
        words += f". {sibling.title} is level with it: {points(gain(first.key, sibling.key))}"
    return f"{words}."


def _tie_in_words(first: Any, level: Sequence[Any], rivals: Sequence[Any], gain: Gain) -> str:
    second = next(entry for entry in level if entry in rivals)
    lead = gain(first.key, second.key)
    why = "which rests on too few test rows" if _leads(lead) else "which may be chance"
    words = (
        f"{first.title} has {percent(first.worst_group)} in the worst group{_named(first)}, "
        f"{second.title} {percent(second.worst_group)}: a difference of {points(lead)}, {why}."
    )
    unnamed = [entry.title for entry in level[MOST_NAMED - 1 :]]
    return f"{words} Also level with it: {', '.join(unnamed)}." if unnamed else words


def _removal(best: str, gain: Gain) -> str:
    key = best if best in OURS else ISR_KEY
    found = gain(key, TWINS[key])
    if found is None:
        return ""
    what = "Removal itself" if best in OURS else "In ISR, removal itself"
    if found.high < 0:
        cost = Interval(-found.value, -found.high, -found.low)
        return f"{what} cost {points(cost)} compared with the same head without it."
    if found.low > 0:
        return f"{what} gained {points(found)} over the same head without it."
    if found.low == found.high == 0:
        return f"{what} changed nothing in the worst group."
    return f"{what} changed the worst group by {points(found)}, which may be chance."


def _named(entry: Any) -> str:
    """Return the worst group in brackets, if it is the same one in all rounds."""
    same = np.isclose(np.nanmin(entry.groups), entry.worst_group.value)
    return f" ({entry.worst})" if same else ""


def percent(found: Interval) -> str:
    """Return a share with its interval, in percent."""
    return f"{100 * found.value:.1f} % {ends(found)}"


def points(found: Interval | None) -> str:
    """Return a difference with its interval, in points."""
    if found is None:
        return "an unknown number of points"
    return f"{round(100 * found.value, 1) + 0.0:.1f} points {ends(found)}"


def ends(found: Interval) -> str:
    """Return the ends of an interval in percent."""
    low, high = (round(100 * end, 1) + 0.0 for end in (found.low, found.high))  # no -0.0
    return f"[{low:.1f}, {high:.1f}]"
