"""What a worker process owes the process that started it."""

import os
import signal
import threading
import time
from typing import Final

LOOK_EVERY: Final = 0.5
_WATCH: Final = "isrlearn-watch-parent"


def obey(runner: int) -> None:
    """Live and die with the process that started this one, and leave Ctrl-C to it.

    Parameters
    ----------
    runner : int
        Its process id. If it is not the parent of this process, as on a cluster, nothing is done.
    """
    if os.getppid() != runner:
        return
    if threading.current_thread() is threading.main_thread():
        # Ctrl-C reaches all processes of a terminal; the runner decides what to do about it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if all(thread.name != _WATCH for thread in threading.enumerate()):
        watch = threading.Thread(target=_end_with, args=(runner,), name=_WATCH, daemon=True)
        watch.start()


def _end_with(parent: int) -> None:
    """End this process soon after its parent is gone: no one would take the results."""
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY)
    os._exit(1)
