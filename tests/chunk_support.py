"""What the tests of chunked rows share: rows whose optimum is well defined, and cuts."""

import numpy as np

from isrlearn import ChunkedRows


def draw_chunkable(
    random, *, n_classes=2, n_environments=3, n_features=6, per_cell=30, unknown=0.0, names=False
):
    """Rows of classes that overlap, and that differ by environment along one direction.

    Returns X, y, environments in random order; a share of the environments is None. With `names`,
    labels and environments are strings of different lengths.
    """
    sizes = per_cell + random.integers(0, 10, (n_classes, n_environments))
    codes = np.repeat(np.arange(sizes.size), sizes.ravel())
    codes = random.permutation(codes)
    y, e = np.divmod(codes, n_environments)
    Z = random.normal(size=(len(y), n_features))
    Z[:, 0] += 3.0 * e + (2.0 * e - 1) * (y - 0.5) + 0.5 * (1 + e) * random.normal(size=len(y))
    Z[:, 1] += 1.2 * (y == 1)
    Z[:, 2] += 1.2 * (y == 2)
    rotation = np.linalg.qr(random.normal(size=(n_features, n_features)))[0]
    X = Z @ (rotation * random.uniform(0.5, 2, n_features)) + random.normal(size=n_features)
    if names:
        y, e = np.array(["gull", "a tern", "x"])[y], np.array(["lab", "the field", "z", "q"])[e]
    if unknown:
        e = np.where(random.random(len(y)) < unknown, None, e.astype(object))
    return X, y, e


def cut(random, *columns, n_cuts=4):
    """The rows in chunks of random lengths, of at least one row."""
    n_rows = len(columns[0])
    at = np.sort(random.choice(np.arange(1, n_rows), n_cuts, replace=False))
    parts = zip(*(np.split(np.asarray(column), at) for column in columns), strict=True)
    return list(parts)


def chunked(random, *columns, n_cuts=4, **options):
    """The rows as `ChunkedRows`, cut at random places."""
    return ChunkedRows.from_chunks(cut(random, *columns, n_cuts=n_cuts), **options)


def oblique_subspace(random, n_features, rank, scale=0.0):
    """A removal whose functionals are not its directions."""
    from isrlearn import Subspace

    D = np.linalg.qr(random.normal(size=(n_features, rank)))[0].T
    A = random.normal(size=(rank, n_features))
    return Subspace(
        D, D + A - A @ D.T @ D, random.normal(size=n_features), np.zeros(n_features), scale
    )
