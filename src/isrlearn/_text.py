"""Names from data as text that can be seen: nothing in them commands a terminal or a page."""

import re
from collections.abc import Iterable
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
