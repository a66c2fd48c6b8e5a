"""``isrlearn demo``: what ISR does, in a minute."""

import time
from pathlib import Path
from typing import Annotated, Any

from isrlearn._cli_options import Flag, Force, Seed
from isrlearn._cli_pages import made_here, write_report
from isrlearn._cli_progress import watching, working
from isrlearn._cli_support import Result, all_or_nothing, answering, may_write

_LEGEND = """\
Label: digit 5 or more. The colour agrees with it in 9 of 10 training rows and
in 1 of 10 test rows. A group is a label in a colour.
  average       plain, over the test rows
  training mix  groups weighted by their sizes in training
  ERM           logistic regression on all features
  ISR-Mean      the same without the two directions in which means differ most
  ISR           the same without all directions that tests show to differ
  reweighted    all groups count the same in the fit"""


@answering
def demo(
    *,
    out: Path = Path("isrlearn-demo"),
    geometry: Annotated[bool, Flag] = False,
    force: Force = False,
    seed: Seed = 0,
) -> Result:
    """Show what ISR does on digits whose colour misleads.

    Fits a plain model and ISR on coloured digits (label: digit 5 or more). In training the colour
    mostly agrees with the label, in the test it mostly disagrees. Prints average and worst-group
    accuracy and writes a report: what the model leaned on, what was removed, what it changed.

    Example: isrlearn demo --geometry --out my-demo

    Parameters
    ----------
    out
        Folder for report.html and result.json; it is created.
    geometry
        Add the paper's two pictures of the method to the report; they can be turned.
    """
    files = {"report": out / "report.html", "result": out / "result.json"}
    for path in files.values():
        may_write(path, force)
    begin = time.monotonic()
    with working("Loading ..."):
        from isrlearn import demo as demonstration
    with all_or_nothing():
        rows, train, test = _fitted(demonstration, seed)
        with working("Writing the report ..."):
            made = made_here(begin, seed=f"{seed}, of the split, the noise and the tests")
            page = demonstration.make_report(
                rows, train, test, seed=seed, made=made, geometry=geometry
            )
            figures = {"seed": seed, "methods": [_figures(row) for row in rows]}
            write_report(page, figures, **files)
    return Result(figures, [_table(rows), _LEGEND], files)


def _fitted(demonstration: Any, seed: int) -> tuple[list[Any], Any, Any]:
    train, test = demonstration.load(seed)
    rows: list[Any] = []
    n_models = len(demonstration.model_names())
    with watching() as watch:
        for row in demonstration.run_models(train, test, seed):
            rows.append(row)
            watch("Fitting", len(rows), n_models)
    return rows, train, test


def _figures(row: Any) -> dict[str, Any]:
    label, environment = row.scores.worst_group
    return {
        "method": row.name,
        "average": row.scores.average,
        "adjusted_average": row.adjusted_average,
        "worst_group": row.scores.worst,
        "worst": {"label": label, "environment": environment},
    }


def _table(rows: list[Any]) -> Any:
    from rich.table import Table

    table = Table(title="Accuracy on a test set whose colours mostly disagree with the label")
    table.add_column("model", no_wrap=True)
    for column in ("average", "training mix", "worst group"):
        table.add_column(column, justify="right")
    table.add_column("which is")
    for row in rows:
        label, environment = row.scores.worst_group
        figures = (row.scores.average, row.adjusted_average, row.scores.worst)
        where = f"label {label}, {environment}"
        table.add_row(row.name, *(f"{value:.3f}" for value in figures), where)
    return table
