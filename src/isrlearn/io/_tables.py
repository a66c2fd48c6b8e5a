"""Columns of a csv or parquet file, before it is known what they are for."""

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from isrlearn._limits import refuse_columns, refuse_long_lines, refuse_long_text
from isrlearn.display import brief
from isrlearn.exceptions import DataError
from isrlearn.io._parquet import flat_names, opened_parquet, read_columns
from isrlearn.io._values import (
    TRUTH,
    Texts,
    is_formula,
    is_truth,
    known_text,
    number_text,
    refuse_formula,
)
from isrlearn.typing import Float64Array, IntArray

SEPARATORS: Final = (",", ";", "\t")
ROWS_TO_SNIFF: Final = 20
# pandas writes its index into files, and names a column without a name when it reads one.
INDEX: Final = re.compile(r"|__index_level_\d+__|Unnamed: \d+")


@dataclass(frozen=True, eq=False)
class TextCells:
    """A column of text.

    Parameters
    ----------
    texts : sequence of str or None
        One per row, without blanks around it; None where the value is missing.
    """

    texts: Texts

    @cached_property
    def numbers(self) -> Float64Array | None:
        """Values as numbers, 1 and 0 for true and false; None if some text is no number."""
        try:
            numbers = np.array(self.texts, dtype=np.float64)
        except ValueError:
            return self._truth()
        # float("1_0") is 10.0
        return None if any("_" in text for text in self.texts if text) else numbers

    def _truth(self) -> Float64Array | None:
        if not is_truth({text for text in self.texts if text is not None}):
            return None
        return np.array([TRUTH.get((text or "").casefold(), np.nan) for text in self.texts])


@dataclass(frozen=True, eq=False)
class NumberCells:
    """A column of numbers.

    Parameters
    ----------
    numbers : ndarray of shape (n,)
        NaN where the value is missing.
    integers : ndarray of shape (n,), default=None
        The same, exact, if the column is of integers.
    """

    numbers: Float64Array
    integers: IntArray | None = None

    @cached_property
    def texts(self) -> Texts:
        """Values as text; None where the value is missing."""
        if self.integers is None:
            return [number_text(number) for number in self.numbers.tolist()]
        missing = np.isnan(self.numbers).tolist()
        pairs = zip(self.integers.tolist(), missing, strict=True)
        return [None if gap else str(number) for number, gap in pairs]


@dataclass(frozen=True, eq=False)
class OtherCells:
    """A column that can name classes or environments, but cannot be a feature.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        What was read; it may be large, so it becomes text only when it is asked for.
    what : str
        What it holds, such as "dates or times".
    """

    column: Any
    what: str
    numbers = None

    @cached_property
    def texts(self) -> Texts:
        """Values as text; None where the value is missing."""
        return _texts(self.column)


Cells: TypeAlias = TextCells | NumberCells | OtherCells


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of equal length.

    Parameters
    ----------
    path : Path
        Where they were read.
    columns : dict of TextCells, NumberCells and OtherCells
        By name, in the order of the file.
    n_rows : int
        Length of the columns.
    lines : sequence of int, default=None
        Line on which each row begins, for a text file.
    notes : tuple of str, default=()
        Columns that were not taken, and why.
    """

    path: Path
    columns: dict[str, Cells]
    n_rows: int
    lines: Sequence[int] | None = None
    notes: tuple[str, ...] = ()
    part = "column"

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.columns)

    def texts(self, name: str) -> Texts:
        """Return a column as text."""
        return self.columns[name].texts

    def refuse_formulas(self, name: str) -> None:
        """Raise `DataError` if a column that is used, or its name, holds a formula."""
        refuse_formula(name, f"{self.path}: the name of a column")
        if isinstance(self.columns[name], NumberCells):
            return
        texts = self.texts(name)
        row = next((i for i, text in enumerate(texts) if is_formula(text)), None)
        if row is not None:
            refuse_formula(texts[row], f"{self.path}, {self.place(row)}: column {brief(name)}")

    def place(self, row: int) -> str:
        """Return where a row is, in the words of the user."""
        return f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"


def read_csv(path: Path) -> Table:
    """Read a csv file: UTF-8, with a line of names, separated by comma, semicolon or tab."""
    text = _decoded(path)
    separator = _separator(text)
    records = _records(path, text, separator)
    _, header = next(records, (0, []))
    if not header:  # quotation marks alone
        raise _empty(path)
    names = [name.strip() for name in header]
    _refuse_many(path, names)
    refuse_repeated(path, names)
    rows, lines = [], []
    for line, fields in records:
        _refuse_ragged(path, line, fields, names, separator)
        rows.append(fields)
        lines.append(line)
    columns = zip(names, zip(*rows, strict=True), strict=False)  # no rows: no columns
    cells: dict[str, Cells] = {
        name: TextCells([known_text(v) for v in values]) for name, values in columns
    }
    return _without_index(path, cells, names, lines, len(rows))


def read_parquet(path: Path) -> Table:
    """Read a parquet file. Needs pyarrow."""
    with opened_parquet(path) as file:
        n_rows, own = file.metadata.num_rows, file.schema_arrow.names
        names = [name.strip() for name in own]
        refuse_repeated(path, names)
        cells = _cells_of(file, n_rows)
    known = {short: cells[name] for short, name in zip(names, own, strict=True)}
    return _without_index(path, known, names, None, n_rows)


def _cells_of(file: Any, n_rows: int) -> dict[str, Cells]:
    from pyarrow import nulls

    flat = flat_names(file)
    table = read_columns(file, flat)
    if table.num_rows != n_rows and flat:
        raise ValueError(f"it claims {n_rows} rows and has {table.num_rows}")
    lists = OtherCells(nulls(n_rows), "neither numbers nor text")
    found: dict[str, Cells] = dict.fromkeys(file.schema_arrow.names, lists)
    columns = zip(table.column_names, table.columns, strict=True)
    return found | {name: _arrow_cells(column) for name, column in columns}


def _decoded(path: Path) -> str:
    try:
        refuse_long_text(path)
        data = path.read_bytes()
        refuse_long_lines(data)
    except ValueError as error:
        raise DataError(
            f"{path} cannot be read as a table ({error}): save it as parquet or npz."
        ) from error
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{path} is UTF-16 text: save it as UTF-8.")
    if b"\0" in data:
        raise DataError(
            f"{path} holds binary data and no text: give it the ending of what it is (.npz, "
            ".parquet, .safetensors), or export it as csv."
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}, line {line} is not UTF-8 text ({error.reason}): save the file as UTF-8."
        ) from error
    if not text.strip():
        raise _empty(path)
    return text


def _empty(path: Path) -> DataError:
    return DataError(f"{path} is empty: a csv file begins with a line of column names.")


def _separator(text: str) -> str:
    """Return the separator by which the first rows have most columns, and equally many."""
    return max(SEPARATORS, key=lambda separator: _agreement(text, separator))


def _agreement(text: str, separator: str) -> tuple[bool, int]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    widths = []
    try:
        for fields in islice(filter(None, reader), ROWS_TO_SNIFF):
            widths.append(len(fields))
    except csv.Error:
        widths.append(0)
    return widths[0] > 1 and len(set(widths)) == 1, widths[0]


def _records(path: Path, text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, each with the line on which it begins."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    line = 1
    try:
        for fields in reader:
            if len(fields) > 1 or (fields and fields[0].strip()):
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{path}, line {line} cannot be split into fields ({error}): look for a quotation "
            "mark that is not closed."
        ) from error


def _refuse_ragged(
    path: Path, line: int, fields: list[str], names: list[str], separator: str
) -> None:
    if len(fields) != len(names):
        more = len(fields) > len(names)
        above = ", and remove what stands above the names of the columns" if more else ""
        raise DataError(
            f"{path}, line {line} has {len(fields)} fields where the first line has {len(names)}: "
            f"put a field that holds {separator!r} in quotation marks{above}."
        )


def _refuse_many(path: Path, names: list[str]) -> None:
    try:
        refuse_columns(len(names))
    except ValueError as error:
        raise DataError(f"{path} cannot be read as a table: {error}.") from error


def refuse_repeated(path: Path, names: Iterable[str]) -> None:
    """Raise `DataError` if a name is there twice, unless it is that of an index."""
    seen: set[str] = set()
    for name in names:
        if name in seen and not INDEX.fullmatch(name):
            raise DataError(
                f"{path} has the column {brief(name)} more than once: rename one of them."
            )
        seen.add(name)


def _without_index(
    path: Path,
    cells: dict[str, Cells],
    names: list[str],
    lines: list[int] | None,
    n_rows: int,
) -> Table:
    if n_rows == 0:
        raise DataError(f"{path} has column names but no rows: add rows below them.")
    index = [name for name in names if INDEX.fullmatch(name)]
    notes = (f"left out {len(index)} column(s) without a name of their own (an index).",)
    columns = {name: column for name, column in cells.items() if name not in index}
    return Table(path, columns, n_rows, lines, notes if index else ())


def _arrow_cells(column: Any) -> Cells:
    from pyarrow import types

    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_dictionary(column.type) and types.is_primitive(kind):
        column = column.cast(kind)
    if types.is_integer(kind):
        return NumberCells(_floats(column), column.fill_null(0).to_numpy())
    if types.is_floating(kind) or types.is_decimal(kind):
        return NumberCells(_floats(column))
    if types.is_boolean(kind) or types.is_null(kind) or _is_text(kind):
        return TextCells(_texts(column))
    what = "dates or times" if types.is_temporal(kind) else "neither numbers nor text"
    return OtherCells(column, what)


def _texts(column: Any) -> Texts:
    from pyarrow import types

    if types.is_dictionary(column.type):
        return dictionary_texts(column)
    return [None if value is None else known_text(str(value)) for value in column.to_pylist()]


def dictionary_texts(column: Any) -> Texts:
    """Return a column of repeated text, each text once in memory; None where one is missing."""
    texts: list[str | None] = []
    for chunk in column.chunks:
        known = [None if t is None else known_text(str(t)) for t in chunk.dictionary.to_pylist()]
        codes = chunk.indices.fill_null(len(known)).to_pylist()
        known.append(None)
        texts += [known[code] for code in codes]
    return texts


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", "string_view")


def _floats(column: Any) -> Float64Array:
    return np.asarray(column.to_numpy(), dtype=np.float64)
