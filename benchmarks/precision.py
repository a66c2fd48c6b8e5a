"""How exact and how repeatable the numbers are: the figures of docs/limits.md and docs/scale.md.

Usage: python benchmarks/precision.py [accuracy] [repeat] [cost] [many]

accuracy  kernels against 50-digit arithmetic on ill-conditioned rows (see tests/exact_support.py)
repeat    differences over numbers of threads and over chunks
cost      double instead of single precision for float32 rows of many features, ratio side by side
many      time and memory of a thousand environments or classes
"""

import sys
import time
import tracemalloc
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.linear_model import RidgeClassifier
from threadpoolctl import threadpool_limits

import isrlearn.moments._sums as blocks
from isrlearn import ISR, CellMoments, ISRClassifier, ISRCov, ISRMean
from isrlearn.exceptions import PrecisionWarning

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
DRAWS = 120
RANDOM = np.random.default_rng(0)


def accuracy():
    """Print, for each kernel, how many draws are within the bound, announced, refused, silent."""
    from exact_support import SAFETY, angle
    from test_stress_accuracy import KERNELS, fitted, stressed

    print("kernel     draws  within  said  refused  silent  worst error / bound if not said")
    for name, (estimator, exact) in KERNELS.items():
        counts, worst = dict.fromkeys(["within", "said", "refused", "silent"], 0), 0.0
        for _ in range(DRAWS):
            X, y, e, rank = _stress(stressed)
            found, said = fitted(estimator(rank), X, y, e)
            if found is None or said:
                counts["refused" if found is None else "said"] += 1
                continue
            expected = exact(X, y, e, rank)
            ratio = angle(found, expected.directions) / expected.bound
            worst = max(worst, ratio)
            counts["within" if ratio <= SAFETY else "silent"] += 1
        figures = "  ".join(f"{count:6d}" for count in counts.values())
        print(f"{name:10s} {DRAWS:5d}  {figures}  {worst:.2g}", flush=True)


def _stress(stressed):
    n_environments, d = int(RANDOM.integers(2, 5)), int(RANDOM.integers(3, 6))
    rows = stressed(
        RANDOM,
        d=d,
        n_environments=n_environments,
        condition=RANDOM.choice([1, 1e4, 1e8, 1e10, 1e12]),
        mean=RANDOM.choice([0, 1e2, 1e4, 1e6, 1e8]),
        units=RANDOM.choice([1, 1e3, 1e6]),
        shift=RANDOM.choice([0.3, 1, 10, 1e2, 1e4]),
    )
    return *rows, int(RANDOM.integers(1, d))


def repeat():
    """Print the largest angle between subspaces, and difference of weights, in four ways."""
    print("features  rows     what                     mean     cov      joint    ridge weights")
    for d in (64, 256, 300, 600):
        for dtype in (np.float64, np.float32):
            rows = _rows(6000, d, dtype)
            alone, both = _fits(1, _at_once, rows), _fits(2, _at_once, rows)
            cuts = _fits(1, _in_chunks, rows)
            for what, other in (("one thread or two", both), ("at once or in chunks", cuts)):
                figures = "  ".join(f"{value:.0e}  " for value in _differences(alone, other))
                print(f"{d:8d}  {dtype.__name__}  {what:22s}  {figures}", flush=True)


def _rows(n, d, dtype):
    y, e = RANDOM.integers(0, 2, n), RANDOM.integers(0, 2, n)
    X = RANDOM.normal(size=(n, d))
    X[:, 0] = X[:, 0] * (1 + 2 * e) + 3 * e
    X[:, 1] += y
    return (X + RANDOM.normal(size=d)).astype(dtype), y, e


def _fits(n_threads, fit, rows):
    ridge = ISRClassifier(ISRMean(1), RidgeClassifier())
    with threadpool_limits(n_threads):
        return [fit(model, *rows) for model in (ISRMean(1), ISRCov(1), ISR(1), ridge)]


def _at_once(model, X, y, e):
    return model.fit(X, y, environments=e)


def _in_chunks(model, X, y, e):
    from chunk_support import chunked

    return model.fit(chunked(RANDOM, X, y, e))


def _differences(here, there):
    angles = [a.subspace_.angles_to(b.subspace_).max() for a, b in zip(here, there, strict=True)]
    weights = [model[-1].coef_ for model in (here, there)]
    return [*angles[:3], np.abs(weights[0] - weights[1]).max() / np.abs(weights[0]).max()]


def cost():
    """Print processor time of moments of float32 rows, as they are and in double precision."""
    print("rows   features  what      single  double  ratio")
    with threadpool_limits(1):
        for n, d in ((20_000, 512), (12_000, 1024), (8_000, 2048)):
            rows = _rows(n, d, np.float32)
            for what, second in (("scatters", True), ("means", False)):
                work = partial(CellMoments.from_rows, *rows, second_order=second)
                single, double = _seconds(work), _seconds(partial(_in_double, work))
                ratio = double / single
                print(f"{n:5d}  {d:8d}  {what:8s}  {single:6.3f}  {double:6.3f}  {ratio:.2f}")


def _seconds(work, repeats=5):
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def _in_double(work):
    wide, rows = blocks.WIDE, blocks.block_rows
    blocks.WIDE = 10**9
    blocks.block_rows = lambda d, size: max(1, min(8 * d, 2**27 // (d * size)))
    try:
        work()
    finally:
        blocks.WIDE, blocks.block_rows = wide, rows


def many():
    """Print processor time and memory beyond X for a thousand environments, or classes."""
    print("what                method            seconds  peak MB")
    codes, other = np.arange(20_000) // 2 % 1000, np.arange(20_000) % 2
    X = RANDOM.normal(size=(20_000, 4))
    X[:, 0] += codes % 7
    for what, y, e in (("1000 environments", other, codes), ("1000 classes", codes, other)):
        for isr in (ISRMean(1), ISRCov(1), ISR(1), ISR(random_state=0)):
            with warnings.catch_warnings(), threadpool_limits(1):
                warnings.simplefilter("ignore", PrecisionWarning)
                tracemalloc.start()
                start = time.process_time()
                isr.fit(X, y, environments=e)
                seconds, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
            print(f"{what:18s}  {isr!s:16.16s}  {seconds:7.1f}  {peak / 2**20:7.0f}", flush=True)


if __name__ == "__main__":
    parts = {"accuracy": accuracy, "repeat": repeat, "cost": cost, "many": many}
    for part in sys.argv[1:] or parts:
        parts[part]()
        print()
