"""How near the limits of the hardware the fits are: ratios, measured side by side in one run.

    python benchmarks/limits.py                # all lines: 16 GB of disk, 20 minutes
    python benchmarks/limits.py subspace head  # some of them
    python benchmarks/limits.py --rows 40000   # smaller, where memory is short

Times on a shared machine are noisy; a ratio of two times taken one after the other is less so. Each
line prints what was measured, the ratio, and the bound that it is to keep.
"""

import argparse
import functools
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np

warnings.filterwarnings("ignore")
HERE = Path(__file__).resolve()
REPEATS = 3


def resident(pid: int | str = "self") -> int:
    """Return the resident memory of a process in bytes."""
    pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def fastest(function, repeats=REPEATS):
    """Return the least time of some runs, in seconds."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times)


def peak_of(function) -> int:
    """Return the resident memory that a call takes at its peak, above what was there before."""
    before, peak, done = resident(), 0, threading.Event()

    def look():
        nonlocal peak
        while not done.wait(0.002):
            peak = max(peak, resident())

    watcher = threading.Thread(target=look)
    watcher.start()
    function()
    done.set()
    watcher.join()
    return max(peak - before, 0)


def say(what: str, found: float, bound: float, detail: str = "") -> None:
    """Print one line of the table."""
    verdict = "" if found <= bound else "  <-- above"
    print(f"{what:58s} {found:8.3f}   bound {bound:6.2f}   {detail}{verdict}", flush=True)


def draw(n: int, d: int, seed: int = 0):
    """Return float32 rows of two classes and two environments, as features of a network are."""
    random = np.random.default_rng(seed)
    y, e = (random.random(n) < 0.15).astype(np.intp), (random.random(n) < 0.42).astype(np.intp)
    X = np.empty((n, d), np.float32)
    for start in range(0, n, 4096):
        own = slice(start, start + 4096)
        random.standard_normal(dtype=np.float32, out=X[own])
        X[own, 0] += y[own]
        X[own, 1] += e[own] * (2 * y[own] - 1)
        X[own, 2:30] *= 1 + 0.2 * e[own, None]
        X[own, 30:60] += 0.2 * y[own, None]
    return X, y, e


def subspace(rows: int, features: int) -> None:
    """Line 1: the subspace against one sum and one product, and its memory."""
    from isrlearn import ISR, CellMoments, ISRCov, ISRMean

    X, y, e = draw(rows, features)
    size = X.nbytes
    fits = {
        "ISRMean(1)": ISRMean(1),
        "ISRCov(20)": ISRCov(20),
        "ISR(rank_test='moments')": ISR(rank_test="moments", random_state=0),
    }
    one_sum = fastest(lambda: X.sum(axis=0), 5)
    mean = fastest(lambda: ISRMean(1).fit(X, y, environments=e), 5)
    say("ISRMean subspace / X.sum(axis=0)", mean / one_sum, 4, f"{mean:.3f} s / {one_sum:.3f} s")
    product = fastest(lambda: X.T @ X)
    moments = fastest(lambda: CellMoments.from_rows(X, y, e))
    detail = f"{moments:.2f} s / {product:.2f} s"
    say("moments of ISRCov and ISR / X.T @ X", moments / product, 1.6, detail)
    for name, isr in fits.items():
        extra = peak_of(lambda isr=isr: isr.fit(X, y, environments=e))
        say(f"extra memory of {name} / X", extra / size, 0.3, f"{extra / 2**20:.0f} MiB")


def head(rows: int, features: int) -> None:
    """Lines 1 and 2: removal and head against the head alone, the same iterations counted."""
    from scipy.linalg import eigh
    from sklearn.linear_model import LogisticRegression

    from isrlearn import ISR, ISRClassifier, ISRCov, ISRMean

    X, y, e = draw(rows, features)
    square = np.cov(X[: 2 * features].T)
    alone = LogisticRegression(max_iter=1000, tol=1e-5)
    fits = {
        "ISRMean(1)": ISRMean(1),
        "ISRCov(20)": ISRCov(20),
        "ISR(rank_test='moments')": ISR(rank_test="moments", random_state=0),
    }
    whole = {
        name: ISRClassifier(isr, LogisticRegression(max_iter=1000, tol=1e-5), group_weight=None)
        for name, isr in fits.items()
    }
    runs = {
        "head": lambda: alone.fit(X, y),
        "product": lambda: X.T @ X,
        "eigh": lambda: eigh(square),
        **{name: functools.partial(clf.fit, X, y, environments=e) for name, clf in whole.items()},
    }
    extra = {name: peak_of(runs[name]) for name in whole}
    # In turn, three times: a machine that is slow for a while is slow for all of them.
    rounds = [{name: fastest(run, 1) for name, run in runs.items()} for _ in range(REPEATS)]
    best = {name: min(times[name] for times in rounds) for name in runs}
    per_iteration = best["head"] / int(alone.n_iter_[0])
    for name, clf in whole.items():
        same = per_iteration * int(clf.head_.n_iter_[0])
        allowed = same + 2 * best["product"] + best["eigh"]
        what = "(head + 2 X.T @ X + eigh)"
        if name == "ISRMean(1)":
            allowed, what = 1.15 * same, "1.15 head"
        detail = f"{best[name]:.2f} s / {allowed:.2f} s, {clf.head_.n_iter_[0]} iterations"
        say(f"ISRClassifier({name}) / {what}", best[name] / allowed, 1, detail)
        say(f"extra memory of {name} and head / X", extra[name] / X.nbytes, 1.3)


def write_rows(path: Path, n: int, d: int) -> None:
    """Write rows to disk, never all in memory: features.npy, labels.npy, environments.npy."""
    path.mkdir(parents=True, exist_ok=True)
    file = np.lib.format.open_memmap(
        path / "features.npy", mode="w+", dtype=np.float32, shape=(n, d)
    )
    labels, environments = np.empty(n, np.int64), np.empty(n, np.int64)
    for number, start in enumerate(range(0, n, 50_000)):
        own = slice(start, min(start + 50_000, n))
        file[own], labels[own], environments[own] = draw(own.stop - start, d, seed=number)
    file.flush()
    np.save(path / "labels.npy", labels)
    np.save(path / "environments.npy", environments)


def growth(folder: Path) -> None:
    """Line 3: time against rows, and memory, of 64 features on disk."""
    from isrlearn import ChunkedRows, ISRCov, ISRMean

    path = folder / "narrow"
    write_rows(path, 10**7, 64)
    columns = [np.load(path / f"{n}.npy", mmap_mode="r") for n in NAMES]
    sizes = [10**5, 10**6, 10**7]
    for isr in (ISRMean(1), ISRCov(1)):
        times = []
        for n in sizes:
            X, y, e = (column[:n] for column in columns)
            rows = ChunkedRows.from_arrays(X, y, environments=e)
            times.append(fastest(lambda isr=isr, rows=rows: isr.fit(rows), 3))
        slope = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
        seconds = ", ".join(f"{t:.2f}" for t in times)
        name = f"{type(isr).__name__}(1): |log-log slope - 1|, 10^5 to 10^7 rows"
        say(name, abs(slope - 1), 0.1, f"slope {slope:.2f}; {seconds} s")
    for what in ("mean", "cov", "classifier"):
        _, above = in_a_process(what, path)
        say(
            f"{what} of 10^7 x 64 from disk, MB above import / 600",
            above / 600,
            1,
            f"{above:.0f} MB",
        )


NAMES = ("features", "labels", "environments")


def in_a_process(what: str, path: Path, *, above_import: bool = True) -> tuple[float, float]:
    """Fit in a process of its own; return seconds and MB of memory, seen from outside."""
    command = [sys.executable, str(HERE), "--fit", what, "--folder", str(path)]
    printed, peak = watched(command)
    bare, seconds = printed.split()
    return float(seconds), (peak - int(bare) * above_import) / 1e6


def watched(command: list[str]) -> tuple[str, int]:
    """Run a command; return what it printed and its resident memory at the peak."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
        peak = 0
        while process.poll() is None:
            with suppress(FileNotFoundError, ValueError, IndexError):  # it has ended
                peak = max(peak, resident(process.pid))
            time.sleep(0.005)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
        output.seek(0)
        return output.read(), peak


def fit_here(what: str, path: Path) -> None:
    """Fit rows on disk, and print the memory of the bare import and the seconds of the fit."""
    from isrlearn import ISRClassifier, ISRCov, ISRMean

    model = {"mean": ISRMean(1), "cov": ISRCov(1), "classifier": ISRClassifier(ISRMean(1))}[what]
    bare = resident()
    X, y, e = (np.load(path / f"{n}.npy", mmap_mode="r") for n in NAMES)
    begin = time.perf_counter()
    model.fit(X, y, environments=e)
    print(bare, time.perf_counter() - begin)
    if what == "classifier":
        np.savez(path / "model.npz", coef=model.coef_, intercept=model.intercept_)


def large(folder: Path) -> None:
    """Line 4: 6 GB in less than 2 GB, and the same coefficients as in memory."""
    from isrlearn import ChunkedRows, ISRClassifier, ISRMean

    path, d = folder / "wide", 512
    write_rows(path, 3_000_000, d)
    seconds, above = in_a_process("classifier", path, above_import=False)
    size = (path / "features.npy").stat().st_size / 1e9
    say(
        f"{size:.1f} GB fitted from disk, MB / 2000",
        above / 2000,
        1,
        f"{above:.0f} MB, {seconds:.0f} s",
    )
    file = folder / "wide.npz"
    np.savez(file, **{n: np.load(path / f"{n}.npy", mmap_mode="r") for n in NAMES})
    begin = time.perf_counter()
    command = [sys.executable, "-m", "isrlearn", "fit", str(file), "--out"]
    peak = watched([*command, str(folder / "model.safetensors"), "--force"])[1] / 1e6
    file.unlink()
    seconds = time.perf_counter() - begin
    say("the same by isrlearn fit, MB / 2000", peak / 2000, 1, f"{peak:.0f} MB, {seconds:.0f} s")
    X, y, e = (np.load(path / f"{n}.npy", mmap_mode="r")[:400_000] for n in NAMES)
    chunked = ISRClassifier(ISRMean(1)).fit(ChunkedRows.from_arrays(X, y, environments=e))
    whole = ISRClassifier(ISRMean(1)).fit(np.array(X), np.array(y), environments=np.array(e))
    apart = float(np.abs(chunked.coef_ - whole.coef_).max())
    say("coefficients in chunks less those in memory / 1e-4", apart / 1e-4, 1, f"{apart:.1e}")


def _block(path: str, name: str, start: int, stop: int):
    return np.array(np.load(Path(path) / f"{name}.npy", mmap_mode="r")[start:stop])


def cluster_of_two(folder: Path) -> None:
    """Line 5: two workers against one process with both cores, rows already in blocks."""
    import dask.array as da
    from dask import delayed
    from distributed import wait

    from isrlearn import ISRClassifier, ISRCov, ISRMean
    from isrlearn.distributed import DaskRows, cluster

    path, n, step = folder / "narrow", 10**7, 250_000
    if not path.exists():
        write_rows(path, n, 64)
    whole = [np.load(path / f"{name}.npy") for name in NAMES]
    fits = {"ISRMean(1)": ISRMean(1), "ISRCov(1)": ISRCov(1)}
    models = {**fits, "ISRClassifier(ISRMean(1))": ISRClassifier(ISRMean(1))}
    one = {}
    for name, model in models.items():
        fit = functools.partial(model.fit, whole[0], whole[1], environments=whole[2])
        one[name] = fastest(fit), _kept(model)
    del whole, fit
    with cluster(n_workers=2) as client:
        arrays = []
        for name, shape, dtype in zip(NAMES, ((64,), (), ()), ("f4", "i8", "i8"), strict=True):
            blocks = [
                da.from_delayed(
                    delayed(_block)(str(path), name, i, i + step), (step, *shape), dtype=dtype
                )
                for i in range(0, n, step)
            ]
            arrays.append(da.concatenate(blocks))
        X, y, e = client.persist(arrays)
        wait([X, y, e])
        rows = DaskRows.from_arrays(X, y, environments=e, client=client)
        for name, model in models.items():
            seconds = fastest(lambda m=model: m.fit(rows))
            alone, kept = one[name]
            detail = f"{seconds:.2f} s / {alone:.2f} s"
            say(f"Dask, 2 workers, {name} / one process", seconds / alone, 1.3, detail)
            for what, value in _kept(model).items():
                bound = 1e-4 if what == "coefficients" else 1e-10
                apart = float(np.abs(value - kept[what]).max() / np.abs(kept[what]).max())
                say(
                    f"  {what}: relative difference / {bound:.0e}", apart / bound, 1, f"{apart:.1e}"
                )


def _kept(model) -> dict[str, np.ndarray]:
    """Return what is compared of a fitted model."""
    if hasattr(model, "coef_"):
        return {"coefficients": np.array(model.coef_)}
    moments = model.moments_
    found = {"means": np.array(moments.means)}
    if moments.scatters is not None:
        found["scatters"] = np.array(moments.scatters)
    return found


def rank_test(*_: object) -> None:
    """Line 6: the rank test with default permutations against the moments."""
    from isrlearn import ISR, CellMoments

    X, y, e = draw(160_000, 100)
    moments = fastest(lambda: CellMoments.from_rows(X, y, e), 5)
    isr = ISR(random_state=0)
    whole = fastest(lambda: isr.fit(X, y, environments=e))
    detail = f"{whole - moments:.2f} s / {moments:.2f} s, rank {isr.n_spurious_}"
    say("rank test of 160 000 x 100 / moments", (whole - moments) / moments, 10, detail)


def main() -> None:
    """Run the lines that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lines", nargs="*", help="subspace, head, growth, large, dask, rank")
    parser.add_argument("--rows", type=int, default=162_770, help="of the first two lines")
    parser.add_argument("--features", type=int, default=2048, help="of the first two lines")
    parser.add_argument("--folder", type=Path, help="where large files go; a temporary one else")
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        fit_here(options.fit, options.folder)
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        lines = {
            "subspace": functools.partial(subspace, options.rows, options.features),
            "head": functools.partial(head, options.rows, options.features),
            "growth": functools.partial(growth, folder),
            "large": functools.partial(large, folder),
            "dask": functools.partial(cluster_of_two, folder),
            "rank": rank_test,
        }
        unknown = set(options.lines) - set(lines)
        if unknown:
            parser.error(f"{', '.join(sorted(unknown))}: choose from {', '.join(lines)}")
        for name in options.lines or lines:
            lines[name]()


if __name__ == "__main__":
    main()
