"""The command line: thin commands over functions that can be imported.

Nothing heavy is imported before a command runs, so that ``isrlearn --help`` answers at once.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

try:
    from cyclopts import App, CycloptsError, Parameter
    from rich.console import Console
except ImportError:
    sys.exit("isrlearn: the command line needs the extra 'bench': pip install 'isrlearn[bench]'")

from isrlearn import __version__
from isrlearn._cli_bench import Seed, bench
from isrlearn._cli_data import compare, diagnose, predict
from isrlearn._cli_fit import fit
from isrlearn._cli_networks import extract, repair, train
from isrlearn._cli_reproduce import reproduce
from isrlearn._cli_support import (
    INTERRUPTED,
    USAGE_ERROR,
    Interrupted,
    UserError,
    make_folder,
    may_write,
)

_LEGEND = """\
Label: digit 5 or more. The colour agrees with it in 9 of 10 training rows and
in 1 of 10 test rows. A group is a label in a colour.
  average       plain, over the test rows
  training mix  groups weighted by their sizes in training
  ERM           logistic regression on all features
  ISR-Mean      the same without the two directions in which means differ most
  ISR           the same without all directions that tests show to differ
  reweighted    all groups count the same in the fit"""

app = App(
    name="isrlearn",
    help=(
        "Invariant-feature Subspace Recovery: find the directions in which environments differ "
        "given the class, remove them, and fit or repair a linear model on the rest."
    ),
    version=__version__,
)
for command in (compare, fit, predict, diagnose, train, extract, repair, bench, reproduce):
    app.command(command)


@app.command
def demo(
    *,
    out: Path = Path("isrlearn-demo"),
    force: Annotated[bool, Parameter(negative="")] = False,
    seed: Seed = 0,
) -> None:
    """Show what ISR does on digits whose colour misleads.

    Fits a plain model and ISR on coloured digits (label: digit 5 or more). In training the colour
    mostly agrees with the label, in the test it mostly disagrees. Prints average and worst-group
    accuracy and draws the before/after picture.

    Example: isrlearn demo --out my-demo

    Parameters
    ----------
    out
        Folder for the picture; it is created.
    force
        Overwrite a picture that is already there.
    seed
        Seed of the split, the label noise and the colours.
    """
    picture = may_write(out / "before-after.png", force)
    console = Console()
    with console.status("Loading ..."):
        from isrlearn import demo as demonstration
    rows, test = _fit_with_progress(demonstration, seed, console)
    with console.status("Drawing ..."):
        make_folder(out)
        demonstration.save_picture(rows, test, picture)
    console.print(_table(rows))
    console.print(_LEGEND)
    console.print(f"Picture: {picture.resolve()}", soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, default=None
        What follows ``isrlearn``; None takes it from the process.
    """
    try:
        app(arguments, exit_on_error=False, print_error=False)
    except (CycloptsError, UserError, OSError) as error:
        message = " ".join(str(error).split())
        Console(stderr=True).print(f"isrlearn: {message}", soft_wrap=True, markup=False)
        sys.exit(USAGE_ERROR)
    except (Interrupted, KeyboardInterrupt) as stop:
        what = str(stop) or "nothing half-written is left."
        Console(stderr=True).print(f"isrlearn: interrupted; {what}", soft_wrap=True, markup=False)
        sys.exit(INTERRUPTED)
    sys.exit(0)


def _fit_with_progress(demonstration: Any, seed: int, console: Console) -> tuple[Any, Any]:
    from rich.progress import track

    train, test = demonstration.load(seed)
    names = demonstration.model_names()
    models = demonstration.run_models(train, test, seed)
    steps = track(models, "Fitting", total=len(names), console=console, transient=True)
    return list(steps), test


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
