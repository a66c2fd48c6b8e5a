"""Run what a grid asks for and a store does not have yet."""

import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from itertools import groupby
from typing import Any

from joblib import Parallel, delayed

from isrlearn.benchmark.execution import JobResult, run_unit
from isrlearn.benchmark.methods import METHODS
from isrlearn.benchmark.spec import Job
from isrlearn.benchmark.store import Store
from isrlearn.benchmark.workers import run_unit_as_worker
from isrlearn.exceptions import JobError


def pending(jobs: Sequence[Job], store: Store) -> list[Job]:
    """Return the jobs that the store does not have, in their order.

    Parameters
    ----------
    jobs : sequence of Job
        The grid.
    store : Store
        What is done.

    Returns
    -------
    list of Job

    Examples
    --------
    >>> import tempfile
    >>> from isrlearn.benchmark import Store, grid, pending, run
    >>> jobs = grid(["oracle"], ["2"], n_environments=[2], seeds=[0, 1, 2], rows=50)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(f"{folder}/results.sqlite").create()
    ...     n_written = run(jobs[:1], store)
    ...     print([job.problem.seed for job in pending(jobs, store)])
    [1, 2]
    """
    done = store.finished()
    return [job for job in jobs if job.key not in done]


def run(
    jobs: Sequence[Job],
    store: Store,
    *,
    n_jobs: int | None = None,
    redo: bool = False,
    on_done: Callable[[list[JobResult]], None] | None = None,
    client: Any = None,
) -> int:
    """Run the jobs that are not in the store, and write each as soon as it is done.

    Workers compute, this process alone writes. It may be stopped in any way at any moment: only
    the jobs that were running are lost, and running it again goes on with the rest. Two runners
    may share a store; a job that both have computed is kept once.

    Parameters
    ----------
    jobs : sequence of Job
        The grid.
    store : Store
        Where results go; it must exist.
    n_jobs : int, default=None
        Number of workers; None: as joblib is configured, one worker by default.
    redo : bool, default=False
        Whether all jobs are run anew. What the store has of them is dropped with the writing of the
        first result, all at once: no table mixes old and new, and a method that fails at once, or a
        disk that is full, costs nothing.
    on_done : callable, default=None
        Called with the results of each unit of work after they are written.
    client : distributed.Client, default=None
        A Dask cluster whose workers compute, instead of processes of this machine. A worker that
        dies is replaced, and its jobs are run again by another.

    Returns
    -------
    int
        Number of jobs that were written.

    Examples
    --------
    >>> import tempfile
    >>> from isrlearn.benchmark import Store, grid, run
    >>> jobs = grid(["isr-mean", "oracle"], ["2"], n_environments=[3], seeds=[0], rows=50)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(f"{folder}/results.sqlite").create()
    ...     print(run(jobs, store), run(jobs, store))  # the second time, all is there
    2 0
    """
    work = units(jobs) if redo else _undone(units(pending(jobs, store)), store)
    written = 0
    try:
        for results in _computed(work, n_jobs) if client is None else _on_cluster(work, client):
            dropped = [job.key for job in jobs] if redo and written == 0 else []
            written += store.add(results, instead_of=dropped)
            if on_done is not None:
                on_done(results)
    except BrokenExecutor as error:
        raise JobError(
            "a worker process died, perhaps for want of memory; what was finished is saved. Fewer "
            "--jobs take less memory."
        ) from error
    return written


def _computed(work: Iterable[list[Job]], n_jobs: int | None) -> Iterator[list[JobResult]]:
    """Yield the results of units as processes of this machine finish them."""
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    yield from parallel(delayed(run_unit_as_worker)(unit, os.getpid()) for unit in work)


def _on_cluster(work: Iterable[list[Job]], client: Any) -> Iterator[list[JobResult]]:
    """Yield the results of units as the workers of a cluster finish them."""
    from distributed import as_completed

    futures = client.map(run_unit, list(work), pure=False)
    for future in as_completed(futures):
        yield future.result()
        future.release()


def units(jobs: Sequence[Job]) -> list[list[Job]]:
    """Group jobs into units of work: our exact methods on a problem together, others alone.

    The exact ones take about as long as drawing their rows. A method that descends takes so long,
    and a user's may so well fail, that nothing else should be lost with it.

    Parameters
    ----------
    jobs : sequence of Job
        Jobs to group.
    """
    grouped = []
    for _, same in groupby(_by_seed(jobs), key=lambda job: job.problem):
        mine = list(same)
        exact = [job for job in mine if job.steps == 0 and job.method in METHODS]
        grouped += [exact] if exact else []
        grouped += [[job] for job in mine if job not in exact]
    return grouped


def _by_seed(jobs: Sequence[Job]) -> list[Job]:
    # Seed by seed, so that early figures have all their points. Within a seed in an order of its
    # own for each process, so that two runners on one store rarely take the same problem.
    order = random.Random(os.getpid())
    place: dict[Any, float] = {}
    for job in jobs:
        place.setdefault(job.problem, order.random())
    return sorted(jobs, key=lambda job: (job.problem.seed, place[job.problem]))


def _undone(work: Sequence[list[Job]], store: Store) -> Iterator[list[Job]]:
    """Yield the units that no other runner has finished in the meantime."""
    for unit in work:
        left = [job for job in unit if not store.has(job.key)]
        if left:
            yield left
