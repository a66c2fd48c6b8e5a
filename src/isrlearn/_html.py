"""Tables for notebooks. Whatever comes from data is escaped, so that it stays text."""

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Final

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
