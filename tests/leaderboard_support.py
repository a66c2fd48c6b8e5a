"""What the tests of the leaderboard share."""

import numpy as np

RULES = ("worst-group", "average", "leave-one-environment-out")


def seed_of(random):
    return int(random.integers(2**31))


def draw(random, *, k=2, n=200, d=4, E=3, balanced=False):
    """Rows with one invariant and one spurious feature; every group is in every part of the split.

    All groups are of about the same size, but for the first unless `balanced`. Returns X, y,
    environments and the split: 0 train, 1 validation, 2 test.
    """
    rows = np.arange(n)
    y, e, split = rows % k, rows // k % E, np.array([0, 0, 1, 1, 2])[rows // (k * E) % 5]
    X = random.normal(size=(n, d))
    X[:, 0] += 2 * y
    X[:, 1] += 1.5 * (e - 1) * (y - 0.5)
    X[:, 2] += e
    cycle = rows // (5 * k * E)
    kept = rows if balanced else np.flatnonzero((y > 0) | (e > 0) | (cycle % 2 == 0))
    order = random.permutation(kept)
    return X[order], y[order], e[order], split[order]


def assert_same_models(ours, theirs):
    """Two lists of outcomes chose and fitted the same, to the last bit."""
    assert len(ours) == len(theirs) > 0
    for a, b in zip(ours, theirs, strict=True):
        what = f"{a.key}, {a.name}, seed {a.seed}"
        assert (a.key, a.name, a.seed) == (b.key, b.name, b.seed)
        assert (str(a.setting), a.score, a.n_spurious) == (str(b.setting), b.score, b.n_spurious), (
            what
        )
        np.testing.assert_array_equal(a.weight, b.weight, what)
        np.testing.assert_array_equal(a.bias, b.bias, what)
        assert a.weight is not None, what


def differ(ours, theirs):
    """Return the keys of the outcomes whose weights are not the same."""
    pairs = zip(ours, theirs, strict=True)
    return {a.key for a, b in pairs if not np.array_equal(a.weight, b.weight)}
