"""Compare all methods on one data set."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from sklearn.utils import check_array

from isrlearn.display import brief
from isrlearn.leaderboard._bootstrap import DRAWS
from isrlearn.leaderboard._entries import complete, entries_of, notes_on, tested_groups
from isrlearn.leaderboard._methods import Method, chosen_methods
from isrlearn.leaderboard._preparation import COMPONENTS, Preparation, prepare, refuse_missing
from isrlearn.leaderboard._result import Comparison
from isrlearn.leaderboard._run import Failure, Outcome, Task, run_tasks
from isrlearn.leaderboard._scene import Table, scene_of
from isrlearn.leaderboard._splits import LEAVE_GROUP_OUT, Round, default_test, rounds
from isrlearn.rows import (
    MISSING,
    UNKNOWN,
    as_labels,
    as_rows,
    check_number,
    encode_environments,
    encode_labels,
    naming_columns,
    refuse_continuous,
    refuse_measurements,
)
from isrlearn.selection import LEAVE_ONE_OUT, WORST_GROUP, check_rule, environment_folds, known
from isrlearn.typing import FLOATS, FloatArray, IntArray, LabelArray

SEEDS: Final = 3
Watch = Callable[[str, int, int], None]


def compare(
    X: Any,
    y: Any,
    *,
    environments: Any,
    split: Any = None,
    test: str | None = None,
    groups: Sequence[Any] | None = None,
    rule: str = WORST_GROUP,
    methods: Sequence[Any] | None = None,
    pca: int = COMPONENTS,
    impute: str | None = None,
    feature_names: Sequence[str] | None = None,
    with_units: bool = False,
    n_seeds: int = SEEDS,
    n_draws: int = DRAWS,
    n_jobs: int = 1,
    watch: Watch | None = None,
) -> Comparison:
    """Fit ISR and its rivals on the same rows, choose all by the same rule, score them once.

    Test rows are scored at the very end: their labels are not passed to anything that fits or
    chooses.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Features; NaN where a value is missing.
    y : array-like of shape (n,)
        Class labels.
    environments : array-like of shape (n,)
        Environments; None where unknown.
    split : array-like of shape (n,), default=None
        0 train, 1 validation, 2 test.
    test : {"split", "random", "leave-one-environment-out", "leave-one-group-out"}, default=None
        How rows are divided; None takes the split if there is one, else draws at random. The third
        asks for a new environment. The last asks for a (class, environment) group that training has
        not seen: each is taken out of the training and validation rows in turn.
    groups : sequence of (class, environment), default=None
        Groups to leave out one by one, with "leave-one-group-out"; None leaves out every one.
    rule : {"worst-group", "average", "leave-one-environment-out"}, default="worst-group"
        How every method chooses its setting; see `select`.
    methods : sequence, default=None
        Keys of `known_methods`, ``my_module:MyEstimator``, or estimators of your own; None compares
        all.
    pca : int, default=100
        Most principal components; with fewer features each is standardised.
    impute : {None, "median"}, default=None
        How missing values are filled.
    feature_names : sequence of str, default=None
        For messages; None takes the columns of a DataFrame.
    with_units : bool, default=False
        Whether features are columns of a table, to be standardised before anything else.
    n_seeds : int, default=3
        How many times what is drawn at random is drawn: splits, and in methods. Figures are means.
    n_draws : int, default=2000
        Of the bootstrap over test rows.
    n_jobs : int, default=1
        Processes.
    watch : callable, default=None
        Called with a text, the number of fits done and the number of all.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from isrlearn import compare
    >>> from isrlearn.datasets import load_penguins
    >>> X, y, species = load_penguins()
    >>> found = compare(X, y, environments=species, methods=["erm", "isr"],
    ...                 test="leave-one-environment-out", n_draws=100)
    >>> sorted(entry.key for entry in found.entries)
    ['erm', 'isr', 'isr-head']
    >>> found.recommendation.question
    'a new environment'
    """
    check_number("n_seeds", n_seeds, 1, 10**6, whole=True)
    check_number("n_draws", n_draws, 10, 10**6, whole=True)
    check_number("n_jobs", n_jobs, 1, 1024, whole=True)
    check_rule(rule)
    chosen = chosen_methods(methods)
    if feature_names is None:
        feature_names = getattr(X, "columns", None)
    X, y, split = _checked(X, y, split)
    environments = known(environments, len(y))
    seen = encode_environments(environments, len(y))[0]
    refuse_measurements(seen, sum(name is not None for name in environments))
    if len(seen) < 2:
        raise ValueError(
            f"environments has {len(seen)} known value(s), and nothing differs between fewer than "
            "two: give a label that varies."
        )
    test = test or default_test(split)
    parts = rounds(y, environments, split, test, n_seeds, rule, groups)
    if rule == LEAVE_ONE_OUT:  # before anything is fitted
        for part in parts:
            environment_folds(environments[part.training], len(part.training))
    if feature_names is not None and not np.iterable(feature_names):
        raise TypeError(f"feature_names={brief(feature_names)} must be a list of names.")
    names = tuple(map(str, _numbered(X) if feature_names is None else feature_names))
    if len(names) != X.shape[1]:
        raise ValueError(
            f"feature_names has {len(names)} names for {X.shape[1]} features: give one each."
        )
    if impute is None:  # in test rows too: no prediction could be made
        refuse_missing(X, names)
    prepared = {
        part.rows: prepare(X[part.training], names, pca=pca, impute=impute, with_units=with_units)
        for part in {part.rows: part for part in parts}.values()
    }
    tested_groups(parts, y, environments)  # refuses what could not be scored, before any fit
    tasks = _tasks(chosen, parts, prepared, rule, X, y, environments)
    if watch is not None:  # how much work there is, before it starts
        watch("Comparing", 0, len(tasks))
    outcomes, failures = _collected(tasks, parts, n_jobs, watch)
    if not complete(outcomes, len(parts)):
        raise ValueError(
            f"no method can be fitted in all of {len(parts)} rounds: {failures[0].reason}"
        )
    scored = entries_of(outcomes, chosen, parts, rule, test, y, environments, n_draws)
    sizes = {name: round(np.mean([len(getattr(part, name)) for part in parts])) for name in _PARTS}
    words = next(iter(prepared.values())).words
    notes = notes_on(parts, scored[1], test, y, environments)
    table, first = Table(X, y, environments, names, with_units), parts[0]
    scene = scene_of(table, first, prepared[first.rows], outcomes)
    entries, tested, recommendation = scored
    how = recommendation, test, rule, n_seeds, sizes, words, notes
    return Comparison(entries, tested, *how, tuple(failures), tuple(outcomes), scene)


def rounds_in_words(
    labels: LabelArray,
    environments: Any,
    split: Any,
    test: str | None,
    n_seeds: int,
    rule: str,
    groups: Sequence[Any] | None,
    methods: Sequence[Any] | None,
) -> str:
    """Say what a test that leaves something out will cost; "" where there is one round a seed.

    Parameters
    ----------
    labels, environments, split, test, n_seeds, rule, groups, methods
        As in `compare`.

    Returns
    -------
    str

    Examples
    --------
    >>> from isrlearn.datasets import load_penguins
    >>> _, sex, species = load_penguins()
    >>> how = "leave-one-group-out", 1, "worst-group", None, ["erm", "isr"]
    >>> rounds_in_words(sex, species, None, *how)
    '6 groups are left out one by one: 12 methods to choose and fit, where one round has 2.'
    """
    if test not in (LEAVE_ONE_OUT, LEAVE_GROUP_OUT):
        return ""
    every = known(environments, len(labels))
    parts = rounds(labels, every, split, test, n_seeds, rule, groups)
    distinct, chosen = len({part.rows for part in parts}), chosen_methods(methods)
    n_fits = sum(len(parts) if method.draws else distinct for method in chosen)
    what = "environments" if test == LEAVE_ONE_OUT else "groups"
    n_left_out = len({part.name for part in parts})
    if n_left_out == 1:
        return "1 group is left out, which takes as long as one round."
    return (
        f"{n_left_out} {what} are left out one by one: {n_fits} methods to choose and fit, where "
        f"one round has {len(chosen)}."
    )


_PARTS = ("training", "validation", "test")


def _numbered(X: FloatArray) -> list[str]:
    return [f"x{j}" for j in range(X.shape[1])]


def _checked(X: Any, y: Any, split: Any) -> tuple[FloatArray, LabelArray, IntArray | None]:
    with naming_columns(X):
        X = check_array(as_rows(X), dtype=FLOATS, ensure_all_finite="allow-nan", input_name="X")
    split = None if split is None else _checked_split(split, len(X))
    labels = as_labels(y, "y", len(X))
    classes, codes = encode_labels(labels, "y")
    if np.any(codes == UNKNOWN):
        raise ValueError(MISSING.format("labels"))
    refuse_continuous(classes, "y", "bin it to classes, or use ISRRegressor for a number")
    return X, classes[codes], split


def _checked_split(split: Any, n_rows: int) -> IntArray:
    values = np.asarray(split)
    if values.shape != (n_rows,):
        raise ValueError(
            f"split has shape {values.shape}, but there are {n_rows} rows: give 0, 1 or 2 each."
        )
    others = values[~np.isin(values, (0, 1, 2))]
    if len(others):
        raise ValueError(
            f"split has {brief(others[0])}: give 0 for a row to train on, 1 for validation, 2 for "
            "a test."
        )
    return values


def _tasks(
    methods: list[Method],
    parts: list[Round],
    prepared: dict[bytes, Preparation],
    rule: str,
    X: FloatArray,
    y: LabelArray,
    environments: LabelArray,
) -> list[Task]:
    """Return the tasks, ISR first since it tries most; one serves all seeds where none is drawn."""
    tasks: list[Task] = []
    seen: set[bytes] = set()
    for part in parts:
        preparation = prepared[part.rows]
        training, validation = (
            (preparation.apply(X[rows]), y[rows], environments[rows])
            for rows in (part.training, part.validation)
        )
        test = preparation.apply(X[part.test])
        wanted = [m for m in reversed(methods) if m.draws or part.rows not in seen]
        tasks += [Task(m, part, rule, training, validation, test) for m in wanted]
        seen.add(part.rows)
    return tasks


def _collected(
    tasks: list[Task], parts: list[Round], n_jobs: int, watch: Watch | None
) -> tuple[list[Outcome], list[Failure]]:
    """Run tasks; a method that draws nothing has one outcome for all seeds with the same rows."""
    outcomes: list[Outcome] = []
    failures: list[Failure] = []
    for done, (task, found) in enumerate(run_tasks(tasks, n_jobs), 1):
        own = [task.round] if task.method.draws else parts
        same = [part for part in own if part.rows == task.round.rows]
        for item in found:
            if isinstance(item, Failure):
                failures.append(item)
            else:
                outcomes += [replace(item, name=part.name, seed=part.seed) for part in same]
        if watch is not None:
            watch("Comparing", done, len(tasks))
    if not outcomes:
        raise ValueError(f"no method can be fitted: {failures[0].reason}")
    failures.sort(key=lambda failure: (failure.key, failure.name))
    outcomes.sort(key=lambda outcome: (outcome.key, outcome.seed, outcome.name))
    return outcomes, failures
