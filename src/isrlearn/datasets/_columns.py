"""Columns of a table of rows, with errors that name the file, the line and the value."""

import csv
import io
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from isrlearn._limits import refuse_columns, refuse_long_lines, refuse_long_text
from isrlearn.datasets._examples import SPLITS
from isrlearn.display import brief
from isrlearn.exceptions import DataError
from isrlearn.typing import IntArray


class Table:
    """A csv file whose columns are turned into codes."""

    def __init__(self, path: Path | str, text: str, *, first_line: int = 1, **dialect: Any) -> None:
        # The field limit of the csv module is far above any path or sentence: a longer field is
        # a quote that was never closed.
        reader = csv.DictReader(io.StringIO(text, newline=""), **dialect)
        self.path = path
        self.rows: list[dict[str, str]] = []
        self.lines: list[int] = []
        try:
            refuse_columns(len(reader.fieldnames or ()))
            for row in reader:
                self.rows.append(row)
                self.lines.append(reader.line_num + first_line - 1)
        except (csv.Error, ValueError) as error:
            raise DataError(f"{path}, line {reader.line_num}: {error}.") from error
        self.columns = list(reader.fieldnames or [])
        self._refuse_odd()

    @classmethod
    def read(cls, path: Path, **dialect: Any) -> "Table":
        """Read a file."""
        return cls(path, read_text(path), **dialect)

    def __len__(self) -> int:
        return len(self.rows)

    def texts(self, column: str) -> list[str]:
        """Return a column as it is."""
        self.require(column)
        return [row[column] for row in self.rows]

    def codes(self, column: str, allowed: Mapping[str, int]) -> IntArray:
        """Return a column through a table of values, such as ``{"0": 0, "1": 1}``."""
        return self._convert(column, lambda text: allowed[text.strip()], ", ".join(allowed))

    def require(self, *columns: str) -> None:
        """Raise `DataError` unless all columns are there."""
        for column in columns:
            if column not in self.columns:
                raise DataError(
                    f"{self.path} has no column {brief(column)}; it has {', '.join(self.columns)}."
                )

    def _convert(self, column: str, convert: Callable[[str], int], allowed: str) -> IntArray:
        codes = []
        for line, text in zip(self.lines, self.texts(column), strict=True):
            try:
                codes.append(convert(text))
            except (KeyError, ValueError) as error:
                raise DataError(
                    f"{self.path}, line {line}: {column} is {brief(text)}, which must be one of "
                    f"{allowed}."
                ) from error
        return np.array(codes, dtype=np.intp)

    def line_of(self, row: int) -> int:
        """Return the line of a row in the file."""
        return self.lines[row]

    def _refuse_odd(self) -> None:
        twice = [name for name, count in Counter(self.columns).items() if count > 1]
        if twice:
            raise DataError(f"{self.path} has the column {brief(min(twice))} more than once.")
        for line, row in zip(self.lines, self.rows, strict=True):
            if None in row or None in row.values():
                raise DataError(
                    f"{self.path}, line {line} has {_width(row)} fields where the first line has "
                    f"{len(self.columns)}."
                )


def read_text(path: Path) -> str:
    """Return the text of a file, UTF-8 with or without a byte-order mark."""
    try:
        refuse_long_text(path)
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise DataError(f"{path} cannot be read as a table ({error}): cut it.") from error
    return as_text(data, path)


def as_text(data: bytes, path: Path | str) -> str:
    """Return bytes as text, UTF-8 with or without a byte-order mark.

    Parameters
    ----------
    data : bytes
        Of a table.
    path : path or str
        Where they were read, for the message.
    """
    try:
        refuse_long_lines(data)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text ({error.reason}): save it as UTF-8.") from error
    except ValueError as error:
        raise DataError(f"{path} cannot be read as a table ({error}): cut it.") from error


def splits_by_number_or_name() -> dict[str, int]:
    """Return what may stand in a column of splits."""
    names = {name: place for place, name in enumerate(SPLITS)}
    return names | {"val": 1, "valid": 1, "dev": 1} | {str(i): i for i in range(len(SPLITS))}


def encode(values: Sequence[str]) -> tuple[tuple[str, ...], IntArray]:
    """Return the sorted names of a column and the place of each value; "" becomes -1."""
    names = tuple(sorted({v for v in values if v}, key=_numbers_first))
    place = {name: i for i, name in enumerate(names)} | {"": -1}
    return names, np.array([place[v] for v in values], dtype=np.intp)


def first_there(candidates: Iterator[Path] | Sequence[Path]) -> Path | None:
    """Return the first path that exists."""
    return next((path for path in candidates if path.exists()), None)


def _numbers_first(value: str) -> tuple[bool, float, str]:
    try:
        number = float(value)
    except ValueError:
        return True, 0.0, value
    return (False, number, value) if math.isfinite(number) else (True, 0.0, value)


def _width(row: Mapping[Any, Any]) -> int:
    extra = row.get(None) or []
    return sum(value is not None for key, value in row.items() if key is not None) + len(extra)
