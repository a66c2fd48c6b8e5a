"""Parquet files that are not trusted: what they claim is compared with their bytes."""

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from isrlearn._limits import refuse_bytes, refuse_columns, refuse_rows
from isrlearn.exceptions import DataError
from isrlearn.io._thrift import Reader

MAGIC: Final = b"PAR1"
LIMITS: Final = {"thrift_string_size_limit": 2**24, "thrift_container_size_limit": 10**6}
TEXTS: Final = tuple(f"{a}{b}" for a in ("", "large_") for b in ("string", "binary"))
WIDTH: Final = 8  # bytes of a value in memory, at least

# Numbers of the fields in parquet.thrift.
_SCHEMA, _ROWS, _GROUPS = 2, 3, 4
_WIDTH, _CHILDREN = 2, 5
_COLUMNS, _GROUP_ROWS = 1, 3
_ELSEWHERE, _META = 1, 3
_VALUES, _COMPRESSED, _DATA, _DICTIONARY = 5, 7, 9, 11
_FILE: Final = {
    _SCHEMA: [{_WIDTH: int, _CHILDREN: int}],
    _ROWS: int,
    _GROUPS: [
        {
            _COLUMNS: [
                {
                    _ELSEWHERE: object,
                    _META: {_VALUES: int, _COMPRESSED: int, _DATA: int, _DICTIONARY: int},
                }
            ],
            _GROUP_ROWS: int,
        }
    ],
}
_SIZE, _PACKED = 2, 3
_PAGES: Final = {5: 2, 8: 4}  # heads of pages of values, and where each has its encoding
_PAGE: Final = {_SIZE: int, _PACKED: int, 5: {1: int, 2: int}, 8: {1: int, 4: int}}
_SHARED_BEGINNINGS: Final = 7  # an encoding in which few bytes stand for very long texts


@contextmanager
def opened_parquet(path: Path) -> Iterator[Any]:
    """Give the ``pyarrow.parquet.ParquetFile`` of a path; `DataError` for whatever is wrong.

    Texts are read as dictionaries: a text that stands a million times in a column stands once in
    the file, and once in memory.

    Parameters
    ----------
    path : Path
        The file.
    """
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise DataError(
            f"{path}: parquet needs the extra 'io': pip install 'isrlearn[io]', or save as csv."
        ) from error
    try:
        _refuse_claims(path)
        with ParquetFile(path, **LIMITS) as file:
            texts = [field.name for field in file.schema_arrow if str(field.type) in TEXTS]
        with ParquetFile(path, **LIMITS, read_dictionary=texts) as file:
            yield file
    except DataError:
        raise
    except (ValueError, OSError, RuntimeError, NotImplementedError, MemoryError, KeyError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(
            f"{path} cannot be read as parquet ({reason}): write the file again."
        ) from error


def flat_names(file: Any) -> list[str]:
    """Return the names of the columns that have one value in each row, not lists or structs."""
    from pyarrow import ExtensionType, types

    return [
        field.name
        for field in file.schema_arrow
        if not types.is_nested(field.type) and not isinstance(field.type, ExtensionType)
    ]


def read_columns(file: Any, names: list[str]) -> Any:
    """Return whole columns of an opened file as a ``pyarrow.Table``.

    Parameters
    ----------
    file : ParquetFile
        From `opened_parquet`.
    names : list of str
        The columns.
    """
    table = file.read(columns=names)
    table.validate(full=True)  # pyarrow does not ask by itself whether texts have all their codes
    return table


def _refuse_claims(path: Path) -> None:
    """Add up what the pages say that they become, and refuse what the file cannot hold."""
    with path.open("rb") as file:
        if path.stat().st_size < 12:
            raise ValueError("it is cut short")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            found = _description(data)
            groups = found.get(_GROUPS) or []
            rows = [_number(group, _GROUP_ROWS) for group in groups]
            if _number(found, _ROWS) != sum(rows):
                raise ValueError(f"it claims {found[_ROWS]} rows, and its parts have {sum(rows)}")
            refuse_rows(sum(rows), path)
            widths = _widths(found)
            refuse_bytes(sum(_group_bytes(data, group, widths, path) for group in groups), path)


def _description(data: mmap.mmap) -> dict[int, Any]:
    if data[:4] != MAGIC or data[-4:] != MAGIC:
        raise ValueError("it does not begin and end as a parquet file")
    length = int.from_bytes(data[-8:-4], "little")
    begin = len(data) - 8 - length
    if begin < 4:
        raise ValueError("its description is longer than the file")
    return Reader(data[begin:-8]).struct(_FILE)


def _widths(found: dict[int, Any]) -> list[int]:
    """Return the bytes of a value of each column, at least."""
    elements = found.get(_SCHEMA) or []
    leaves = [e for e in elements if not e.get(_CHILDREN)]
    refuse_columns(len(leaves))
    return [max(WIDTH, _number(leaf, _WIDTH)) for leaf in leaves]


def _group_bytes(data: Any, group: dict[int, Any], widths: list[int], path: Path) -> int:
    columns = group.get(_COLUMNS) or []
    if len(columns) != len(widths):
        raise ValueError(f"a part of it has {len(columns)} columns instead of {len(widths)}")
    return sum(
        _column_bytes(data, column, w, path) for column, w in zip(columns, widths, strict=True)
    )


def _column_bytes(data: Any, column: dict[int, Any], width: int, path: Path) -> int:
    """Return what a column of a row group takes, by the heads of its pages."""
    meta = column.get(_META)
    if meta is None or _ELSEWHERE in column:
        raise ValueError("it is encrypted, or in several files")
    n_values = _number(meta, _VALUES)
    refuse_rows(n_values, path)
    place = min(_number(meta, _DATA), _number(meta, _DICTIONARY) or len(data))
    end = place + _number(meta, _COMPRESSED)
    if end > len(data):
        raise ValueError("a column is longer than the file")
    total, paged = n_values * width, 0
    while place < end:
        reader = Reader(data, place)
        page = reader.struct(_PAGE)
        total += _number(page, _SIZE)
        for kind in _PAGES.keys() & page.keys():
            paged += _number(page[kind], 1)
            if page[kind].get(_PAGES[kind]) == _SHARED_BEGINNINGS:
                raise ValueError("it is encoded as DELTA_BYTE_ARRAY, which is not read")
        place = reader.place + _number(page, _PACKED)
    refuse_rows(paged, path)
    return total


def _number(fields: dict[int, Any], name: int) -> int:
    value: int = fields.get(name, 0)
    if value < 0:
        raise ValueError("it claims a negative size")
    return value
