"""What the tests share: draws of data, and hypothesis without time limits."""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

settings.register_profile("isrlearn", deadline=None, max_examples=25)
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


@pytest.fixture
def random():
    """A generator with a new seed in each run, shown if the test fails."""
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print(f"seed {seed}")
    return np.random.default_rng(seed)


@pytest.fixture
def store(tmp_path):
    """An empty store of benchmark results."""
    from isrlearn.benchmark import Store

    return Store(tmp_path / "store.sqlite").create()
