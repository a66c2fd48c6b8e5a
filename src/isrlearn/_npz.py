"""Arrays out of npz files that are not trusted: no pickle, no claim that is not checked."""

import math
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, NamedTuple

import numpy as np

from isrlearn._limits import refuse_bytes, refuse_irregular

ENDING: Final = ".npy"
BLOCK: Final = 2**20
LONGEST_HEADER: Final = 10_000  # as of NumPy
METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # those that NumPy writes
KINDS: Final = "biufcmMSU"  # numbers, times and texts
DEFLATE_LIMIT: Final = 1032  # no byte of a deflated stream becomes more
# What the parts of Python that read zip files raise; none of it is ours.
_DAMAGE: Final = (
    OSError, EOFError, RuntimeError, NotImplementedError, KeyError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


class ObjectArrayError(ValueError):
    """An array holds Python objects, which only a pickle could."""


class Header(NamedTuple):
    """What an array is, compared with the bytes that are there for it."""

    shape: tuple[int, ...]
    dtype: Any
    by_columns: bool


def array_names(path: Path) -> list[str]:
    """Return the names of the arrays of an npz file; nothing is decompressed.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    ValueError
        If it is no archive of arrays, or claims more than its bytes can hold.
    """
    with _opened(path) as archive:
        return list(_members(archive, path))


def read_arrays(path: Path, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return arrays of an npz file by name.

    Parameters
    ----------
    path : Path
        The file.
    names : iterable of str, default=None
        Which; None for all.

    Raises
    ------
    ValueError
        As in `array_names`; if an array is absent or damaged; or if it holds Python objects, which
        are never loaded.
    """
    with _opened(path) as archive:
        members = _members(archive, path)
        return {
            name: _array(archive, members, name) for name in (members if names is None else names)
        }


@contextmanager
def opened_array(path: Path, name: str) -> Iterator[tuple[Header, IO[bytes]]]:
    """Give the header of an array and a file that stands at its first value.

    Parameters
    ----------
    path : Path
        The file.
    name : str
        Name of the array.
    """
    with _opened(path) as archive, _member(archive, _members(archive, path), name) as opened:
        yield opened


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    refuse_irregular(path)
    with path.open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                yield archive
        except _DAMAGE as error:
            raise ValueError((str(error).splitlines() or [type(error).__name__])[0]) from error


def _members(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    found: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(ENDING)
        _refuse_odd(member)
        if name in found:
            raise ValueError(f"it has two arrays {name!r}")
        found[name] = member
    if sum(m.compress_size for m in found.values()) > path.stat().st_size:
        raise ValueError("its arrays lie over each other")
    refuse_bytes(sum(m.file_size for m in found.values()), path)
    return found


def _refuse_odd(member: zipfile.ZipInfo) -> None:
    place = PurePosixPath(member.filename.replace("\\", "/"))
    if place.is_absolute() or ".." in place.parts or ":" in member.filename:
        raise ValueError(f"it has the member {member.filename!r}, outside of its folder")
    if member.compress_type not in METHODS or member.flag_bits & 1:
        raise ValueError(f"{member.filename!r} is encrypted, or packed as NumPy does not do it")
    if member.file_size > DEFLATE_LIMIT * member.compress_size + DEFLATE_LIMIT:
        raise ValueError(
            f"{member.filename!r} has {member.compress_size} bytes and claims to become "
            f"{member.file_size}"
        )


@contextmanager
def _member(
    archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], name: str
) -> Iterator[tuple[Header, IO[bytes]]]:
    if name not in members:
        raise ValueError(f"it has no array {name!r}")
    with archive.open(members[name]) as file:
        yield _header(file, members[name], name), file


def _array(archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], name: str) -> Any:
    with _member(archive, members, name) as (header, file):
        data = np.empty(math.prod(header.shape) * header.dtype.itemsize, np.uint8)
        for start in range(0, len(data), BLOCK):
            part = file.read(min(BLOCK, len(data) - start))
            data[start : start + BLOCK] = np.frombuffer(part, np.uint8)  # refuses a short one
        file.read(1)  # at the end the checksum is compared
    if header.dtype.kind == "U":
        _refuse_no_characters(data, header.dtype, name)
    return data.view(header.dtype).reshape(header.shape, order="F" if header.by_columns else "C")


def _refuse_no_characters(data: Any, dtype: Any, name: str) -> None:
    """Refuse numbers of characters that there are not: NumPy would make broken strings of them."""
    codes = data.view(np.dtype(np.uint32).newbyteorder(dtype.byteorder))
    if np.any((codes > sys.maxunicode) | ((codes >= 0xD800) & (codes <= 0xDFFF))):
        raise ValueError(f"{name} holds what are no characters")


def _header(file: IO[bytes], member: zipfile.ZipInfo, name: str) -> Header:
    """Read what an array is; refuse it unless the member is as long as that takes."""
    header = refuse_false_header(file, member, name)
    if header.dtype.kind not in KINDS:
        raise ValueError(f"{name} has the type {header.dtype} and the shape {header.shape}")
    return header


def refuse_false_header(file: IO[bytes], member: zipfile.ZipInfo, name: str) -> Header:
    """Read what an array is; `ValueError` unless the member is as long as that takes.

    Parameters
    ----------
    file : binary file
        The member, at its beginning.
    member : ZipInfo
        Says how long it is.
    name : str
        Of the array, for messages.
    """
    shape, by_columns, dtype = _parsed(file, name)
    if dtype.hasobject:
        raise ObjectArrayError(
            f"{name} is an array of Python objects, which is never loaded: save strings with dtype "
            "str, numbers with dtype float or int"
        )
    if dtype.itemsize == 0 or any(n < 0 for n in shape):
        raise ValueError(f"{name} has the type {dtype} and the shape {shape}")
    n_bytes = math.prod(shape) * dtype.itemsize
    if file.tell() + n_bytes != member.file_size:
        raise ValueError(
            f"{name} claims the shape {shape} of {dtype}, which is not what its "
            f"{member.file_size} bytes hold"
        )
    return Header(shape, dtype, by_columns)


def _parsed(file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, Any]:
    readers: Any = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        version = np.lib.format.read_magic(file)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{name} is no array") from error
    if version not in readers:
        raise ValueError(f"{name} is of version {version} of NumPy's format, which is not read")
    try:
        found: tuple[tuple[int, ...], bool, Any] = readers[version](file, LONGEST_HEADER)
    except Exception as error:  # a header is an expression of Python, and fails in many ways
        raise ValueError(f"{name} has a header that cannot be read") from error
    return found
