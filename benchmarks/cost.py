"""A cost model: seconds from rows n, features d, classes k, environments E and cores.

    python benchmarks/cost.py            # calibrate here, then predict sizes it has not seen

Moments are one pass over the rows and, with scatters, one product per row; a step of a logistic
head is one pass. A pass is work for each row, for each number (more for few features, which are
taken in double precision), and for each number and core:

    pass      = n (a + b d + b' d / cores)            b is another beyond 256 features
    means     = pass + n d k E m / cores
    scatters  = pass + n d^2 c / cores + k E d^2 s    c is another beyond 256 features
    head step = pass

The constants are those of a machine: small runs find them, by least squares of relative errors. The
last table compares predictions with sizes that were not among these runs.
"""

import argparse
import os
import time
import warnings

import numpy as np
from scipy.optimize import nnls
from threadpoolctl import threadpool_limits

from isrlearn import CellMoments
from isrlearn._slopes import slope_of

warnings.filterwarnings("ignore")
WIDE = 256
CALIBRATION = [
    (800_000, 16, 2, 2),
    (600_000, 64, 2, 2),
    (400_000, 64, 2, 6),
    (100_000, 128, 3, 4),
    (100_000, 128, 4, 6),
    (100_000, 256, 2, 2),
    (40_000, 512, 2, 2),
    (60_000, 512, 3, 4),
    (30_000, 1024, 2, 2),
    (20_000, 1536, 2, 3),
    (30_000, 1536, 2, 2),
]
UNSEEN = [(1_000_000, 64, 2, 2), (250_000, 100, 4, 5), (60_000, 2048, 2, 2)]


def draw(n, d, k, E):
    """Return float32 rows with labels and environments."""
    random = np.random.default_rng(0)
    X = random.standard_normal((n, d), dtype=np.float32)
    return X, random.integers(0, k, n), random.integers(0, E, n)


def measure(n, d, k, E, cores):
    """Return seconds of means, scatters and a step of a head, each the least of several."""
    X, y, e = draw(n, d, k, E)
    coef, bias = np.full((1, d), 0.01), np.zeros(1)
    runs = {
        "means": lambda: CellMoments.from_rows(X, y, e, second_order=False),
        "scatters": lambda: CellMoments.from_rows(X, y, e),
        "head step": lambda: slope_of(X, (y > 0).astype(np.intp), None, coef, bias),
    }
    with threadpool_limits(cores, user_api="blas"):
        return {name: fastest(run) for name, run in runs.items()}


def fastest(run):
    """Return the least time of five runs: the machine may be slow for a while."""
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def terms(what, n, d, k, E, cores):
    """Return the terms of the model, each to be multiplied by a constant of the machine."""
    few = d <= WIDE
    one_pass = [n, n * d * few, n * d * (not few), n * d / cores]
    if what == "means":
        return [*one_pass, n * d * k * E / cores]
    if what == "scatters":
        product = n * d**2 / cores
        return [*one_pass, product * few, product * (not few), k * E * d**2]
    return one_pass


def calibrate(sizes):
    """Return the constants of each part, by least squares of relative errors, none negative."""
    seconds = [measure(*size) for size in sizes]
    found = {}
    for what in seconds[0]:
        times = np.array([s[what] for s in seconds])
        table = np.array([terms(what, *size) for size in sizes], dtype=float)
        scale = table.max(axis=0)
        found[what] = nnls(table / scale / times[:, None], np.ones(len(times)))[0] / scale
    return found


def main():
    """Calibrate and predict."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.parse_args()
    cores = os.cpu_count() or 1
    sizes = [(*size, c) for size in CALIBRATION for c in {1, cores}]
    constants = calibrate(sizes)
    for what, values in constants.items():
        print(f"{what:10s} " + "  ".join(f"{value:.2e}" for value in values))
    print("\nrows       features  k  E  cores  part        predicted  measured  error")
    for number, size in enumerate(UNSEEN):
        used = (*size, 1 if number == 1 else cores)
        measured = measure(*used)
        for what, seconds in measured.items():
            guess = float(np.dot(constants[what], terms(what, *used)))
            n, d, k, E, c = used
            print(
                f"{n:<10d} {d:<9d} {k:<2d} {E:<2d} {c:<6d} {what:10s}  {guess:8.3f}  "
                f"{seconds:8.3f}  {guess / seconds - 1:+.0%}"
            )


if __name__ == "__main__":
    main()
