"""What a feature file says of itself: kinds of columns, names, shards with their hashes.

Protocol 2 is sealed, and tells kinds, names and the bytes of each shard. Protocol 1 is read, too.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from isrlearn._seal import read_sealed, write_sealed
from isrlearn.exceptions import FeatureFileError

PROTOCOL: Final = 2
MANIFEST: Final = "manifest.json"
NUMBERS: Final = frozenset(np.dtype(code).name for code in "efdbhilqBHILQ")
"""Types of floats and whole numbers."""


@dataclass(frozen=True)
class Shard:
    """A file of rows.

    Parameters
    ----------
    name : str
        Of the file, in the folder of the manifest.
    rows : int
        How many it has.
    sha256 : str
        Hash of its bytes.
    bytes : int or None
        Its size; None in protocol 1.
    """

    name: str
    rows: int
    sha256: str
    bytes: int | None = None


@dataclass(frozen=True)
class Kind:
    """What a column holds: the type of its numbers, and the shape of a row."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return int(np.dtype(self.dtype).itemsize * np.prod(self.shape, dtype=object))

    def __str__(self) -> str:
        return f"{self.dtype} {self.shape}"


@dataclass(frozen=True)
class Manifest:
    """What a feature file says of itself.

    Parameters
    ----------
    made_of : dict
        What the features were made of.
    shards : tuple of Shard
        In the order of the rows.
    whole : bool
        Whether the writer came to its end.
    kinds : dict of str to Kind
        Of the columns; empty before the first row, and in protocol 1.
    classes, environments : tuple of str
        Names, by the numbers in the columns; empty if they are not known.
    """

    made_of: Mapping[str, Any]
    shards: tuple[Shard, ...] = ()
    whole: bool = False
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        row_bytes = sum(kind.row_bytes for kind in self.kinds.values())
        if len({shard.name for shard in self.shards}) < len(self.shards):
            raise FeatureFileError("it names a shard twice")
        for shard in self.shards:
            if Path(shard.name).name != shard.name:
                raise FeatureFileError(f"it names {shard.name!r:.80}, outside the folder")
            if type(shard.rows) is not int or shard.rows < 0:
                raise FeatureFileError(f"shard {shard.name} has {shard.rows!r:.40} rows")
            if shard.bytes is not None and shard.bytes < shard.rows * row_bytes:
                raise FeatureFileError(
                    f"{shard.rows} rows of {row_bytes} bytes do not fit into the {shard.bytes} "
                    f"bytes of {shard.name}"
                )


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a folder; `FeatureFileError` if it is none, or damaged.

    Parameters
    ----------
    folder : Path
        Where it is.
    """
    path = folder / MANIFEST
    try:
        plain = read_sealed(path)
        protocol = plain["protocol"]
        if protocol not in (1, PROTOCOL):
            raise FeatureFileError(
                f"it has protocol {protocol!r:.40}; this version reads 1 and {PROTOCOL}: install a "
                "newer isrlearn, or make the features again"
            )
        if protocol == PROTOCOL and "seal" not in plain:
            raise FeatureFileError("it has no seal")
        return _first(plain) if protocol == 1 else _second(plain)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FeatureFileError(f"{folder} has no {MANIFEST}: not a feature file.") from error
    except FeatureFileError as error:
        raise FeatureFileError(f"{path} cannot be used: {error}.") from error
    except (ValueError, OSError) as error:
        raise FeatureFileError(f"{path} is damaged ({str(error):.200}).") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise FeatureFileError(f"{path} is damaged ({error!r:.200}).") from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a folder.

    Parameters
    ----------
    folder : Path
        Where.
    manifest : Manifest
        It replaces what is there when it is whole.
    """
    write_sealed(folder / MANIFEST, {"protocol": PROTOCOL, **asdict(manifest)})


def _first(plain: Mapping[str, Any]) -> Manifest:
    shards = tuple(
        Shard(str(s["name"]), s["rows"], str(s["sha256"])) for s in list(plain["shards"])
    )
    return Manifest(dict(plain["made_of"]), shards, bool(plain["whole"]))


def _second(plain: Mapping[str, Any]) -> Manifest:
    kinds = {
        str(name): Kind(_number_type(kind["dtype"]), tuple(map(_whole, kind["shape"])))
        for name, kind in dict(plain["kinds"]).items()
    }
    return Manifest(
        made_of=dict(plain["made_of"]),
        shards=tuple(
            Shard(str(s["name"]), s["rows"], str(s["sha256"]), _whole(s["bytes"]))
            for s in plain["shards"]
        ),
        whole=bool(plain["whole"]),
        kinds=kinds,
        classes=tuple(map(str, plain["classes"])),
        environments=tuple(map(str, plain["environments"])),
    )


def _number_type(name: Any) -> str:
    # Not whatever NumPy makes of a text: it has many ways to name a type, some of them deprecated.
    if name not in NUMBERS:
        raise ValueError(f"a column has the type {name!r:.40}")
    return str(name)


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r:.40} is no size")
    return value
