"""Rows that come chunk by chunk: what is larger than memory, or on other machines.

Everything that a fit needs of the rows is a sum over them. So a source of rows has one verb,
`total`: apply a function to every chunk and add up what it returns. A loop over a file does that,
and so does a cluster.
"""

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import numpy as np

from isrlearn.rows._blocks import WIDE, block_rows
from isrlearn.rows._device import on_device, to_host
from isrlearn.rows._given import Chunk, chunk_of, names_of, whole_chunk
from isrlearn.rows._iterators import again, ahead
from isrlearn.rows._slices import dtype_of, part_of, view_of
from isrlearn.rows._validation import Rows, check_rows

CHUNK_BYTES: Final = 2**25
NO_ROWS: Final = "there are no rows: give at least one chunk."
LARGE_MAP: Final = 2**27  # bytes of a memory map that is not read at once

T = TypeVar("T", bound="Addable")
Watch = Callable[[str, int, int | None], None]
"""Called with what is done, the rows done and the rows of all (None if that is not known)."""


class NoRowsError(ValueError):
    """All chunks are empty."""


class Addable(Protocol):
    """Something that adds up."""

    def __add__(self: T, other: T, /) -> T:
        """Return the sum."""


class Begun(NamedTuple):
    """A sum over the first chunks, and how to know these again."""

    n_chunks: int
    n_rows: int
    mark: int
    """Of the last of these chunks: chunks that are cut in another way have another one."""
    running: Any
    """The sum."""


class ChunkedRows(ABC):
    """Rows whose sums can be taken as often as they are asked for.

    ``ISRMean``, ``ISRCov``, ``ISR`` and ``ISRClassifier`` take one as X: labels, environments and
    weights come with it. Make one with `from_arrays`, `from_chunks`, `isrlearn.io.open_rows` or
    `isrlearn.distributed.DaskRows`.

    Attributes
    ----------
    n_features : int
        Number of features d.
    n_rows : int or None
        Number of rows, if that is known before they are read.
    feature_names : tuple of str or None
        Names of the features.

    Examples
    --------
    >>> from isrlearn import ChunkedRows, ISRMean
    >>> from isrlearn.datasets import load_penguins
    >>> X, y, species = load_penguins()
    >>> halves = [(X[::2], y[::2], species[::2]), (X[1::2], y[1::2], species[1::2])]
    >>> chunked = ISRMean(1).fit(ChunkedRows.from_chunks(halves))
    >>> whole = ISRMean(1).fit(X, y, environments=species)
    >>> bool(chunked.subspace_.angles_to(whole.subspace_).max() < 1e-6)
    True
    """

    n_features: int
    n_rows: int | None = None
    feature_names: tuple[str, ...] | None = None

    @abstractmethod
    def total(self, function: Callable[[Rows], T]) -> T:
        """Return the sum of what a function returns for each chunk of checked rows.

        Parameters
        ----------
        function : callable
            Its results have ``+``.
        """

    @staticmethod
    def from_arrays(
        X: Any,
        y: Any,
        *,
        environments: Any = None,
        sample_weight: Any = None,
        watch: Watch | None = None,
    ) -> "LocalChunks":
        """Return rows of arrays that are read slice by slice.

        Parameters
        ----------
        X : array of shape (n, d)
            A memory map (``np.load(file, mmap_mode="r")``), or anything that has ``shape`` and
            ``dtype`` and gives rows for ``X[a:b]``: a tensor, a dataset of an HDF5 or zarr file. Of
            a memory map, pages are given back when their rows were read.
        y : array of shape (n,)
            Class labels.
        environments : array of shape (n,), default=None
            Environments; None, NaN or NA where unknown.
        sample_weight : array of shape (n,), default=None
            Weights.
        watch : callable, default=None
            Called with what is done, the rows done and the rows of all.
        """
        columns = whole_chunk(Chunk(X, y, environments, sample_weight))
        n_rows, n_features = columns.X.shape
        step = chunk_rows(n_features, np.dtype(dtype_of(columns.X)).itemsize)
        starts = range(0, n_rows, step)

        several = n_rows > step
        cut = part_of if several else view_of  # one chunk may stay where it is

        def chunks(skip: int) -> Iterator[Chunk]:
            for start in starts[skip:]:
                yield Chunk(*(cut(column, start, start + step) for column in columns))

        return LocalChunks(chunks, n_features, n_rows=n_rows, watch=watch, read_ahead=several)

    @staticmethod
    def from_chunks(
        chunks: Iterable[Any] | Callable[[], Iterable[Any]], *, watch: Watch | None = None
    ) -> "LocalChunks":
        """Return rows of chunks (X, y), (X, y, environments) or (X, y, environments, weights).

        Parameters
        ----------
        chunks : iterable, or callable that returns one
            A logistic head needs several passes: give something that can be iterated over again,
            such as a list, a torch DataLoader, or a function that opens the file anew.
        watch : callable, default=None
            As in `from_arrays`.
        """
        make = again(chunks)
        found = next(iter(make()), None)
        if found is None:
            raise ValueError(NO_ROWS)
        first = chunk_of(found, 1)
        names = names_of(first)
        shape = np.shape(first.X)
        if len(shape) != 2:
            raise ValueError(
                f"the first chunk has features of shape {shape}, expected (rows, features): give "
                "two dimensions."
            )
        return LocalChunks(
            lambda skip: (
                chunk_of(chunk, number, names)
                for number, chunk in enumerate(islice(make(), skip, None), skip + 1)
            ),
            int(shape[1]),
            watch=watch,
        )


class LocalChunks(ChunkedRows):
    """Chunks that this process reads one after the other.

    Parameters
    ----------
    chunks : callable
        Returns an iterator over `Chunk`, or checked `Rows`, without the first ones.
    n_features : int
        Number of features.
    n_rows : int, default=None
        Number of rows, if that is known.
    feature_names : tuple of str, default=None
        Names of the features.
    watch : callable, default=None
        Called with what is done, the rows done and the rows of all.
    read_ahead : bool, default=False
        Whether the next chunk may be read by another thread while one is worked on.
    """

    def __init__(
        self,
        chunks: Callable[[int], Iterator[Any]],
        n_features: int,
        *,
        n_rows: int | None = None,
        feature_names: tuple[str, ...] | None = None,
        watch: Watch | None = None,
        read_ahead: bool = False,
    ) -> None:
        self._chunks = chunks
        self._read_ahead = read_ahead
        self.n_features = n_features
        self.n_rows = n_rows
        self.feature_names = feature_names
        self.watch = watch

    def chunks(self, skip: int = 0) -> Iterator[Chunk]:
        """Return an iterator over the chunks, without the first ones."""
        return self._chunks(skip)

    def total(
        self,
        function: Callable[[Rows], T],
        *,
        begun: Begun | None = None,
        save: Callable[[Begun, Rows], None] | None = None,
    ) -> T:
        """Return the sum of what a function returns for each chunk of checked rows.

        Parameters
        ----------
        function : callable
            Its results have ``+``.
        begun : Begun, default=None
            A sum over the first chunks, to go on with. It is not used if the chunks are others.
        save : callable, default=None
            Called with the sum so far, and the rows that were the last, after each chunk.
        """
        done, chunks = self._go_on(begun, function)
        for number, rows in chunks:
            with _naming(number):
                part = function(rows)
            if done is None:
                done = Begun(number, len(rows.X), 0, part)
            else:
                running = done.running
                running += part  # in place where the sum knows how
                done = Begun(number, done.n_rows + len(rows.X), 0, running)
            if save is not None:
                save(done, rows)
            if self.watch is not None:
                self.watch(_name(function), done.n_rows, self.n_rows)
        if done is None:
            raise NoRowsError(NO_ROWS)
        total: T = done.running
        return total

    def _rows(self, function: Any, skip: int) -> Iterator[tuple[int, Rows]]:
        """Yield the number of each chunk, from 1, and its checked rows; empty ones are left out."""
        chunks = self._chunks(skip)
        for number, chunk in enumerate(ahead(chunks) if self._read_ahead else chunks, skip + 1):
            if len(chunk.X) == 0:  # a chunk of a file with no row to train on
                continue
            if on_device(chunk.X) and not getattr(function, "works_on_device", False):
                chunk = chunk._replace(X=to_host(chunk.X))  # a chunk at a time
            rows = self._checked(chunk, number)
            if len(rows.X):  # not all weights are zero
                yield number, rows

    def _go_on(
        self, begun: Begun | None, function: Any
    ) -> tuple[Begun | None, Iterator[tuple[int, Rows]]]:
        """Return a sum to go on with, if its last chunk is still the same, and what is left."""
        if begun is None:
            return None, self._rows(function, 0)
        chunks = self._rows(function, begun.n_chunks - 1)
        number, rows = next(chunks, (0, None))
        if rows is not None and number == begun.n_chunks and mark_of(rows) == begun.mark:
            return begun, chunks
        return None, self._rows(function, 0)

    def _checked(self, chunk: Chunk | Rows, number: int) -> Rows:
        rows = chunk if isinstance(chunk, Rows) else checked(chunk, number)
        if rows.X.shape[1] != self.n_features:
            raise ValueError(
                f"chunk {number} has {rows.X.shape[1]} features, the first has {self.n_features}: "
                "all chunks must have the same columns."
            )
        return rows


class InMemory(ChunkedRows):
    """Checked rows that are there: one chunk, which functions read in blocks of their own.

    Parameters
    ----------
    rows : Rows
        The rows.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.n_rows, self.n_features = rows.X.shape

    def total(self, function: Callable[[Rows], T]) -> T:
        """Return what a function returns for the rows."""
        return function(self.rows)


def as_chunks(X: Any, y: Any, environments: Any, sample_weight: Any) -> ChunkedRows | None:
    """Return the arguments of `fit` as chunks if they are such; None for arrays in memory.

    A large memory map is read chunk by chunk: looked through as a whole it would fill the memory.

    Parameters
    ----------
    X : array-like or ChunkedRows
        Features.
    y, environments, sample_weight : array-like or None
        What belongs to them.
    """
    others = {"y": y, "environments": environments, "sample_weight": sample_weight}
    if isinstance(X, ChunkedRows):
        given = [name for name, value in others.items() if value is not None]
        if given:
            raise ValueError(
                f"{', '.join(given)} cannot be given beside ChunkedRows: labels, environments and "
                "weights are part of the rows."
            )
        return X
    mapped = isinstance(X, np.memmap) and X.ndim == 2 and X.nbytes > LARGE_MAP
    if not mapped or y is None or X.dtype not in (np.float32, np.float64):
        return None
    return ChunkedRows.from_arrays(X, y, environments=environments, sample_weight=sample_weight)


def chunk_rows(n_features: int, itemsize: int) -> int:
    """Return how many rows make a chunk: at least 32 MB, more where products are large."""
    if n_features > WIDE:
        return block_rows(n_features, itemsize)
    return max(1, CHUNK_BYTES // (n_features * itemsize))


def checked(chunk: Chunk, number: int) -> Rows:
    """Return the rows of a chunk, checked and encoded.

    Parameters
    ----------
    chunk : Chunk
        The chunk.
    number : int
        Its number, for messages.
    """
    if hasattr(chunk.X, "detach") and not on_device(chunk.X):  # a view, in its own precision
        chunk = chunk._replace(X=chunk.X.detach().numpy())
    with _naming(number):
        # The first pass, of moments, finds what is not finite; no pass looks for it apart.
        return check_rows(*chunk, chunk=True, look_for_nan=False)


@contextmanager
def _naming(number: int) -> Iterator[None]:
    """Say in which chunk something is wrong."""
    try:
        yield
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"chunk {number}: {error}") from error


def mark_of(rows: Rows) -> int:
    """Return a number that other rows hardly have.

    Parameters
    ----------
    rows : Rows
        The rows of a chunk.
    """
    columns = to_host(rows.X), rows.class_codes, rows.environment_codes, rows.sample_weight
    found = len(rows.X)
    for column in columns:
        if column is not None:
            content: Any = np.ascontiguousarray(column).reshape(-1).view(np.uint8)
            found = zlib.crc32(content, found)
    return found


def _name(function: Any) -> str:
    return str(getattr(function, "title", "Reading"))
