"""Fits on a Dask cluster: rows stay with the workers, sums move.

Needs dask and distributed (``pip install isrlearn[dask]``).
"""

from isrlearn.distributed._cluster import cluster
from isrlearn.distributed._rows import DaskRows

__all__ = ["DaskRows", "cluster"]
