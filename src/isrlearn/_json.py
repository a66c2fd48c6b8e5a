"""Json that is not trusted: bounded, without repeated names, one kind of error."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, Final

from isrlearn._limits import LARGEST_JSON, refuse_long_text

DEEPEST: Final = 64  # so that what walks through it need not be careful
_HALF_CHARACTER: Final = re.compile(r"\\u[dD][89a-fA-F]")


def read_json(path: Path) -> Any:
    """Return what a file of json holds.

    Parameters
    ----------
    path : Path
        At most 64 MiB of UTF-8.

    Raises
    ------
    ValueError
        If it holds something else; an `OSError` if it cannot be read.
    """
    refuse_long_text(path, LARGEST_JSON)
    return parse_json(path.read_text(encoding="utf-8"))


def parse_json(text: str, deepest: int = DEEPEST) -> Any:
    """Return what a text of json holds.

    Parameters
    ----------
    text : str
        Json. NaN and Infinity are read, as `json.dumps` writes them.
    deepest : int, default=64
        How deep objects and lists may stand in each other.

    Raises
    ------
    ValueError
        If it is no json, is nested too deep, has a name twice or half a character.

    Examples
    --------
    >>> parse_json('{"a": [1, 2]}')
    {'a': [1, 2]}
    """
    try:
        found = json.loads(text, object_pairs_hook=_without_repetition)
        if _HALF_CHARACTER.search(text):  # a pair is fine, one alone cannot be written
            json.dumps(found, ensure_ascii=False).encode("utf-8")
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    if _is_deep(found, deepest):
        raise ValueError(f"it is nested more than {deepest} deep")
    return found


def _is_deep(value: Any, deepest: int) -> bool:
    level = [value]
    for _ in range(deepest + 1):
        level = [
            child
            for parent in level
            if isinstance(parent, dict | list)
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, dict | list)
        ]
    return bool(level)


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, count = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"it has the name {twice!r:.60} {count} times")
    return found
