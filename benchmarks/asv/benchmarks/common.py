"""What the benchmarks share: rows of two classes whose environments differ a little."""

import numpy as np


def draw(n, d, n_environments=2, dtype=np.float32):
    """Return X, y and environments."""
    random = np.random.default_rng(0)
    y, e = random.integers(0, 2, n), random.integers(0, n_environments, n)
    X = random.standard_normal((n, d), dtype=np.float32).astype(dtype)
    X[:, 0] += y
    X[:, 1] += e * (2 * y - 1)
    X[:, 2] *= 1 + 0.2 * e
    return X, y, e
