"""Threads of two libraries that would wait for each other."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from threadpoolctl import ThreadpoolController

WHEEL: Final = "scipy.libs"


@contextmanager
def one_thread_in_scipy() -> Iterator[None]:
    """Let SciPy's linear algebra use one thread.

    The wheels of NumPy and SciPy bring a BLAS each, and the threads of both spin for a while after
    they were used. A solver of SciPy that multiplies a few short vectors then takes a core from the
    products of NumPy that come after it: passes over rows took twice as long. Where both share one
    library nothing is done.
    """
    with _of_scipy().limit(limits=1):
        yield


@cache
def _of_scipy() -> Any:
    controller = ThreadpoolController()
    paths = [found["filepath"] for found in controller.info() if WHEEL in found["filepath"]]
    return controller.select(filepath=paths)
