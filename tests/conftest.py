"""What the tests share: draws of data, and hypothesis without time limits."""

import os
import re

import numpy as np
import pytest
from hypothesis import settings, strategies as st

SEED = os.environ.get("ISRLEARN_SEED", "")

settings.register_profile("isrlearn", deadline=None, max_examples=25, derandomize=not SEED)
settings.register_profile("mutants", deadline=None, max_examples=5, derandomize=True, database=None)
settings.load_profile("isrlearn")

seeds = st.integers(0, 2**32 - 1)


def draw_rows(seed, *, n_classes=2, n_environments=3, n_features=5, per_cell=20):
    """Rows whose cells differ in mean and covariance; returns X, y, environments."""
    random = np.random.default_rng(seed)
    X, y, e = [], [], []
    for c in range(n_classes):
        for environment in range(n_environments):
            n = per_cell + int(random.integers(0, 5))
            mixing = random.normal(size=(n_features, n_features))
            X.append(
                random.normal(size=(n, n_features)) @ mixing + 3 * random.normal(size=n_features)
            )
            y += [c] * n
            e += [environment] * n
    return np.concatenate(X), np.array(y), np.array(e)


def says(message, kind=ValueError):
    """Expect an error with this message, word for word: what it says is what a user gets."""
    return pytest.raises(kind, match=f"^{re.escape(message)}$")


@pytest.fixture
def seed():
    """The same in each run, unless ISRLEARN_SEED asks for others, also of hypothesis."""
    return int(SEED or 0)


@pytest.fixture
def random(seed):
    """A generator that is the same in each run."""
    return np.random.default_rng(seed)


@pytest.fixture
def store(tmp_path):
    """An empty store of benchmark results."""
    from isrlearn.benchmark import Store

    return Store(tmp_path / "store.sqlite").create()


@pytest.fixture(scope="session")
def processes(tmp_path_factory):
    """Processes that meet with faults; see `fault_support`."""
    from fault_support import Processes

    started = Processes(tmp_path_factory.mktemp("processes"))
    yield started
    started.close()


@pytest.fixture(scope="session")
def fault_world(processes, tmp_path_factory):
    """A small file of each kind that a command reads, as in `command_support`."""
    from fault_support import make_world_aside

    return make_world_aside(processes, tmp_path_factory.mktemp("world"))
