"""Time and memory of each stage, over rows n, features d and environments E."""

import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from isrlearn import ISR, CellMoments, ChunkedRows, ISRClassifier, ISRCov, ISRMean, LogisticHead

from benchmarks.common import draw

warnings.simplefilter("ignore")


class Moments:
    """Stage 1."""

    params = ([10_000, 100_000], [20, 200, 1000], [2, 20])
    param_names = ("n", "d", "E")

    def setup(self, n, d, E):
        self.rows = draw(n, d, E)

    def time_means(self, n, d, E):
        CellMoments.from_rows(*self.rows, second_order=False)

    def time_scatters(self, n, d, E):
        CellMoments.from_rows(*self.rows)

    def peakmem_means(self, n, d, E):
        CellMoments.from_rows(*self.rows, second_order=False)

    def peakmem_scatters(self, n, d, E):
        CellMoments.from_rows(*self.rows)


class Spectra:
    """Stage 2 from moments that are there."""

    params = ([20, 200, 1000], [2, 6])
    param_names = ("d", "E")

    def setup(self, d, E):
        X, y, e = draw(10_000, d, E)
        self.moments = CellMoments.from_rows(X, y, e)
        self.fitted = {name: isr.fit(X, y, environments=e) for name, isr in ESTIMATORS.items()}

    def time_means(self, d, E):
        self.fitted["mean"]._recover(self.moments, 1)

    def time_covariances(self, d, E):
        self.fitted["cov"]._recover(self.moments, 1)

    def time_both(self, d, E):
        self.fitted["both"]._recover(self.moments, 1)

    def peakmem_covariances(self, d, E):
        self.fitted["cov"]._recover(self.moments, 1)


ESTIMATORS = {"mean": ISRMean(1), "cov": ISRCov(1), "both": ISR(1)}


class RankTest:
    """The tests of ``n_spurious="auto"``."""

    params = ([10_000, 100_000], [10, 100], ["permutation", "moments"])
    param_names = ("n", "d", "rank_test")

    def setup(self, n, d, rank_test):
        self.X, self.y, self.e = draw(n, d)

    def time_auto(self, n, d, rank_test):
        ISR(rank_test=rank_test, random_state=0).fit(self.X, self.y, environments=self.e)

    def peakmem_auto(self, n, d, rank_test):
        ISR(rank_test=rank_test, random_state=0).fit(self.X, self.y, environments=self.e)


class Projection:
    """Removal as a low-rank update."""

    params = ([10_000, 100_000], [64, 1000], [1, 10])
    param_names = ("n", "d", "rank")

    def setup(self, n, d, rank):
        self.X, y, e = draw(n, d)
        self.isr = ISRCov(rank).fit(self.X, y, environments=e)

    def time_transform(self, n, d, rank):
        self.isr.transform(self.X)

    def peakmem_transform(self, n, d, rank):
        self.isr.transform(self.X)


class Heads:
    """Removal and head."""

    params = ([20_000, 100_000], [20, 500])
    param_names = ("n", "d")

    def setup(self, n, d):
        self.X, self.y, self.e = draw(n, d)

    def time_logistic_alone(self, n, d):
        LogisticRegression(max_iter=1000).fit(self.X, self.y)

    def time_default(self, n, d):
        ISRClassifier(ISRMean(1)).fit(self.X, self.y, environments=self.e)

    def time_chunks(self, n, d):
        rows = ChunkedRows.from_arrays(self.X, self.y, environments=self.e)
        ISRClassifier(ISRMean(1), LogisticHead(tol=1e-6, max_iter=1000)).fit(rows)

    def peakmem_default(self, n, d):
        ISRClassifier(ISRMean(1)).fit(self.X, self.y, environments=self.e)


class Disk:
    """Rows that are read in chunks: memory must not grow with n."""

    params = [100_000, 1_000_000]
    param_names = ("n",)

    def setup(self, n):
        self.folder = tempfile.TemporaryDirectory()
        X, self.y, self.e = draw(n, 64)
        np.save(Path(self.folder.name) / "X.npy", X)

    def teardown(self, n):
        self.folder.cleanup()

    def rows(self):
        X = np.load(Path(self.folder.name) / "X.npy", mmap_mode="r")
        return ChunkedRows.from_arrays(X, self.y, environments=self.e)

    def time_mean(self, n):
        ISRMean(1).fit(self.rows())

    def peakmem_cov(self, n):
        ISRCov(1).fit(self.rows())


class Runner:
    """What the benchmark runner adds to a job that does next to nothing."""

    def setup(self):
        from isrlearn.benchmark import Store

        self.folder = tempfile.TemporaryDirectory()
        self.store = Store(Path(self.folder.name) / "s.sqlite").create()

    def teardown(self):
        self.folder.cleanup()

    def time_twenty_jobs(self):
        from isrlearn.benchmark.runner import run
        from isrlearn.benchmark.spec import grid

        jobs = grid(["oracle"], ["2s"], [2], range(20), rows=100)
        run(jobs, self.store, redo=True)
