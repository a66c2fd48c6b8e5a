"""Chunks that are gone through several times, and read ahead."""

from collections.abc import Callable, Iterable, Iterator
from concurrent import futures  # whose pools are loaded when one is asked for
from typing import Any

from isrlearn.display import brief


def ahead(chunks: Iterator[Any]) -> Iterator[Any]:
    """Yield chunks; the next one is read while the caller is at work on one.

    Parameters
    ----------
    chunks : iterator
        Of anything but None.
    """
    with futures.ThreadPoolExecutor(1, thread_name_prefix="isrlearn-reader") as reader:
        coming = reader.submit(next, chunks, None)
        while (chunk := coming.result()) is not None:
            coming = reader.submit(next, chunks, None)
            yield chunk


def again(chunks: Any) -> Callable[[], Iterable[Any]]:
    """Return a function that gives the chunks from the first on.

    Parameters
    ----------
    chunks : iterable, or callable that returns one
        An iterator can be gone through once; a second time is a ValueError.
    """
    if callable(chunks):
        return lambda: _chunks_in(chunks(), "what the function for chunks returned")
    _chunks_in(chunks, "chunks")
    if iter(chunks) is not chunks:
        return lambda: chunks
    first = next(chunks, None)
    return _Once(first, chunks)


def _chunks_in(given: Any, name: str) -> Any:
    if isinstance(given, str) or not hasattr(given, "__iter__") and not hasattr(given, "__len__"):
        raise TypeError(
            f"{name} is {brief(given)}: give a list of (X, y, environments), or a function that "
            "returns an iterator over them."
        )
    return given


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
