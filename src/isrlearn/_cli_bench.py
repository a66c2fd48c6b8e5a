"""``isrlearn bench``: thin commands over `isrlearn.benchmark`."""

import os
import shlex
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter, Token
from rich.console import Console

from isrlearn._cli_support import (
    Interrupted,
    UserError,
    make_folder,
    may_write,
    mistakes_of_the_user,
    progress,
    say,
)

STORE = Path("isrlearn-bench.sqlite")
PICTURES = (".png", ".svg", ".pdf")


def _whole(type_: Any, tokens: Sequence[Token]) -> int:
    value = tokens[0].value
    if not value.isdecimal() or int(value) < 1:
        option = (tokens[0].keyword or "").removeprefix("--")
        raise UserError(f"--{option} {value} must be a whole number of at least 1.")
    return int(value)


def _wholes(type_: Any, tokens: Sequence[Token]) -> list[int]:
    return [_whole(type_, [token]) for token in tokens]


def _seed(type_: Any, tokens: Sequence[Token]) -> int:
    value = tokens[0].value
    if not value.isdecimal() or int(value) >= 2**31:
        raise UserError(f"--seed {value} must be a whole number from 0 to {2**31 - 1}.")
    return int(value)


Seed = Annotated[int, Parameter(converter=_seed)]
Several = Parameter(consume_multiple=True, negative="")
Whole = Annotated[int | None, Parameter(converter=_whole)]
Count = Annotated[int, Parameter(converter=_whole)]
Wholes = Annotated[
    list[int] | None, Parameter(consume_multiple=True, negative="", converter=_wholes)
]
Flag = Parameter(negative="")

bench = App(
    name="bench",
    help=(
        "The Linear Unit-Tests: run them, and see what came out. "
        "Example: isrlearn bench run --profile quick, then isrlearn bench plot."
    ),
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
    seeds
        How many seeds; 5 means the seeds 0 to 4.
    trials
        Hyper-parameter trials of the published methods; 20 if left out.
    steps
        Steps of the published methods; 10 000 if left out.
    jobs
        Worker processes; one per core if left out. The numbers do not depend on it.
    scheduler
        Address of a Dask scheduler whose workers compute instead, such as tcp://10.0.0.5:8786.
    store
        File of results; it is created, and grows with every run.
    """

    methods: Annotated[list[str] | None, Several] = None
    n_environments: Wholes = None
    seeds: Whole = None
    trials: Whole = None
    steps: Whole = None
    jobs: Whole = None
    scheduler: str | None = None
    store: Path = STORE


@bench.command
def run(
    *,
    profile: Literal["quick", "exact", "paper"] = "quick",
    examples: Annotated[list[str] | None, Several] = None,
    rule: str = "training-domain",
    redo: Annotated[bool, Flag] = False,
    work: Work = Work(),  # noqa: B008 - frozen
) -> None:
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
    console = Console()
    with console.status("Loading ..."):
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
        _run(jobs, work, redo, console)
    say(f"See it: isrlearn bench plot --store {shlex.quote(str(work.store))}")


@bench.command
def status(*, store: Path = STORE) -> None:
    """Say what a store has.

    Example: isrlearn bench status

    Parameters
    ----------
    store
        File of results.
    """
    from isrlearn.benchmark import PROFILES, Store, grid, pending
    from isrlearn.benchmark.summary import frame_of
    from isrlearn.benchmark.tables import count_table

    with mistakes_of_the_user():
        target = Store(store).check()
        rows = frame_of(target)
        for name, p in PROFILES.items():
            all_jobs = grid(p.methods, p.examples, p.n_environments, range(p.n_seeds))
            done = len(all_jobs) - len(pending(all_jobs, target))
            say(f"profile {name:6}{done:>7} of {len(all_jobs)} jobs")
    say(f"\n{count_table(rows)}" if len(rows) else "\nThe store is empty.")


@bench.command
def table(
    *,
    store: Path = STORE,
    published: Annotated[bool, Flag] = False,
    markdown: Annotated[bool, Flag] = False,
) -> None:
    """Print mean test errors: a table per example, methods in rows, environments in columns.

    Example: isrlearn bench table --published

    Parameters
    ----------
    store
        File of results.
    published
        Compare each cell with the published one instead, in standard errors of the difference.
    markdown
        Print as Markdown.
    """
    from isrlearn.benchmark.tables import agreement_text, error_tables

    means = _means(store)
    say(agreement_text(means, markdown) if published else error_tables(means, markdown))


@bench.command
def plot(
    *,
    store: Path = STORE,
    out: Path = Path("linear-unit-tests.png"),
    force: Annotated[bool, Flag] = False,
) -> None:
    """Draw the paper's figure: six panels, mean test error against number of environments.

    Bands are 95 % intervals of the mean; dashed lines are the published results.

    Example: isrlearn bench plot --out figure.svg

    Parameters
    ----------
    store
        File of results.
    out
        Picture to write: .png, .svg or .pdf.
    force
        Overwrite a picture that is already there.
    """
    _draw(out, force, lambda figures: figures.unit_test_figure(_means(store)))


@bench.command
def export(
    *,
    store: Path = STORE,
    csv: Path | None = None,
    parquet: Path | None = None,
    force: Annotated[bool, Flag] = False,
) -> None:
    """Write all rows, one per job and trial, for other programs.

    Example: isrlearn bench export --csv results.csv

    Parameters
    ----------
    store
        File of results.
    csv
        Comma-separated file to write.
    parquet
        Parquet file to write; needs the extra 'io'.
    force
        Overwrite files that are already there.
    """
    if csv is None and parquet is None:
        raise UserError("bench export needs --csv FILE or --parquet FILE.")
    from isrlearn.benchmark import Store
    from isrlearn.benchmark.summary import frame_of, write_csv, write_parquet

    with mistakes_of_the_user():
        rows = frame_of(Store(store).check())
    for path, write in ((csv, write_csv), (parquet, write_parquet)):
        if path is not None:
            _not_the_store(path, store)
            option = "--csv" if write is write_csv else "--parquet"
            make_folder(may_write(path, force, option=option).parent, option=option)
            with mistakes_of_the_user():
                write(rows, path)
            say(f"{len(rows)} rows: {path.resolve()}")


def _not_the_store(path: Path, store: Path) -> None:
    if path.exists() and path.samefile(store):
        raise UserError(f"{path} is the store itself: name another file.")


@bench.command
def complexity(
    *,
    d_s: Wholes = None,
    out: Path = Path("environment-complexity.png"),
    force: Annotated[bool, Flag] = False,
    work: Work = Work(),  # noqa: B008 - frozen
) -> None:
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
        Picture to write: .png, .svg or .pdf.
    force
        Overwrite a picture that is already there.
    """
    _picture_name(out, force)
    console = Console()
    with console.status("Loading ..."):
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
        store = _run(jobs, work, False, console)
        least = sweep.least_environments(mean_errors(of_jobs(frame_of(store), jobs)))
    say(sweep.least_text(least))
    _draw(out, force, lambda figures: figures.complexity_figure(least))


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


def _run(jobs: list[Any], work: Work, redo: bool, console: Console) -> Any:
    from isrlearn.benchmark import Store, pending
    from isrlearn.benchmark import run as run_jobs

    store = Store(work.store).create()
    missing = jobs if redo else pending(jobs, store)
    have = (
        "all to be run anew"
        if redo
        else f"{len(jobs) - len(missing)} of them in {store.path} already"
    )
    say(f"{len(jobs)} jobs, {have}.")
    if not missing:
        return store
    seconds: list[float] = []
    with progress(missing, console) as advance:

        def on_done(results: list[Any]) -> None:
            seconds.extend(result.seconds for result in results)
            advance(sum(result.job.cost for result in results), len(results))

        try:
            with _client(work.scheduler) as client:
                how = {"n_jobs": work.jobs or os.cpu_count(), "client": client}
                run_jobs(jobs, store, redo=redo, on_done=on_done, **how)
        except KeyboardInterrupt:
            again = "the same command without --redo" if redo and seconds else "the same command"
            raise Interrupted(
                f"{len(seconds)} jobs were finished and are saved in {store.path}; {again} goes on "
                f"with the other {len(missing) - len(seconds)}."
            ) from None
    say(f"{len(seconds)} jobs done in {sum(seconds):.0f} seconds of processor time.")
    return store


def _means(store: Path) -> Any:
    from isrlearn.benchmark import Store
    from isrlearn.benchmark.summary import frame_of, mean_errors, of_figure

    with mistakes_of_the_user():
        rows = of_figure(frame_of(Store(store).check()))
    if rows.empty:
        raise UserError(f"{store} has no results of the figure yet: isrlearn bench run.")
    return mean_errors(rows)


def _picture_name(out: Path, force: bool) -> Path:
    if out.suffix not in PICTURES:
        raise UserError(f"--out {out} must end in .png, .svg or .pdf.")
    return may_write(out, force)


def _draw(out: Path, force: bool, make: Any) -> None:
    _picture_name(out, force)
    from isrlearn.benchmark import figures

    figure = make(figures)
    make_folder(out.parent)
    figures.save(figure, out)
    say(f"Picture: {out.resolve()}")
