"""What a skops file is made of, checked before skops builds anything of it.

Skops asks which types a file names, not how large what it makes of them becomes: a part may stand
for many by its number, many parts may read one array, and a loader may call a type of ours.
"""

import io
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

from isrlearn._json import parse_json
from isrlearn._limits import LARGEST_JSON, refuse_bytes
from isrlearn._npz import refuse_false_header

SCHEMA: Final = "schema.json"
DEEPEST: Final = 256  # a pipeline in a search nests some twenty levels
PLAIN_LOADERS: Final = ("ObjectNode", "TupleNode", "DTypeNode")
"""Those that set attributes of what we trust, and call nothing with values of the file."""


def check_parts(path: Path, ours: Collection[str], trusted: Collection[str] | None = ()) -> None:
    """Refuse a skops file that is larger, or does more, than what it was saved from.

    Parameters
    ----------
    path : Path
        The file.
    ours : collection of str
        Types of this library's list, which are trusted as plain objects alone.
    trusted : collection of str, default=()
        Types that the caller trusts, however they are built; None for all.

    Raises
    ------
    ValueError
        If it is refused.
    """
    with zipfile.ZipFile(path) as archive:
        members = _members(archive, path)
        schema = _schema(archive, members)
        _refuse_expansion(schema)
        readers: dict[str, int] = {}
        for part in _parts(schema):
            if trusted is not None:
                _refuse_calls(part, ours, trusted)
            if "file" in part:
                _refuse_second_reader(part, readers)
                _refuse_claims(archive, members, part, path)


def _members(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    found: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        name = member.filename
        if member.compress_type != zipfile.ZIP_STORED or Path(name).parent != Path():
            raise ValueError(
                f"its member {name!r:.60} is compressed or not in the file's own folder"
            )
        if name in found:
            raise ValueError(f"it has two members {name!r:.60}")
        found[name] = member
    if sum(member.file_size for member in found.values()) > path.stat().st_size:
        raise ValueError("its members lie over each other")
    return found


def _schema(archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]) -> Any:
    if SCHEMA not in members:
        raise ValueError(f"it has no {SCHEMA}")
    size = members[SCHEMA].file_size
    if size > LARGEST_JSON:
        raise ValueError(f"its {SCHEMA} has {size} bytes, and {LARGEST_JSON} are read")
    return parse_json(archive.read(SCHEMA).decode("utf-8"), DEEPEST)


def _parts(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects that skops makes something of."""
    if isinstance(value, dict) and "__loader__" in value:
        yield value
    for child in _children(value):
        yield from _parts(child)


def _children(value: Any) -> Collection[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _refuse_expansion(schema: Any) -> None:
    """Refuse a number that stands for different parts: forty short ones could make 2**40."""
    known: dict[int, tuple[Any, ...]] = {}

    def size_of(value: Any) -> int:
        size = 1 + sum(map(size_of, _children(value)))
        number = value.get("__id__") if isinstance(value, dict) else None
        if number is not None:
            if type(number) is not int or number <= 0:
                raise ValueError(f"a part has the number {number!r:.40}")
            what = (*(value.get(f"__{key}__") for key in ("loader", "module", "class")), size)
            if known.setdefault(number, what) != what:
                raise ValueError(f"the number {number} stands for different parts")
        return size

    size_of(schema)


def _refuse_calls(part: dict[str, Any], ours: Collection[str], trusted: Collection[str]) -> None:
    """Refuse loaders that would call a type, or read a format, that only its name makes trusted."""
    loader, name = part["__loader__"], f"{part.get('__module__')}.{part.get('__class__')}"
    if name in trusted:
        return
    plain = name not in ours or loader in PLAIN_LOADERS or loader == "TypeNode"
    if not plain or loader in ("SparseMatrixNode", "CachedNode"):
        raise ValueError(f"{name!r:.80} is not trusted with the loader {loader!r:.40}")


def _refuse_second_reader(part: dict[str, Any], readers: dict[str, int]) -> None:
    number = part.get("__id__")
    if number is None or readers.setdefault(part["file"], number) != number:
        raise ValueError(f"its member {part['file']!r:.60} is read more than once")


def _refuse_claims(
    archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], part: dict[str, Any], path: Path
) -> None:
    name, loader = part["file"], part["__loader__"]
    if name not in members:
        raise ValueError(f"it has no member {name!r:.60}")
    if loader == "NdArrayNode":
        with archive.open(members[name]) as file:
            refuse_false_header(file, members[name], name)
    elif loader == "SparseMatrixNode":  # an archive of its own, which is compressed
        with zipfile.ZipFile(io.BytesIO(archive.read(name))) as inner:
            refuse_bytes(sum(member.file_size for member in inner.infolist()), path)
