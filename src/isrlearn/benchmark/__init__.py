"""The Linear Unit-Tests as a benchmark: jobs, a store, a runner, tables and figures."""

from isrlearn.benchmark.runner import pending, run
from isrlearn.benchmark.spec import PROFILES, Job, Problem, grid
from isrlearn.benchmark.store import Store

__all__ = ["PROFILES", "Job", "Problem", "Store", "grid", "pending", "run"]
