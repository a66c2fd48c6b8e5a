r"""Linear Unit-Tests: the examples of Aubin et al. (2021), with the paper's 3' and 3s'."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from isrlearn.datasets._base import EnvironmentRows
from isrlearn.rows import check_number
from isrlearn.typing import Float64Array, LabelArray

EXAMPLES: Final = ("1", "1s", "2", "2s", "3", "3s", "3'", "3s'")
SPLITS: Final = ("train", "validation", "test")
FIRST_SPREADS: Final = (0.1, 1.5, 2.0)  # Example 1
FIRST_BACKGROUNDS: Final = (0.95, 0.97, 0.99)  # Example 2
FIRST_ANIMALS: Final = (0.3, 0.5, 0.7)
NU_C: Final = {"published": 0.01, "paper": 0.02}


@dataclass(frozen=True, eq=False)
class LinearUnitTest:
    r"""One problem of the Linear Unit-Tests.

    * "1": x causes y, y causes z, with noise of another size in each environment; regression.
    * "2": animals (invariant) on backgrounds (spurious); the share of usual backgrounds varies.
    * "3": a small invariant margin, and spurious means :math:`\mu_e \sim N(0, I)`.
    * "3'": as "3", with spurious standard deviations :math:`\sigma_e \sim U(0.1, 0.3)`.

    With an "s" all features are rotated by a random orthonormal matrix. In the test split the
    spurious features are shuffled over the rows of each environment.

    Parameters
    ----------
    example : {"1", "1s", "2", "2s", "3", "3s", "3'", "3s'"}
        Which problem.
    n_environments : int, default=3
        Number of environments, at least 2.
    d_c, d_s : int, default=5
        Invariant and spurious dimensions.
    seed : int, default=0
        Draws environments, rotation and rows. Each (example, n_environments, seed, split) has a
        stream of random numbers of its own.
    constants : {"published", "paper"}, default="published"
        As in the code that made the published results, or as in the paper's text. The invariant
        scale of Example 2 is 0.01 or 0.02; in Example 3 exactly half of the rows of an environment
        are of each class, or a coin is thrown for each row.

    References
    ----------
    .. [1] B. Aubin, A. Slowik, M. Arjovsky, L. Bottou, D. Lopez-Paz. Linear unit-tests for
       invariance discovery. 2021.

    Examples
    --------
    >>> from isrlearn.datasets import LinearUnitTest
    >>> problem = LinearUnitTest("3s'", n_environments=4, seed=1)
    >>> X, y, environments = problem.sample(100)
    >>> X.shape
    (400, 10)
    >>> problem.B.shape
    (10, 5)
    """

    example: str
    n_environments: int = 3
    d_c: int = 5
    d_s: int = 5
    seed: int = 0
    constants: str = "published"
    parameters: dict[str, Float64Array] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.example not in EXAMPLES:
            raise ValueError(f"example={self.example!r} must be one of {EXAMPLES}.")
        if self.constants not in NU_C:
            raise ValueError(f"constants={self.constants!r} must be one of {tuple(NU_C)}.")
        for name, least in (("n_environments", 2), ("d_c", 1), ("d_s", 1), ("seed", 0)):
            check_number(name, getattr(self, name), least, whole=True)
        draw = {"1": self._draw_1, "2": self._draw_2, "3": self._draw_3}[self.example[0]]
        object.__setattr__(self, "parameters", draw(self._stream("parameters")))

    @cached_property
    def R(self) -> Float64Array:
        """Rotation, (d, d): x = R z; the identity without an "s"."""
        d = self.d_c + self.d_s
        if "s" not in self.example:
            return np.eye(d)
        return np.asarray(np.linalg.qr(self._stream("rotation").normal(size=(d, d)))[0])

    @property
    def B(self) -> Float64Array:
        """Columns of R for the spurious features, (d, d_s)."""
        return self.R[:, self.d_c :]

    def sample(
        self, n_per_environment: int, split: str = "train", *, shuffled: bool | None = None
    ) -> EnvironmentRows:
        """Draw rows.

        Parameters
        ----------
        n_per_environment : int
            Rows per environment.
        split : {"train", "validation", "test"}, default="train"
            Each has a stream of random numbers of its own.
        shuffled : bool, default=None
            Whether the spurious features are shuffled within each environment, which cuts them off
            from the target; None: in the test split only. An oracle is trained on such rows.

        Returns
        -------
        EnvironmentRows
            y is 0 or 1, in Example 1 a number; environments are 0, ..., E - 1.
        """
        if split not in SPLITS:
            raise ValueError(f"split={split!r} must be one of {SPLITS}.")
        check_number("n_per_environment", n_per_environment, 1, whole=True)
        shuffled = split == "test" if shuffled is None else shuffled
        random = self._stream(split)
        rows = {"1": self._rows_1, "2": self._rows_2, "3": self._rows_3}[self.example[0]]
        E, n = self.n_environments, n_per_environment
        Z, y = np.empty((E, n, self.d_c + self.d_s)), []
        for e in range(E):
            z_c, z_e, target = rows(e, n, random)
            Z[e, :, : self.d_c] = z_c
            Z[e, :, self.d_c :] = random.permutation(z_e) if shuffled else z_e
            y.append(target)
        X = Z.reshape(E * n, -1)
        X = X @ self.R.T if "s" in self.example else X
        return EnvironmentRows(X, np.concatenate(y), np.repeat(np.arange(E), n))

    def _stream(self, what: str) -> np.random.Generator:
        uses = ("parameters", "rotation", *SPLITS)
        key = (EXAMPLES.index(self.example), self.n_environments, self.seed, uses.index(what))
        return np.random.default_rng(np.random.SeedSequence(key))

    def _first_then(self, first: tuple[float, ...], more: Float64Array) -> Float64Array:
        return np.append(first[: self.n_environments], more)

    def _draw_1(self, random: np.random.Generator) -> dict[str, Float64Array]:
        n_more = max(0, self.n_environments - len(FIRST_SPREADS))
        return {
            "spread": self._first_then(FIRST_SPREADS, 10 ** random.uniform(-2, 1, n_more)),
            "x_to_y": random.standard_normal(size=(self.d_c, self.d_c)) / self.d_c,
            "y_to_z": random.standard_normal(size=(self.d_c, self.d_s)) / self.d_s,
        }

    def _draw_2(self, random: np.random.Generator) -> dict[str, Float64Array]:
        n_more = max(0, self.n_environments - len(FIRST_ANIMALS))
        return {
            "background": self._first_then(FIRST_BACKGROUNDS, random.uniform(0.9, 1, n_more)),
            "animal": self._first_then(FIRST_ANIMALS, random.uniform(0.3, 0.7, n_more)),
        }

    def _draw_3(self, random: np.random.Generator) -> dict[str, Float64Array]:
        E = self.n_environments
        means = random.standard_normal(size=(E, self.d_s))
        spread = random.uniform(0.1, 0.3, E) if "'" in self.example else np.full(E, 0.1)
        return {"mu_e": means, "sigma_e": spread}

    def _rows_1(
        self, e: int, n: int, random: np.random.Generator
    ) -> tuple[Float64Array, Float64Array, LabelArray]:
        p = self.parameters
        cause = p["spread"][e] * random.standard_normal(size=(n, self.d_c))
        y = cause @ p["x_to_y"] + p["spread"][e] * random.standard_normal(size=(n, self.d_c))
        effect = y @ p["y_to_z"] + random.standard_normal(size=(n, self.d_s))
        return cause, effect, y.sum(axis=1)

    def _rows_2(
        self, e: int, n: int, random: np.random.Generator
    ) -> tuple[Float64Array, Float64Array, LabelArray]:
        animal = np.where(random.uniform(size=(n, 1)) < self.parameters["animal"][e], 1, -1)
        usual = random.uniform(size=(n, 1)) < self.parameters["background"][e]
        noise = np.sqrt(0.1)
        z_c = NU_C[self.constants] * (animal + noise * random.standard_normal(size=(n, self.d_c)))
        z_e = np.where(usual, animal, -animal) + noise * random.standard_normal(size=(n, self.d_s))
        return z_c, z_e, (z_c.sum(axis=1) > 0).astype(np.intp)

    def _rows_3(
        self, e: int, n: int, random: np.random.Generator
    ) -> tuple[Float64Array, Float64Array, LabelArray]:
        p = self.parameters
        y = self._labels_3(n, random)
        sign = np.where(y == 0, 1, -1)[:, None]
        z_c = 0.1 * (sign + random.standard_normal(size=(n, self.d_c)))
        z_e = sign * p["mu_e"][e] + p["sigma_e"][e] * random.standard_normal(size=(n, self.d_s))
        return z_c, z_e, y

    def _labels_3(self, n: int, random: np.random.Generator) -> LabelArray:
        if self.constants == "paper":
            return random.integers(0, 2, size=n)
        # Half and half, as in the public code. It matters: the bias of a model whose weights are
        # driven to almost nothing, as those of IRMv1 are, is then exactly where it should be.
        return random.permutation(np.arange(n) % 2)
