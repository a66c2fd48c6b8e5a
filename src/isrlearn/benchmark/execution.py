"""Run jobs: draw the rows, fit, and measure the error on each split."""

import inspect
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn import config_context
from threadpoolctl import threadpool_limits

from isrlearn.baselines import fit_trials, published_trials
from isrlearn.benchmark.methods import METHODS, Maker, Method, method_named
from isrlearn.benchmark.spec import Job, Problem
from isrlearn.datasets import EnvironmentRows
from isrlearn.exceptions import JobError
from isrlearn.typing import BoolArray, Float64Array, FloatArray, LabelArray


@dataclass(frozen=True)
class TrialResult:
    """Errors of one trial: means over the environments."""

    trial: int
    hyperparameters: dict[str, Any]
    error_train: float
    error_validation: float
    error_test: float
    error_test_worst: float
    """In the environment where it is largest."""


@dataclass(frozen=True)
class JobResult:
    """A finished job."""

    job: Job
    trials: tuple[TrialResult, ...]
    seconds: float
    """Processor time; the first job of a problem pays for drawing its rows."""


def run_unit(jobs: Sequence[Job]) -> list[JobResult]:
    """Run jobs that share a problem, on one thread, so that every machine sums in one order.

    Parameters
    ----------
    jobs : sequence of Job
        Jobs with the same problem.

    Returns
    -------
    list of JobResult
    """
    splits = Splits(jobs[0].problem)
    # The rows are drawn here: nothing has to be looked for in them.
    with threadpool_limits(1), config_context(assume_finite=True):
        return [_run_or_explain(job, splits) for job in jobs]


@dataclass
class Splits:
    """The rows of a problem, drawn when they are first asked for."""

    problem: Problem
    _drawn: dict[tuple[str, bool], EnvironmentRows] = field(default_factory=dict)

    def rows(self, split: str, shuffled: bool = False) -> EnvironmentRows:
        """Return the rows of a split; `shuffled` cuts the spurious features off the target."""
        key = (split, shuffled or split == "test")
        if key not in self._drawn:
            source = self.problem.unit_test()
            self._drawn[key] = source.sample(self.problem.rows, split, shuffled=key[1])
        return self._drawn[key]


def _run_or_explain(job: Job, splits: Splits) -> JobResult:
    try:
        return _run(job, splits)
    except (Exception, SystemExit) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        problem = job.problem
        raise JobError(
            f"method {job.method} failed on Example {problem.example} with "
            f"{problem.n_environments} environments, seed {problem.seed}: "
            f"{type(error).__name__}: {error} ({place.filename}, line {place.lineno})"
        ) from error


def _run(job: Job, splits: Splits) -> JobResult:
    begin = time.process_time()
    method = method_named(job.method)
    train, test = splits.rows("train", method.shuffled), splits.rows("test")
    predict = _fit(method, job, train)
    own, shifted = _errors(predict, train), _errors(predict, test)
    judged = _validation_errors(method, job, splits, predict)
    trials = tuple(
        TrialResult(
            t,
            hyperparameters,
            float(own[t].mean()),
            float(judged[t].mean()),
            float(shifted[t].mean()),
            float(shifted[t].max()),
        )
        for t, hyperparameters in enumerate(_hyperparameters(method, job))
    )
    return JobResult(job, trials, time.process_time() - begin)


def _validation_errors(method: Method, job: Job, splits: Splits, predict: Any) -> Float64Array:
    """Return the errors (T, environments) that the job's rule judges trials by."""
    if job.rule != "leave-one-environment-out":
        return _errors(predict, splits.rows("validation", job.rule == "oracle"))
    train = splits.rows("train", method.shuffled)
    columns = []
    for e in range(job.problem.n_environments):
        out = train.environments == e
        others = EnvironmentRows(*(part[~out] for part in train))
        held_out = EnvironmentRows(*(part[out] for part in train))
        columns.append(_errors(_fit(method, job, others), held_out))
    return np.concatenate(columns, axis=1)


def _errors(predict: Any, rows: EnvironmentRows) -> Float64Array:
    """Return the share of wrong predictions, (T, environments)."""
    wrong = predict(rows.X) != rows.y
    # Rows come environment by environment, equally many of each.
    n_environments = len(np.flatnonzero(np.diff(rows.environments))) + 1
    return np.asarray(wrong.reshape(len(wrong), n_environments, -1).mean(axis=2))


def _fit(method: Method, job: Job, rows: EnvironmentRows) -> Any:
    """Return a function from features (n, d) to the predictions of all trials, (T, n)."""
    if method.estimator is None:
        return _fit_descent(method, job, rows)
    if method.name not in METHODS:  # a user's, which may change in place what it gets
        own = EnvironmentRows(*(part.copy() for part in rows))
        made = _made(method.estimator, job, own)
        return lambda X: _predicted(made, X.copy())
    model = _made(method.estimator, job, rows)
    # Ours are linear in the coordinates of X: one product predicts, where the model would check,
    # project and check again.
    weights = np.hstack([model.coef_, model.intercept_[:, None]])
    return lambda X: _second_class(weights, X)


def _made(maker: Maker, job: Job, rows: EnvironmentRows) -> Any:
    estimator = maker(job.problem.unit_test(), len(np.unique(rows.environments)))
    taken = inspect.signature(estimator.fit).parameters.values()
    if any(p.name == "environments" or p.kind is p.VAR_KEYWORD for p in taken):
        estimator.fit(rows.X, rows.y, environments=rows.environments)
    else:
        estimator.fit(rows.X, rows.y)
    return estimator


def _predicted(model: Any, X: Float64Array) -> LabelArray:
    labels = np.asarray(model.predict(X))
    if labels.shape != (len(X),):
        raise ValueError(f"predict returned shape {labels.shape} for {len(X)} rows.")
    if not np.isin(labels, (0, 1)).all():
        raise ValueError(f"predict must return the labels of y, 0 and 1, not {labels[:3]!r} ...")
    return labels[None]


def _fit_descent(method: Method, job: Job, rows: EnvironmentRows) -> Any:
    removal = None if method.removal is None else _made(method.removal, job, rows)

    def features(X: Float64Array) -> Any:
        kept = X if removal is None else removal.transform(X)
        return kept.astype(np.float32)  # the precision of the published experiments

    codes = np.unique(rows.environments, return_inverse=True)[1]
    recipe = str(method.recipe)
    trials = published_trials(recipe, job.trials)
    weights = fit_trials(recipe, features(rows.X), rows.y == 1, codes, trials, job.steps)
    return lambda X: _second_class(weights, features(X))


def _second_class(weights: FloatArray, X: FloatArray) -> BoolArray:
    """Return whether each of the models (T, d + 1) puts each row into class 1, (T, n)."""
    return np.asarray(weights[:, :-1] @ X.T > -weights[:, -1:])


def _hyperparameters(method: Method, job: Job) -> list[dict[str, Any]]:
    if method.recipe is None:
        return [{}]
    return [trial.as_dict() for trial in published_trials(method.recipe, job.trials)]
