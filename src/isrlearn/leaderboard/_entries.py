"""From predictions to the lines of the table; here test labels are looked at for the first time."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from isrlearn.leaderboard._bootstrap import (
    Interval,
    difference_interval,
    group_accuracies,
    interval,
    worst_group_draws,
)
from isrlearn.leaderboard._methods import ISR_KEY, TWINS, VALIDATION, Method
from isrlearn.leaderboard._recommendation import Recommendation, question_of, recommend
from isrlearn.leaderboard._result import Entry, Group
from isrlearn.leaderboard._run import Outcome
from isrlearn.leaderboard._splits import (
    LEAVE_GROUP_OUT,
    RANDOM,
    SPLIT,
    Column,
    Pair,
    Round,
    empty_groups,
    groups_of,
    untrained,
)
from isrlearn.selection import FEWEST_ROWS, LEAVE_ONE_OUT, in_words
from isrlearn.typing import BoolArray, Float64Array, IntArray, LabelArray


def entries_of(
    outcomes: list[Outcome],
    methods: list[Method],
    parts: list[Round],
    rule: str,
    test: str,
    y: LabelArray,
    environments: LabelArray,
    n_draws: int,
) -> tuple[tuple[Entry, ...], tuple[Group, ...], Recommendation]:
    """Score predictions.

    Parameters
    ----------
    outcomes : list of Outcome
        Of all methods and rounds.
    methods : list of Method
        What was compared.
    parts : list of Round
        How rows were divided.
    rule, test : str
        How settings were chosen, and rows divided.
    y, environments : ndarray of shape (n,)
        Labels and environments of all rows.
    n_draws : int
        Of the bootstrap.

    Returns
    -------
    entries : tuple of Entry
        Best worst group first.
    groups : tuple of Group
        Groups of the test rows.
    recommendation : Recommendation
        Which method to ship.
    """
    names, codes = tested_groups(parts, y, environments)
    keys = complete(outcomes, len(parts))
    column_of = {(part.name, part.seed): part.column for part in parts}
    scored_columns = dict.fromkeys(c for c in column_of.values() if _is_tested(c[1], names))
    columns = [(key, column) for key in keys for column in scored_columns]
    right, tested = _right(outcomes, columns, column_of, y)
    # Where each group is left out in turn, what training has is not one mix.
    mixed = test != LEAVE_GROUP_OUT
    shares = _training_shares(parts, y, names, environments) if mixed else None

    def scored_in(codes: IntArray) -> _Scored:
        there = codes >= 0
        once = np.ones((1, int(there.sum())))
        exact = group_accuracies(right[there], tested[there], codes[there], once)[0]
        draws = worst_group_draws(right, tested, codes, n_draws=n_draws)
        return _Scored(columns, right, tested, exact, draws, shares)

    scored = scored_in(codes)
    titles = _titles(methods, rule)
    names_left_out = {part.left_out: part.name for part in parts if part.left_out is not None}
    about = scored, outcomes, names, names_left_out
    entries = [_entry(key, titles[key], *about) for key in keys]
    # Equal ones: ISR as it is first, twins last.
    order = {ISR_KEY: -1} | dict.fromkeys(TWINS.values(), 1)
    entries.sort(key=lambda entry: (-entry.worst_group.value, order.get(entry.key, 0)))
    question = question_of(test, parts, environments)
    fewest = _fewest(parts, y, environments)
    small = np.array([fewest[group.pair] < FEWEST_ROWS for group in names])
    gains = [scored.difference]
    if small.all():
        gains.append(lambda key, other: None)
    elif small.any():
        gains.append(scored_in(np.where(small[codes], -1, codes)).difference)
    found = recommend(entries, gains, question, rule)
    return tuple(entries), tuple(names), found


def _is_tested(left_out: Pair | None, groups: Sequence[Group]) -> bool:
    """Return whether there are test rows of the group that is left out, if one is."""
    return left_out is None or left_out in [group.pair for group in groups]


class _Scored:
    """Scores of all columns: a method, a seed and, where one is left out, a group."""

    def __init__(
        self,
        columns: list[tuple[str, Column]],
        right: BoolArray,
        tested: BoolArray,
        exact: Float64Array,
        draws: Float64Array,
        shares: Float64Array | None,
    ) -> None:
        self.columns = columns
        self.right, self.tested = right, tested
        self.exact, self.draws, self.shares = exact, draws, shares

    def of(self, key: str) -> list[int]:
        return [place for place, (name, _) in enumerate(self.columns) if name == key]

    def average(self, key: str) -> float:
        return float(np.mean([self.right[self.tested[:, c], c].mean() for c in self.of(key)]))

    def adjusted(self, key: str) -> float:
        if self.shares is None:
            return float("nan")
        return float(np.mean(self.shares @ np.nan_to_num(self.exact[:, self.of(key)])))

    def groups(self, key: str) -> Float64Array:
        return np.asarray(np.nanmean(self.exact[:, self.of(key)], axis=1))

    def without(self, key: str, left_out: Pair) -> Float64Array:
        """Return the accuracies of the groups where one was left out, (G, seeds)."""
        own = [place for place in self.of(key) if self.columns[place][1][1] == left_out]
        return np.asarray(self.exact[:, own])

    def worst(self, key: str) -> tuple[float, Float64Array]:
        """Return the worst group, mean over columns, and its draws."""
        own = self.of(key)
        value = float(np.nanmin(self.exact[:, own], axis=0).mean())
        return value, self.draws[:, own].mean(axis=1)

    def difference(self, key: str, other: str) -> Interval | None:
        if key == other or not self.of(key) or not self.of(other):
            return None
        (value, draws), (base, base_draws) = self.worst(key), self.worst(other)
        return difference_interval(value - base, draws - base_draws)


def _entry(
    key: str,
    title: tuple[str, str],
    scored: _Scored,
    outcomes: list[Outcome],
    names: list[Group],
    names_left_out: dict[Pair, str],
) -> Entry:
    own = [outcome for outcome in outcomes if outcome.key == key]
    groups = scored.groups(key)
    places = {group.pair: place for place, group in enumerate(names)}
    without = {pair: scored.without(key, pair) for pair in names_left_out if pair in places}
    return Entry(
        key=key,
        title=title[0],
        uses=title[1],
        average=scored.average(key),
        adjusted_average=scored.adjusted(key),
        worst_group=interval(*scored.worst(key)),
        worst=names[int(np.nanargmin(groups))].name,
        groups=tuple(groups.tolist()),
        left_out={
            names_left_out[pair]: float(np.nanmin(found, axis=0).mean())
            for pair, found in without.items()
        },
        unseen={
            names_left_out[pair]: float(found[places[pair]].mean())
            for pair, found in without.items()
        },
        against_isr=scored.difference(ISR_KEY, key),
        n_spurious=tuple(o.n_spurious for o in own if o.n_spurious is not None),
        settings=tuple(in_words(o.setting) for o in own),
        fit_seconds=float(np.mean([o.fit_seconds for o in own])),
        seconds=float(np.mean([o.seconds for o in own])),
    )


def _titles(methods: list[Method], rule: str) -> dict[str, tuple[str, str]]:
    """Return the title of each method and what it has seen."""
    found = {}
    for method in methods:
        validation = f"validation {'labels' if rule == 'average' else 'labels and environments'}"
        if rule == LEAVE_ONE_OUT:
            uses = f"training {method.labels}, environments to choose"
        elif method.rows == VALIDATION:
            uses = f"validation {method.labels}"
        else:
            uses = f"training {method.labels}; {validation} to choose"
        found[method.key] = (method.title, uses)
    for key in TWINS.keys() & found.keys():
        title, uses = found[key]
        found[TWINS[key]] = (f"{title} without removal", uses)
    if ISR_KEY in found:  # chooses nothing
        labels = "training labels and environments"
        found |= {key: (found[key][0], labels) for key in (ISR_KEY, TWINS[ISR_KEY])}
    return found


def tested_groups(
    parts: list[Round], y: LabelArray, environments: LabelArray
) -> tuple[list[Group], IntArray]:
    """Return the groups that have test rows, and the group of each row, -1 for others."""
    ever = np.zeros(len(y), dtype=bool)
    for part in parts:
        ever[part.test] = True
    codes = np.full(len(y), -1, dtype=np.intp)
    found, codes[ever] = groups_of(y[ever], environments[ever])
    if not found:
        raise ValueError(
            "no test row has a known environment, so there is no group to score: fill in the "
            "environments of test rows, or test otherwise."
        )
    sizes = np.bincount(codes[codes >= 0], minlength=len(found))
    groups = [Group(*g, int(n)) for g, n in zip(found, sizes, strict=True)]
    if not any(_is_tested(part.left_out, groups) for part in parts):
        raise ValueError(
            f"test={LEAVE_GROUP_OUT!r} scores a group that training has not seen, and no group of "
            "the training rows has test rows: use another split, or leave it out."
        )
    return groups, codes


def complete(outcomes: list[Outcome], n_rounds: int) -> list[str]:
    """Return the methods that have an outcome in every round."""
    counts: dict[str, int] = {}
    for outcome in outcomes:
        counts[outcome.key] = counts.get(outcome.key, 0) + 1
    return [key for key, count in counts.items() if count == n_rounds]


def _right(
    outcomes: list[Outcome],
    columns: list[tuple[str, Column]],
    column_of: dict[tuple[str, int], Column],
    y: LabelArray,
) -> tuple[BoolArray, BoolArray]:
    right = np.zeros((len(y), len(columns)), dtype=bool)
    tested = np.zeros_like(right)
    place = {column: i for i, column in enumerate(columns)}
    for outcome in outcomes:
        column = place.get((outcome.key, column_of[outcome.name, outcome.seed]))
        if column is not None:
            right[outcome.test, column] = outcome.predicted == y[outcome.test]
            tested[outcome.test, column] = True
    return right, tested


def _training_shares(
    parts: list[Round], y: LabelArray, names: list[Group], environments: LabelArray
) -> Float64Array | None:
    """Return the share of each test group in the training rows; None if one has no test rows."""
    place = {(group.label, group.environment): i for i, group in enumerate(names)}
    counts = np.zeros(len(names))
    for part in parts:
        found, own = groups_of(y[part.training], environments[part.training])
        if set(found) - set(groups_of(y[part.test], environments[part.test])[0]):
            return None
        for group, size in zip(found, np.bincount(own[own >= 0]), strict=True):
            counts[place[group]] += size
    return counts / counts.sum()


def _fewest(
    parts: list[Round], y: LabelArray, environments: LabelArray
) -> dict[tuple[Any, Any], int]:
    """Return the fewest test rows that a group has in a column, of those that have any."""
    tested: dict[Column, IntArray] = {}
    for part in parts:
        others = tested.get(part.column, np.empty(0, dtype=np.intp))
        tested[part.column] = np.concatenate([others, part.test])
    sizes: dict[tuple[Any, Any], int] = {}
    for rows in tested.values():
        found, codes = groups_of(y[rows], environments[rows])
        for group, size in zip(found, np.bincount(codes[codes >= 0]).tolist(), strict=True):
            sizes[group] = min(size, sizes.get(group, size))
    return sizes


def notes_on(
    parts: list[Round],
    groups: tuple[Group, ...],
    test: str,
    y: LabelArray,
    environments: LabelArray,
) -> tuple[str, ...]:
    """Say what limits the figures.

    Parameters
    ----------
    parts : list of Round
        How rows were divided.
    groups : tuple of Group
        Groups of the test rows.
    test : str
        How rows were divided.
    y, environments : ndarray of shape (n,)
        Labels and environments of all rows.

    Returns
    -------
    tuple of str
    """
    notes = []
    fewest = _fewest(parts, y, environments)
    small = [f"{g.name} ({n})" for g in groups if (n := fewest[g.pair]) < FEWEST_ROWS]
    if small:
        draw = " in a draw" if len({part.seed for part in parts}) > 1 else ""
        notes.append(
            f"fewer than {FEWEST_ROWS} test rows{draw}, so little is known: {'; '.join(small)}."
        )
    untested = {part.name for part in parts if not _is_tested(part.left_out, groups)}
    if untested:
        notes.append(f"no test rows, so not scored: {'; '.join(sorted(untested))}.")
    lonely = {c.item() for p in parts for c in np.setdiff1d(y[p.test], y[p.training])}
    if lonely:
        notes.append(f"no training rows, so never predicted, of class {sorted(lonely)}.")
    if test in (SPLIT, RANDOM):
        notes += _untrained(parts, y, environments)
    tested = np.unique(np.concatenate([part.test for part in parts]))
    unknown = tested[[environments[row] is None for row in tested]]
    if len(unknown):
        notes.append(
            f"{len(unknown)} of {len(tested)} test rows have no environment: they count in the "
            "average and in no group."
        )
    return tuple(notes)


def _untrained(parts: list[Round], y: LabelArray, environments: LabelArray) -> list[str]:
    training = np.unique(np.concatenate([part.training for part in parts]))
    empty = empty_groups(y[training], environments[training])
    if not empty:
        return []
    return [
        f"{untrained(empty)}: the test {LEAVE_GROUP_OUT} asks which method serves such a group."
    ]
