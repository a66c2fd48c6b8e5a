"""``isrlearn compare``: every method on a user's file."""

import os
import time
from pathlib import Path
from typing import Annotated, Any, Literal

from isrlearn._cli_data import AS_FOUND, Columns
from isrlearn._cli_options import Data, Force, Jobs, Rule, Seeds, Several
from isrlearn._cli_pages import made_here, write_result
from isrlearn._cli_progress import watching, working
from isrlearn._cli_support import (
    Result,
    all_or_nothing,
    answering,
    files_read,
    may_write,
    must_exist,
    tell,
    written_together,
)
from isrlearn._text import visible

MANY_CLASSES = 20
MOST_JOBS = 8  # more would wait for the slowest method
FILES = {"table": "table.csv", "result": "result.json", "report": "report.html"}


@answering
def compare(
    data: Data,
    /,
    *,
    columns: Columns = AS_FOUND,
    test: Literal["split", "random", "leave-one-environment-out"] | None = None,
    rule: Rule = "worst-group",
    methods: Annotated[list[str] | None, Several] = None,
    seeds: Seeds = 3,
    jobs: Jobs = None,
    out: Path = Path("isrlearn-compare"),
    force: Force = False,
) -> Result:
    """Compare ISR with its rivals on your data, to see which one to ship.

    Every method is fitted on the same rows and chooses its setting by the same rule; test labels
    are looked at once, at the end. Prints the table and writes table.csv, result.json and
    report.html, a page to send to a colleague.

    Example: isrlearn compare patients.csv --label disease --environment hospital

    Parameters
    ----------
    test
        split: as the file says. random: 60, 20 and 20 % of every group. leave-one-environment-out:
        every environment is the test once. If left out: the file's split, or random.
    methods
        Some methods only: erm, class-reweighted, group-reweighted, subsampled, group-dro, dfr,
        leace, leace-class, inlp, coral, v-rex, irm, isr, or my_module:MyEstimator.
    out
        Folder for the table, the result and the report; it is created.
    """
    must_exist(data)
    inputs = files_read(data)
    files = {n: may_write(out / file, force, reads=inputs) for n, file in FILES.items()}
    begin = time.monotonic()
    with working("Loading ..."):
        from isrlearn.leaderboard import compare as run
    with all_or_nothing():
        with working(f"Reading {data} ..."):
            rows = columns.read(data)
        rows.check_for_fit()
        notes = [*rows.notes, *_many_classes(rows), *_unused_split(rows, test)]
        tell(notes)
        with watching() as watch:
            result = run(
                rows.features,
                rows.labels,
                environments=rows.environments,
                split=rows.split,
                test=test,
                rule=rule,
                methods=methods,
                pca=columns.pca,
                impute=columns.impute,
                feature_names=rows.schema.feature_names,
                with_units=rows.schema.kind == "table",
                n_seeds=seeds,
                n_jobs=jobs or min(os.cpu_count() or 1, MOST_JOBS),
                watch=watch,
            )
        with working("Writing the report ..."):
            made = made_here(begin, seed=f"0 to {seeds - 1}", notes=notes)
            _write(result, list(files.values()), f"Methods on {data.name}", made)
    return Result(result.to_dict(), _text(result), files)


def _many_classes(rows: Any) -> list[str]:
    n_classes = len(set(rows.labels.tolist()))
    if n_classes <= MANY_CLASSES:
        return []
    return [f"the label has {n_classes} values, and each is taken for a class: is it one?"]


def _unused_split(rows: Any, test: str | None) -> list[str]:
    if rows.split is None or test in (None, "split"):
        return []
    return [f"the split of the file is not used, since the test is {test}."]


def _write(result: Any, files: list[Path], title: str, made: Any) -> None:
    from isrlearn.reporting import report

    page = report(result, title=title, made=made)
    with written_together(*files) as (table, figures, shown):
        result.to_csv(table)
        write_result(figures, page, result.to_dict())
        shown.write_text(page.html, encoding="utf-8")


def _text(result: Any) -> list[Any]:
    from rich.table import Table
    from rich.text import Text

    from isrlearn.leaderboard import HEADINGS, line

    table = Table(title=f"Test accuracy in percent (test: {result.test}, rule: {result.rule})")
    for place, name in enumerate(HEADINGS[:-1]):
        table.add_column(name, justify="right" if place else "left")
    for entry in result.entries:
        style = "bold" if entry.key == "isr" else None
        table.add_row(*(Text(visible(cell)) for cell in line(entry)[:-1]), style=style)
    return [
        table,
        "Average: plain over test rows. Training mix: groups weighted by their sizes in training.",
        "Intervals: 95 %, bootstrap over test rows. ISR minus this: worst groups, same rows.",
        *(f"note: {note}" for note in result.notes),
        *(f"Not fitted: {key}: {reason}" for key, reason in result.failed().items()),
        result.verdict,
    ]
