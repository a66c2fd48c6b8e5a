"""A cost model: seconds from rows n, features d, classes k, environments E and cores.

    python benchmarks/cost.py                             # calibrate here, predict three sizes
    python benchmarks/cost.py --predict 500000,40,2,8,1   # another: n,d,k,E,cores

Moments are one pass over the rows and, with scatters, one product per row; a step of a logistic
head is one pass. Up to 256 features sums are taken in double precision, and only the product of
scatters is shared out to cores; beyond, every product is.

    up to 256   means     = n (a + b d + m d k E)
                scatters  = n (a + b d + t d + c d^2 + c' d^2 / cores) + s k E d^2
                head step = n (a + b d + c d^2)
    beyond      means     = n d (b + b' / cores + m k E / cores)
                scatters  = n d (b + t + c d / cores) + s k E d^2
                head step = n (a + b d + b' d / cores)

A head step has the square because products with long rows are slower per number. t is there with
more than one core and more than 64 features: fewer are too little for threads. Rows that one core
has written and others read go from cache to cache, which takes long on some machines.

The constants are those of a machine, and others in each line: small runs find them, by least
squares of relative errors. The last table compares predictions with sizes that were not among
these runs. All sizes are measured in turn, several times, and the least time of each counts: a
machine that is slow for a while is slow for all of them.
"""

import argparse
import os
import time
import warnings
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls
from threadpoolctl import threadpool_limits

from isrlearn import CellMoments
from isrlearn.heads._loss import loss_of

warnings.filterwarnings("ignore")
WIDE, FEW = 256, 64
ROUNDS = 7


class Size(NamedTuple):
    """Rows, features, classes, environments and cores."""

    n: int
    d: int
    k: int
    E: int
    cores: int


ALL = os.cpu_count() or 1
CALIBRATION = [
    (800_000, 16, 2, 2),
    (300_000, 32, 3, 5),
    (600_000, 64, 2, 2),
    (300_000, 64, 2, 6),
    (200_000, 80, 2, 3),
    (150_000, 128, 3, 4),
    (150_000, 128, 4, 6),
    (100_000, 192, 2, 2),
    (80_000, 256, 2, 2),
    (40_000, 512, 2, 2),
    (30_000, 768, 3, 4),
    (30_000, 1024, 2, 2),
    (20_000, 1536, 2, 3),
    (30_000, 1536, 2, 2),
]
UNSEEN = [
    Size(1_000_000, 64, 2, 2, ALL),
    Size(250_000, 100, 4, 5, 1),
    Size(60_000, 2048, 2, 2, ALL),
]


class Runs:
    """What is measured of one size, on rows that are drawn once."""

    def __init__(self, size):
        self.size = size
        random = np.random.default_rng(0)
        X = random.standard_normal((size.n, size.d), dtype=np.float32)
        y, e = random.integers(0, size.k, size.n), random.integers(0, size.E, size.n)
        first = (y > 0).astype(np.intp)
        coef, bias = np.full((1, size.d), 0.01), np.zeros(1)
        self.runs = {
            "means": lambda: CellMoments.from_rows(X, y, e, second_order=False),
            "scatters": lambda: CellMoments.from_rows(X, y, e),
            "head step": lambda: loss_of(X, lambda own: (first[own], None), coef, bias),
        }
        self.seconds = dict.fromkeys(self.runs, np.inf)

    def once_more(self):
        """Run all, and keep the least time of each."""
        with threadpool_limits(self.size.cores, user_api="blas"):
            for name, run in self.runs.items():
                begin = time.perf_counter()
                run()
                self.seconds[name] = min(self.seconds[name], time.perf_counter() - begin)


def measure(sizes):
    """Return the seconds of each part for each size."""
    found = [Runs(size) for size in sizes]
    for _ in range(ROUNDS):
        for runs in found:
            runs.once_more()
    return [runs.seconds for runs in found]


def terms(what, size):
    """Return the terms of the model, each to be multiplied by a constant of the machine."""
    n, d, k, E, cores = size
    moved = n * d * (cores > 1 and d > FEW)
    if d <= WIDE:
        return {
            "means": [n, n * d, n * d * k * E],
            "scatters": [n, n * d, moved, n * d**2, n * d**2 / cores, k * E * d**2],
            "head step": [n, n * d, n * d**2],
        }[what]
    return {
        "means": [n * d, n * d / cores, n * d * k * E / cores],
        "scatters": [n * d, moved, n * d**2 / cores, k * E * d**2],
        "head step": [n, n * d, n * d / cores],
    }[what]


def constants(what, sizes, seconds):
    """Return what the terms are multiplied by: least squares of relative errors, none negative."""
    times = np.array([s[what] for s in seconds])
    table = np.array([terms(what, size) for size in sizes], dtype=float)
    scale = table.max(axis=0)
    return nnls(table / scale / times[:, None], np.ones(len(times)))[0] / scale


def calibrate(sizes, seconds):
    """Return the constants of each part, up to 256 features and beyond."""
    found = {}
    for wide in (False, True):
        chosen = [i for i, size in enumerate(sizes) if (size.d > WIDE) == wide]
        own = [sizes[i] for i in chosen], [seconds[i] for i in chosen]
        found |= {(what, wide): constants(what, *own) for what in seconds[0]}
    return found


def main():
    """Calibrate and predict."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--predict", nargs="+", metavar="n,d,k,E,cores", help="other sizes")
    given = parser.parse_args().predict
    unseen = [Size(*map(int, text.split(","))) for text in given] if given else UNSEEN
    sizes = [Size(*size, cores) for size in CALIBRATION for cores in sorted({1, ALL})]
    seconds = measure([*sizes, *unseen])
    found = calibrate(sizes, seconds[: len(sizes)])
    for (what, wide), values in found.items():
        name = f"{what}, {'beyond' if wide else 'up to'} {WIDE} features"
        print(f"{name:32s}" + "  ".join(f"{value:.2e}" for value in values))
    print("\nrows       features  k  E  cores  part        predicted  measured  error")
    for size, measured in zip(unseen, seconds[len(sizes) :], strict=True):
        for what, value in measured.items():
            guess = float(np.dot(found[what, size.d > WIDE], terms(what, size)))
            print(
                f"{size.n:<10d} {size.d:<9d} {size.k:<2d} {size.E:<2d} {size.cores:<6d} "
                f"{what:10s}  {guess:8.3f}  {value:8.3f}  {guess / value - 1:+.0%}"
            )


if __name__ == "__main__":
    main()
