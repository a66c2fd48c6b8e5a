"""What the tests of the benchmark share."""

from isrlearn.benchmark import grid
from isrlearn.benchmark.execution import JobResult, TrialResult
from isrlearn.benchmark.summary import frame_of

EXACT = ("oracle", "isr-mean", "erm-whitened")


def small_grid(methods=EXACT, examples=("2s", "3"), n_environments=(2, 3), seeds=range(2), **how):
    return grid(methods, examples, n_environments, seeds, rows=200, **how)


def errors(store):
    """Everything in a store that must not depend on how it was filled."""
    return frame_of(store).drop(columns=["seconds"])


def result_of(job, error_test=0.25, n_trials=1):
    trials = [TrialResult(t, {"t": t}, 0.1, 0.2, error_test, 0.3) for t in range(n_trials)]
    return JobResult(job, tuple(trials), 1.5)
