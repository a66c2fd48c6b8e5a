"""The command line: thin commands over functions that can be imported.

Nothing heavy is imported before a command runs, so that ``isrlearn --help`` answers at once.
"""

import sys
from collections.abc import Sequence
from typing import NoReturn

try:  # everything that takes time: Ctrl-C may come here already
    from cyclopts import CycloptsError
    from cyclopts.exceptions import MissingArgumentError, UnusedCliTokensError

    from isrlearn._cli_app import app
    from isrlearn._cli_signals import Interrupted, ctrl_c_wins, stop_code
    from isrlearn._cli_support import (
        READER_GONE,
        USAGE_ERROR,
        ReaderGone,
        UserError,
        mute,
        note,
        warnings_as_notes,
    )
    from isrlearn.display import visible
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("cyclopts", "rich"):
        raise
    needed = "the command line needs the extra 'bench': pip install 'isrlearn[bench]'"
    sys.stderr.write(f"isrlearn: {needed}\n")
    sys.exit(2)
except KeyboardInterrupt:
    sys.stderr.write("isrlearn: interrupted; nothing was written.\n")
    exec("")  # see main
    sys.exit(130)

__all__ = ["app", "main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, default=None
        What follows ``isrlearn``; None takes it from the process.
    """
    try:
        with ctrl_c_wins(), warnings_as_notes():
            app(arguments, exit_on_error=False, print_error=False)
    except ReaderGone:
        mute()
        sys.exit(READER_GONE)
    except (CycloptsError, UserError, OSError) as error:
        note(f"isrlearn: {_words(error)}")
        sys.exit(USAGE_ERROR)
    except MemoryError as error:
        note(f"isrlearn: {_too_large(error)}")
        sys.exit(USAGE_ERROR)
    except (Interrupted, KeyboardInterrupt) as stop:
        note(f"isrlearn: interrupted; {str(stop) or 'nothing half-written is left.'}")
        # Python notes a Ctrl-C that came through code made of a string, as that of data classes is,
        # and would end by the signal instead; the next such code lets it forget.
        exec("")
        sys.exit(stop_code())
    sys.exit(0)


def _too_large(error: MemoryError) -> str:
    reason = " ".join(str(error).split())
    return (
        f"not enough memory for this{f' ({reason:.200})' if reason else ''}. What was there before "
        "is as it was: give fewer rows or columns, or take a machine with more memory."
    )


def _words(error: Exception) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        return (
            f"{error.filename or 'a file'}: {error.strerror}. What was there before is as it was: "
            "make room, look at the rights of the folder, or name another place."
        )
    if isinstance(error, UnusedCliTokensError):
        tokens = " ".join(error.unused_tokens or [])
        return (
            f"unexpected {visible(tokens):.100}: see --help for the arguments. To give an option "
            "several values, repeat it, as in --drop age --drop weight."
        )
    if isinstance(error, MissingArgumentError):
        text = text.replace("requires an argument.", "is missing: see --help for an example.")
        if "--html" in sys.argv and '" parameter --' not in text:
            text += " Name the file before --html, which takes what follows."
    return text
