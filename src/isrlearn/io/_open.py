"""Rows of a file that is larger than memory."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np

from isrlearn.display import brief
from isrlearn.exceptions import DataError, FeatureFileError
from isrlearn.io._archives import DAMAGE, damaged, require_rows
from isrlearn.io._coded import Coded, coded, crossed_columns, refuse_length, split_of
from isrlearn.io._readers import (
    Reader,
    folder_reader,
    npz_reader,
    parquet_reader,
    safetensors_reader,
    with_columns,
)
from isrlearn.io._roles import ARRAY, COLUMN, Asked, Roles, asked_for, find_roles
from isrlearn.io._rows import TRAIN
from isrlearn.io._schema import Column, Schema
from isrlearn.io._values import refuse_formula, refuse_measurements, refuse_wide
from isrlearn.rows import BIN_THEM, Chunk, ChunkedRows, Watch
from isrlearn.typing import BoolArray, FloatArray, LabelArray

READERS: Final[Mapping[str, Callable[[Path], Reader]]] = {
    ".npz": npz_reader,
    ".safetensors": safetensors_reader,
    ".parquet": parquet_reader,
}
UNKNOWN: Final = "-1"

Prepare = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class RowFile:
    """A file whose features are read chunk by chunk.

    Parameters
    ----------
    reader : Reader
        How.
    labels, environments : Coded
        Of all rows.
    split : ndarray of shape (n,) or None
        0 train, 1 validation, 2 test.
    schema : Schema
        How columns became features.
    notes : tuple of str
        What the user should know.
    """

    reader: Reader
    labels: Coded
    environments: Coded
    split: LabelArray | None
    schema: Schema
    notes: tuple[str, ...]

    def n_rows(self, part: int) -> int:
        """Return the number of rows of a part that have a label."""
        return int(self.is_in(part).sum())

    def is_in(self, part: int) -> BoolArray:
        """Return the mask of the rows of a part that have a label, (n,)."""
        known = self.labels.codes != len(self.labels.values) - 1
        if self.split is None:
            return np.asarray(known & (part == TRAIN))
        return np.asarray(known & (self.split == part))

    def rows(
        self,
        part: int = TRAIN,
        *,
        prepare: Prepare | None = None,
        watch: Watch | None = None,
        among: tuple[int, int | None] = (0, None),
    ) -> ChunkedRows:
        """Return the rows of a part: 0 train (all rows where there is no split), 1, 2.

        Parameters
        ----------
        part : int, default=0
            Which.
        prepare : callable, default=None
            What is done to the features of a chunk first.
        watch : callable, default=None
            Called with what is done, the rows done and the rows of all.
        among : (int, int or None), default=(0, None)
            The first chunk and the one after the last: a worker reads its own.
        """
        first, last = among

        def chunks() -> Iterator[Chunk]:
            for chunk in self._chunks(first, last, part):
                yield chunk if prepare is None else chunk._replace(X=prepare(chunk.X))

        n_features = self.reader.n_features
        if prepare is not None:
            n_features = prepare(np.zeros((1, n_features))).shape[1]
        names = self.schema.feature_names if prepare is None and self._named else None
        return ChunkedRows(
            chunks,
            n_features,
            n_rows=self.n_rows(part),
            feature_names=names,
            watch=watch,
            read_ahead=True,
        )

    @property
    def n_chunks(self) -> int:
        """Number of chunks."""
        return len(self.reader.starts)

    @property
    def _named(self) -> bool:
        return self.schema.kind == "table"

    def _chunks(self, first: int, last: int | None, part: int) -> Iterator[Chunk]:
        if first >= self.n_chunks:  # all were read before
            return
        stop, used = self.reader.starts[first], self.is_in(part)
        wanted_chunks = None if last is None else last - first
        for features in islice(_undamaged(self.reader, first), wanted_chunks):
            start, stop = stop, stop + len(features)
            self._refuse_rows(stop, stop <= self.reader.n_rows)
            wanted = used[start:stop]
            rows = slice(start, stop) if wanted.all() else start + np.flatnonzero(wanted)
            yield Chunk(
                features if wanted.all() else features[wanted],
                self.labels.part(rows),
                self.environments.part(rows),
            )
        whole = last is None or last >= self.n_chunks
        self._refuse_rows(stop, not whole or stop == self.reader.n_rows)

    def _refuse_rows(self, n_rows: int, as_claimed: bool) -> None:
        if not as_claimed:
            raise DataError(
                f"{self.reader.path} is damaged: {n_rows} rows of features were read, and it says "
                f"that it has {self.reader.n_rows}. Write the file again."
            )


def _undamaged(reader: Reader, first: int) -> Iterator[FloatArray]:
    with _blaming(reader.path):
        yield from reader.chunks(first)


@contextmanager
def _blaming(path: Path) -> Iterator[None]:
    """Say that what goes wrong in reading is the file's fault."""
    try:
        yield
    except (DataError, FeatureFileError):
        raise
    except DAMAGE as error:
        raise DataError(damaged(path, error)) from error


def open_rows(
    path: str | Path,
    *,
    label: str | None = None,
    environment: str | Sequence[str] = (),
    split: str | None = None,
    drop: str | Sequence[str] = (),
    watch: Watch | None = None,
) -> ChunkedRows:
    """Open the rows of a file to train on, to be read chunk by chunk.

    Parameters
    ----------
    path : path
        A ``.npz`` or ``.safetensors`` file with arrays `features`, `labels`, `environments` and
        perhaps `split`; a folder that `FeatureWriter` wrote; or a ``.parquet`` table, of which
        numeric columns are features.
    label, environment, split, drop
        As in `read_data`.
    watch : callable, default=None
        Called with what is done, the rows done and the rows of all.

    Returns
    -------
    ChunkedRows
        What ``fit`` of the estimators takes as X. With a split, the rows to train on.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> from isrlearn import ISRClassifier
    >>> from isrlearn.datasets import load_penguins
    >>> from isrlearn.io import open_rows
    >>> X, y, species = load_penguins()
    >>> file = Path(tempfile.mkdtemp()) / "penguins.npz"
    >>> np.savez(file, features=X, labels=y, environments=species)
    >>> ISRClassifier().fit(open_rows(file)).coef_.shape
    (1, 4)
    """
    asked = asked_for(label, environment, split, drop)
    return open_file(path, asked).rows(watch=watch)


def open_file(path: str | Path, asked: Asked) -> RowFile:
    """Open a file whose features are read chunk by chunk.

    Parameters
    ----------
    path : path
        As in `open_rows`.
    asked : Asked
        What the user said about the columns.
    """
    with _blaming(Path(path)):
        reader = _reader(Path(path))
        roles = find_roles(reader, asked)
        reader = with_columns(reader, {*roles.names(), *asked.drop})
        labels, environments, split = _columns(reader, roles)
    if labels.n_missing == reader.n_rows:
        raise DataError(f"{path} has no label in any row: fill them in or name another.")
    notes = [*reader.notes]
    if labels.n_missing:
        notes.append(f"left out {labels.n_missing} of {reader.n_rows} rows: they have no label.")
    if environments.n_missing:
        notes.append(
            f"the environment of {environments.n_missing} of {reader.n_rows} rows is unknown."
        )
    return RowFile(reader, labels, environments, split, _schema(reader, roles), tuple(notes))


def _reader(path: Path) -> Reader:
    require_rows(path)
    opener = folder_reader if path.is_dir() else READERS.get(path.suffix.lower())
    if opener is None:
        raise DataError(
            f"{path} ends in {path.suffix!r}, which cannot be read in chunks: give "
            f"{', '.join(READERS)} or a folder of features."
        )
    return opener(path)


def _columns(reader: Reader, roles: Roles) -> tuple[Coded, Coded, LabelArray | None]:
    def column(name: str, role: str, way_out: str, unknown: str | None = None) -> Coded:
        values = reader.column(name)
        refuse_length(values, reader.n_rows, name, reader.path)
        who = f"{reader.path}: {role} {reader.part} {brief(name)}"
        found = coded(values, who, way_out, unknown)
        refuse_wide(found.values, reader.n_rows, who, reader.path)
        if reader.part == COLUMN:
            _refuse_formulas(reader.path, name, role, found)
        return found

    unknown = UNKNOWN if reader.part == ARRAY else None

    def environment(name: str) -> Coded:
        found = column(name, "environment", BIN_THEM, unknown)
        who = f"{reader.path}: environment {reader.part} {brief(name)}"
        refuse_measurements(found.values[:-1], reader.n_rows - found.n_missing, who)
        return found

    labels = column(roles.label or "", "label", "classes are needed, so bin it or name another")
    environments = crossed_columns([environment(name) for name in roles.environment])
    split = None
    if roles.split is not None:
        values = reader.column(roles.split)
        refuse_length(values, reader.n_rows, roles.split, reader.path)
        who = f"{reader.path}: {reader.part} {brief(roles.split)}"
        split = split_of(values, who, lambda row: f"row {row + 1}")
    return labels, environments, split


def _refuse_formulas(path: Path, name: str, role: str, found: Coded) -> None:
    refuse_formula(name, f"{path}: the name of a column")
    for value in found.values:
        if isinstance(value, str):
            refuse_formula(value, f"{path}: a value of the {role} column {brief(name)}")


def _schema(reader: Reader, roles: Roles) -> Schema:
    if reader.feature_names is None:
        return Schema.of_array(reader.n_features, roles.label, roles.environment)
    columns = tuple(Column(name) for name in reader.feature_names)
    return Schema(columns, roles.label, roles.environment, "table")
