"""Rows that are with the workers of a Dask cluster."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import chain
from operator import add
from typing import Any, Final, NamedTuple

import numpy as np
from sklearn.utils import check_array

from isrlearn.distributed._files import parts_of_files
from isrlearn.io._open import Prepare
from isrlearn.io._roles import asked_for
from isrlearn.io._rows import TRAIN
from isrlearn.rows import (
    NO_ROWS,
    Chunk,
    ChunkedRows,
    NoRowsError,
    Rows,
    RowSource,
    T,
    Watch,
    checked,
    on_device,
)
from isrlearn.typing import FLOATS

TASKS_PER_WORKER: Final = 2  # few, since each waits for the scheduler
FAN_IN: Final = 8  # sums that one task adds


class Task(NamedTuple):
    """Rows that one task adds up."""

    chunks: Callable[..., Iterator[Chunk | Rows]]
    """Makes chunks out of the parts, on the worker."""
    parts: tuple[Any, ...] = ()
    """Delayed objects: what the cluster has or can compute."""


class DaskRows(RowSource):
    """Rows in blocks that the workers of a Dask cluster have, or can read.

    What moves over the network is one sum for each task: k E d² numbers for moments with scatters,
    k E d for means alone, d + 1 for a step of a logistic head, however many rows there are. Sums
    are added by a tree of fixed shape: the result depends neither on which worker did what, nor on
    a worker that died, whose tasks Dask gives to another.

    Make it with `from_arrays`, `from_dataframe` or `from_files`.

    Parameters
    ----------
    tasks : list of Task
        All rows.
    client : distributed.Client
        The cluster.
    n_features : int
        Number of features.
    n_rows : int, default=None
        Number of rows, if that is known.
    feature_names : tuple of str, default=None
        Names of the features.
    watch : callable, default=None
        Called with what is done, the tasks done and the tasks of all.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from isrlearn import ISRClassifier
    >>> from isrlearn.datasets import load_penguins
    >>> from isrlearn.distributed import DaskRows
    >>> X, y, species = load_penguins()
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     blocks = da.from_array(X, chunks=(100, 4))
    ...     rows = DaskRows.from_arrays(blocks, y, environments=species, client=client)
    ...     clf = ISRClassifier().fit(rows)
    >>> clf.coef_.shape
    (1, 4)
    """

    def __init__(
        self,
        tasks: list[Task],
        client: Any,
        n_features: int,
        *,
        n_rows: int | None = None,
        feature_names: tuple[str, ...] | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.tasks = tasks
        self.client = client
        self.n_features = n_features
        self.n_rows = n_rows
        self.feature_names = feature_names
        self.watch = watch
        self._held: tuple[Any, ...] = ()

    def total(self, function: Callable[[Rows], T]) -> T:
        """Return the sum of what a function returns for each chunk of rows, added by a tree."""
        level = [
            _submit(self.client, partial(_sum_of, function, self.n_features, chunks), parts)
            for chunks, parts in self.tasks
        ]
        if self.watch is not None:
            self._tell(level, str(getattr(function, "title", "Reading")), self.watch)
        while len(level) > 1:
            groups = [level[i : i + FAN_IN] for i in range(0, len(level), FAN_IN)]
            level = [self.client.submit(_sum_up, *group, pure=False) for group in groups]
        found: T | None = level[0].result()
        if found is None:
            raise NoRowsError(NO_ROWS)
        return found

    @staticmethod
    def _tell(futures: list[Any], title: str, watch: Watch) -> None:
        """Say how many tasks are done until all are."""
        from distributed import as_completed

        for n_done, _ in enumerate(as_completed(futures, raise_errors=False), 1):
            watch(title, n_done, len(futures))

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        *,
        environments: Any = None,
        sample_weight: Any = None,
        client: Any = None,
        watch: Watch | None = None,
    ) -> "DaskRows":
        """Return the rows of Dask arrays.

        Blocks that were persisted stay where they are, and each pass is a few tasks per worker.
        Others are computed anew for each pass, one at a time.

        Parameters
        ----------
        X : dask.array of shape (n, d)
            Features.
        y, environments, sample_weight : dask.array or array-like of shape (n,)
            What belongs to them; None as in `ISRClassifier.fit`.
        client : distributed.Client, default=None
            The cluster; None is the default client.
        watch : callable, default=None
            Called with what is done, the tasks done and the tasks of all.
        """
        from distributed import futures_of

        client = _client(client)
        if len(X.shape) != 2:
            raise ValueError(f"X has shape {X.shape}, expected (rows, features).")
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        named = _named(y, environments, sample_weight)
        cut = [_column(column, name, X, client) for name, column in named]
        columns = [list(column.to_delayed()) for column in cut]
        lengths = np.asarray(X.chunks[0], dtype=float)
        blocks = list(zip(X.to_delayed()[:, 0], *columns, strict=True))
        chunks = _ArrayChunks((environments is not None, sample_weight is not None))
        if futures_of(X):
            futures = [client.compute(list(blocks[i])) for i in _by_worker(X, client)]
            tasks = _persisted_tasks(chunks, futures, client)
        else:
            tasks = [Task(chunks, block) for block in blocks]
        n_rows = None if np.isnan(lengths).any() else int(lengths.sum())
        rows = cls(tasks, client, int(X.shape[1]), n_rows=n_rows, watch=watch)
        rows._held = (X, *cut)  # what nobody holds, the cluster forgets
        return rows

    @classmethod
    def from_dataframe(
        cls,
        frame: Any,
        *,
        label: str,
        environment: str,
        weight: str | None = None,
        client: Any = None,
        watch: Watch | None = None,
    ) -> "DaskRows":
        """Return the rows of a Dask dataframe; its other columns are the features.

        Parameters
        ----------
        frame : dask.dataframe.DataFrame
            Of numbers, apart from labels and environments.
        label, environment : str
            Columns of the labels and the environments.
        weight : str, default=None
            Column of the weights.
        client, watch
            As in `from_arrays`.
        """
        names = [name for name in (label, environment, weight) if name is not None]
        absent = [name for name in names if name not in frame.columns]
        if absent:
            raise ValueError(
                f"the dataframe has no column {absent[0]!r}: the columns are "
                f"{[str(name) for name in frame.columns]}."
            )
        features = [name for name in frame.columns if name not in names]
        chunks = _FrameChunks(tuple(features), label, environment, weight)
        return cls(
            [Task(chunks, (part,)) for part in frame.to_delayed()],
            _client(client),
            len(features),
            feature_names=tuple(map(str, features)),
            watch=watch,
        )

    @classmethod
    def from_files(
        cls,
        paths: Any,
        *,
        label: str | None = None,
        environment: str | Sequence[str] = (),
        split: str | None = None,
        drop: str | Sequence[str] = (),
        part: int = TRAIN,
        prepare: Prepare | None = None,
        client: Any = None,
        watch: Watch | None = None,
    ) -> "DaskRows":
        """Return the rows of files that the workers read: each a part of the chunks.

        Parameters
        ----------
        paths : path or sequence of path
            As in `isrlearn.io.open_rows`. All workers must see them under this name.
        label, environment, split, drop
            As in `isrlearn.io.open_rows`.
        part : int, default=0
            Rows of the split: 0 train, 1 validation, 2 test; without a split all are 0.
        prepare : callable, default=None
            What is done to the features of a chunk first.
        client, watch
            As in `from_arrays`.
        """
        client = _client(client)
        n_tasks = TASKS_PER_WORKER * max(1, len(client.nthreads()))
        asked = asked_for(label, environment, split, drop)
        found = parts_of_files(paths, asked, part, prepare, n_tasks)
        return cls(
            [Task(file.chunks_of) for file in found.parts],
            client,
            found.n_features,
            n_rows=found.n_rows,
            feature_names=found.feature_names,
            watch=watch,
        )


@dataclass(frozen=True)
class _ArrayChunks:
    """Blocks of arrays as chunks."""

    given: tuple[bool, bool]
    """Whether there are environments, and weights."""

    def __call__(self, *blocks: Any) -> Iterator[Chunk]:
        """Yield chunks of (X, y, ...), (X, y, ...), ..."""
        width = 2 + sum(self.given)
        for start in range(0, len(blocks), width):
            X, y, *others = blocks[start : start + width]
            values = iter(others)
            yield Chunk(X, y, *(next(values) if given else None for given in self.given))


def _persisted_tasks(chunks: _ArrayChunks, blocks: list[list[Any]], client: Any) -> list[Task]:
    """Return a few tasks per worker. Labels are encoded once and stay where their rows are."""
    group = -(-len(blocks) // (TASKS_PER_WORKER * max(1, len(client.nthreads()))))
    tasks = []
    for start in range(0, len(blocks), group):
        own = blocks[start : start + group]
        encoded = client.submit(partial(_encoded, chunks), *chain.from_iterable(own), pure=False)
        tasks.append(Task(_with_labels, (encoded, *(X for X, *_ in own))))
    return tasks


def _encoded(chunks: _ArrayChunks, *blocks: Any) -> list[Rows | Chunk]:
    """Return checked rows without their features; chunks as they are where that cannot be.

    These are empty chunks, chunks on a device, and those in which some rows do not count.
    """
    found: list[Rows | Chunk] = []
    for number, chunk in enumerate(chunks(*blocks), 1):
        plain = len(chunk.X) == 0 or on_device(chunk.X)
        rows = None if plain else checked(chunk, number)
        if rows is None or len(rows.X) < len(chunk.X):
            found.append(chunk._replace(X=None))
        else:
            found.append(replace(rows, X=rows.X[:0].copy()))
    return found


def _with_labels(encoded: list[Rows | Chunk], *features: Any) -> Iterator[Rows | Chunk]:
    """Yield rows, given what `_encoded` has found and their features."""
    for found, X in zip(encoded, features, strict=True):
        if isinstance(found, Rows):  # features that were checked before, and were not kept
            yield replace(found, X=check_array(X, dtype=FLOATS, ensure_all_finite=False))
        else:
            yield found._replace(X=X)


@dataclass(frozen=True)
class _FrameChunks:
    """A part of a dataframe as a chunk."""

    features: tuple[Any, ...]
    label: str
    environment: str
    weight: str | None

    def __call__(self, frame: Any) -> Iterator[Chunk]:
        """Yield the part."""
        weights = None if self.weight is None else frame[self.weight].to_numpy()
        yield Chunk(
            frame[list(self.features)].to_numpy(),
            frame[self.label],
            frame[self.environment],
            weights,
        )


def _submit(client: Any, call: Any, parts: tuple[Any, ...]) -> Any:
    """Start a task on what the cluster has, or on what it must compute for it."""
    from dask import delayed
    from distributed import Future

    # In a partial, what the function holds is sent as it is: Dask would look for tasks inside.
    if all(isinstance(part, Future) for part in parts):
        return client.submit(call, *parts, pure=False)
    return client.compute(delayed(call, pure=False)(*parts))


def _sum_of(function: Any, n_features: int, chunks: Any, *parts: Any) -> Any:
    """Add up the chunks of a task, on a worker; None if all are empty."""
    try:
        return ChunkedRows(lambda: chunks(*parts), n_features).total(function)
    except NoRowsError:
        return None


def _sum_up(*sums: Any) -> Any:
    """Add sums in their order, without a change to any: a task may be run again."""
    found = [part for part in sums if part is not None]
    return reduce(add, found) if found else None


def _named(*columns: Any) -> list[tuple[str, Any]]:
    names = ("y", "environments", "sample_weight")
    return [(n, c) for n, c in zip(names, columns, strict=True) if c is not None]


def _column(column: Any, name: str, X: Any, client: Any) -> Any:
    """Return a column as a Dask array, cut as X is."""
    import dask.array as da

    lengths = X.chunks[0]
    if not hasattr(column, "dask"):
        if len(column) != X.shape[0]:
            raise ValueError(
                f"{name} has {len(column)} values but X has {X.shape[0]} rows: give one per row."
            )
        column = client.persist(da.from_array(np.asarray(column), chunks=(lengths,)))
    if column.ndim != 1:
        raise ValueError(f"{name} has shape {column.shape}, expected one value per row.")
    if column.numblocks[0] != len(lengths) or not _same(column.chunks[0], lengths):
        column = column.rechunk((lengths,))
    return column


def _same(one: Any, other: Any) -> bool:
    """Whether blocks have the same lengths, as far as these are known."""
    pairs = zip(one, other, strict=True)
    return all(a == b or a != a or b != b for a, b in pairs)


def _by_worker(X: Any, client: Any) -> list[int]:
    """Return the order of persisted blocks in which those of one worker stand together."""
    where = client.who_has(X)
    keys = [row[0] for row in X.__dask_keys__()]
    homes = [min(where.get(key, where.get(str(key), ())) or ("",)) for key in keys]
    return sorted(range(len(keys)), key=lambda i: (homes[i], i))


def _client(client: Any) -> Any:
    if client is not None:
        return client
    from distributed import default_client

    try:
        return default_client()
    except ValueError as error:
        raise ValueError(
            "there is no Dask client: make one (distributed.Client(address)) or pass client=."
        ) from error
