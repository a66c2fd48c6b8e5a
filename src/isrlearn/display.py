"""How values look in messages and notebooks: they stay text, and command nothing."""

import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from reprlib import Repr
from typing import Any, Final

# Control characters but tab and line feed, halves of characters, and those that turn the direction
# of writing, which could make a figure beside a name read backwards.
_UNSEEN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\ud800-\udfff]")
_ISOLATES: Final = re.compile("[\u2066-\u2069]")


# Long enough to know a name again; a message stays a line that can be read.
MOST_SHOWN: Final = 100
_SHORT: Final = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80


def brief(value: Any) -> str:
    r"""Return a value as a message shows it: on one line, and a long one without its middle.

    Parameters
    ----------
    value : object
        What a user gave.

    Examples
    --------
    >>> brief("ward 7"), brief("ward \x1b[2J"), brief([1, 2])
    ("'ward 7'", "'ward \\x1b[2J'", '[1, 2]')
    >>> len(brief("x" * 10**6))
    80
    """
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    try:
        text = _SHORT.repr(value)
    except ValueError:  # an integer of more digits than Python writes
        return f"{type(value).__name__} with thousands of digits"
    text = " ".join(text.split()) if "\n" in text else text
    half = MOST_SHOWN // 2
    return text if len(text) <= MOST_SHOWN else f"{text[:half]}...{text[-half:]}"


def is_one_of(value: Any, names: Iterable[str | None]) -> bool:
    """Whether a value is one of some names; an array or a table is none, without a question.

    Parameters
    ----------
    value : object
        What a user gave.
    names : iterable of str or None
        What is allowed.

    Examples
    --------
    >>> is_one_of("all", ("all", None)), is_one_of([1, 2], ("all", None))
    (True, False)
    """
    return (value is None or isinstance(value, str)) and value in tuple(names)


def visible(text: str) -> str:
    r"""Return a text with what cannot be seen written out.

    Parameters
    ----------
    text : str
        Any text.

    Examples
    --------
    >>> visible("ward \x1b[2J 7")
    'ward \\x1b[2J 7'
    """
    return _UNSEEN.sub(_written_out, text)


def isolated(name: str) -> str:
    """Return a name that does not turn the writing around it, whatever its script."""
    return f"\u2068{_ISOLATES.sub(_written_out, visible(name))}\u2069"


def _written_out(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


MOST_ROWS: Final = 50
MOST_COLUMNS: Final = 20
NOTHING: Final = "–"


def table(
    caption: str,
    columns: Sequence[Any],
    rows: Sequence[tuple[Any, Sequence[Any]]],
    *,
    corner: str = "",
    words: bool = False,
) -> str:
    """Return a table; of a long one the first rows and columns, and how many are not shown.

    Parameters
    ----------
    caption : str
        What the table is about; "" for no caption.
    columns : sequence
        Heads of the columns of cells; none for a table without heads.
    rows : sequence of (head, cells)
        Head and cells of each row.
    corner : str, default=""
        What the heads of the rows are.
    words : bool, default=False
        Whether cells are words, which stand at the left.

    Returns
    -------
    str

    Examples
    --------
    >>> table("Rows", ["lab"], [("<b>", [3])])
    '<table><caption>Rows</caption><thead><tr><td></td><th scope="col">lab</th></tr></thead><tbody><tr><th scope="row">&lt;b&gt;</th><td>3</td></tr></tbody></table>'
    """  # noqa: E501
    width = max([len(columns), *(len(cells) for _, cells in rows)])
    shown = min(width, MOST_COLUMNS)
    first = tagged("th", corner, scope="col") if corner else "<td></td>"
    heads = "".join(tagged("th", name, scope="col") for name in columns[:shown])
    body = "".join(_row(head, cells[:shown], words) for head, cells in rows[:MOST_ROWS])
    return (
        "<table>"
        + (tagged("caption", caption) if caption else "")
        + (f"<thead><tr>{first}{heads}</tr></thead>" if columns else "")
        + f"<tbody>{body}</tbody>"
        + _left_out(len(rows) - MOST_ROWS, width - shown, shown)
        + "</table>"
    )


def titled(title: str, *parts: str) -> str:
    """Return a title and what stands below it, which is HTML already.

    Examples
    --------
    >>> titled("a & b", table("", [], []))
    '<div><p><strong>a &amp; b</strong></p><table><tbody></tbody></table></div>'
    """
    return f"<div><p>{tagged('strong', title)}</p>{''.join(parts)}</div>"


def bullets(items: Iterable[str]) -> str:
    """Return a list of things that are HTML already; nothing if there are none.

    Examples
    --------
    >>> bullets([tagged("em", "careful")])
    '<ul><li><em>careful</em></li></ul>'
    """
    listed = "".join(f"<li>{item}</li>" for item in items)
    return f"<ul>{listed}</ul>" if listed else ""


def tagged(tag: str, text: Any, **attributes: str) -> str:
    """Return a text, escaped, in a tag.

    Examples
    --------
    >>> tagged("td", "<script>", scope="row")
    '<td scope="row">&lt;script&gt;</td>'
    """
    given = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())
    return f"<{tag}{given}>{escape(str(text))}</{tag}>"


def figure(value: float, form: str = ".3f") -> str:
    """Return a number as text; a dash for NaN.

    Examples
    --------
    >>> figure(0.5), figure(float("nan"))
    ('0.500', '–')
    """
    return NOTHING if math.isnan(value) else format(value, form)


def leading_weights(direction: Any, most: int = 3) -> str:
    """Return the largest weights of a direction with the places of their features.

    Parameters
    ----------
    direction : ndarray of shape (d,)
        Weights.
    most : int, default=3
        How many.
    """
    first = sorted(range(len(direction)), key=lambda j: -abs(direction[j]))[:most]
    return ", ".join(f"x{j} {direction[j]:+.2f}" for j in first)


def _row(head: Any, cells: Sequence[Any], words: bool) -> str:
    left = {"style": "text-align:left"} if words else {}
    inside = "".join(tagged("td", cell, **left) for cell in cells)
    return f"<tr>{tagged('th', head, scope='row', **left)}{inside}</tr>"


def _left_out(rows: int, columns: int, shown: int) -> str:
    counts = [f"{n} more {what}" for n, what in ((rows, "rows"), (columns, "columns")) if n > 0]
    if not counts:
        return ""
    note = tagged("td", f"not shown: {' and '.join(counts)}", colspan=str(shown + 1))
    return f"<tfoot><tr>{note}</tr></tfoot>"


def some(names: list[Any], most: int = 5) -> str:
    """Return a list of names, the first ones and how many more there are.

    Examples
    --------
    >>> some(["a", "b", "c"], most=2)
    "['a', 'b'] and 1 more"
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"[{', '.join(brief(name) for name in names[:most])}]{more}"
