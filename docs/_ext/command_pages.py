"""The command line as a page: what `--help` of each command prints."""

import io
from collections.abc import Iterator
from typing import Any

from rich.console import Console

from isrlearn.cli import app

WIDTH = 80
INTRODUCTION = """\
# Command line

`pip install ".[bench,io]"` puts the command `isrlearn` on the path; `make demo` puts it at
`.venv/bin/isrlearn`. [Start here](../start.md) uses it on a csv. Below is what
`isrlearn COMMAND --help` prints, taken from the program when this page was built. A mistake of the
caller is one line on standard error and exit code 2; Ctrl-C is exit code 130, and a line says what
was saved.
"""


def commands(group: Any = app, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield every command as the words that call it."""
    for name in group:
        if not name.startswith("-"):
            yield (*path, name)
            yield from commands(group[name], (*path, name))


def help_of(words: tuple[str, ...]) -> str:
    """Return the help of a command as plain text."""
    text = io.StringIO()
    app.help_print(list(words), console=Console(file=text, width=WIDTH, color_system=None))
    return "\n".join(line.rstrip() for line in text.getvalue().strip().splitlines())


def section(words: tuple[str, ...]) -> str:
    """Return a heading and the help below it."""
    called = " ".join(("isrlearn", *words))
    return f"{'#' * (len(words) + 1)} {called}\n\n```none\n{help_of(words)}\n```\n"


def page() -> str:
    """Return the page in Markdown."""
    return "\n".join([INTRODUCTION, *(section(words) for words in commands())])
