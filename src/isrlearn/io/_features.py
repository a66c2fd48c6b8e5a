"""Feature files: a folder of safetensors shards and a manifest.

``manifest.json`` is written last and replaced whole: rows that it does not list are not there, so
a run that is killed at any moment leaves a shorter file, never a wrong one.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from isrlearn._files import write_whole
from isrlearn._typing import FloatArray, IntArray
from isrlearn.exceptions import FeatureFileError

PROTOCOL: Final = 1
MANIFEST: Final = "manifest.json"
COLUMNS: Final = ("features", "labels", "environments", "split")


@dataclass(frozen=True, eq=False)
class Features:
    """Inputs of a last layer with their labels and environments.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        One row per example.
    labels : ndarray of shape (n,)
        Class of each row.
    environments : ndarray of shape (n,)
        Environment of each row; -1 where it is unknown.
    split : ndarray of shape (n,), default=None
        0 train, 1 validation, 2 test; None if the rows are not split.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.io import Features
    >>> rows = Features(np.eye(3), np.array([0, 1, 1]), np.array([0, 1, -1]), np.array([0, 0, 2]))
    >>> len(rows.take(0)), rows.known_environments().tolist()
    (2, [0, 1, None])
    """

    features: FloatArray
    labels: IntArray
    environments: IntArray
    split: IntArray | None = None

    def __len__(self) -> int:
        return len(self.features)

    def take(self, split: int) -> "Features":
        """Return the rows of one split."""
        if self.split is None:
            raise ValueError("these features have no split.")
        rows = self.split == split
        return Features(
            self.features[rows], self.labels[rows], self.environments[rows], self.split[rows]
        )

    def known_environments(self) -> Any:
        """Return the environments as the estimators want them: None where unknown."""
        if np.all(self.environments >= 0):
            return self.environments
        known = self.environments.astype(object)
        known[self.environments < 0] = None
        return known

    def arrays(self) -> dict[str, Any]:
        """Return the columns by name."""
        columns = {name: getattr(self, name) for name in COLUMNS}
        return {name: array for name, array in columns.items() if array is not None}


@dataclass(frozen=True)
class _Shard:
    name: str
    rows: int
    sha256: str


@dataclass(frozen=True)
class FeatureFile:
    """A folder of features that is read without being trusted.

    Parameters
    ----------
    folder : Path
        Where it is.
    made_of : dict
        What the features were made of, as the writer said it.
    shards : list
        Names, row counts and hashes, in the order of the rows.
    whole : bool
        Whether the writer came to its end.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from isrlearn.io import FeatureFile, FeatureWriter, Features
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with FeatureWriter(folder, {"network": "a"}, rows_per_shard=2) as writer:
    ...         for label in (0, 1, 1):
    ...             writer.add(Features(np.ones((1, 5)), np.array([label]), np.array([0])))
    ...     file = FeatureFile.open(folder)
    ...     print(len(file), file.whole, [len(chunk) for chunk in file.chunks()])
    3 True [2, 1]
    """

    folder: Path
    made_of: Mapping[str, Any]
    shards: list[_Shard] = field(default_factory=list)
    whole: bool = False

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Read the manifest of a feature file."""
        folder = Path(folder)
        try:
            manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            if manifest["protocol"] != PROTOCOL:
                raise FeatureFileError(
                    f"{folder} is a feature file of protocol {manifest['protocol']!r}; this "
                    f"version reads {PROTOCOL}."
                )
            shards = [_Shard(**shard) for shard in manifest["shards"]]
            _refuse_paths(folder, shards)
            return cls(folder, dict(manifest["made_of"]), shards, bool(manifest["whole"]))
        except FileNotFoundError as error:
            raise FeatureFileError(f"{folder} has no {MANIFEST}: not a feature file.") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, FeatureFileError):
                raise
            raise FeatureFileError(f"{folder / MANIFEST} is damaged ({error!r}).") from error

    def __len__(self) -> int:
        return sum(shard.rows for shard in self.shards)

    def chunks(self, first: int = 0, *, verify: bool = True) -> Iterator[Features]:
        """Yield the rows shard by shard.

        Parameters
        ----------
        first : int, default=0
            The first shard that is wanted.
        verify : bool, default=True
            Whether each is verified by its hash; a second pass need not do it again.
        """
        for shard in self.shards[first:]:
            path = self.folder / shard.name
            try:
                data = path.read_bytes()
            except OSError as error:
                raise FeatureFileError(f"{path} cannot be read: {error.strerror}.") from error
            if verify and hashlib.sha256(data).hexdigest() != shard.sha256:
                raise FeatureFileError(f"{path} is damaged: its hash is not the manifest's.")
            yield self._verified(path, shard, data)

    def _verified(self, path: Path, shard: _Shard, data: bytes) -> Features:
        from safetensors import SafetensorError
        from safetensors.numpy import load

        try:
            rows = Features(**load(data))
        except (SafetensorError, TypeError) as error:
            raise FeatureFileError(f"{path} is not a shard of features ({error}).") from error
        if any(len(column) != shard.rows for column in rows.arrays().values()):
            raise FeatureFileError(f"{path} has not the {shard.rows} rows of the manifest.")
        return rows

    def read(self) -> Features:
        """Return all rows.

        Returns
        -------
        Features
        """
        if not self.whole:
            raise FeatureFileError(
                f"{self.folder} is not finished: it has {len(self)} rows so far. Run the command "
                "that began it again."
            )
        parts = [chunk.arrays() for chunk in self.chunks()]
        if not parts:
            raise FeatureFileError(f"{self.folder} has no rows.")
        return Features(**{name: np.concatenate([p[name] for p in parts]) for name in parts[0]})


class FeatureWriter:
    """Write features chunk by chunk; begun again, it goes on where it stopped.

    Parameters
    ----------
    folder : path
        Where; it is created.
    made_of : dict
        What determines the features, such as the hashes of data and weights. A folder that was
        begun with another one is refused.
    rows_per_shard : int, default=8192
        Rows in a shard: what is lost at most when the process is killed.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from isrlearn.io import FeatureFile, FeatureWriter, Features
    >>> folder = tempfile.mkdtemp()
    >>> with FeatureWriter(folder, {"model": "m"}) as writer:
    ...     writer.add(Features(np.zeros((2, 3)), np.array([0, 1]), np.array([0, -1])))
    >>> FeatureFile.open(folder).read().features.shape
    (2, 3)
    """

    def __init__(
        self, folder: str | Path, made_of: Mapping[str, Any], *, rows_per_shard: int = 8192
    ) -> None:
        self.folder = Path(folder)
        self.rows_per_shard = rows_per_shard
        self.folder.mkdir(parents=True, exist_ok=True)
        self._pending: list[Features] = []
        self._file = self._begin(dict(made_of))

    @property
    def n_written(self) -> int:
        """Number of rows that are safe on disk: where to go on."""
        return len(self._file)

    @property
    def whole(self) -> bool:
        """Whether the file was finished before."""
        return self._file.whole

    def add(self, chunk: Features) -> None:
        """Add rows; they are on disk when a shard is full, or at the end."""
        if self.whole:
            raise FeatureFileError(f"{self.folder} is finished: rows cannot be added.")
        self._pending.append(chunk)
        if sum(len(c) for c in self._pending) >= self.rows_per_shard:
            self._write_shard()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, *rest: Any) -> None:
        if self._pending and kind in (None, KeyboardInterrupt):
            self._write_shard()
        if kind is None:
            self._save(whole=True)

    def _begin(self, made_of: dict[str, Any]) -> FeatureFile:
        if not (self.folder / MANIFEST).exists():
            return FeatureFile(self.folder, made_of)
        found = FeatureFile.open(self.folder)
        if found.made_of != made_of:
            different = sorted(
                key
                for key in {*found.made_of, *made_of}
                if found.made_of.get(key) != made_of.get(key)
            )
            raise FeatureFileError(
                f"{self.folder} holds features of something else ({', '.join(different)} differ): "
                "name another folder, or remove this one."
            )
        return found

    def _write_shard(self) -> None:
        from safetensors.numpy import save

        parts = [chunk.arrays() for chunk in self._pending]
        columns = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
        data = save({name: np.ascontiguousarray(a) for name, a in columns.items()})
        name = f"shard-{len(self._file.shards):05d}.safetensors"
        write_whole(self.folder / name, lambda path: path.write_bytes(data))
        shard = _Shard(name, len(columns["labels"]), hashlib.sha256(data).hexdigest())
        self._file.shards.append(shard)
        self._pending = []
        self._save(whole=False)

    def _save(self, *, whole: bool) -> None:
        object.__setattr__(self._file, "whole", whole)
        manifest = {"protocol": PROTOCOL, **asdict(self._file)}
        del manifest["folder"]
        text = json.dumps(manifest, indent=1, sort_keys=True)
        write_whole(self.folder / MANIFEST, lambda path: path.write_text(text, encoding="utf-8"))


def _refuse_paths(folder: Path, shards: list[_Shard]) -> None:
    for shard in shards:
        if Path(shard.name).name != shard.name:
            raise FeatureFileError(f"{folder / MANIFEST} names {shard.name!r}, outside the folder.")
