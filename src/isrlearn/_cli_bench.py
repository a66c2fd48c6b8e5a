"""``isrlearn bench run`` and ``complexity``: thin commands over `isrlearn.benchmark`."""

import os
import shlex
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Group, Parameter

from isrlearn._cli_options import (
    STORE,
    Flag,
    Force,
    Jobs,
    Scheduler,
    Several,
    SomeSeeds,
    StoreFile,
    Whole,
    Wholes,
)
from isrlearn._cli_progress import progress, working
from isrlearn._cli_signals import Interrupted, uninterrupted
from isrlearn._cli_support import (
    Result,
    UserError,
    answering,
    may_fill,
    may_write,
    mistakes_of_the_user,
    say,
    written_together,
)

PICTURES = (".png", ".svg", ".pdf")

bench = App(
    name="bench",
    help=(
        "The Linear Unit-Tests: run them, and see what came out.\n\n"
        "Example: isrlearn bench run --profile quick, then isrlearn bench plot."
    ),
    help_epilogue="",
    group_commands=Group("Commands"),
)


@Parameter(name="*")
@dataclass(frozen=True)
class Work:
    """What is computed, and where it goes.

    Parameters
    ----------
    methods
        Out of oracle, isr, isr-mean, isr-cov, erm, erm-standardised, erm-whitened (exact);
        oracle-adam, isr-mean-adam, isr-cov-adam, erm-adam, irmv1, iga, and-mask (as published)
        and vrex (in the same way); or my_module:MyEstimator, a class of yours with fit and predict.
    n_environments
        Numbers of environments, each at least 2.
    trials
        Hyper-parameter trials of the published methods; 20 if left out.
    steps
        Steps of the published methods; 10 000 if left out.
    """

    methods: Annotated[list[str] | None, Several] = None
    n_environments: Wholes = None
    seeds: SomeSeeds = None
    trials: Whole = None
    steps: Whole = None
    jobs: Jobs = None
    scheduler: Scheduler = None
    store: StoreFile = STORE


@bench.command
@answering
def run(
    *,
    profile: Literal["quick", "exact", "paper"] = "quick",
    examples: Annotated[list[str] | None, Several] = None,
    rule: Literal["training-domain", "leave-one-environment-out", "oracle"] = "training-domain",
    redo: Annotated[bool, Flag] = False,
    work: Work = Work(),  # noqa: B008 - frozen
) -> Result:
    """Run what the store does not have yet. Stop it at any time; the same command goes on.

    Profiles: quick (exact methods, 5 seeds, a minute or two), exact (the paper's figure with exact
    methods, 50 seeds, E = 2 to 10; some 15 minutes on two cores) and paper (adds the methods by the
    published protocol: Adam, 10 000 steps, 20 trials; many hours). The options below narrow or
    change a profile.

    Example: isrlearn bench run --profile exact --examples 2s "3s'" --n-environments 2 6 10

    Example: isrlearn bench run --methods isr erm-whitened my_module:MyEstimator

    Parameters
    ----------
    profile
        Which grid.
    examples
        Out of 2, 2s, 3, 3s, 3', 3s'.
    rule
        How trials are judged: training-domain, leave-one-environment-out or oracle.
    redo
        Drop what the store has of these jobs and run them anew, as after a change of your own
        method.
    """
    may_fill(work.store.parent, option="--store")
    with working("Loading ..."):
        from isrlearn.benchmark import PROFILES, grid
    chosen = PROFILES[profile]
    with mistakes_of_the_user():
        jobs = grid(
            _some("methods", work.methods) or chosen.methods,
            _some("examples", examples) or chosen.examples,
            _some("n-environments", work.n_environments) or chosen.n_environments,
            range(work.seeds or chosen.n_seeds),
            rule=rule,
            trials=work.trials,
            steps=work.steps,
        )
        _, figures = _run(jobs, work, redo)
    hint = f"See it: isrlearn bench plot --store {shlex.quote(str(work.store))}"
    return Result(figures, [hint], {"store": work.store})


@bench.command
@answering
def complexity(
    *,
    d_s: Wholes = None,
    out: Path = Path("environment-complexity.png"),
    force: Force = False,
    work: Work = Work(),  # noqa: B008 - frozen
) -> Result:
    """Measure how many environments each method needs as spurious dimensions are added.

    Sweeps d_s and E on the paper's Gaussian model, once with variances that differ between
    environments (3s') and once with equal ones (3s), and draws the least E from which on a method
    stays within 0.01 of the oracle. Theorem 1 says d_s + 1 for ISR-Mean, Theorem 2 says 2 for
    ISR-Cov where variances differ. The whole sweep takes some 8 minutes on two cores.

    Example: isrlearn bench complexity --d-s 1 2 3 --n-environments 2 3 4 5 --seeds 3

    Parameters
    ----------
    d_s
        Numbers of spurious dimensions; 1 to 10 if left out.
    out
        File for the picture, ending in .png, .svg or .pdf.
    """
    may_write(out, force, *PICTURES, reads=[work.store])
    may_fill(work.store.parent, option="--store")
    with working("Loading ..."):
        from isrlearn.benchmark import complexity as sweep
        from isrlearn.benchmark.summary import frame_of, mean_errors, of_jobs
    with mistakes_of_the_user():
        jobs = sweep.complexity_grid(
            tuple(_some("methods", work.methods) or sweep.METHODS),
            tuple(_some("d-s", d_s) or sweep.D_S),
            tuple(_some("n-environments", work.n_environments) or sweep.N_ENVIRONMENTS),
            work.seeds or sweep.N_SEEDS,
            trials=work.trials,
            steps=work.steps,
        )
        store, figures = _run(jobs, work, False)
        least = sweep.least_environments(mean_errors(of_jobs(frame_of(store), jobs)))
    draw(out, lambda pictures: pictures.complexity_figure(least))
    figures = {**figures, "least_environments": least.to_dict("records")}
    files = {"store": work.store, "picture": out}
    return Result(figures, [sweep.least_text(least)], files)


def draw(out: Path, make: Any) -> None:
    """Draw what `make` returns of `isrlearn.benchmark.figures`."""
    with working("Drawing ..."):
        from isrlearn.benchmark import figures

        figure = make(figures)
        with written_together(out) as (place,):
            figures.save(figure, place)


def _client(scheduler: str | None) -> Any:
    """Return a context that gives a client of a cluster, or None for this machine."""
    if scheduler is None:
        return nullcontext()
    from isrlearn.distributed import cluster

    return cluster(scheduler)


def _some(option: str, values: list[Any] | None) -> list[Any] | None:
    if values == []:
        raise UserError(f"--{option} is followed by nothing: name one or more, or leave it out.")
    return values


def _run(jobs: list[Any], work: Work, redo: bool) -> tuple[Any, dict[str, Any]]:
    """Run what is missing; return the store, and how much there was to do."""
    from isrlearn.benchmark import Store, pending, run as run_jobs

    with uninterrupted(heeding=True):  # a new store is made aside, and what is aside removed
        store = Store(work.store).create()
    missing = jobs if redo else pending(jobs, store)
    n_known = len(jobs) - len(missing)
    known = f"{n_known} of them in {store.path} already"
    say(f"{len(jobs)} jobs, {'all to be run anew' if redo else known}.")
    seconds: list[float] = []

    def on_done(results: list[Any]) -> None:
        seconds.extend(result.seconds for result in results)
        advance(sum(result.job.cost for result in results), len(results))

    if missing:
        with progress(missing) as advance:
            try:
                with _client(work.scheduler) as client:
                    how = {"n_jobs": work.jobs or os.cpu_count(), "client": client}
                    run_jobs(jobs, store, redo=redo, on_done=on_done, **how)
            except KeyboardInterrupt:
                raise Interrupted(_what_is_saved(store, missing, seconds, redo)) from None
        say(f"{len(seconds)} jobs done in {sum(seconds):.0f} seconds of processor time.")
    figures = {"jobs": len(jobs), "known": n_known, "done": len(seconds), "seconds": sum(seconds)}
    return store, figures


def _what_is_saved(store: Any, missing: list[Any], seconds: list[float], redo: bool) -> str:
    from isrlearn.benchmark import pending

    again = "the same command without --redo" if redo and seconds else "the same command"
    # The store knows also what was written when it was too late to be counted here.
    n_left = len(missing) - len(seconds) if redo else len(pending(missing, store))
    return (
        f"{len(missing) - n_left} jobs were finished and are saved in {store.path}; {again} goes "
        f"on with the other {n_left}."
    )
