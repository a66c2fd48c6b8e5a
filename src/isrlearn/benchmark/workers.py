"""What a worker process owes the process that started it."""

import os
import signal
import threading
import time
from collections.abc import Sequence
from typing import Final

from isrlearn.benchmark.execution import JobResult, run_unit
from isrlearn.benchmark.spec import Job

LOOK_EVERY: Final = 0.5
_WATCH: Final = "isrlearn-watch-parent"


def run_unit_as_worker(jobs: Sequence[Job], runner: int) -> list[JobResult]:
    """Run jobs; if this is a child of the runner, live and die with it.

    Parameters
    ----------
    jobs : sequence of Job
        Jobs with the same problem.
    runner : int
        Process id of the runner.

    Returns
    -------
    list of JobResult
    """
    if os.getppid() == runner:  # not on a cluster, whose workers are no children of the runner
        _obey(runner)
    return run_unit(jobs)


def _obey(runner: int) -> None:
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
