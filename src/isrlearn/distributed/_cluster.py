"""A cluster to work on: one that runs somewhere, or a few processes of this machine."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

PATIENCE: Final = "10s"


@contextmanager
def cluster(scheduler: str | None = None, *, n_workers: int | None = None) -> Iterator[Any]:
    """Yield a client of a Dask cluster, and close what was started for it.

    Parameters
    ----------
    scheduler : str, default=None
        Address of a scheduler, such as ``tcp://10.0.0.5:8786``. None: workers of this machine, one
        thread each, for as long as they are needed.
    n_workers : int, default=None
        Number of workers of this machine; None is one for each core.

    Yields
    ------
    distributed.Client

    Examples
    --------
    >>> from isrlearn.distributed import cluster
    >>> with cluster("tcp://10.0.0.5:8786") as client:  # doctest: +SKIP
    ...     ISRClassifier().fit(DaskRows.from_files(["part-0.npz", "part-1.npz"], client=client))
    """
    from distributed import Client, LocalCluster

    if scheduler is not None:
        try:
            client = Client(scheduler, timeout=PATIENCE)
        except (OSError, ValueError, TimeoutError) as error:
            raise ValueError(
                f"no Dask scheduler answers at {scheduler!r} ({type(error).__name__}): check the "
                "address, such as tcp://10.0.0.5:8786, and that it runs."
            ) from error
        with client:
            yield client
        return
    with (
        LocalCluster(
            n_workers=n_workers or os.cpu_count() or 1, threads_per_worker=1, dashboard_address=":0"
        ) as local,
        Client(local) as client,
    ):
        yield client
