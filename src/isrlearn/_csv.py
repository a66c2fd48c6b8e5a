"""Tables written as csv: a cell that a spreadsheet would run becomes text."""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TextIO

_RUN: Final = re.compile(r"[=+\-@\t\r\n＝＋－＠]", re.ASCII)
_NUMBER: Final = re.compile(
    r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|[+-]?(?:inf|nan)", re.ASCII | re.IGNORECASE
)
_FIELD: Final = re.compile(r"([;,|\t\r\n])([^;,|\t\r\n]+)")  # where a spreadsheet may split a cell


def inert(cell: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula.

    Text that begins with ``=``, ``+``, ``-``, ``@``, a tab or the end of a line gets an apostrophe
    in front, by which a spreadsheet knows text. The same holds behind ``;``, ``,``, ``|``, a tab or
    the end of a line inside of a text: there are spreadsheets that split it there. Numbers, and
    signs that stand alone, stay as they are.

    Parameters
    ----------
    cell : object
        What is to be written.

    Examples
    --------
    >>> inert("=HYPERLINK(A1)"), inert("-x"), inert("-1.5"), inert(-2), inert("+")
    ("'=HYPERLINK(A1)", "'-x", '-1.5', -2, '+')
    >>> inert("yes;=1+2"), inert("yes; -2")
    ("yes;'=1+2", 'yes; -2')
    """
    text = str(cell)
    if _NUMBER.fullmatch(text.strip()):
        return cell
    safe = _FIELD.sub(_inert_field, text)
    begins = _RUN.match(text.lstrip(" ")) or _RUN.match(text.lstrip())
    if begins and len(text) > 1:
        return f"'{safe}"
    return cell if safe == text else safe


def _inert_field(found: re.Match[str]) -> str:
    separator, field = found.groups()
    # A cell that is split in its middle loses its quotes. Which spaces are passed over is unknown.
    forms = field.strip(' "'), field.replace('"', " ").strip()
    runs = any(_RUN.match(f) and len(f) > 1 and not _NUMBER.fullmatch(f) for f in forms)
    return f"{separator}'{field}" if runs else found[0]


class InertWriter:
    """A writer of csv whose cells run nothing.

    Parameters
    ----------
    file : text file
        Opened with ``newline=""``.
    """

    def __init__(self, file: TextIO) -> None:
        self._writer = csv.writer(file)

    def writerow(self, cells: Iterable[Any]) -> None:
        """Write a row."""
        self._writer.writerow(map(inert, cells))


def write_records(file: TextIO, names: Sequence[str], records: Iterable[Mapping[str, Any]]) -> None:
    """Write dicts below a line of names; what a dict does not have is left empty.

    Parameters
    ----------
    file : text file
        Opened with ``newline=""``.
    names : sequence of str
        Names of the columns.
    records : iterable of dicts
        One for each row.
    """
    writer = InertWriter(file)
    writer.writerow(names)
    for record in records:
        writer.writerow(record.get(name, "") for name in names)
