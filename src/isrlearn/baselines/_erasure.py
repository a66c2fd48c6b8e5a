"""Rivals that erase what tells the environment, and then fit the label."""

from dataclasses import replace
from typing import Final

import numpy as np
from scipy.linalg import orth, qr, solve
from sklearn.linear_model import LogisticRegression

from isrlearn.baselines._rival import MOST_ITERATIONS, Head, WeightedRival
from isrlearn.display import brief
from isrlearn.heads import SOLVED
from isrlearn.moments import largest_values, whitening
from isrlearn.rows import UNKNOWN, Rows, check_number
from isrlearn.subspace import Subspace
from isrlearn.typing import Float64Array, FloatArray, IntArray

ABSENT: Final = 1e-10  # correlation, or share of a singular value, that is rounding


class ErasingRival(WeightedRival):
    """Erase a subspace, fit the head without it, fold both into one."""

    def _solve(self, rows: Rows) -> Head:
        known = rows.take(rows.environment_codes != UNKNOWN)
        erased = self._erased(known)
        self.n_erased_ = erased.rank
        coef, intercept = self._head(replace(rows, X=erased.project(rows.X)))
        return erased.fold_into(coef, intercept)

    def _erased(self, known: Rows) -> Subspace:
        raise NotImplementedError


class LEACE(ErasingRival):
    r"""Least-squares concept erasure of the environment, then logistic regression.

    With z the one-hot environment and :math:`W = \Sigma_{xx}^{-1/2}`,

    .. math:: x' = x - W^+ P\, W (x - \mu),

    P the orthogonal projection on the columns of :math:`W \Sigma_{xz}`: of all affine maps after
    which x' and z are uncorrelated, the one that moves x least. It sees features, labels and
    environments; rows of unknown environment do not enter the moments, but train the head.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty of the head.
    given_class : bool, default=False
        Whether covariances are taken about the means of the classes: then x' and z are
        uncorrelated given the class, on the average over the classes.
    weight : {None, "class", "group", "balanced"}, default=None
        Weights of the rows in the head, as in `LinearProbe`.

    Attributes
    ----------
    n_erased_ : int
        Number of directions that were erased, at most E - 1.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights in the coordinates of X, erasure included.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Bias.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    environments_ : ndarray of shape (E,)
        Sorted environments.

    References
    ----------
    .. [1] N. Belrose, D. Schneider-Joseph, S. Ravfogel, R. Cotterell, E. Raff, S. Biderman. LEACE:
       perfect linear concept erasure in closed form. NeurIPS 2023.

    Examples
    --------
    >>> from isrlearn.baselines import LEACE
    >>> from isrlearn.datasets import load_penguins
    >>> X, y, environments = load_penguins()
    >>> LEACE().fit(X, y, environments=environments).n_erased_
    2
    """

    uses = "labels and environments"

    def __init__(
        self, C: float = 1.0, *, given_class: bool = False, weight: str | None = None
    ) -> None:
        super().__init__(C, weight=weight)
        self.given_class = given_class

    def _erased(self, known: Rows) -> Subspace:
        if not isinstance(self.given_class, bool | np.bool_):
            raise ValueError(f"given_class={brief(self.given_class)} must be True or False.")
        classes = known.class_codes if self.given_class else np.zeros_like(known.class_codes)
        return least_squares_erasure(known.X, known.environment_codes, classes)


class INLP(ErasingRival):
    r"""Iterative null-space projection of the environment, then logistic regression.

    Logistic regression of the environment is fitted, the rows are projected on the null space of
    its weights, and so on, until it is no better on its own rows than the largest environment's
    share. It sees features, labels and environments; rows of unknown environment do not train the
    classifiers of the environment, but train the head.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty, of the head and of the classifiers of the environment.
    n_iterations : int, default=10
        Most projections.
    weight : {None, "class", "group", "balanced"}, default=None
        Weights of the rows in the head, as in `LinearProbe`.

    Attributes
    ----------
    n_erased_ : int
        Number of directions that were erased, at most E - 1 in each iteration.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights in the coordinates of X, erasure included.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Bias.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    environments_ : ndarray of shape (E,)
        Sorted environments.

    References
    ----------
    .. [1] S. Ravfogel, Y. Elazar, H. Gonen, M. Twiton, Y. Goldberg. Null it out: guarding protected
       attributes by iterative nullspace projection. ACL 2020.

    Examples
    --------
    >>> from isrlearn.baselines import INLP
    >>> from isrlearn.datasets import LinearUnitTest
    >>> X, y, environments = LinearUnitTest("2", seed=0).sample(200)
    >>> INLP(n_iterations=2).fit(X, y, environments=environments).n_erased_ <= 4
    True
    """

    uses = "labels and environments"

    def __init__(
        self, C: float = 1.0, *, n_iterations: int = 10, weight: str | None = None
    ) -> None:
        super().__init__(C, weight=weight)
        self.n_iterations = n_iterations

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("n_iterations", self.n_iterations, 0, whole=True)

    def _erased(self, known: Rows) -> Subspace:
        return iterative_erasure(known.X, known.environment_codes, self.n_iterations, self.C)


def least_squares_erasure(
    X: FloatArray, environment_codes: IntArray, class_codes: IntArray
) -> Subspace:
    """Return what LEACE erases.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.
    environment_codes : ndarray of shape (n,)
        Environment of each row.
    class_codes : ndarray of shape (n,)
        Covariances are taken about the means of these classes.
    """
    # The last environment is what the others are not.
    concept = np.eye(int(environment_codes.max()) + 1)[environment_codes, :-1]
    centred, concept = (_about_class_means(values, class_codes) for values in (X, concept))
    covariance = centred.T @ centred / len(X)
    white = whitening(covariance, np.finfo(np.float64).eps * largest_values(X))
    left, sizes, _ = np.linalg.svd(white.T @ (centred.T @ concept) / len(X), full_matrices=False)
    functionals = (white @ left[:, sizes > ABSENT]).T
    directions, _ = qr((functionals @ covariance).T, mode="economic")
    functionals = solve(functionals @ directions, functionals)
    centre = X.mean(axis=0)
    return Subspace(directions.T, functionals, centre, np.zeros(X.shape[1]))


def iterative_erasure(
    X: FloatArray, environment_codes: IntArray, n_iterations: int, C: float
) -> Subspace:
    """Return what iterative null-space projection erases.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.
    environment_codes : ndarray of shape (n,)
        Environment of each row.
    n_iterations : int
        Most projections.
    C : float
        Inverse strength of the penalty of the classifiers.
    """
    erased, centred = Subspace.nothing(X.shape[1]), X - X.mean(axis=0)
    majority = np.bincount(environment_codes).max()
    row_spaces = np.zeros((X.shape[1], X.shape[1]))
    for _ in range(n_iterations if majority < len(X) else 0):
        left = erased.project(centred)
        guess = LogisticRegression(C=C, tol=SOLVED, max_iter=MOST_ITERATIONS)
        guess.fit(left, environment_codes)
        if np.sum(guess.predict(left) == environment_codes) <= majority:
            break
        basis = orth(guess.coef_.T, rcond=ABSENT)
        row_spaces += basis @ basis.T
        directions = orth(row_spaces, rcond=ABSENT).T
        erased = Subspace.orthogonal(directions, centre=np.zeros(X.shape[1]))
    return erased


def _about_class_means(values: FloatArray, class_codes: IntArray) -> Float64Array:
    sums = np.zeros((int(class_codes.max()) + 1, values.shape[1]))
    np.add.at(sums, class_codes, values)
    sizes = np.bincount(class_codes, minlength=len(sums))
    # A class without rows of known environment has no mean, and no row asks for it.
    return np.asarray(values - (sums / np.maximum(sizes, 1)[:, None])[class_codes])
