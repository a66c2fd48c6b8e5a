r"""The linear Gaussian model of the paper (its equations 1 to 4)."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from isrlearn.datasets._base import EnvironmentRows
from isrlearn.moments import CellMoments
from isrlearn.rows import as_numbers, check_number, seeded
from isrlearn.typing import Float64Array

MOST_ENVIRONMENTS: Final = 10**6
MOST_DIMENSIONS: Final = 10**4  # of which a square matrix is drawn
MOST_ROWS: Final = 10**9


@dataclass(frozen=True, eq=False)
class LinearGaussian:
    r"""The paper's data model, to draw rows from and to compute exact moments of.

    In environment e: y = 1 with probability :math:`\eta`, else -1;
    :math:`z_c \sim N(y\mu_c, \sigma_c^2 I)`, :math:`z_e \sim N(y\mu_e, \sigma_e^2 I)` and
    :math:`x = R\,[z_c; z_e] = A z_c + B z_e`.

    Parameters
    ----------
    eta : float
        Probability of y = 1.
    mu_c : ndarray of shape (d_c,)
        Invariant mean.
    mu_e : ndarray of shape (E, d_s)
        Environmental means.
    sigma_c : float
        Invariant standard deviation.
    sigma_e : ndarray of shape (E,)
        Environmental standard deviations.
    R : ndarray of shape (d_c + d_s, d_c + d_s)
        Invertible mixing matrix.

    See Also
    --------
    make_linear_gaussian : Draws what is not given.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.datasets import LinearGaussian
    >>> mu_e = np.array([[-2.0], [2.0]])
    >>> model = LinearGaussian(0.5, np.ones(2), mu_e, 1.0, np.ones(2), np.eye(3))
    >>> model.sample(100, random_state=0).X.shape
    (200, 3)
    >>> model.optimal_invariant_predictor()
    (array([2., 2., 0.]), 0.0)
    """

    eta: float
    mu_c: Float64Array
    mu_e: Float64Array
    sigma_c: float
    sigma_e: Float64Array
    R: Float64Array

    def __post_init__(self) -> None:
        d = len(self.mu_c) + self.mu_e.shape[1]
        if min(len(self.mu_c), *self.mu_e.shape) < 1:
            raise ValueError("n_environments, d_c and d_s must all be at least 1.")
        _check_shape("R", self.R, (d, d))
        _check_shape("sigma_e", self.sigma_e, (len(self.mu_e),))
        if not 0 < self.eta < 1:
            raise ValueError(f"eta={self.eta!r} must lie strictly between 0 and 1.")
        if not (self.sigma_c > 0 and np.all(self.sigma_e > 0)):  # so that NaN is refused
            raise ValueError("sigma_c and sigma_e must be positive.")
        if np.linalg.matrix_rank(self.R) < d:
            raise ValueError("R is singular: Assumption 3 of the model needs an invertible matrix.")

    @property
    def n_environments(self) -> int:
        """Number of environments E."""
        return len(self.mu_e)

    @property
    def A(self) -> Float64Array:
        """Columns of R for the invariant features, (d, d_c)."""
        return self.R[:, : len(self.mu_c)]

    @property
    def B(self) -> Float64Array:
        """Columns of R for the spurious features, (d, d_s)."""
        return self.R[:, len(self.mu_c) :]

    def sample(
        self, n_per_environment: int, *, random_state: int | np.random.RandomState | None = None
    ) -> EnvironmentRows:
        """Draw rows.

        Parameters
        ----------
        n_per_environment : int
            Rows per environment.
        random_state : int, RandomState or None, default=None
            Source of randomness.

        Returns
        -------
        EnvironmentRows
            y is -1 or 1; environments are 0, ..., E - 1.
        """
        check_number("n_per_environment", n_per_environment, 0, MOST_ROWS, whole=True)
        random = seeded(random_state)
        environments = np.repeat(np.arange(self.n_environments), n_per_environment)
        y = np.where(random.uniform(size=len(environments)) < self.eta, 1, -1)
        noise = random.normal(size=(len(y), len(self.R)))
        d_c = len(self.mu_c)
        z_c = y[:, None] * self.mu_c + self.sigma_c * noise[:, :d_c]
        spread = self.sigma_e[environments, None]
        z_e = y[:, None] * self.mu_e[environments] + spread * noise[:, d_c:]
        return EnvironmentRows(np.hstack([z_c, z_e]) @ self.R.T, y, environments)

    def population_moments(self, *, n_per_environment: int = 1_000_000) -> CellMoments:
        r"""Return the exact moments: means :math:`y(A\mu_c + B\mu_e)`, and covariances.

        Parameters
        ----------
        n_per_environment : int, default=1000000
            Weight of an environment; means and covariances do not depend on it.

        Returns
        -------
        CellMoments
            Classes -1 and 1, environments 0, ..., E - 1.
        """
        E = self.n_environments
        signs = np.repeat([-1, 1], E)
        shares = np.repeat([1 - self.eta, self.eta], E)
        means = self.A @ self.mu_c + self.mu_e @ self.B.T
        invariant = self.sigma_c**2 * self.A @ self.A.T
        covariances = invariant + self.sigma_e[:, None, None] ** 2 * (self.B @ self.B.T)
        weights = n_per_environment * shares
        return CellMoments(
            classes=np.array([-1, 1]),
            environments=np.arange(E),
            class_index=np.repeat([0, 1], E),
            environment_index=np.tile(np.arange(E), 2),
            counts=np.ceil(weights).astype(np.intp),
            weights=weights,
            means=signs[:, None] * np.tile(means, (2, 1)),
            scatters=weights[:, None, None] * np.tile(covariances, (2, 1, 1)),
            largest=np.abs(means).max(axis=0),
            precision=float(np.finfo(np.float64).eps),
        )

    def optimal_invariant_predictor(self) -> tuple[Float64Array, float]:
        r"""Return weight (d,) and bias of :math:`h^*` (Proposition 1), on x.

        :math:`h^*(x) = \frac{2}{\sigma_c^2}\mu_c^T z_c + \log\frac{\eta}{1-\eta}` with
        :math:`z_c` the invariant part of :math:`R^{-1}x`.
        """
        on_z = np.concatenate([2 * self.mu_c / self.sigma_c**2, np.zeros(self.mu_e.shape[1])])
        weight = np.linalg.solve(self.R.T, on_z)
        return weight, float(np.log(self.eta / (1 - self.eta)))


def make_linear_gaussian(
    n_environments: int = 3,
    d_c: int = 2,
    d_s: int = 2,
    *,
    eta: float = 0.5,
    mu_c: Any = None,
    mu_e: Any = None,
    sigma_c: float = 1.0,
    sigma_e: Any = None,
    R: Any = None,
    random_state: int | np.random.RandomState | None = None,
) -> LinearGaussian:
    """Make a model of the paper's form; what is not given is drawn.

    Parameters
    ----------
    n_environments, d_c, d_s : int
        Number of environments, of invariant and of spurious dimensions.
    eta : float, default=0.5
        Probability of y = 1.
    mu_c : array-like of shape (d_c,), default=None
        Invariant mean; drawn from N(0, I).
    mu_e : array-like of shape (E, d_s) or (d_s,), default=None
        Environmental means, one for all if 1-D; drawn from N(0, I).
    sigma_c : float, default=1.0
        Invariant standard deviation.
    sigma_e : array-like of shape (E,) or float, default=None
        Environmental standard deviations, one for all if a number; drawn from U(0.5, 2).
    R : array-like of shape (d, d), default=None
        Mixing matrix; drawn with singular values in [0.5, 2]: not orthogonal, not near singular.
    random_state : int, RandomState or None, default=None
        Source of randomness.

    Returns
    -------
    LinearGaussian

    Examples
    --------
    >>> from isrlearn.datasets import make_linear_gaussian
    >>> model = make_linear_gaussian(n_environments=4, d_c=2, d_s=3, random_state=0)
    >>> X, y, environments = model.sample(100, random_state=0)
    >>> X.shape
    (400, 5)
    >>> model.population_moments()
    CellMoments(classes=2, environments=4, cells=8 of 8, features=5, smallest_cell=500000)
    """
    check_number("n_environments", n_environments, 1, MOST_ENVIRONMENTS, whole=True)
    for name, size in (("d_c", d_c), ("d_s", d_s)):
        check_number(name, size, 1, MOST_DIMENSIONS, whole=True)
    random = seeded(random_state)  # draws everything, so that a part given moves no other
    return LinearGaussian(
        eta=eta,
        mu_c=_given_or("mu_c", mu_c, random.normal(size=d_c)),
        mu_e=_given_or("mu_e", mu_e, random.normal(size=(n_environments, d_s))),
        sigma_c=sigma_c,
        sigma_e=_given_or("sigma_e", sigma_e, random.uniform(0.5, 2, size=n_environments)),
        R=_given_or("R", R, _random_mixing(d_c + d_s, random)),
    )


def _given_or(name: str, given: Any, drawn: Float64Array) -> Float64Array:
    if given is None:
        return drawn
    values = np.asarray(as_numbers(given, name), dtype=np.float64)
    try:
        return np.array(np.broadcast_to(values, drawn.shape))
    except ValueError as error:
        raise ValueError(f"{name} has shape {values.shape}, expected {drawn.shape}.") from error


def _random_mixing(d: int, random: np.random.RandomState) -> Float64Array:
    left, _ = np.linalg.qr(random.normal(size=(d, d)))
    right, _ = np.linalg.qr(random.normal(size=(d, d)))
    return np.asarray(left * random.uniform(0.5, 2, size=d) @ right)


def _check_shape(name: str, array: Float64Array, expected: tuple[int, ...]) -> None:
    if array.shape != expected:
        raise ValueError(f"{name} has shape {array.shape}, expected {expected}.")
