"""``isrlearn bench status``, ``table``, ``plot`` and ``export``: what a store has."""

import time
from pathlib import Path
from typing import Annotated, Any

from isrlearn._cli_bench import PICTURES, bench, draw
from isrlearn._cli_options import STORE, Flag, Force, StoreFile
from isrlearn._cli_pages import Html, made_here, page_file
from isrlearn._cli_progress import working
from isrlearn._cli_support import (
    Result,
    UserError,
    all_or_nothing,
    answering,
    may_write,
    mistakes_of_the_user,
    written_together,
)


@bench.command
@answering
def status(*, store: StoreFile = STORE) -> Result:
    """Say what a store has.

    Example: isrlearn bench status
    """
    with working("Loading ..."):
        from isrlearn.benchmark import PROFILES, Store, grid, pending
        from isrlearn.benchmark.tables import count_table
    profiles = {}
    with mistakes_of_the_user(), working(f"Reading {store} ..."):
        rows = _rows(store)
        target = Store(store)
        for name, p in PROFILES.items():
            jobs = grid(p.methods, p.examples, p.n_environments, range(p.n_seeds))
            done = len(jobs) - len(pending(jobs, target))
            profiles[name] = {"done": done, "jobs": len(jobs)}
    text = [f"profile {n:6}{p['done']:>7} of {p['jobs']} jobs" for n, p in profiles.items()]
    text.append(f"\n{count_table(rows)}" if len(rows) else "\nThe store is empty.")
    return Result({"profiles": profiles, "finished": _finished(rows)}, text)


def _finished(rows: Any) -> list[dict[str, Any]]:
    jobs = rows[rows["trial"] == 0]
    counts = jobs.groupby(["method", "example"], as_index=False, sort=False)["seed"].count()
    found: list[dict[str, Any]] = counts.rename(columns={"seed": "jobs"}).to_dict("records")
    return found


@bench.command
@answering
def table(
    *,
    store: StoreFile = STORE,
    published: Annotated[bool, Flag] = False,
    markdown: Annotated[bool, Flag] = False,
) -> Result:
    """Print mean test errors: a table per example, methods in rows, environments in columns.

    Example: isrlearn bench table --published

    Parameters
    ----------
    published
        Compare each cell with the published one instead, in standard errors of the difference.
    markdown
        Print as Markdown.
    """
    means = means_of(store)
    from isrlearn.benchmark.summary import agreement
    from isrlearn.benchmark.tables import agreement_text, error_tables

    if published:
        cells = agreement(means).to_dict("records")
        return Result({"cells": cells}, [agreement_text(means, markdown)])
    return Result({"cells": means.to_dict("records")}, [error_tables(means, markdown)])


@bench.command
@answering
def plot(
    *,
    store: StoreFile = STORE,
    out: Path = Path("linear-unit-tests.png"),
    html: Html = None,
    force: Force = False,
) -> Result:
    """Draw the paper's figure: six panels, mean test error against number of environments.

    Bands are 95 % intervals of the mean; dashed lines are the published results.

    Example: isrlearn bench plot --out figure.svg

    Example: isrlearn bench plot --html

    Parameters
    ----------
    out
        File for the picture, ending in .png, .svg or .pdf.
    """
    page = page_file(html, out, force, [store])
    may_write(out, force, *PICTURES, reads=[store])
    begin = time.monotonic()
    means = means_of(store)
    files = {"picture": out} if page is None else {"picture": out, "report": page}
    with all_or_nothing(), written_together(*files.values()) as (picture, *pages):
        draw(picture, lambda figures: figures.unit_test_figure(means))
        for place in pages:
            write_bench_page(means, place, "--html", made_here(begin))
    return Result({"cells": means.to_dict("records")}, files=files)


def write_bench_page(
    means: Any, path: Path, option: str, made: Any, title: str | None = None
) -> None:
    """Write the page of a benchmark."""
    with working("Writing the report ..."):
        from isrlearn.reporting import bench_html

        text = bench_html(means, made, **({} if title is None else {"title": title}))
        with written_together(path, option=option) as (place,):
            place.write_text(text, encoding="utf-8")


@bench.command
@answering
def export(
    *,
    store: StoreFile = STORE,
    csv: Path | None = None,
    parquet: Path | None = None,
    force: Force = False,
) -> Result:
    """Write all rows, one per job and trial, for other programs.

    Example: isrlearn bench export --csv results.csv

    Parameters
    ----------
    csv
        File for comma-separated values.
    parquet
        File in the format Parquet; needs the extra 'io'.
    """
    files = {"table": (csv, "--csv"), "parquet": (parquet, "--parquet")}
    wanted = {name: path for name, (path, _) in files.items() if path is not None}
    if not wanted:
        raise UserError("bench export needs --csv FILE or --parquet FILE.")
    if csv is not None and parquet is not None and csv.resolve() == parquet.resolve():
        raise UserError(f"--csv and --parquet are both {csv}: name two files.")
    for path, option in files.values():
        if path is not None:
            _not_the_store(path, store)
            may_write(path, force, option=option)
    with working("Loading ..."):
        from isrlearn.benchmark.summary import write_csv, write_parquet
    writers = {"table": write_csv, "parquet": write_parquet}
    with all_or_nothing(), working(f"Reading {store} ..."):
        rows = _rows(store)
        with written_together(*wanted.values(), option="--csv or --parquet") as places:
            for name, place in zip(wanted, places, strict=True):
                writers[name](rows, place)
    return Result({"rows": len(rows)}, [f"{len(rows)} rows."], wanted)


def _not_the_store(path: Path, store: Path) -> None:
    if path.exists() and store.exists() and path.samefile(store):
        raise UserError(f"{path} is the store itself: name another file.")


def _rows(store: Path) -> Any:
    from isrlearn.benchmark import Store
    from isrlearn.benchmark.summary import frame_of

    return frame_of(Store(store).check())


def means_of(store: Path) -> Any:
    """Return the mean errors of a store."""
    with working("Loading ..."):
        from isrlearn.benchmark.summary import mean_errors, of_figure
    with mistakes_of_the_user(), working(f"Reading {store} ..."):
        rows = of_figure(_rows(store))
        if rows.empty:
            raise UserError(f"{store} has no results of the figure yet: isrlearn bench run.")
        return mean_errors(rows)
