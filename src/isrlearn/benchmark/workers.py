"""Jobs in a worker process."""

from collections.abc import Sequence

from isrlearn._workers import obey
from isrlearn.benchmark.execution import JobResult, run_unit
from isrlearn.benchmark.spec import Job


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
    obey(runner)
    return run_unit(jobs)
