r"""The subspaces of the kernels in 50-digit arithmetic, and how far off a stable method may be.

The rows are exact: what is measured is the error of the computation, not that of the data. Let u
be the unit roundoff of double precision, l the largest absolute value of each column and s its
largest standard deviation in a cell. A backward-stable method returns the result of rows that
differ by u|x| from the given ones, and then decomposes a matrix that is off by u times its size.
The subspace turns by the perturbation over the gap (Davis and Kahan):

means        rows of contrasts are off by u |l|, so sin(angle) <= u (|l| + sigma_1) / (sigma_r -
             sigma_{r+1}), with sigma the singular values of the contrasts.
covariances  a difference is off by u (2 |l| |s| + |s|^2), over |lambda_r| - |lambda_{r+1}|. The
             flag mean averages the projections: the mean of the bounds of the pairs, over the gap
             of the eigenvalues of the mean projection.
joint        evidence is whitened by the covariance W within cells. Its inverse root is off by
             kappa u, kappa being the condition number of W as a correlation matrix, and so is what
             is whitened: of means between direction i that is taken and j that is left by kappa u
             (g_i + g_j) / (g_i - g_j), g the eigenvalues of the gradient, most for the last taken
             and the first left; of covariances by 2 kappa u |D|^2 over that gap. Rows that are off
             by u |x| add u |l / s| sqrt(kappa n) to each matrix of evidence. That is the turn in
             white coordinates. The iteration multiplies it by 1 / (1 - rho), rho its rate, and the
             way back to X by the size of the root of W over the least size of a direction.
"""

from itertools import combinations
from typing import NamedTuple

import mpmath
import numpy as np

DIGITS = 50
ROUNDOFF = float(np.finfo(np.float64).eps) / 2
SAFETY = 100.0
SHRINKAGE = 2.0
STEPS = 400


class Exact(NamedTuple):
    """Orthonormal rows of mpf, (r, d), and the error that a backward-stable method may have."""

    directions: np.ndarray
    bound: float


class Cell(NamedTuple):
    n: int
    mean: np.ndarray
    scatter: np.ndarray


def digits(function):
    """Run a function in 50-digit arithmetic."""

    def wrapped(*args, **kwargs):
        with mpmath.workdps(DIGITS):
            return function(*args, **kwargs)

    return wrapped


exactly = np.vectorize(mpmath.mpf, otypes=[object])


@digits
def exact_cells(X, y, e):
    """The moments of each cell by (class, environment)."""
    cells = {}
    for c, k in sorted(set(zip(y.tolist(), e.tolist(), strict=True))):
        rows = exactly(X[(y == c) & (e == k)].astype(np.float64))
        mean = rows.sum(axis=0) / len(rows)
        cells[c, k] = Cell(len(rows), mean, (rows - mean).T @ (rows - mean))
    return cells


@digits
def angle(found, exact):
    """Sine of the largest angle from rows of float64 to the span of exact orthonormal rows."""
    rows = exactly(found)
    rest = rows - (rows @ exact.T) @ exact
    values, _ = eigen(rest @ rest.T)
    return float(mpmath.sqrt(abs(values[0])))


def eigen(matrix):
    """Eigenvalues by descending value, and eigenvectors as rows, of a symmetric matrix of mpf."""
    values, vectors = mpmath.eigsy(mpmath.matrix(((matrix + matrix.T) / 2).tolist()))
    order = sorted(range(len(values)), key=lambda i: -values[i])
    rows = np.array(vectors.tolist(), dtype=object).reshape(matrix.shape).T
    return np.array([values[i] for i in order], dtype=object), rows[order]


def power(matrix, exponent):
    """A power of a positive matrix."""
    values, rows = eigen(matrix)
    return (rows.T * np.array([v**exponent for v in values], dtype=object)) @ rows


def largest(X):
    return np.abs(X.astype(np.float64)).max(axis=0)


def spreads(cells):
    return np.max([np.sqrt(np.diag(c.scatter / c.n).astype(float)) for c in cells.values()], axis=0)


def gap_of(sizes, rank):
    """The gap after the first `rank` of descending sizes; zero follows the last."""
    return float(sizes[rank - 1] - (sizes[rank] if rank < len(sizes) else 0))


@digits
def exact_from_means(X, y, e, rank):
    """ISR-Mean of all classes."""
    cells = exact_cells(X, y, e)
    total = sum(cell.n for cell in cells.values())
    contrasts = [
        mpmath.sqrt(mpmath.mpf(cell.n) / total) * (cell.mean - common_mean(cells, c))
        for (c, _), cell in cells.items()
    ]
    M = np.array(contrasts)
    values, rows = eigen(M.T @ M)
    sizes = [mpmath.sqrt(abs(v)) for v in values]
    off = ROUNDOFF * (np.linalg.norm(largest(X)) + float(sizes[0]))
    return Exact(rows[:rank], off / gap_of(sizes, rank))


def common_mean(cells, label):
    own = [cell for (c, _), cell in cells.items() if c == label]
    return sum(cell.n * cell.mean for cell in own) / sum(cell.n for cell in own)


@digits
def exact_from_pair(X, y, e, rank, pair, cells=None):
    """ISR-Cov of one pair of environments."""
    cells = cells or exact_cells(X, y, e)
    difference, weight = 0, mpmath.mpf(0)
    for c in sorted(set(y.tolist())):
        first, second = cells[c, pair[0]], cells[c, pair[1]]
        precision = mpmath.mpf(first.n) * second.n / (first.n + second.n)
        difference = difference + precision * (first.scatter / first.n - second.scatter / second.n)
        weight += precision
    values, rows = eigen(difference / weight)
    order = sorted(range(len(values)), key=lambda i: -abs(values[i]))
    sizes = [abs(values[i]) for i in order]
    s = float(np.linalg.norm(spreads(cells)))
    off = ROUNDOFF * (2 * float(np.linalg.norm(largest(X))) * s + s**2)
    return Exact(rows[order][:rank], off / gap_of(sizes, rank))


@digits
def exact_from_pairs(X, y, e, rank):
    """ISR-Cov: the flag mean of all pairs."""
    cells = exact_cells(X, y, e)
    pairs = list(combinations(sorted(set(e.tolist())), 2))
    found = [exact_from_pair(X, y, e, rank, pair, cells) for pair in pairs]
    if len(found) == 1:
        return found[0]
    mean = sum(f.directions.T @ f.directions for f in found) / len(found)
    values, rows = eigen(mean)
    off = ROUNDOFF + float(np.mean([min(f.bound, 1.0) for f in found]))
    return Exact(rows[:rank], off / gap_of(values, rank))


@digits
def exact_joint(X, y, e, rank):
    """ISR with a given rank: the fixed point of its iteration, in coordinates of white noise."""
    cells = exact_cells(X, y, e)
    n = sum(cell.n for cell in cells.values())
    W = (
        sum(
            max(cell.n - 1, cell.n / 2) * cell.scatter / max(cell.n - 1, cell.n / 2)
            for cell in cells.values()
        )
        / n
    )
    M = np.array(
        [
            mpmath.sqrt(cell.n) * (cell.mean - common_mean(cells, c))
            for (c, _), cell in cells.items()
        ]
    )
    root, inverse = power(W, mpmath.mpf(1) / 2), power(W, -mpmath.mpf(1) / 2)
    evidence = inverse @ covariance_differences(cells) @ inverse
    white = M @ inverse
    U, leading, rate = fixed_point(white, evidence, rank)
    D = U @ root
    sizes, axes = eigen(D @ D.T)
    orthonormal = np.array([a @ D / mpmath.sqrt(v) for v, a in zip(sizes, axes, strict=True)])
    return Exact(orthonormal, joint_bound(X, W, white, evidence, leading, rate, sizes[-1], n))


def joint_bound(X, W, white, evidence, leading, rate, least, n):
    scale = np.array([mpmath.sqrt(W[j, j]) for j in range(len(W))], dtype=object)
    values, _ = eigen(W / scale / scale[:, None])
    kappa = float(values[0] / values[-1])
    size = float(sum(leading) + 2 * sum((evidence**2).ravel()))
    rows = ROUNDOFF * np.linalg.norm(largest(X) / scale.astype(float)) * np.sqrt(kappa * n)
    off = kappa * ROUNDOFF * size + 2 * np.sqrt(size) * rows + rows**2
    back = float(mpmath.sqrt(eigen(W)[0][0] / least))
    return off / float(leading[0] - leading[1]) / (1 - rate) * back


def covariance_differences(cells):
    scaled = {
        key: cell.n * cell.scatter / max(cell.n - 1, cell.n / 2) for key, cell in cells.items()
    }
    scaled = {key: cell if cells[key].n >= 10 else 0 * cell for key, cell in scaled.items()}
    rows = {key: cell.n if cell.n >= 10 else 0 for key, cell in cells.items()}
    pooled = []
    for k in sorted({k for _, k in cells}):
        total, own = 0, [key for key in cells if key[1] == k]
        for c, _ in own:
            same = [key for key in cells if key[0] == c]
            share = mpmath.mpf(rows[c, k]) / max(sum(rows[key] for key in same), 1)
            total = total + scaled[c, k] - share * sum(scaled[key] for key in same)
        pooled.append(total / mpmath.sqrt(2 * max(sum(rows[key] for key in own), 1)))
    return np.array(pooled)


def fixed_point(M, D, rank):
    """Rows U, (r, d), that lead the gradient at U; the gap there, and the rate of the iteration."""
    U = one_by_one(M, D, rank)
    change, rate = mpmath.mpf(1), 0.0
    for _ in range(STEPS):
        values, rows = eigen(gradient(M, D, U))
        better = rows[:rank]
        rest = better - (better @ U.T) @ U
        last, change = change, mpmath.sqrt(sum((rest**2).ravel()))
        U = better
        if change < mpmath.mpf(10) ** -30:
            break
        rate = float(min(change / last, mpmath.mpf("0.999")))
    return U, values[rank - 1 : rank + 1], rate


def one_by_one(M, D, rank):
    left, found = exactly(np.eye(M.shape[1])), []
    for _ in range(rank):
        means, inside = M @ left.T, left @ D @ left.T
        _, rows = eigen(means.T @ means + sum(m @ m for m in inside))
        found.append(rows[0] @ left)
        left = rows[1:] @ left
    return np.array(found)


def gradient(M, D, U):
    halves = D @ U.T
    blocks = np.array([U @ half for half in halves])
    traces = [sum(np.diag(block)) for block in blocks]
    omega = credible(blocks, traces)
    own = sum(half @ half.T for half in halves)
    shared = sum(t / len(U) * m for t, m in zip(traces, D, strict=True))
    return M.T @ M + 2 * (omega * own + (1 - omega) * shared)


def credible(blocks, traces):
    r = blocks.shape[1]
    noise = (len(blocks) - 1) * (r * (r + 1) // 2 - 1)
    if noise == 0:
        return mpmath.mpf(1)
    deviation = sum((blocks**2).ravel()) - sum(t * t for t in traces) / r
    return max(mpmath.mpf(0), 1 - SHRINKAGE * noise / deviation) if deviation > noise else 0
