"""Files that workers read, each a part of the chunks."""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from isrlearn.exceptions import DataError
from isrlearn.io._open import Prepare, RowFile, open_file
from isrlearn.io._roles import Asked
from isrlearn.rows import Chunk


class FilePart(NamedTuple):
    """Some chunks of a file."""

    path: str
    changed: tuple[int, ...]
    """Tells the file from one that was there before: a worker that knows that one opens it anew."""
    asked: Asked
    part: int
    prepare: Prepare | None
    among: tuple[int, int]

    def chunks_of(self) -> Iterator[Chunk]:
        """Yield the chunks, on the worker."""
        file = _opened(self.path, self.changed, self.asked)
        rows = file.rows(self.part, prepare=self.prepare, among=self.among)
        return rows.chunks()


class Parts(NamedTuple):
    """Parts of files, and what all rows have in common."""

    parts: list[FilePart]
    n_features: int
    n_rows: int
    feature_names: tuple[str, ...] | None


def parts_of_files(
    paths: Any, asked: Asked, part: int, prepare: Prepare | None, n_tasks: int
) -> Parts:
    """Share out the chunks of files to tasks.

    Parameters
    ----------
    paths : path or sequence of path
        Files.
    asked : Asked
        What the user said about the columns.
    part : int
        Which rows.
    prepare : callable or None
        What is done to the features of a chunk first.
    n_tasks : int
        About how many tasks.
    """
    names = [Path(p) for p in ([paths] if isinstance(paths, str | Path) else paths)]
    if not names:
        raise DataError("no file is named: give at least one.")
    files = [_opened(str(p), _changed(p), asked) for p in names]
    widths = {file.rows(part, prepare=prepare).n_features for file in files}
    if len(widths) > 1:
        raise DataError(f"the files have {sorted(widths)} features: give files of the same rows.")
    step = max(1, sum(file.n_chunks for file in files) // n_tasks)
    parts = [
        FilePart(str(path), _changed(path), asked, part, prepare, (first, first + step))
        for path, file in zip(names, files, strict=True)
        for first in range(0, file.n_chunks, step)
    ]
    rows = files[0].rows(part, prepare=prepare)
    n_rows = sum(file.n_rows(part) for file in files)
    return Parts(parts, widths.pop(), n_rows, rows.feature_names)


def _changed(path: Path) -> tuple[int, ...]:
    """Return what is another once a file is replaced, whatever the clock says."""
    if not path.exists():
        raise DataError(f"{path} does not exist: check the path.")
    about = path.stat()
    return about.st_ino, about.st_size, about.st_mtime_ns


@lru_cache(maxsize=4)
def _opened(path: str, changed: tuple[int, ...], asked: Asked) -> RowFile:
    """Open a file once per worker: its labels are read as a whole."""
    return open_file(path, asked)
