"""Write docs/bad-input.md: what users get for a bad input, out of the cases that the tests run."""

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE / "bad-input.md"
sys.path.insert(0, str(HERE.parent / "tests"))

from bad_inputs import GROUPS, Case, run  # noqa: E402

HEAD = """# Bad input

{count} mistakes, and what is said about each: the value, what is allowed, and the way out. The
tables are written by `python docs/bad_input_page.py` out of the cases that
`tests/test_bad_input_page.py` runs; a test fails if they differ. Where `...` stands in the message
about a damaged file, another library gives its reason in its own words.

In Python a mistake is a `ValueError` or a `TypeError`, or one of the classes in
`isrlearn.exceptions`, so that it can be told from other errors. On the command line it is one line
on standard error and the exit code 2, and nothing is written. A value is shown in at most a hundred
characters, and characters that would command a terminal are written out.

## Formulas in tables

A spreadsheet runs a cell that begins with `=`, `+`, `-` or `@`. A csv or parquet file with a cell
that begins with `=` in a column that is used is refused: it holds a formula and not its value.
Whatever is written as csv (predictions, tables of `compare`, `bench export` and `reproduce`) has an
apostrophe before text that begins with `=`, `+`, `-`, `@`, a tab or the end of a line, unless it is
a number or a single character; a spreadsheet shows such a cell as text. So has what begins in this
way behind `;`, `,`, `|`, a tab or the end of a line inside of a cell, where some spreadsheets split
it. Numbers stay as they are.
"""


def page() -> str:
    """Return the page."""
    count = sum(map(len, GROUPS.values()))
    parts = [HEAD.format(count=count), *(_table(title, cases) for title, cases in GROUPS.items())]
    return "\n".join(parts)


def _table(title: str, cases: list[Case]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        lines = [_line(case, Path(folder) / str(i)) for i, case in enumerate(cases)]
    rows = ["| What is wrong | What is said | Error |", "| --- | --- | --- |", *lines]
    return "\n".join([f"## {title}", "", *rows, ""])


def _line(case: Case, folder: Path) -> str:
    folder.mkdir()
    found = run(case, folder)
    said = next(line for line in reversed(found.shown.splitlines()) if line)
    if found.error is not None:
        said = " ".join(found.shown.split())
    return f"| {_escaped(case.wrong)} | {_code(said)} | {found.kind} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<").replace("__", "\\_\\_")


def _code(text: str) -> str:
    """Return text as code in a cell of a table, whatever characters it has."""
    fence = "``" if "`" in text else "`"
    space = " " if "`" in text else ""
    return f"{fence}{space}{text}{space}{fence}".replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
