"""Feature files: a folder of safetensors shards and a manifest.

``manifest.json`` is written last and replaced whole: rows that it does not list are not there, so
a run that is killed at any moment leaves a shorter file, never a wrong one.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from isrlearn._files import only_user, sweep, write_whole
from isrlearn._limits import refuse_irregular
from isrlearn.exceptions import FeatureFileError
from isrlearn.io._manifest import MANIFEST, Kind, Manifest, Shard, read_manifest, write_manifest
from isrlearn.rows import check_number
from isrlearn.typing import FloatArray, IntArray

MOST_ROWS: Final = 2**31 - 1  # of a shard
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
class FeatureFile:
    """A folder of features that is read without being trusted.

    A shard takes at most twice its size on disk in memory, and is verified before it is used.

    Parameters
    ----------
    folder : Path
        Where it is.
    manifest : Manifest
        What it says of itself: `made_of`, `shards`, `whole`, `kinds`, `classes`, `environments`.

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
    manifest: Manifest

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Read the manifest of a feature file."""
        return cls(Path(folder), read_manifest(Path(folder)))

    @property
    def made_of(self) -> Mapping[str, Any]:
        """What the features were made of, as the writer said it."""
        return self.manifest.made_of

    @property
    def shards(self) -> tuple[Shard, ...]:
        """Names, row counts and hashes, in the order of the rows."""
        return self.manifest.shards

    @property
    def whole(self) -> bool:
        """Whether the writer came to its end."""
        return self.manifest.whole

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
                refuse_irregular(path, links=False)  # the writer makes no links
                size, data = path.stat().st_size, b""
                if shard.bytes in (None, size):
                    data = path.read_bytes()
            except OSError as error:
                raise FeatureFileError(f"{path} cannot be read: {error.strerror}.") from error
            except ValueError as error:
                raise FeatureFileError(f"{path} is not a shard of features ({error}).") from error
            if shard.bytes not in (None, size):
                raise FeatureFileError(
                    f"{path} is damaged: it has {size} bytes, and the manifest says {shard.bytes}."
                )
            if verify and hashlib.sha256(data).hexdigest() != shard.sha256:
                raise FeatureFileError(f"{path} is damaged: its hash is not the manifest's.")
            yield self._verified(path, shard, data)

    def _verified(self, path: Path, shard: Shard, data: bytes) -> Features:
        from safetensors import SafetensorError
        from safetensors.numpy import load

        try:
            rows = Features(**load(data))
            kinds = kinds_of(rows)
        except (SafetensorError, TypeError, KeyError, ValueError) as error:
            raise FeatureFileError(f"{path} is not a shard of features ({error}).") from error
        if any(len(column) != shard.rows for column in rows.arrays().values()):
            raise FeatureFileError(f"{path} has not the {shard.rows} rows of the manifest.")
        if self.manifest.kinds and kinds != self.manifest.kinds:
            raise FeatureFileError(
                f"{path} holds {_listed(kinds)}, and the manifest says "
                f"{_listed(self.manifest.kinds)}."
            )
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
    classes, environments : sequence of str, default=()
        Names of the numbers in the columns `labels` and `environments`, if they are known.

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
        self,
        folder: str | Path,
        made_of: Mapping[str, Any],
        *,
        rows_per_shard: int = 8192,
        classes: Sequence[str] = (),
        environments: Sequence[str] = (),
    ) -> None:
        self.folder = Path(folder)
        check_number("rows_per_shard", rows_per_shard, 1, MOST_ROWS, whole=True)
        self.rows_per_shard = rows_per_shard
        if self.folder.exists() and not self.folder.is_dir():
            raise FeatureFileError(f"{self.folder} is a file: name a folder.")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._wanted = Manifest(
            dict(made_of), classes=tuple(classes), environments=tuple(environments)
        )
        self._pending: list[Features] = []
        self._held: ExitStack | None = None
        self._manifest = self._begin()

    @property
    def n_written(self) -> int:
        """Number of rows that are safe on disk: where to go on."""
        return sum(shard.rows for shard in self._manifest.shards)

    @property
    def whole(self) -> bool:
        """Whether the file was finished before."""
        return self._manifest.whole

    def add(self, chunk: Features) -> None:
        """Add rows; they are on disk when a shard is full, or at the end."""
        if self.whole:
            raise FeatureFileError(f"{self.folder} is finished: rows cannot be added.")
        if self._held is None:
            raise FeatureFileError(
                f"{self.folder} is not held by this writer: add rows inside 'with FeatureWriter(…) "
                "as writer:'."
            )
        self._check(chunk)
        self._pending.append(chunk)
        if sum(len(c) for c in self._pending) >= self.rows_per_shard:
            self._write_shard()

    def __enter__(self) -> Self:
        with ExitStack() as held:
            if not held.enter_context(only_user(self.folder)):
                raise FeatureFileError(
                    f"{self.folder} is being written by another process: wait for it, or name "
                    "another folder."
                )
            sweep(self.folder)
            self._manifest = self._begin()  # what another process wrote since
            self._held = held.pop_all()
        return self

    def __exit__(self, kind: Any, *rest: Any) -> None:
        held, self._held = self._held, None
        with held or ExitStack():
            if self._pending and kind in (None, KeyboardInterrupt):
                self._write_shard()
            if kind is None and not self.whole:
                self._save(replace(self._manifest, whole=True))

    def _begin(self) -> Manifest:
        if not (self.folder / MANIFEST).exists():
            return self._wanted
        file = FeatureFile.open(self.folder)
        found, wanted = file.made_of, self._wanted.made_of
        if found != wanted:
            both = {*found, *wanted}
            different = sorted(key for key in both if found.get(key) != wanted.get(key))
            raise FeatureFileError(
                f"{self.folder} holds features of something else ({', '.join(different)} differ): "
                "name another folder, or remove this one."
            )
        return file.manifest if file.whole or file.manifest.kinds else self._upgraded(file)

    def _upgraded(self, file: FeatureFile) -> Manifest:
        """Return what protocol 1 did not tell of rows that are there."""
        sizes = [(file.folder / shard.name).stat().st_size for shard in file.shards]
        known = zip(file.shards, sizes, strict=True)
        first = next(file.chunks(), None)
        return replace(
            self._wanted,
            shards=tuple(replace(shard, bytes=size) for shard, size in known),
            kinds={} if first is None else kinds_of(first),
        )

    def _check(self, chunk: Features) -> None:
        columns = chunk.arrays() if isinstance(chunk, Features) else {}
        wanted = columns.keys() >= {*COLUMNS[:3]}
        if not wanted or not all(isinstance(column, np.ndarray) for column in columns.values()):
            raise FeatureFileError(
                "these rows cannot be added: give Features(features, labels, environments) of "
                "arrays of NumPy."
            )
        try:
            kinds = kinds_of(chunk)
        except (TypeError, ValueError) as error:
            raise FeatureFileError(f"these rows cannot be added: {error}.") from error
        if self._manifest.kinds and kinds != self._manifest.kinds:
            raise FeatureFileError(
                f"these rows hold {_listed(kinds)}, and those before "
                f"{_listed(self._manifest.kinds)}: a file has one kind of rows."
            )
        self._manifest = replace(self._manifest, kinds=kinds)

    def _write_shard(self) -> None:
        from safetensors.numpy import save

        parts = [chunk.arrays() for chunk in self._pending]
        columns = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
        data = save({name: np.ascontiguousarray(a) for name, a in columns.items()})
        name = f"shard-{len(self._manifest.shards):05d}.safetensors"
        write_whole(self.folder / name, lambda path: path.write_bytes(data))
        digest = hashlib.sha256(data).hexdigest()
        shard = Shard(name, len(columns["labels"]), digest, len(data))
        self._save(replace(self._manifest, shards=(*self._manifest.shards, shard)))

    def _save(self, manifest: Manifest) -> None:
        write_manifest(self.folder, manifest)
        # At once: after Ctrl-C between the two, the same rows would be written a second time.
        self._manifest, self._pending = manifest, []


def kinds_of(rows: Features) -> dict[str, Kind]:
    """Return what each column holds; `ValueError` if it is no column of features.

    Parameters
    ----------
    rows : Features
        Some rows.
    """
    kinds = {n: Kind(a.dtype.name, tuple(a.shape[1:])) for n, a in rows.arrays().items()}
    for name, array in rows.arrays().items():
        n_axes, kind = (2, "f") if name == "features" else (1, "iu")
        if array.ndim != n_axes or array.dtype.kind not in kind or len(array) != len(rows):
            raise ValueError(
                f"{name} is {array.dtype} of shape {array.shape}; needed are {len(rows)} rows of "
                f"{'floats, two axes' if n_axes == 2 else 'integers, one axis'}"
            )
    return kinds


def _listed(kinds: Mapping[str, Kind]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in sorted(kinds.items()))
