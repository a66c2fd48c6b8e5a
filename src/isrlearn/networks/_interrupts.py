"""Ctrl-C between two steps: what is done is saved first."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def stops_between_steps(save: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each step; after Ctrl-C it saves and raises.

    A second Ctrl-C stops at once. Outside the main thread, where signals cannot be caught, and in a
    process that ignores Ctrl-C, as one in the background does, nothing changes.
    """
    wanted = threading.Event()

    def remember(number: int, frame: Any) -> None:
        if wanted.is_set():
            raise KeyboardInterrupt
        wanted.set()

    def stop_if_wanted() -> None:
        if wanted.is_set():
            save()
            raise KeyboardInterrupt

    ignored = signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None)
    if ignored or threading.current_thread() is not threading.main_thread():
        yield stop_if_wanted
        return
    before = signal.signal(signal.SIGINT, remember)
    try:
        yield stop_if_wanted
    finally:
        signal.signal(signal.SIGINT, before)
