"""What is run: frozen jobs with a hash, and the grids of the profiles."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Final

from isrlearn.benchmark.methods import method_named
from isrlearn.datasets import LinearUnitTest
from isrlearn.rows import check_number

PROTOCOL: Final = 3
"""Raised whenever the same job would give other numbers; part of every hash."""
FIGURE_EXAMPLES: Final = ("2", "2s", "3", "3s", "3'", "3s'")
"""The panels of the paper's figure, in its order."""
FIGURE_ENVIRONMENTS: Final = tuple(range(2, 11))
FIGURE_SEEDS: Final = 50
RULES: Final = {
    "training-domain": "error on validation rows drawn like the training rows",
    "leave-one-environment-out": "error in each environment of the models trained without it",
    "oracle": "error on validation rows drawn like the test rows",
}


@dataclass(frozen=True)
class Problem:
    """The data of a job: a cell of the figure, for one seed.

    Parameters
    ----------
    example : str
        Name of the unit test, such as "2" or "3s".
    n_environments, seed : int
        Number of environments, and what the rows are drawn with.
    d_c, d_s : int, default=5
        Invariant and spurious dimensions.
    rows : int, default=10000
        Rows per environment and split.
    constants : str, default="published"
        As in `isrlearn.datasets.LinearUnitTest`.

    Examples
    --------
    >>> Problem("3s", n_environments=4, seed=0, d_s=2).unit_test().d_s
    2
    """

    example: str
    n_environments: int
    seed: int
    d_c: int = 5
    d_s: int = 5
    rows: int = 10_000
    constants: str = "published"

    def unit_test(self) -> LinearUnitTest:
        """Return the source of the rows."""
        return LinearUnitTest(
            self.example, self.n_environments, self.d_c, self.d_s, self.seed, self.constants
        )


@dataclass(frozen=True)
class Job:
    """One method on one problem.

    Parameters
    ----------
    problem : Problem
        The data.
    method : str
        Name of a method, or ``my_module:MyEstimator``.
    rule : str, default="training-domain"
        What the validation error of a trial is; see `RULES`.
    trials : int, default=1
        Models that are trained.
    steps : int, default=0
        Steps of descent; 0 for a method that is solved exactly.

    Examples
    --------
    >>> job = Job(Problem("2", n_environments=3, seed=0), "isr-mean")
    >>> job.key == Job(Problem("2", n_environments=3, seed=0), "isr-mean").key
    True
    >>> job.key == Job(Problem("2", n_environments=3, seed=1), "isr-mean").key
    False
    """

    problem: Problem
    method: str
    rule: str = "training-domain"
    trials: int = 1
    steps: int = 0

    @cached_property
    def key(self) -> str:
        """Hash of everything that the result depends on."""
        text = json.dumps([PROTOCOL, self.as_dict()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def cost(self) -> float:
        """Rough time, in units that compare jobs with one another."""
        rows = self.problem.rows * self.problem.n_environments
        fits = self.problem.n_environments + 1 if self.rule == "leave-one-environment-out" else 1
        return rows * fits * (2e4 + self.steps * self.trials) + 1e8

    def as_dict(self) -> dict[str, Any]:
        """Return all fields, flat."""
        flat = asdict(self)
        return {**flat.pop("problem"), **flat}


@dataclass(frozen=True)
class Profile:
    """A named grid."""

    methods: tuple[str, ...]
    n_seeds: int
    n_environments: tuple[int, ...] = FIGURE_ENVIRONMENTS
    examples: tuple[str, ...] = FIGURE_EXAMPLES


EXACT_METHODS: Final = (
    "oracle",
    "isr",
    "isr-mean",
    "isr-cov",
    "erm-standardised",
    "erm-whitened",
)
PAPER_METHODS: Final = (
    "oracle-adam",
    "isr-mean-adam",
    "isr-cov-adam",
    "erm-adam",
    "irmv1",
    "iga",
    "and-mask",
)
PROFILES: Final = {
    "quick": Profile(EXACT_METHODS, 5, (2, 3, 4, 6, 8, 10)),
    "exact": Profile(EXACT_METHODS, FIGURE_SEEDS),
    "paper": Profile((*EXACT_METHODS, *PAPER_METHODS), FIGURE_SEEDS),
}


def grid(
    methods: Iterable[str],
    examples: Iterable[str],
    n_environments: Iterable[int],
    seeds: Iterable[int],
    *,
    rule: str = "training-domain",
    d_s: Iterable[int] = (5,),
    rows: int = 10_000,
    trials: int | None = None,
    steps: int | None = None,
) -> list[Job]:
    """Return the jobs of a grid, seed by seed.

    Parameters
    ----------
    methods, examples, n_environments, seeds, d_s : iterable
        The axes of the grid.
    rule : str, default="training-domain"
        How trials are judged; see `RULES`.
    rows : int, default=10000
        Rows per environment and split.
    trials, steps : int, default=None
        Of the methods that descend; None: as published, 20 and 10 000.

    Returns
    -------
    list of Job

    Examples
    --------
    >>> from isrlearn.benchmark import grid
    >>> jobs = grid(["isr-mean", "oracle"], ["2", "3"], n_environments=[2, 4], seeds=range(5))
    >>> len(jobs), jobs[0].method, jobs[0].problem.example
    (40, 'isr-mean', '2')
    """
    chosen = [method_named(name) for name in methods]
    examples, n_environments, d_s = tuple(examples), tuple(n_environments), tuple(d_s)
    _check(examples, n_environments, rule)
    for name, value in (("trials", trials), ("steps", steps), *(("d_s", d) for d in d_s)):
        if value is not None:
            check_number(name, value, 1, whole=True)
    jobs = [
        _job(
            method, Problem(example, int(E), int(seed), d_s=int(d), rows=rows), rule, trials, steps
        )
        for seed in seeds
        for example in examples
        for E in n_environments
        for d in d_s
        for method in chosen
    ]
    return list(dict.fromkeys(jobs))


def _job(method: Any, problem: Problem, rule: str, trials: int | None, steps: int | None) -> Job:
    job = Job(problem, method.name, method.rule or rule)
    if method.n_steps == 0:
        return job
    n_trials, n_steps = int(trials or method.n_trials), int(steps or method.n_steps)
    return replace(job, trials=n_trials, steps=n_steps)


def _check(examples: tuple[Any, ...], n_environments: tuple[Any, ...], rule: str) -> None:
    strangers = [example for example in examples if example not in FIGURE_EXAMPLES]
    if strangers:
        raise ValueError(
            f"example {strangers[0]!r} must be one of {', '.join(FIGURE_EXAMPLES)} (1 and 1s have "
            "a number as target; the methods here classify)."
        )
    if rule not in RULES:
        raise ValueError(f"rule {rule!r} must be one of {', '.join(RULES)}.")
    least = 3 if rule == "leave-one-environment-out" else 2
    too_few = [E for E in n_environments if least > E]
    if too_few:
        raise ValueError(
            f"{too_few[0]} environments are too few: the rule {rule} needs at least {least}; "
            "choose others with --n-environments."
        )
