"""How far a command is: bars in a terminal, now and then a line elsewhere; on standard error."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.text import Text

from isrlearn._cli_support import note, terminal
from isrlearn.display import visible

PATIENCE = 2.0  # seconds in which nobody asks
LOADING = "Loading ..."
LOG_PATIENCE = 10.0  # the same of somebody who reads a log


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show that something goes on whose length is not known.

    Parameters
    ----------
    text : str
        What is done. In a terminal it is shown at once, elsewhere only if it takes longer.
    """
    console = terminal(stderr=True)
    if console.is_terminal:
        with console.status(Text(visible(text))):
            yield
        return
    if text == LOADING:  # of no use in a log, and a mistake may still be found: it is one line
        yield
        return
    late = threading.Timer(LOG_PATIENCE, note, [text])
    late.daemon = True
    late.start()
    try:
        yield
    finally:
        late.cancel()


@contextmanager
def progress(missing: list[Any]) -> Iterator[Any]:
    """Yield a function of (cost, number of jobs) that shows how far the jobs are."""
    console = terminal(stderr=True)
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
        passed = time.monotonic() - begin
        if int(10 * spent / total) > tenth and passed > PATIENCE:
            tenth = int(10 * spent / total)
            left = passed * (total / spent - 1)
            note(f"{done} of {len(missing)} jobs; about {left / 60:.1f} minutes left")

    return advance


@contextmanager
def watching() -> Iterator[Any]:
    """Yield a function of (what, done, all) that shows how far things are."""
    console = terminal(stderr=True)
    if not console.is_terminal:
        yield _fifths()
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn as Left,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        Left(),
    )
    with Progress(*columns, console=console, transient=True, speed_estimate_period=120) as bar:
        task = bar.add_task("", total=None)
        subject = ""

        def watch(text: str, done: int, total: int) -> None:
            nonlocal subject
            name = _without_rate(text).partition(": ")[0] + str(total)
            if name != subject:
                subject = name
                bar.reset(task, total=total)
            bar.update(task, completed=done, total=total, description=visible(text))

        yield watch


def _without_rate(text: str) -> str:
    """Return what is done, without how fast it is, which is in brackets."""
    return text.partition(" (")[0]


def _fifths() -> Any:
    """Return a function that prints a line at the begin of each thing and after each fifth."""
    last, begin = ("", -1), time.monotonic()

    def watch(text: str, done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - begin < PATIENCE:
            return
        fifth = 5 * done // max(total, 1)
        plain = _without_rate(text)
        now = (plain.partition(",")[0] + plain.partition(": ")[2], fifth)
        if now != last:
            note(f"{text}: {done} of {total}")
        last = now

    return watch
