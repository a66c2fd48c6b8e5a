"""Which rows are fitted on, which a setting is chosen on, and which are kept for the end."""

from collections.abc import Sequence
from itertools import product
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from isrlearn.display import brief
from isrlearn.rows import UNKNOWN, encode_environments
from isrlearn.selection import LEAVE_ONE_OUT, stratified_part
from isrlearn.typing import IntArray, LabelArray

SPLIT: Final = "split"
RANDOM: Final = "random"
LEAVE_GROUP_OUT: Final = "leave-one-group-out"
TESTS: Final = (SPLIT, RANDOM, LEAVE_ONE_OUT, LEAVE_GROUP_OUT)
SHARE: Final = 0.2
MOST_NAMED: Final = 5

Pair: TypeAlias = tuple[Any, Any]
"""A class and an environment."""
Column: TypeAlias = tuple[int, Pair | None]
"""A seed, and the group that is left out."""


class Round(NamedTuple):
    """One way to divide the rows, by position."""

    name: str
    seed: int
    training: IntArray
    validation: IntArray
    test: IntArray
    left_out: Pair | None = None
    """The (class, environment) group that is taken out of training and validation rows."""

    @property
    def column(self) -> Column:
        """Rounds of the same column share a worst group: their test rows are looked at together."""
        return self.seed, self.left_out

    @property
    def rows(self) -> bytes:
        """Which rows are where, whatever the seed."""
        return b"|".join(part.tobytes() for part in (self.training, self.validation, self.test))


def default_test(split: Any) -> str:
    """Return how to test where nothing is said: by the split if there is one."""
    return RANDOM if split is None else SPLIT


def rounds(
    labels: Any,
    environments: Any,
    split: Any,
    test: str,
    n_seeds: int,
    rule: str,
    groups: Sequence[Any] | None = None,
) -> list[Round]:
    """Divide rows into training, validation and test.

    * "split": as the file says. Without validation rows, a fifth of every group of the training
      rows is set apart.
    * "random": 60, 20 and 20 % of every (class, environment) group; each seed draws anew.
    * "leave-one-environment-out": every environment is the test once. A fifth of every group of the
      others is for validation, unless the rule leaves out environments itself.
    * "leave-one-group-out": as "split", or as "random" without one, but each (class, environment)
      group in turn is taken out of the training and validation rows. It stays in the test.

    Where the test rows are given, all seeds have the same rows, and matter only to methods that
    draw at random themselves.

    Parameters
    ----------
    labels, environments : ndarray of shape (n,)
        Labels and environments.
    split : ndarray of shape (n,) or None
        0 train, 1 validation, 2 test.
    test : {"split", "random", "leave-one-environment-out", "leave-one-group-out"}
        How to test.
    n_seeds : int
        How many times.
    rule : str
        How settings are chosen.
    groups : sequence of (class, environment), or of "class, environment", default=None
        Groups to leave out; None leaves out each that can be.

    Returns
    -------
    list of Round
    """
    if groups is not None and test != LEAVE_GROUP_OUT:
        raise ValueError(
            f"groups names the groups to leave out: it needs test={LEAVE_GROUP_OUT!r} "
            f"(--test {LEAVE_GROUP_OUT}), not test={brief(test)}."
        )
    if test not in TESTS:
        raise ValueError(f"test={brief(test)} must be one of {', '.join(TESTS)}.")
    if test == SPLIT:
        return [_by_file(labels, environments, split, seed) for seed in range(n_seeds)]
    if test == RANDOM:
        return [_by_chance(labels, environments, seed) for seed in range(n_seeds)]
    if test == LEAVE_GROUP_OUT:
        return [
            part
            for seed in range(n_seeds)
            for part in _by_group(labels, environments, split, seed, groups)
        ]
    return [
        part
        for seed in range(n_seeds)
        for part in _by_environment(labels, environments, seed, rule)
    ]


def _by_file(labels: Any, environments: Any, split: Any, seed: int) -> Round:
    if split is None:
        raise ValueError(
            "there is no split into train, validation and test: use test='random' (--test random) "
            "or test='leave-one-environment-out'."
        )
    training, validation, test = (np.flatnonzero(split == s) for s in range(3))
    if len(test) == 0 or len(training) == 0:
        raise ValueError(
            f"the split has {len(training)} training and {len(test)} test rows: both are needed. "
            "Use test='random' (--test random), which draws its own."
        )
    if len(validation) == 0:
        random = np.random.default_rng(0)
        training, validation = _set_apart(labels, environments, training, random)
    return Round(f"seed {seed}", seed, training, validation, test)


def _by_chance(labels: Any, environments: Any, seed: int) -> Round:
    random = np.random.default_rng(seed)
    every = np.arange(len(labels))
    rest, test = _set_apart(labels, environments, every, random)
    training, validation = _set_apart(labels, environments, rest, random, SHARE / (1 - SHARE))
    return Round(f"seed {seed}", seed, training, validation, test)


def _by_environment(labels: Any, environments: Any, seed: int, rule: str) -> list[Round]:
    names, codes = encode_environments(environments, len(labels))
    if len(names) < 3:
        raise ValueError(
            f"test={LEAVE_ONE_OUT!r} leaves out one of {len(names)} environments, and at least two "
            "must be left to compare: use test='random'."
        )
    found = []
    for code, name in enumerate(names):
        random = np.random.default_rng(code)
        training, validation = np.flatnonzero(codes != code), np.empty(0, dtype=np.intp)
        if len(np.unique(labels[training])) < 2:
            raise ValueError(
                f"test={LEAVE_ONE_OUT!r} cannot leave out {brief(name)}: all rows of the other "
                f"environments are of class {brief(labels[training[0]])}. Use test='random'."
            )
        if rule != LEAVE_ONE_OUT:
            training, validation = _set_apart(labels, environments, training, random)
        found.append(Round(str(name), seed, training, validation, np.flatnonzero(codes == code)))
    return found


def _by_group(
    labels: Any, environments: Any, split: Any, seed: int, groups: Sequence[Any] | None
) -> list[Round]:
    if split is None:
        whole = _by_chance(labels, environments, seed)
    else:
        whole = _by_file(labels, environments, split, seed)
    # Groups of the training rows: which there are must not depend on labels of test rows.
    found, codes = groups_of(labels[whole.training], environments[whole.training])
    classes = [group[0] for group in found]
    possible = [group for group in found if classes.count(group[0]) > 1]
    taken = possible if groups is None else _asked_for(found, groups)
    lonely = [name_of(group) for group in taken if group not in possible]
    if lonely or not taken:
        raise ValueError(
            f"test={LEAVE_GROUP_OUT!r} cannot leave out "
            f"{brief(lonely[0]) if lonely else 'any group'}: its class has training rows in one "
            "environment only, and none would be left. Leave out a group of another class, or use "
            "test='random'."
        )
    validation = [(labels[row], environments[row]) for row in whole.validation]
    if any(all(pair == group for pair in validation) for group in taken):
        raise ValueError(
            f"test={LEAVE_GROUP_OUT!r} would leave no validation row: the split has such rows of "
            "one group only. Add others, or leave the split out."
        )
    names = names_of(found)
    return [
        whole._replace(
            name=names[group],
            training=whole.training[codes != found.index(group)],
            validation=whole.validation[[pair != group for pair in validation]],
            left_out=group,
        )
        for group in taken
    ]


def name_of(group: Pair) -> str:
    """Return a group in words: class, environment."""
    return f"{group[0]}, {group[1]}"


def names_of(groups: list[Pair]) -> dict[Pair, str]:
    """Return a name for each group, with quotes where commas make two names the same."""
    plain = {group: name_of(group) for group in groups}
    if len(set(plain.values())) == len(groups):
        return plain
    return {group: f"{group[0]!r}, {group[1]!r}" for group in groups}


def empty_groups(labels: LabelArray, environments: LabelArray) -> list[Pair]:
    """Return the pairs of a class and an environment that both have rows, but none together."""
    found = groups_of(labels, environments)[0]
    classes = dict.fromkeys(label for label, _ in found)
    names = dict.fromkeys(name for _, name in found)
    return [pair for pair in product(classes, names) if pair not in found]


def untrained(groups: list[Pair]) -> str:
    """Say which groups have no training rows."""
    if len(groups) > MOST_NAMED:
        return f"no training rows in {len(groups)} groups"
    names = ", ".join(f"({name})" for name in names_of(groups).values())
    return f"no training rows in the group{'s' if len(groups) > 1 else ''} {names}"


def _asked_for(found: list[Pair], groups: Sequence[Any] | None) -> list[Pair]:
    """Return the groups of some names, or pairs, among those there are."""
    if groups is None:
        return found
    names = names_of(found)
    known = {_plain(name): group for group, name in names.items()}
    known |= {_plain(repr(tuple(map(str, group)))): group for group in found}  # pairs
    asked = []
    for given in [groups] if isinstance(groups, str) else groups:
        pair = isinstance(given, tuple | list)
        key = _plain(repr(tuple(map(str, given))) if pair else str(given))
        if key not in known:
            there = "; ".join(names.values())
            raise ValueError(f"group {brief(given)} is not there: choose from {there}.")
        asked.append(known[key])
    if not asked:
        raise ValueError("groups is an empty list: name a group, or leave it out for all.")
    return list(dict.fromkeys(asked))


def _plain(name: str) -> str:
    return "".join(name.split())


def _set_apart(
    labels: Any,
    environments: Any,
    rows: IntArray,
    random: np.random.Generator,
    share: float = SHARE,
) -> tuple[IntArray, IntArray]:
    """Divide rows in two, the second with a share of every group."""
    apart = stratified_part(labels[rows], environments[rows], share, random)
    rest = np.setdiff1d(np.arange(len(rows)), apart)
    return rows[rest], rows[apart]


def groups_of(labels: Any, environments: Any) -> tuple[list[Pair], IntArray]:
    """Return the (class, environment) groups and the group of each row, -1 without environment.

    Parameters
    ----------
    labels, environments : ndarray of shape (n,)
        Labels and environments.

    Returns
    -------
    groups : list of (class, environment)
        Those that have rows, sorted by class.
    codes : ndarray of shape (n,)
    """
    classes, class_codes = np.unique(labels, return_inverse=True)
    names, environment_codes = encode_environments(environments, len(labels))
    cells = class_codes * max(len(names), 1) + environment_codes
    there = environment_codes != UNKNOWN
    codes = np.full(len(labels), UNKNOWN, dtype=np.intp)
    seen, codes[there] = np.unique(cells[there], return_inverse=True)
    groups = [(classes[c // len(names)].item(), names[c % len(names)].item()) for c in seen]
    return groups, codes
