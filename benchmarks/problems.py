"""Problems and scores that the benchmarks of the automatic rank share."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.linalg import null_space
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from isrlearn import ISR, ISRClassifier, ISRCov, ISRMean, Subspace
from isrlearn.datasets import EnvironmentRows, LinearUnitTest


class Problem(NamedTuple):
    """Training and test rows, and the true spurious directions."""

    train: EnvironmentRows
    test: EnvironmentRows
    B: np.ndarray


class Variant(NamedTuple):
    """A change to the rows of a unit test."""

    d_c: int = 5
    d_s: int = 5
    mixing: bool = False
    """Mix the features by a matrix that is not orthogonal."""
    invariant_scale: float = 1.0
    """Multiply the invariant features by this."""
    small_cell: int = 0
    """Keep so many rows of class 1 in the first environment; 0 keeps all."""


def unit_test(
    example: str, E: int, seed: int, n: int = 10_000, variant: Variant = Variant()
) -> Problem:
    """Draw a problem of the Linear Unit-Tests, with 10 000 test rows per environment."""
    source = LinearUnitTest(example, E, variant.d_c, variant.d_s, seed)
    d = variant.d_c + variant.d_s
    scale = np.ones(d)
    scale[: variant.d_c] = variant.invariant_scale
    change = source.R * scale @ source.R.T
    if variant.mixing:
        random = np.random.default_rng([seed, E])
        left, right = (np.linalg.qr(random.normal(size=(d, d)))[0] for _ in range(2))
        change = left * random.uniform(0.3, 3, d) @ right @ change
    train, test = source.sample(n), source.sample(10_000, "test")
    if variant.small_cell:
        cell = np.flatnonzero((train.y == 1) & (train.environments == 0))
        kept = np.delete(np.arange(len(train.y)), cell[variant.small_cell :])
        train = EnvironmentRows(*(a[kept] for a in train))
    mixed = (rows._replace(X=rows.X @ change.T) for rows in (train, test))
    return Problem(*mixed, change @ source.B)


def exact_error(problem: Problem, subspace: Subspace | None = None, kept: Any = None) -> float:
    """Return the mean test error over environments of logistic regression on what is kept.

    Whitened, so that the solver converges whatever the scales, and hardly penalised.
    """
    basis = subspace.kept.T if kept is None else kept
    head = make_pipeline(PCA(whiten=True), LogisticRegression(C=100, solver="newton-cholesky"))
    head.fit(problem.train.X @ basis, problem.train.y)
    return environment_error(head.predict(problem.test.X @ basis), problem.test)


def environment_error(predicted: np.ndarray, rows: EnvironmentRows) -> float:
    """Return the mean over environments of the share of wrong predictions."""
    wrong = predicted != rows.y
    return float(np.mean([wrong[rows.environments == e].mean() for e in set(rows.environments)]))


def oracle_error(problem: Problem) -> float:
    """Return the error with the true spurious directions removed."""
    return exact_error(problem, kept=null_space(problem.B.T))


METHODS: dict[str, Callable[[int, int, int], Any]] = {
    "ISR": lambda d_s, E, seed: ISR(random_state=seed),
    "ISRMean auto": lambda d_s, E, seed: ISRMean("auto", random_state=seed),
    "ISRCov auto": lambda d_s, E, seed: ISRCov("auto", random_state=seed),
    "ISR given": lambda d_s, E, seed: ISR(d_s),
    "ISRMean given": lambda d_s, E, seed: ISRMean(min(d_s, E - 1)),
    "ISRCov given": lambda d_s, E, seed: ISRCov(d_s),
}


def run(
    example: str,
    E: int,
    seeds: Iterable[int],
    methods: Iterable[str],
    *,
    n: int = 10_000,
    variant: Variant = Variant(),
    default_head: bool = False,
    jobs: int = 2,
) -> dict[str, np.ndarray]:
    """Return errors, (seeds,), by method; ranks under "rank of ..."; "oracle" is the oracle."""

    def one(seed: int) -> dict[str, float]:
        problem = unit_test(example, E, seed, n, variant)
        result = {"oracle": oracle_error(problem)}
        for name in methods:
            isr = METHODS[name](variant.d_s, E, seed)
            X, y, environments = problem.train
            isr.fit(X, y, environments=environments)
            result[name] = exact_error(problem, isr.subspace_)
            result[f"rank of {name}"] = isr.n_spurious_
        if default_head:
            clf = ISRClassifier(ISR(random_state=seed)).fit(X, y, environments=environments)
            result["ISRClassifier"] = environment_error(clf.predict(problem.test.X), problem.test)
        return result

    rows = Parallel(n_jobs=jobs)(delayed(one)(seed) for seed in seeds)
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def differences(result: dict[str, np.ndarray], name: str, base: str) -> tuple[float, float]:
    """Return the mean of paired differences and its standard error."""
    d = result[name] - result[base]
    return float(d.mean()), float(d.std(ddof=1) / np.sqrt(len(d)))


def heterogeneous(E: int, seed: int, n: int) -> Problem:
    """Draw Example 3s with small shifts and covariances that differ in shape, not in size."""
    random = np.random.default_rng([seed, E, 3])
    R = np.linalg.qr(random.normal(size=(10, 10)))[0]
    means = 0.05 * random.normal(size=(E, 5))
    shapes = [random.normal(size=(5, 5)) for _ in range(E)]
    roots = [np.linalg.cholesky(0.1 * G @ G.T + 0.5 * np.eye(5)) for G in shapes]

    def draw(n: int, test: bool) -> EnvironmentRows:
        X, y = [], []
        for mean, root in zip(means, roots, strict=True):
            label = random.integers(0, 2, n)
            sign = np.where(label == 0, 1, -1)[:, None]
            z_c = 0.1 * (sign + random.normal(size=(n, 5)))
            z_e = sign * mean + 0.2 * random.normal(size=(n, 5)) @ root.T
            X.append(np.hstack([z_c, random.permutation(z_e) if test else z_e]))
            y.append(label)
        environments = np.repeat(np.arange(E), n)
        return EnvironmentRows(np.concatenate(X) @ R.T, np.concatenate(y), environments)

    return Problem(draw(n, False), draw(10_000, True), R[:, 5:])


def linear_regression(shift: float, seed: int, n: int = 5000) -> tuple[np.ndarray, ...]:
    """Draw a Gaussian regression: the relation of four directions to y varies by `shift`.

    Returns X, y, environments, B, and X, y of a new environment.
    """
    random = np.random.default_rng([seed, 5])
    R = np.linalg.qr(random.normal(size=(9, 9)))[0] * random.uniform(0.5, 2, 9)
    invariant = random.normal(size=5)
    level, slope = shift * random.normal(size=(2, 6, 4))

    def draw(e: int) -> tuple[np.ndarray, np.ndarray]:
        y = random.normal(size=n)
        z_c = np.outer(y, invariant) + random.normal(size=(n, 5))
        z_e = level[e] + np.outer(y, slope[e]) + random.normal(size=(n, 4))
        return np.hstack([z_c, z_e]) @ R.T, y

    parts = [draw(e) for e in range(5)]
    X, y = (np.concatenate(part) for part in zip(*parts, strict=True))
    return X, y, np.repeat(np.arange(5), n), R[:, 5:], *draw(5)


def wide(spectrum: str, differ: bool, seed: int, d: int = 500, n: int = 5000) -> Problem:
    """Draw 500 features of heavy tails in 4 environments; in the test rows the cue is reversed."""
    random = np.random.default_rng([seed, 7])
    R = np.linalg.qr(random.normal(size=(d, d)))[0]
    spread = np.arange(1, d + 1) ** -0.5 if spectrum == "decaying" else np.ones(d)
    strong = random.permutation(20)
    spurious, invariant = strong[:3], strong[3:8]
    means = 1 + random.normal(size=(4, 3))
    sigma = random.uniform(0.5, 2, 4) if differ else np.ones(4)

    def draw(n: int, cue: int) -> EnvironmentRows:
        e, y = random.integers(0, 4, n), random.integers(0, 2, n)
        sign = np.where(y == 1, 1, -1)[:, None]
        Z = random.standard_t(4, size=(n, d)) / np.sqrt(2)
        Z[:, invariant] += 0.75 * sign
        Z[:, spurious] = Z[:, spurious] * sigma[e][:, None] + cue * sign * means[e]
        return EnvironmentRows((Z * spread) @ R.T, y, e)

    train = draw(n, 1)
    cell = np.flatnonzero((train.y == 1) & (train.environments == 0))
    kept = np.delete(np.arange(n), cell[60:])
    train = EnvironmentRows(*(a[kept] for a in train))
    return Problem(train, draw(5000, -1), (R * spread)[:, spurious])


def ridge_error(problem: Problem, subspace: Subspace) -> float:
    """Return the test error of a penalised logistic regression after removal."""
    size = problem.train.X.std()
    head = LogisticRegression(C=0.01).fit(subspace.project(problem.train.X) / size, problem.train.y)
    return 1 - head.score(subspace.project(problem.test.X) / size, problem.test.y)
