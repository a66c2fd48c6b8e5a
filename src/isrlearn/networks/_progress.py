"""Progress over rows: a bar, a callable of the caller's, or nothing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Progress: TypeAlias = bool | Callable[[int], None] | None


@contextmanager
def showing(progress: Progress) -> Iterator[Callable[[int], None]]:
    """Yield what is to be called with the number of rows that are done."""
    if callable(progress):
        yield progress
        return
    if not progress:
        yield lambda n_rows: None
        return
    from rich.progress import Progress as Bar, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.completed:.0f} rows"), TimeElapsedColumn())
    with Bar(*columns, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda n_rows: bar.advance(task, n_rows)
