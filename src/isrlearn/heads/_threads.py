"""Threads of two libraries that would wait for each other."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, Final

from threadpoolctl import ThreadpoolController

WHEELS: Final = ("scipy.libs", "scipy/.dylibs")  # where the wheels of SciPy have their BLAS


@contextmanager
def one_thread_in_scipy() -> Iterator[None]:
    """Let SciPy's linear algebra use one thread.

    The wheels of NumPy and SciPy bring a BLAS each, and the threads of both spin for a while after
    they were used. A solver of SciPy that multiplies a few short vectors then takes a core from the
    products of NumPy that come after it: passes over rows took half as long again. Where SciPy has
    no BLAS of its own nothing is done.
    """
    _limit().enter()
    try:
        yield
    finally:
        _limit().leave()


class _SharedLimit:
    """A limit that the first of several threads sets, and the last takes back."""

    def __init__(self) -> None:
        self._lock, self._n_inside = Lock(), 0
        self._limit: Any = None
        controller = ThreadpoolController()
        paths = [found["filepath"] for found in controller.info()]
        self._libraries = controller.select(
            filepath=[path for path in paths if any(w in path for w in WHEELS)]
        )

    def enter(self) -> None:
        with self._lock:
            self._n_inside += 1
            if self._n_inside == 1:
                self._limit = self._libraries.limit(limits=1)

    def leave(self) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self._limit.restore_original_limits()


@cache
def _limit() -> _SharedLimit:
    import scipy.linalg  # noqa: F401  # so that its libraries are there to be found

    return _SharedLimit()
