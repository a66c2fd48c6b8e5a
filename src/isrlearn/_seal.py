"""A seal: a file that carries the hash of its own bytes, so that damage is seen before it is used.

The file has a place for the hash, ``isrlearn-sha256:`` and 64 digits. The hash is that of the file
with zeros there. This works in any format that can hold a line of text. It finds damage, not
forgery: whoever changes a file on purpose can seal it again.
"""

import hashlib
import json
import mmap
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from isrlearn._files import write_whole
from isrlearn._json import read_json

MARK: Final = "isrlearn-sha256:"
UNSEALED: Final = MARK + "0" * 64
"""What a writer puts into the file for `seal` to fill."""
_SEAL: Final = re.compile(MARK.encode() + rb"[0-9a-f]{64}")
_STEP: Final = 1 << 20


def seal(path: Path) -> None:
    """Write the hash of a file into the place that it has for it.

    Parameters
    ----------
    path : Path
        A file that holds `UNSEALED` once.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "card.json"
    >>> _ = file.write_text('{"seal": "' + UNSEALED + '", "a": 1}')
    >>> seal(file)
    >>> is_whole(file)
    True
    >>> _ = file.write_text(file.read_text().replace('"a": 1', '"a": 2'))
    >>> is_whole(file)
    False
    """
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
        places = _places(content)
        if len(places) != 1:
            raise ValueError(
                f"{path.name} cannot be sealed: the text {MARK!r} stands in it {len(places)} "
                "times, and belongs there once. Rename what is called so."
            )
        content[places[0] : places[0] + 64] = _digest(content, places[0])
        content.flush()


def is_whole(path: str | Path) -> bool:
    """Return whether a file has the hash of its bytes in it.

    Parameters
    ----------
    path : path
        A file that isrlearn wrote, perhaps damaged since.

    Returns
    -------
    bool

    Examples
    --------
    >>> import tempfile, isrlearn
    >>> from pathlib import Path
    >>> from isrlearn.io import is_whole
    >>> file = Path(tempfile.mkdtemp()) / "removed.safetensors"
    >>> isrlearn.save(isrlearn.Subspace.nothing(3), file)
    >>> is_whole(file)
    True
    >>> _ = file.write_bytes(file.read_bytes() + b" ")
    >>> is_whole(file)
    False
    """
    path = Path(path)
    if path.stat().st_size == 0:  # what is empty cannot be mapped
        return False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        places = _places(content)
        if len(places) != 1:
            return False
        return content[places[0] : places[0] + 64] == _digest(content, places[0])


def write_sealed(path: Path, plain: Mapping[str, Any]) -> None:
    """Write plain values as a sealed json file; what is there is replaced when it is whole.

    Parameters
    ----------
    path : Path
        The file.
    plain : mapping
        What json can hold; "sealed" and "seal" are added.
    """
    # Said at both ends: damage at one of them does not hide that the file is sealed.
    text = json.dumps({"sealed": True, **plain, "seal": UNSEALED}, indent=1)

    def write(place: Path) -> None:
        place.write_text(text, encoding="utf-8")
        seal(place)

    write_whole(path, write)


def read_sealed(path: Path) -> dict[str, Any]:
    """Read a json file; `ValueError` if it is no object, too large, or not what was sealed.

    A file without a seal is read as well: files of before had none. What is in it is not to be
    trusted.

    Parameters
    ----------
    path : Path
        The file.
    """
    plain = read_json(path)
    if not isinstance(plain, dict):
        raise ValueError("it is no object of json")
    sealed = not {"sealed", "seal"}.isdisjoint(plain) or MARK.encode() in path.read_bytes()
    if sealed and not is_whole(path):
        raise ValueError("its content is not what was sealed")
    return {key: value for key, value in plain.items() if key != "sealed"}


def _places(content: Any) -> list[int]:
    return [found.end() - 64 for found in _SEAL.finditer(content)]


def _digest(content: Any, place: int) -> bytes:
    """Return the hash of a file whose seal is at a place, as hexadecimal digits."""
    found = hashlib.sha256()
    for start in range(0, len(content), _STEP):
        part = bytearray(content[start : start + _STEP])
        first, last = max(place - start, 0), min(place + 64 - start, len(part))
        if first < last:
            part[first:last] = b"0" * (last - first)
        found.update(part)
    return found.hexdigest().encode()
