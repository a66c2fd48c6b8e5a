"""What a file may claim: sizes are compared with its bytes before memory is taken for them.

A file is written by anyone. What it says of itself (rows, shapes, sizes after decompression) is
believed only where its own bytes could hold it; the limits here are the only ones, for all readers.
"""

import stat
from pathlib import Path
from typing import Final

FREE_BYTES: Final = 2**24
FREE_ROWS: Final = 2**18
EXPANSION: Final = 256
LARGEST_TEXT: Final = 2**31
LARGEST_JSON: Final = 2**26
LONGEST_LINE: Final = 2**24
MOST_COLUMNS: Final = 100_000
ORDINARY_NAME: Final = 64
NAMES_EXPANSION: Final = 32
LONGEST_NAME: Final = 1000
MOST_CATEGORIES: Final = 1000
MOST_NAMES: Final = 2**26


def refuse_bytes(n_bytes: int, path: Path) -> None:
    """Raise `ValueError` if arrays are larger than a file of this size is believed to hold.

    Parameters
    ----------
    n_bytes : int
        What the arrays would take in memory: at most 16 MiB and 256 times the file.
    path : Path
        The file.
    """
    size = path.stat().st_size
    if n_bytes > FREE_BYTES + EXPANSION * size:
        raise ValueError(
            f"its {size} bytes claim to hold {n_bytes} bytes of arrays, which is more than "
            f"{EXPANSION} times as much; if that is meant, it must be saved without compression"
        )


def refuse_irregular(path: Path, *, links: bool = True) -> None:
    """Raise `ValueError` for a folder, a pipe or a device, which may have no end.

    Parameters
    ----------
    path : Path
        What stands in a folder that somebody else filled.
    links : bool, default=True
        Whether a symbolic link to a file counts as one.
    """
    if not stat.S_ISREG(path.stat(follow_symlinks=links).st_mode):
        raise ValueError("it is no regular file")


def refuse_rows(n_rows: int, path: Path) -> None:
    """Raise `ValueError` for more rows than a file of this size is believed to hold.

    Parameters
    ----------
    n_rows : int
        At most 262 144 rows and one for each byte of the file.
    path : Path
        The file.
    """
    size = path.stat().st_size
    if n_rows > FREE_ROWS + size:
        raise ValueError(f"its {size} bytes claim to hold {n_rows} rows")


def refuse_wide_names(n_names: int, longest: int, path: Path) -> None:
    """Raise `ValueError` if one long name would widen all others beyond what a file may become.

    An array of strings gives every one the room of the longest, four bytes for each character.

    Parameters
    ----------
    n_names : int
        Labels, one for each row.
    longest : int
        Characters of the longest: 64 are always good, and more if the array takes at most 16 MiB
        and 32 times the file. It is copied a few times, so less is allowed than of numbers.
    path : Path
        The file or folder.
    """
    most = _most_bytes(path) // (4 * max(n_names, 1))
    if longest > max(ORDINARY_NAME, most):
        raise ValueError(
            f"{longest} characters are too many for {n_names} values in a file of this size, each "
            f"of which takes the room of the longest: give at most {max(ORDINARY_NAME, most)}"
        )


def _most_bytes(path: Path) -> int:
    folder = path.is_dir()
    size = sum(p.lstat().st_size for p in path.iterdir()) if folder else path.stat().st_size
    return FREE_BYTES + NAMES_EXPANSION * size


def refuse_long_text(path: Path, largest: int = LARGEST_TEXT) -> None:
    """Raise `ValueError` for a file of text that is not read as a whole.

    Parameters
    ----------
    path : Path
        The file.
    largest : int, default=2**31
        Bytes.
    """
    refuse_irregular(path)
    size = path.stat().st_size
    if size > largest:
        raise ValueError(f"its {size} bytes are more than the {largest} that are read as one text")


def refuse_long_lines(data: bytes) -> None:
    """Raise `ValueError` if a line is longer than 16 MiB: its fields would be read at once."""
    begin = 0
    while begin + LONGEST_LINE < len(data):
        window = begin, begin + LONGEST_LINE
        end = max(data.rfind(b"\n", *window), data.rfind(b"\r", *window))
        if end < 0:
            line = data.count(b"\n", 0, begin) + 1
            raise ValueError(f"line {line} is longer than {LONGEST_LINE} bytes")
        begin = end + 1


def refuse_columns(n_columns: int) -> None:
    """Raise `ValueError` for more columns than a table may have.

    Parameters
    ----------
    n_columns : int
        At most 100 000.
    """
    if n_columns > MOST_COLUMNS:
        raise ValueError(
            f"it has {n_columns} columns and a table may have {MOST_COLUMNS}: save the numbers as "
            "the array 'features' of an npz file"
        )
