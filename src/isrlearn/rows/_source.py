"""Rows as sums: in memory, chunk by chunk, or on other machines, for whoever adds them up.

A pass is a function of checked rows whose results add up with ``+``. It may say what it does by a
`title`, and that it `works_on_device`. A source takes the sum of a pass over all of its rows as
often as it is asked for; nothing behind it knows where the rows are.
"""

import mmap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures  # whose pools are loaded when one is asked for
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from isrlearn.display import brief, some
from isrlearn.rows._device import on_device, to_host
from isrlearn.rows._features import as_rows
from isrlearn.rows._validation import Rows, check_rows

CHUNK_BYTES: Final = 2**25
MOST_BLOCK_BYTES: Final = 2**27
WIDE: Final = 256  # features beyond which products keep the precision of the rows
ROWS_PER_FEATURE: Final = 8  # of a block of many features, so that products outweigh their sum
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


class Chunk(NamedTuple):
    """Some rows as they were given, not checked."""

    X: Any
    """(n, d)"""
    y: Any
    """(n,) class labels."""
    environments: Any = None
    """(n,) environments; None where unknown, or for all."""
    sample_weight: Any = None
    """(n,) weights; None for ones."""


class RowSource(ABC):
    """Rows whose sums can be taken as often as they are asked for."""

    n_features: int
    n_rows: int | None = None
    """Number of rows, if that is known before they are read."""
    feature_names: tuple[str, ...] | None = None

    @abstractmethod
    def total(self, function: Callable[[Rows], T]) -> T:
        """Return the sum of what a pass returns for the rows, part by part."""


class InMemory(RowSource):
    """Checked rows that are there: one part, which passes read in blocks of their own."""

    n_rows: int

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.n_rows, self.n_features = rows.X.shape

    def total(self, function: Callable[[Rows], Any]) -> Any:
        """Return what a pass returns for the rows: nothing has to be added."""
        return function(self.rows)


class ChunkedRows(RowSource):
    """Rows that come chunk by chunk: what is larger than memory.

    Estimators take it in the place of X. Make it with `from_arrays`, `from_chunks` or
    `isrlearn.io.open_rows`; rows on a cluster are `isrlearn.distributed.DaskRows`.

    Parameters
    ----------
    chunks : callable
        Returns a new iterator over the chunks: tuples (X, y, environments, weights), or rows that
        were checked before.
    n_features : int
        Number of features d.
    n_rows : int, default=None
        Number of rows, if that is known.
    feature_names : tuple of str, default=None
        Names of the features.
    watch : callable, default=None
        Called with what is done, the rows done and the rows of all.
    read_ahead : bool, default=False
        Whether the next chunk may be read by another thread while one is worked on.

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

    def __init__(
        self,
        chunks: Callable[[], Iterator[Any]],
        n_features: int,
        *,
        n_rows: int | None = None,
        feature_names: tuple[str, ...] | None = None,
        watch: Watch | None = None,
        read_ahead: bool = False,
    ) -> None:
        self.chunks = chunks
        self.n_features = n_features
        self.n_rows = n_rows
        self.feature_names = feature_names
        self.watch = watch
        self.read_ahead = read_ahead

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        *,
        environments: Any = None,
        sample_weight: Any = None,
        watch: Watch | None = None,
    ) -> Self:
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
        X = X if hasattr(X, "shape") else as_rows(X)
        if len(X.shape) != 2:
            raise ValueError(
                f"X has shape {tuple(X.shape)}, expected (rows, features): give two dimensions."
            )
        columns = Chunk(X, y, environments, sample_weight)
        for name, column in zip(Chunk._fields[1:], columns[1:], strict=True):
            if column is None and name != "y":
                continue
            if not hasattr(column, "__len__") or isinstance(column, str):
                raise TypeError(f"{name}={brief(column)} is no array: give one value per row.")
            if len(column) != len(X):
                raise ValueError(
                    f"{name} has {len(column)} values but X has {len(X)} rows: give one value per "
                    "row."
                )
        n_rows, n_features = X.shape
        kind = str(getattr(X, "dtype", "")).rpartition(".")[2]  # torch.float32
        step = chunk_rows(n_features, {"float16": 2, "float32": 4}.get(kind, 8))
        several = n_rows > step  # one chunk may stay where it is

        def chunks() -> Iterator[Chunk]:
            for start in range(0, n_rows, step):
                yield Chunk(*(_part(column, start, start + step, several) for column in columns))

        return cls(chunks, n_features, n_rows=n_rows, watch=watch, read_ahead=several)

    @classmethod
    def from_chunks(
        cls, chunks: Iterable[Any] | Callable[[], Iterable[Any]], *, watch: Watch | None = None
    ) -> Self:
        """Return rows of chunks (X, y), (X, y, environments) or (X, y, environments, weights).

        Parameters
        ----------
        chunks : iterable, or callable that returns one
            A logistic head needs several passes: give something that can be iterated over again,
            such as a list, a torch DataLoader, or a function that opens the file anew.
        watch : callable, default=None
            As in `from_arrays`.
        """
        make = _again(chunks)
        found = next(iter(make()), None)
        if found is None:
            raise ValueError(NO_ROWS)
        first = _chunk_of(found, 1)
        names, shape = list(getattr(first.X, "columns", ())), np.shape(first.X)
        if len(shape) != 2:
            raise ValueError(
                f"the first chunk has features of shape {shape}, expected (rows, features): give "
                "two dimensions."
            )
        return cls(
            lambda: (_chunk_of(chunk, number, names) for number, chunk in enumerate(make(), 1)),
            int(shape[1]),
            watch=watch,
        )

    def total(self, function: Callable[[Rows], T]) -> T:
        """Return the sum of what a function returns for each chunk of checked rows.

        Parameters
        ----------
        function : callable
            Its results have ``+``.
        """
        total: Any = None
        n_done, chunks = 0, self.chunks()
        for number, chunk in enumerate(_ahead(chunks) if self.read_ahead else chunks, 1):
            if len(chunk.X) == 0:  # a chunk of a file with no row to train on
                continue
            if on_device(chunk.X) and not getattr(function, "works_on_device", False):
                chunk = chunk._replace(X=to_host(chunk.X))  # a chunk at a time
            rows = chunk if isinstance(chunk, Rows) else checked(chunk, number)
            if rows.X.shape[1] != self.n_features:
                raise ValueError(
                    f"chunk {number} has {rows.X.shape[1]} features, the first has "
                    f"{self.n_features}: all chunks must have the same columns."
                )
            if len(rows.X) == 0:  # all weights are zero
                continue
            with _naming(number):
                part = function(rows)
            if total is None:
                total = part
            else:
                total += part  # in place where the sum knows how
            n_done += len(rows.X)
            if self.watch is not None:
                self.watch(str(getattr(function, "title", "Reading")), n_done, self.n_rows)
        if total is None:
            raise NoRowsError(NO_ROWS)
        result: T = total
        return result


def as_source(X: Any, y: Any, environments: Any, sample_weight: Any) -> RowSource | None:
    """Return the arguments of `fit` as a source if they are one; None for arrays in memory.

    A large memory map is read chunk by chunk: looked through as a whole it would fill the memory.
    """
    others = {"y": y, "environments": environments, "sample_weight": sample_weight}
    if isinstance(X, RowSource):
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


def block_rows(n_features: int, itemsize: int) -> int:
    """Return how many rows of many features make a block."""
    most = MOST_BLOCK_BYTES // (n_features * itemsize)
    return max(1, min(ROWS_PER_FEATURE * n_features, most))


def checked(chunk: Chunk, number: int) -> Rows:
    """Return the rows of a chunk, the first of which has the number 1, checked and encoded."""
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


def _chunk_of(given: Any, number: int, names: list[Any] | None = None) -> Chunk:
    """Return what a user gave for a chunk; other columns than those of the first are refused."""
    if not isinstance(given, tuple | list) or not 2 <= len(given) <= len(Chunk._fields):
        parts = isinstance(given, tuple | list)
        what = f"has {len(given)} part(s)" if parts else f"is a {type(given).__name__}"
        raise TypeError(
            f"chunk {number} {what}: give (X, y), (X, y, environments) or (X, y, environments, "
            "sample_weight)."
        )
    chunk = Chunk(*given)
    own = list(getattr(chunk.X, "columns", ()))
    if names and len(own) == len(names) and own != names:
        raise ValueError(
            f"chunk {number} has the columns {some(own)}, the first {some(names)}: give the same "
            "columns in the same order."
        )
    return chunk


def _part(column: Any, start: int, stop: int, several: bool) -> Any:
    """Return some rows of a column; of a memory map a copy, and the pages are given back."""
    if column is None:
        return None
    if not several or not isinstance(column, np.memmap):
        return column.iloc[start:stop] if hasattr(column, "iloc") else column[start:stop]
    part = np.array(column[start:stop])
    pages, advice = getattr(column, "_mmap", None), getattr(mmap, "MADV_DONTNEED", None)
    # With "c" changes live in the pages alone and would be lost.
    if pages is not None and advice is not None and column.mode in ("r", "r+"):
        pages.madvise(advice)
    return part


def _ahead(chunks: Iterator[Any]) -> Iterator[Any]:
    """Yield chunks; the next one is read while the caller is at work on one."""
    with futures.ThreadPoolExecutor(1, thread_name_prefix="isrlearn-reader") as reader:
        coming = reader.submit(next, chunks, None)
        while (chunk := coming.result()) is not None:
            coming = reader.submit(next, chunks, None)
            yield chunk


def _again(chunks: Any) -> Callable[[], Iterable[Any]]:
    """Return a function that gives the chunks from the first on."""

    def look(given: Any, name: str) -> Any:
        if isinstance(given, str) or not (hasattr(given, "__iter__") or hasattr(given, "__len__")):
            raise TypeError(
                f"{name} is {brief(given)}: give a list of (X, y, environments), or a function "
                "that returns an iterator over them."
            )
        return given

    if callable(chunks):
        return lambda: look(chunks(), "what the function for chunks returned")
    look(chunks, "chunks")
    return (lambda: chunks) if iter(chunks) is not chunks else _Once(next(chunks, None), chunks)


class _Once:
    """An iterator whose first chunk may be looked at, and that can be gone through once."""

    def __init__(self, first: Any, others: Iterator[Any]) -> None:
        self.first, self.others, self.used = first, others, False

    def __call__(self) -> Iterator[Any]:
        if self.first is None:
            return
        yield self.first
        if self.used:
            raise ValueError(
                "the chunks are an iterator, which can be gone through once, and this fit reads "
                "the rows several times: give a list, or a function that returns a new iterator."
            )
        self.used = True
        yield from self.others
