"""Reports as plain values for json, and back; what comes back is checked."""

import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints

LARGEST: Final = 1e300
IMAGE: Final = re.compile(r"data:image/(png|jpeg);base64,[A-Za-z0-9+/=]*")


def to_plain(value: Any) -> Any:
    """Return dataclasses as dicts, tuples as lists, and None for a number that is not finite."""
    if is_dataclass(value):
        return {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple | list):
        return [to_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def from_plain(kind: Any, value: Any, where: str = "report") -> Any:
    """Return an object of a type from plain values.

    Parameters
    ----------
    kind : type
        A dataclass, tuple, union with None, or plain type.
    value : object
        What json gave.
    where : str
        Place in the file, for messages.

    Raises
    ------
    ValueError
        If the value is not of the type.
    """
    if isinstance(kind, UnionType):
        return _optional(kind, value, where)
    if get_origin(kind) is tuple:
        return _tuple(get_args(kind), value, where)
    if is_dataclass(kind):
        return _dataclass(kind, value, where)
    if kind is float:
        return _number(value, where)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(
            f"{where} is {value!r:.60}, not {kind.__name__}: not a report of isrlearn."
        )
    return value


def _optional(kind: UnionType, value: Any, where: str) -> Any:
    inner = [part for part in get_args(kind) if part is not NoneType]
    return None if value is None else from_plain(inner[0], value, where)


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{where} is {value!r:.60}, not a number: not a report of isrlearn.")
    if not abs(value) < LARGEST:
        raise ValueError(f"{where} is too large or no number: not a report of isrlearn.")
    return float(value)


def _tuple(kinds: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{where} is {value!r:.60}, not a list: not a report of isrlearn.")
    if kinds[-1] is Ellipsis:
        return tuple(from_plain(kinds[0], v, f"{where}[{i}]") for i, v in enumerate(value))
    if len(value) != len(kinds):
        raise ValueError(f"{where} has {len(value)} values, not {len(kinds)}.")
    return tuple(from_plain(k, v, where) for k, v in zip(kinds, value, strict=True))


def _dataclass(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, Mapping):
        raise ValueError(f"{where} is {value!r:.60}, not an object: not a report of isrlearn.")
    kinds = get_type_hints(kind)
    # What has a default was added later: files from before are read.
    missing = [f.name for f in fields(kind) if f.name not in value and f.default is MISSING]
    if missing:
        raise ValueError(f"{where} has no {missing[0]!r}: not a report of isrlearn.")
    image = value.get("image")
    if isinstance(image, str) and not IMAGE.fullmatch(image):
        raise ValueError(f"{where}.image is not an embedded PNG or JPEG.")
    found = {
        name: from_plain(k, value[name], f"{where}.{name}")
        for name, k in kinds.items()
        if name in value
    }
    try:
        return kind(**found)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
