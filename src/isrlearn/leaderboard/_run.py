"""Fit every method in every round: choose on what the rule looks at, predict the test rows."""

import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import NotFittedError

from isrlearn._workers import obey
from isrlearn.estimators import ISR, ISRClassifier, fold
from isrlearn.leaderboard._methods import TWINS, VALIDATION, Method
from isrlearn.leaderboard._splits import Round
from isrlearn.selection import LEAVE_ONE_OUT, Selection, fit_with, select, stratified_part
from isrlearn.typing import Float64Array, FloatArray, IntArray, LabelArray

Part = tuple[FloatArray, LabelArray, LabelArray]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one method did in one round.

    Parameters
    ----------
    key : str
        The method.
    name, seed : str and int
        The round.
    test : ndarray of shape (m,)
        Positions of the test rows.
    predicted : ndarray of shape (m,)
        Predictions for them.
    setting : dict
        What was chosen.
    score : float
        By the rule, of what was chosen.
    n_spurious : int or None
        Directions that were removed, where a method removes directions.
    fit_seconds, seconds : float
        Time of the last fit, and with the choice before it.
    weight, bias : ndarray
        The model in the coordinates of the prepared features, if it is linear.
    """

    key: str
    name: str
    seed: int
    test: IntArray
    predicted: LabelArray
    setting: dict[str, Any]
    score: float
    n_spurious: int | None
    fit_seconds: float
    seconds: float
    weight: Float64Array | None = None
    bias: Float64Array | None = None


@dataclass(frozen=True, eq=False)
class Failure:
    """A method that these rows do not allow, and why."""

    key: str
    name: str
    reason: str


@dataclass(frozen=True, eq=False)
class Task:
    """One method in one round, with everything it may look at; test labels are not there."""

    method: Method = field(repr=False)
    round: Round
    rule: str
    training: Part
    validation: Part
    test: FloatArray

    def run(self) -> list[Outcome | Failure]:
        """Choose, fit and predict."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return self._outcomes()
            except ValueError as error:
                return [Failure(self.method.key, self.round.name, str(error))]
            except Exception as error:
                if not self.method.own:
                    raise
                reason = f"{type(error).__name__}: {error}"
                return [Failure(self.method.key, self.round.name, reason)]

    def _outcomes(self) -> list[Outcome | Failure]:
        begin = time.perf_counter()
        found = choose_method(
            self.method, self.rule, self.training, self.validation, seed=self.round.seed
        )
        seconds = time.perf_counter() - begin
        own = self._outcome(self.method.key, found.estimator, found, found.seconds, seconds)
        return [own, self._without_removal(found)] if self.method.key in TWINS else [own]

    def _without_removal(self, found: Selection) -> Outcome:
        """Return what the same head does on the same rows with nothing removed."""
        X, y, environments = self.training
        ours = found.estimator
        same = ISRClassifier(ISR(0), ours.head, group_weight=ours.group_weight)
        seconds = _seconds(lambda: same.fit(X, y, environments=environments))
        nothing = replace(found, setting={**found.setting, "isr": ISR(0)})
        return self._outcome(TWINS[self.method.key], same, nothing, seconds, seconds)

    def _outcome(
        self, key: str, model: Any, found: Selection, fit_seconds: float, seconds: float
    ) -> Outcome:
        weight, bias = _folded(model)
        removed = getattr(model, "n_spurious_", getattr(model, "n_erased_", None))
        return Outcome(
            key,
            self.round.name,
            self.round.seed,
            self.round.test,
            model.predict(self.test),
            found.setting,
            found.score,
            removed,
            fit_seconds,
            seconds,
            weight,
            bias,
        )


def choose_method(
    method: Method, rule: str, training: Part, validation: Part | None, *, seed: int = 0
) -> Selection:
    """Choose the setting of a method by a rule and fit it on the rows that it is for.

    Parameters
    ----------
    method : Method
        What to fit.
    rule : str
        As in `select`.
    training, validation : (X, y, environments)
        Prepared rows; None sets a part of the training rows apart to choose on.
    seed : int, default=0
        Of what the method draws.

    Returns
    -------
    Selection
    """
    on_validation = method.rows == VALIDATION and validation is not None and rule != LEAVE_ONE_OUT
    fitted, scored = training, validation
    if on_validation and validation is not None:
        fitted, scored = _halves(validation, seed)
    X, y, environments = fitted
    found = select(
        X,
        y,
        environments=environments,
        estimator=method.estimator(seed),
        grid=method.grid(y, X.shape[1]),
        rule=rule,
        validation=None if rule == LEAVE_ONE_OUT else scored,
    )
    if on_validation:
        # Settings are chosen on halves, as published, but no held-out row is left unused.
        seconds = _seconds(lambda: fit_with(found.estimator, *(validation or training)))
        found = replace(found, seconds=seconds)
    return found


def _halves(rows: Part, seed: int) -> tuple[Part, Part]:
    X, y, environments = rows
    half = stratified_part(y, environments, 0.5, np.random.default_rng(seed))
    rest = np.setdiff1d(np.arange(len(y)), half)
    first, second = ((X[part], y[part], environments[part]) for part in (half, rest))
    return first, second


def run_tasks(tasks: list[Task], n_jobs: int) -> Iterator[tuple[Task, list[Outcome | Failure]]]:
    """Yield tasks with what they give, as it comes.

    Parameters
    ----------
    tasks : list of Task
        What to run.
    n_jobs : int
        Processes; 1 stays in this one.
    """
    if n_jobs == 1:
        yield from ((task, task.run()) for task in tasks)
        return
    with Parallel(n_jobs=n_jobs, return_as="generator_unordered") as parallel:
        runner = os.getpid()
        places = parallel(delayed(_run)(runner, place, t) for place, t in enumerate(tasks))
        yield from ((tasks[place], found) for place, found in places)


def _seconds(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _run(runner: int, place: int, task: Task) -> tuple[int, list[Outcome | Failure]]:
    obey(runner)
    return place, task.run()


def _folded(model: Any) -> tuple[Float64Array | None, Float64Array | None]:
    try:
        return fold(model)
    except (TypeError, NotFittedError):  # a method of the user's that is not linear
        return None, None
