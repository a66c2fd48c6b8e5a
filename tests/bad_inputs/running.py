"""What a case is, and how it is run: what was raised, or printed, in words that stay the same."""

import contextlib
import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Case:
    """A mistake.

    Parameters
    ----------
    wrong : str
        What is wrong, in plain words.
    make : callable
        Makes the mistake; gets an empty folder.
    says : str
        A regular expression that the message must match.
    reason : str, default=""
        A regular expression of words of another library, which differ between its versions.
    theirs : bool, default=False
        Whether the whole message is of another library.
    """

    wrong: str
    make: Callable[[Path], Any]
    says: str
    reason: str = ""
    theirs: bool = False

    def __str__(self) -> str:
        return self.wrong


@dataclass(frozen=True)
class Outcome:
    """What the user gets: the class of the error, or the exit code; and the message.

    `shown` is the message without the words of other libraries.
    """

    kind: str
    message: str
    shown: str
    error: BaseException | None = None


def run(case: Case, folder: Path) -> Outcome:
    """Make a mistake in a folder; AssertionError if nothing says so."""
    shown = io.StringIO()
    with (
        warnings.catch_warnings(),
        contextlib.chdir(folder),
        contextlib.redirect_stderr(shown),
    ):
        warnings.simplefilter("ignore")
        try:
            case.make(folder)
        except SystemExit as end:
            return _outcome(case, folder, f"exit code {end.code}", shown.getvalue())
        except Exception as error:
            return _outcome(case, folder, type(error).__name__, str(error), error)
    raise AssertionError(f"{case}: nothing was refused")


def _outcome(case, folder, kind, message, error=None):
    """Return an outcome without what differs between machines and runs."""
    message = message.replace(f"{folder}/", "").replace(str(folder), "FOLDER")
    message = re.sub(r" at 0x[0-9a-fA-F]+", "", message)
    shown = re.sub(case.reason, "...", message) if case.reason else message
    return Outcome(kind, message, shown, error)
