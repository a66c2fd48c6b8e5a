"""``isrlearn report``: the page of a saved result, made again."""

import time
from pathlib import Path

from isrlearn._cli_bench_show import means_of, write_bench_page
from isrlearn._cli_options import Force
from isrlearn._cli_pages import made_here
from isrlearn._cli_progress import working
from isrlearn._cli_support import (
    Result,
    all_or_nothing,
    answering,
    may_write,
    must_exist,
    written_together,
)

STORES = (".sqlite", ".db")


@answering
def report(result: Path, /, *, out: Path, title: str | None = None, force: Force = False) -> Result:
    """Write the page of a result that is already there.

    A result is the result.json that demo, compare and repair write, the folder it is in, or a
    store of bench run. Nothing is fitted anew.

    Example: isrlearn report isrlearn-compare --out page.html --title "Hospitals, May"

    Example: isrlearn report isrlearn-bench.sqlite --out bench.html

    Parameters
    ----------
    result
        A result.json, its folder, or a store (.sqlite).
    out
        File for the page, ending in .html.
    title
        Heading, instead of the one it had.
    """
    may_write(out, force, ".html", reads=[result, result / "result.json"])
    must_exist(result)
    begin = time.monotonic()
    if result.suffix in STORES:
        means = means_of(result)
        with all_or_nothing():
            write_bench_page(means, out, "--out", made_here(begin), title)
        return Result({"cells": means.to_dict("records")}, files={"report": out})
    with working("Loading ..."):
        from isrlearn.reporting import Report
    with all_or_nothing():
        found = Report.load(result)
        found = found if title is None else found.titled(title)
        with written_together(out) as (place,):
            place.write_text(found.html, encoding="utf-8")
    return Result({"title": found.title}, files={"report": out})
