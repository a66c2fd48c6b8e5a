"""Files that are there wholly or not at all."""

from collections.abc import Callable
from pathlib import Path
from typing import Any


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Let `write` make a file beside `path`, and put it in place when it is whole.

    Parameters
    ----------
    path : Path
        Where the file is wanted; what is there is replaced.
    write : callable
        Takes the path to write to.
    """
    unfinished = path.with_name(f".{path.name}.part")
    try:
        write(unfinished)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
