"""What all commands share: mistakes of the user, and files that must not be overwritten."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

USAGE_ERROR = 2
INTERRUPTED = 130


class UserError(Exception):
    """A mistake of the user: one line on standard error, exit code 2."""


class Interrupted(Exception):
    """Ctrl-C, with a line about what is saved; exit code 130."""


def say(text: str) -> None:
    """Print text as it is: nothing is wrapped, coloured or taken for markup."""
    Console().print(text, soft_wrap=True, highlight=False, markup=False)


@contextmanager
def mistakes_of_the_user() -> Iterator[None]:
    """Turn errors that the library raises about its arguments into `UserError`."""
    from isrlearn.exceptions import JobError, TrainingError

    try:
        yield
    except (ValueError, JobError, TrainingError) as error:
        raise UserError(str(error)) from error


@contextmanager
def all_or_nothing() -> Iterator[None]:
    """As `mistakes_of_the_user`, for a command that writes at its end: Ctrl-C leaves nothing."""
    try:
        with mistakes_of_the_user():
            yield
    except KeyboardInterrupt:
        raise Interrupted("nothing was written.") from None


def may_write(path: Path, force: bool, *, option: str = "--out") -> Path:
    """Return `path` if writing it would destroy nothing that the user did not give up."""
    if path.exists() and not force:
        raise UserError(f"{path} exists: name another with {option}, or add --force.")
    _nearest_folder(path.parent, option)
    return path


def make_folder(folder: Path, *, option: str = "--out") -> None:
    """Create a folder and those above it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{option} {folder} cannot be created: {error.strerror}.") from error


def _nearest_folder(path: Path, option: str) -> None:
    """Refuse a path that runs through a file."""
    existing = next(p for p in (path, *path.absolute().parents) if p.exists())
    if not existing.is_dir():
        raise UserError(f"{option} {path}: {existing} is a file; name a folder.")


@contextmanager
def progress(missing: list[Any], console: Console) -> Iterator[Any]:
    """Yield a function that shows progress: a bar with time left, or lines where there is none."""
    if not console.is_terminal:
        yield _lines(missing)
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.fields[jobs]} of " + f"{len(missing)} jobs"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=False),
    )
    with Progress(*columns, console=console, transient=True, speed_estimate_period=300) as bar:
        task = bar.add_task("", total=sum(job.cost for job in missing), jobs=0)
        done = 0

        def advance(cost: float, n_jobs: int) -> None:
            nonlocal done
            done += n_jobs
            bar.update(task, advance=cost, jobs=done)

        yield advance


def _lines(missing: list[Any]) -> Any:
    """Return a function that says after each tenth how far it is and what is left."""
    total, begin = sum(job.cost for job in missing), time.monotonic()
    spent, done, tenth = 0.0, 0, 0

    def advance(cost: float, n_jobs: int) -> None:
        nonlocal spent, done, tenth
        spent, done = spent + cost, done + n_jobs
        if int(10 * spent / total) > tenth:
            tenth = int(10 * spent / total)
            left = (time.monotonic() - begin) * (total / spent - 1)
            say(f"{done} of {len(missing)} jobs; about {left / 60:.1f} minutes left")

    return advance


@contextmanager
def watching(console: Console) -> Iterator[Any]:
    """Yield a function of (what, done, all): a bar with time left, or lines where there is none."""
    if not console.is_terminal:
        yield _tenths()
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as Left

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), Left())
    with Progress(*columns, console=console, transient=True, speed_estimate_period=120) as bar:
        task = bar.add_task("", total=None)
        subject = ""

        def watch(text: str, done: int, total: int) -> None:
            nonlocal subject
            name = _without_rate(text).partition(": ")[0] + str(total)
            if name != subject:
                subject = name
                bar.reset(task, total=total)
            bar.update(task, completed=done, total=total, description=text)

        yield watch


def _without_rate(text: str) -> str:
    """Return what is done, without how fast it is, which is in brackets."""
    return text.partition(" (")[0]


def _tenths() -> Any:
    """Return a function that prints a line at the begin of each thing and after each fifth."""
    last = ("", -1)
    console = Console(stderr=True)

    def watch(text: str, done: int, total: int) -> None:
        nonlocal last
        fifth = 5 * done // max(total, 1)
        plain = _without_rate(text)
        now = (plain.partition(",")[0] + plain.partition(": ")[2], fifth)
        if now != last:
            line = f"{text}: {done} of {total}"
            console.print(line, soft_wrap=True, highlight=False, markup=False)
        last = now

    return watch
