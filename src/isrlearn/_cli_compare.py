"""``isrlearn compare``: every method on a user's file."""

import os
import shlex
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from isrlearn._cli_data import AS_FOUND, Columns, option_words
from isrlearn._cli_options import Data, Force, Jobs, Names, Rule, Seeds, Several
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
from isrlearn.display import visible

MANY_CLASSES = 20
MOST_JOBS = 8  # more would wait for the slowest method
SEEDS = 3
FILES = {"table": "table.csv", "result": "result.json", "report": "report.html"}


@answering
def compare(
    data: Data,
    /,
    *,
    columns: Columns = AS_FOUND,
    test: Literal["split", "random", "leave-one-environment-out", "leave-one-group-out"]
    | None = None,
    groups: Names = None,
    rule: Rule = "worst-group",
    methods: Annotated[list[str] | None, Several] = None,
    seeds: Seeds = SEEDS,
    jobs: Jobs = None,
    out: Path = Path("isrlearn-compare"),
    force: Force = False,
) -> Result:
    """Compare ISR with its rivals on your data, to see which one to ship.

    Every method is fitted on the same rows and chooses its setting by the same rule; test labels
    are looked at once, at the end. Prints the table and a recommendation, and writes table.csv,
    result.json and report.html, a page to send to a colleague.

    Example: isrlearn compare patients.csv --label disease --environment hospital

    Example: isrlearn compare patients.csv --label disease --environment hospital --test
    leave-one-environment-out

    Parameters
    ----------
    test
        Which question is asked. split, random: environments like these; as the file says, or 60,
        20 and 20 % of every group. leave-one-environment-out: a new environment; each is the test
        once. leave-one-group-out: a group without training rows; each (class, environment) group is
        taken out of training in turn. If left out: the file's split, or random.
    groups
        With leave-one-group-out, a group to leave out, such as "yes, west"; may be given more than
        once. If left out: every group.
    methods
        Some methods only: erm, class-reweighted, group-reweighted, subsampled, group-dro, dfr,
        leace, leace-class, inlp, coral, v-rex, irm, isr (its default), isr-chosen (on validation
        rows), or my_module:MyEstimator.
    out
        Folder for the table, the result and the report; it is created.
    """
    must_exist(data)
    inputs = files_read(data)
    files = {n: may_write(out / file, force, reads=inputs) for n, file in FILES.items()}
    begin = time.monotonic()
    with working("Loading ..."):
        from isrlearn.leaderboard import compare as run, rounds_in_words
    with all_or_nothing():
        with working(f"Reading {data} ..."):
            rows = columns.read(data)
        rows.check_for_fit()
        division = rows.labels, rows.environments, rows.split, test, seeds, rule, groups
        cost = rounds_in_words(*division, methods)
        notes = [*rows.notes, *_many_classes(rows), *_unused_split(rows, test)]
        notes += [cost] if cost else []
        tell(notes)
        with watching() as watch:
            result = run(
                rows.features,
                rows.labels,
                environments=rows.environments,
                split=rows.split,
                test=test,
                groups=groups,
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
            words = columns.words(data)
            same = _same_options(rule, methods, seeds)
            steps = _next_steps(result, words, same, out, rows)
            _write(result, list(files.values()), f"Methods on {data.name}", made, steps)
    figures = result.to_dict()
    figures |= {"notes": [*notes, *figures["notes"]], "steps": steps}
    return Result(figures, [*_text(result), *steps], files)


def _many_classes(rows: Any) -> list[str]:
    n_classes = len(set(rows.labels.tolist()))
    if n_classes <= MANY_CLASSES:
        return []
    return [f"the label has {n_classes} values, and each is taken for a class: is it one?"]


def _unused_split(rows: Any, test: str | None) -> list[str]:
    if rows.split is None or test in (None, "split", "leave-one-group-out"):
        return []
    return [f"the split of the file is not used, since the test is {test}."]


def _write(result: Any, files: list[Path], title: str, made: Any, steps: list[str]) -> None:
    from isrlearn.reporting import report

    page = report(result, title=title, made=made)
    page = replace(page, verdict=replace(page.verdict, steps=tuple(steps)))
    with written_together(*files) as (table, figures, shown):
        result.to_csv(table)
        write_result(figures, page, result.to_dict())
        shown.write_text(page.html, encoding="utf-8")


def _text(result: Any) -> list[Any]:
    from rich.table import Table
    from rich.text import Text

    from isrlearn.leaderboard import as_table, averages_in_words

    headings, lines = as_table(result.entries)
    table = Table(title=f"Test accuracy in percent (test: {result.test}, rule: {result.rule})")
    for place, name in enumerate(headings[:-1]):
        table.add_column(name, justify="right" if place else "left")
    for entry, line in zip(result.entries, lines, strict=True):
        style = "bold" if entry.key == result.recommendation.key else None
        table.add_row(*(Text(visible(cell)) for cell in line[:-1]), style=style)
    return [
        table,
        averages_in_words(headings),
        f"{_means(result)}ISR minus this: worst groups, same rows.",
        "Intervals: 95 %, bootstrap over test rows. An estimate may lie near the lower end of its "
        "interval: the worst of several groups is lower in a sample than in truth.",
        *(f"note: {note}" for note in result.notes),
        *(f"Not fitted: {key}: {reason}" for key, reason in result.failed().items()),
        result.verdict,
    ]


def _means(result: Any) -> str:
    """Say what the worst group is a mean of."""
    over = ["seeds"] * (result.n_seeds > 1)
    over += ["groups left out"] * (result.test == "leave-one-group-out")
    return f"Worst group: mean over {' and '.join(over)}. " if over else ""


def _same_options(rule: str, methods: list[str] | None, seeds: int) -> str:
    """Return the options that another test of the same methods has, too."""
    given = [("rule", rule if rule != "worst-group" else None)]
    given += [("methods", name) for name in methods or ()]
    given += [("seeds", str(seeds) if seeds != SEEDS else None)]
    return option_words(given)


def _next_steps(result: Any, words: str, same: str, out: Path, rows: Any) -> list[str]:
    """Return the commands that ship what is recommended, and that ask the other question."""
    from isrlearn.leaderboard import HERE, other_question

    steps = [_shipping(result, words)]
    asked = other_question(result, rows.labels, rows.environments, rows.split)
    if asked is not None:
        question, test = asked
        folder = out.with_name(f"{out.name}-{'like-these' if question == HERE else 'unseen'}")
        test = f" --test {test}" if test else ""
        other = f"isrlearn compare {words}{test}{same} --out {shlex.quote(str(folder))}"
        steps.append(f"For {question}: {other}")
    return steps


def _shipping(result: Any, words: str) -> str:
    found = result.recommendation
    model = next(o for o in result.outcomes if o.key == found.key)
    if model.weight is None:
        return (
            f"{found.title} is not linear, and isrlearn fit ships linear models only: fit it in "
            "Python."
        )
    first = ", the first of these" if found.tied else ""
    command = f"isrlearn fit {words} {found.fit_options} --out model.safetensors"
    return f"To ship {found.title}{first}: {command}"
