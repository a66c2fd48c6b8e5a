"""``isrlearn compare``, ``predict`` and ``diagnose``: commands on a file of rows."""

import csv
import io
import json
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Console

from isrlearn._cli_bench import Count, Flag, Seed, Several, Whole
from isrlearn._cli_support import (
    UserError,
    all_or_nothing,
    make_folder,
    may_write,
    say,
    watching,
)

WIDE = 118
MANY_CLASSES = 20
MOST_JOBS = 8  # more would wait for the slowest method
Rule = Literal["worst-group", "average", "leave-one-environment-out"]
Names = Annotated[list[str] | None, Parameter(consume_multiple=False, negative="")]


@Parameter(name="*")
@dataclass(frozen=True)
class Columns:
    """What is what in the file.

    Parameters
    ----------
    label
        Column of the class labels; in .npz and .safetensors another array than labels.
    environment
        Column of the environments, such as the hospital; given more than once, the columns are
        crossed. In .npz and .safetensors another array than environments.
    split
        Column that says train, validation or test; a column called split is found by itself.
    drop
        A column that is not a feature, such as an ID; may be given more than once.
    impute
        median: replace missing values by the median of the training rows.
    pca
        Keep at most so many principal components of the features.
    """

    label: str | None = None
    environment: Names = None
    split: str | None = None
    drop: Names = None
    impute: Literal["median"] | None = None
    pca: Count = 100

    def read(self, file: Path) -> Any:
        """Read the file."""
        from isrlearn.io import read_data

        return read_data(
            file,
            label=self.label,
            environment=self.environment or (),
            split=self.split,
            drop=self.drop or (),
        )

    def open(self, file: Path) -> Any:
        """Open the file to be read in chunks."""
        from isrlearn.io._open import open_file
        from isrlearn.io._roles import asked_for

        asked = asked_for(self.label, self.environment or (), self.split, self.drop or ())
        return open_file(file, asked)


AS_FOUND = Columns()


def compare(
    data: Path,
    /,
    *,
    columns: Columns = AS_FOUND,
    test: Literal["split", "random", "leave-one-environment-out"] | None = None,
    rule: Rule = "worst-group",
    methods: Annotated[list[str] | None, Several] = None,
    seeds: Count = 3,
    jobs: Whole = None,
    out: Path = Path("isrlearn-compare"),
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
    force: Annotated[bool, Flag] = False,
) -> None:
    """Compare ISR with its rivals on your data, to see which one to ship.

    Every method is fitted on the same rows and chooses its setting by the same rule; test labels
    are looked at once, at the end. Prints the table and writes table.csv, result.json, page.html.

    Example: isrlearn compare patients.csv --label disease --environment hospital

    Parameters
    ----------
    data
        A .csv, .tsv, .parquet, .npz or .safetensors file, or a folder that isrlearn extract wrote.
    columns
        What is what in the file.
    test
        split: as the file says. random: 60, 20 and 20 % of every group. leave-one-environment-out:
        every environment is the test once. If left out: the file's split, or random.
    rule
        How each method chooses its setting: the worst group of validation rows, their average, or
        the training environments left out one by one.
    methods
        Some methods only: erm, class-reweighted, group-reweighted, subsampled, group-dro, dfr,
        leace, leace-class, inlp, coral, v-rex, irm, isr, or my_module:MyEstimator.
    seeds
        How often what is drawn at random is drawn.
    jobs
        Processes; all cores, at most 8, if left out.
    out
        Folder for the table and the page; it is created.
    as_json
        Print the result as json instead of a table.
    force
        Overwrite what is there.
    """
    must_exist(data)
    for name in ("table.csv", "result.json", "page.html"):
        may_write(out / name, force)
    console = Console(stderr=as_json)
    with console.status("Loading ..."):
        from isrlearn.leaderboard import compare as run
    with all_or_nothing():
        rows = columns.read(data)
        rows.check_for_fit()
        notes = [*rows.notes, *_many_classes(rows), *_unused_split(rows, test)]
        tell(notes, quiet=as_json)
        with watching(console) as watch:
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
        _write(result, out, data, notes)
    if as_json:
        say(json.dumps(result.to_dict(), indent=1))
        return
    _show(result)
    say(f"Page: {(out / 'page.html').resolve()}")


def predict(
    model: Path,
    data: Path,
    /,
    *,
    out: Path,
    force: Annotated[bool, Flag] = False,
) -> None:
    """Predict the rows of a new file with a saved model.

    Columns are found by their names; environments are not needed. Where the file has labels, the
    share of right predictions is printed.

    Example: isrlearn predict model.safetensors new.csv --out predictions.csv

    Parameters
    ----------
    model
        What isrlearn fit wrote.
    data
        A file with the same columns.
    out
        A .csv: row number, prediction and the probability of each class.
    force
        Overwrite what is there.
    """
    if out.suffix != ".csv":
        raise UserError(f"--out {out} must end in .csv.")
    may_write(out, force)
    must_exist(data)
    if model.suffix != ".safetensors":
        raise UserError(f"{model} is not a model: first the model, then the file of rows.")
    from isrlearn._files import write_whole
    from isrlearn.io import LinearModel, read_data

    with all_or_nothing():
        fitted = LinearModel.load(model)
        rows = read_data(data, schema=fitted.schema)
        tell(rows.notes)
        predicted = fitted.predict(rows.features)
        text = _predictions(predicted, fitted.predict_proba(rows.features), fitted.classes)
        make_folder(out.parent)
        write_whole(out, lambda path: path.write_text(text, encoding="utf-8", newline=""))
    if rows.labels is not None:
        right = (rows.labels.astype(str) == predicted.astype(str)).mean()
        say(f"Right: {right:.3f} of {len(predicted)} rows.")
    say(f"Predictions: {out.resolve()}")


def diagnose(
    data: Path,
    /,
    *,
    columns: Columns = AS_FOUND,
    seed: Seed = 0,
    out: Path | None = None,
    force: Annotated[bool, Flag] = False,
) -> None:
    """Say what differs between environments, how sure it is, and which assumption fails.

    Example: isrlearn diagnose patients.csv --label disease --environment hospital

    Parameters
    ----------
    data
        A .csv, .tsv, .parquet, .npz or .safetensors file, or a folder that isrlearn extract wrote.
    columns
        What is what in the file.
    seed
        Of the tests.
    out
        An .html file for the diagnosis; printed only if left out.
    force
        Overwrite what is there.
    """
    must_exist(data)
    if out is not None:
        if out.suffix != ".html":
            raise UserError(f"--out {out} must end in .html.")
        may_write(out, force)
    console = Console()
    with console.status("Loading ..."):
        from isrlearn._files import write_whole
        from isrlearn.leaderboard import diagnose_data
    with all_or_nothing():
        rows = columns.read(data)
        tell(rows.notes)
        with console.status("Testing ..."):
            found, prepared = diagnose_data(rows, pca=columns.pca, impute=columns.impute, seed=seed)
        say(str(found))
        say(f"Features: {prepared}.")
        if out is not None:
            make_folder(out.parent)
            html = f"<!doctype html><meta charset='utf-8'>{found._repr_html_()}"
            write_whole(out, lambda path: path.write_text(html, encoding="utf-8"))
            say(f"Diagnosis: {out.resolve()}")


def must_exist(data: Path) -> None:
    """Refuse a path that is not there before anything heavy is imported."""
    if not data.exists():
        raise UserError(f"{data} does not exist: check the path.")


def _many_classes(rows: Any) -> list[str]:
    n_classes = len(set(rows.labels.tolist()))
    if n_classes <= MANY_CLASSES:
        return []
    return [f"the label has {n_classes} values, and each is taken for a class: is it one?"]


def _unused_split(rows: Any, test: str | None) -> list[str]:
    if rows.split is None or test in (None, "split"):
        return []
    return [f"the split of the file is not used, since the test is {test}."]


def tell(notes: Sequence[str], *, quiet: bool = False) -> None:
    """Print notes on standard error."""
    console = Console(stderr=True)
    for note in () if quiet else notes:
        console.print(f"note: {note}", soft_wrap=True, highlight=False, markup=False)


def _write(result: Any, out: Path, data: Path, notes: Sequence[str]) -> None:
    from isrlearn._files import write_whole
    from isrlearn.leaderboard import page

    make_folder(out)
    result.to_csv(out / "table.csv")
    command = "isrlearn " + shlex.join(sys.argv[1:])
    html = page(result, title=f"Methods on {data.name}", command=command, notes=notes)
    text = json.dumps(result.to_dict(), indent=1)
    write_whole(out / "result.json", lambda path: path.write_text(text, encoding="utf-8"))
    write_whole(out / "page.html", lambda path: path.write_text(html, encoding="utf-8"))


def _show(result: Any) -> None:
    from rich.table import Table

    from isrlearn.leaderboard import HEADINGS, line

    console = Console()
    if not console.is_terminal:  # a file has no edge to wrap at
        console = Console(width=WIDE)
    table = Table(title=f"Test accuracy in percent (test: {result.test}, rule: {result.rule})")
    for place, name in enumerate(HEADINGS[:-1]):
        table.add_column(name, justify="right" if place else "left")
    for entry in result.entries:
        style = "bold" if entry.key == "isr" else None
        table.add_row(*line(entry)[:-1], style=style)
    console.print(table)
    say("Average: plain over test rows. Training mix: groups weighted by their sizes in training.")
    say("Intervals: 95 %, bootstrap over test rows. ISR minus this: worst groups, same rows.")
    for note in result.notes:
        say(f"note: {note}")
    for key, reason in result.failed().items():
        say(f"Not fitted: {key}: {reason}")
    say(result.verdict)


def _predictions(predicted: Any, shares: Any, classes: Any) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["row", "prediction", *(f"probability {c}" for c in classes.tolist())])
    for row, (label, values) in enumerate(zip(predicted.tolist(), shares.tolist(), strict=True)):
        writer.writerow([row, label, *(f"{value:.6g}" for value in values)])
    return text.getvalue()
