"""Small networks and data that the tests of networks share."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")


def draw_batches(seed, n_rows=400, n_features=6, n_classes=2, unknown=0.0, batch_size=64):
    """Batches of rows whose first feature is the class and whose second the environment."""
    random = np.random.default_rng(seed)
    # Every group gets its share: a random one may have a row or two.
    groups = random.permutation(np.arange(n_rows) % (2 * n_classes))
    y, e = groups // 2, groups % 2
    X = random.normal(size=(n_rows, n_features))
    X[:, 0] += 2 * y
    X[:, 1] += 2 * e
    e = np.where(random.uniform(size=n_rows) < unknown, -1, e)
    rows = [torch.tensor(a) for a in (X.astype(np.float32), y, e)]
    return [tuple(a[i : i + batch_size] for a in rows) for i in range(0, n_rows, batch_size)]


def perceptron(seed, n_features=6, n_outputs=2, bias=True):
    """A plain network of two hidden layers."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return torch.nn.Sequential(
            torch.nn.Linear(n_features, 16),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.5),
            torch.nn.Linear(16, 12),
            torch.nn.Tanh(),
            torch.nn.Linear(12, n_outputs, bias=bias),
        )
