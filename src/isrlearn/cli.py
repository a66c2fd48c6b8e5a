"""The command line: thin commands over functions that can be imported.

Nothing heavy is imported before a command runs, so that ``isrlearn --help`` answers at once.
"""

import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

try:
    from cyclopts import App, CycloptsError, Parameter
    from rich.console import Console
except ImportError:
    sys.exit("isrlearn: the command line needs the extra 'bench': pip install 'isrlearn[bench]'")

from isrlearn import __version__

USAGE_ERROR = 2

app = App(
    name="isrlearn",
    help=(
        "Invariant-feature Subspace Recovery: find the directions in which environments differ "
        "given the class, remove them, and fit or repair a linear model on the rest."
    ),
    version=__version__,
)


class UserError(Exception):
    """A mistake of the user: one line on standard error, exit code 2."""


@app.command
def demo(
    *,
    out: Path = Path("isrlearn-demo"),
    force: Annotated[bool, Parameter(negative="")] = False,
    seed: int = 0,
) -> None:
    """Show what ISR does on digits whose colour misleads.

    Fits a plain model and ISR on coloured digits (label: digit 5 or more). In training the colour
    agrees with the label, in the test it disagrees. Prints average and worst-group accuracy and
    draws the before/after picture.

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
    picture = _new_file(out, "before-after.png", force)
    console = Console()
    with console.status("Loading ..."):
        from isrlearn import demo as demonstration
    rows, test = _fit_with_progress(demonstration, seed, console)
    with console.status("Drawing ..."):
        demonstration.save_picture(rows, test, picture)
    console.print(_table(rows))
    console.print(
        "Colour agrees with the label in 9 of 10 training rows and in 1 of 10 test rows.\n"
        "Average: plain over the test rows; training mix: groups weighted as in training.\n"
        "Reweighted: the (label, colour) groups count the same in the fit."
    )
    console.print(f"Picture: {picture.resolve()}", soft_wrap=True)


def main() -> NoReturn:
    """Run the command line."""
    try:
        app(exit_on_error=False, print_error=False)
    except (CycloptsError, UserError, OSError) as error:
        message = " ".join(str(error).split())
        Console(stderr=True).print(f"isrlearn: {message}", soft_wrap=True, markup=False)
        sys.exit(USAGE_ERROR)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0)


def _new_file(folder: Path, name: str, force: bool) -> Path:
    """Create the folder and return the path of a file in it that may be written."""
    path = folder / name
    if path.exists() and not force:
        raise UserError(f"{path} exists: name another folder with --out, or add --force.")
    folder.mkdir(parents=True, exist_ok=True)
    return path


def _fit_with_progress(demonstration: Any, seed: int, console: Console) -> tuple[Any, Any]:
    from rich.progress import track

    train, test = demonstration.load(seed)
    names = demonstration.model_names()
    models = demonstration.run_models(train, test)
    steps = track(models, "Fitting", total=len(names), console=console, transient=True)
    return list(steps), test


def _table(rows: list[Any]) -> Any:
    from rich.table import Table

    table = Table(title="Accuracy on test rows in which colour disagrees with the label")
    table.add_column("model")
    for column in ("average", "training mix", "worst group"):
        table.add_column(column, justify="right")
    table.add_column("which is")
    for row in rows:
        label, environment = row.scores.worst_group
        figures = (row.scores.average, row.adjusted_average, row.scores.worst)
        where = f"label {label}, {environment}"
        table.add_row(row.name, *(f"{value:.3f}" for value in figures), where)
    return table
