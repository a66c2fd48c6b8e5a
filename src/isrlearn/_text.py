"""Names from data as text that can be seen: nothing in them commands a terminal or a page."""

import re
from typing import Final

# Control characters but tab and line feed, halves of characters, and those that turn the direction
# of writing, which could make a figure beside a name read backwards.
_UNSEEN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\ud800-\udfff]")
_ISOLATES: Final = re.compile("[\u2066-\u2069]")


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
