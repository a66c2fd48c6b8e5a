"""Pages that commands write, and how they were made."""

import shlex
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from isrlearn._cli_support import UserError, may_write, plain, written_together
from isrlearn._seal import write_sealed

Html = Annotated[
    list[Path] | None,
    Parameter(
        name="--html",
        consume_multiple=True,
        negative="",
        help="Write a report page: into this .html file, or beside what is written if none is "
        "named.",
    ),
]


def page_file(
    html: Sequence[Path] | None, beside: Path, force: bool, reads: Iterable[Path] = ()
) -> Path | None:
    """Return the file that --html names, or the one beside a file; None if it was not asked for."""
    if html is None:
        return None
    if len(html) > 1:
        raise UserError(f"--html has {len(html)} files: name one, or none.")
    page = html[0] if html else beside.with_suffix(".html")
    return may_write(page, force, ".html", option="--html", reads=reads)


def made_here(begin: float, *, seed: str | None = None, notes: Sequence[str] = ()) -> Any:
    """Return how this command makes a report, since `begin` on the monotonic clock."""
    from isrlearn.reporting import made_now

    command = "isrlearn " + shlex.join(sys.argv[1:])
    return made_now(command=command, seed=seed, seconds=time.monotonic() - begin, notes=notes)


def write_report(page: Any, figures: Mapping[str, Any], *, report: Path, result: Path) -> None:
    """Write a report's page, and the figures with what makes the page again."""
    with written_together(report, result) as (html, values):
        html.write_text(page.html, encoding="utf-8")
        write_result(values, page, figures)


def write_result(place: Path, page: Any, figures: Mapping[str, Any]) -> None:
    """Write a sealed result.json: figures, and under "report" what the page shows."""
    write_sealed(place, plain({**figures, "report": page.to_dict()}))
