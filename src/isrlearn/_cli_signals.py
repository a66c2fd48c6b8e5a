"""Signals that end a command: Ctrl-C, and those that are treated as Ctrl-C."""

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

ENDING: Final = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""What a system sends before it ends a process for good, and a terminal when it is closed."""
_came: list[int] = []


class Interrupted(Exception):
    """Ctrl-C, with a line about what is saved; exit code 130."""


def stop_code() -> int:
    """Return the exit code of a command that was stopped, as shells tell it: 130 for Ctrl-C."""
    return 128 + (_came[0] if _came else signal.SIGINT)


@contextmanager
def ctrl_c_wins() -> Iterator[None]:
    """Let Ctrl-C be the end of everything, also where a library makes another error of it.

    An extension module that is stopped while it is imported reports that it cannot be imported.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    pressed = threading.Event()

    def remember(number: int, frame: Any) -> None:
        pressed.set()
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, remember)
    try:
        with _others_as_ctrl_c():
            yield
    except Interrupted:
        raise
    except Exception:
        if pressed.is_set():
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _others_as_ctrl_c() -> Iterator[None]:
    """Let what the system sends do what Ctrl-C does at that place; a second one stops at once."""
    _came.clear()

    def pass_on(number: int, frame: Any) -> None:
        _came.append(number)
        signal.raise_signal(signal.SIGINT)

    with ExitStack() as held:
        for number in ENDING:
            # Not where it is ignored: nohup wants a closed terminal to end nothing.
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, pass_on)
                held.callback(signal.signal, number, signal.SIG_DFL)
        yield


@contextmanager
def uninterrupted(*, heeding: bool = False) -> Iterator[None]:
    """Keep Ctrl-C out of steps that belong together and take no time.

    Parameters
    ----------
    heeding : bool, default=False
        Whether a Ctrl-C that came meanwhile counts after these steps; else it came too late.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    # Not SIG_IGN, which processes that are started would inherit.
    signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed and heeding:
        signal.raise_signal(signal.SIGINT)
