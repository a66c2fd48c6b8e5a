"""Stage 3: the transformers, thin shells over `isrlearn.subspace._recovery`."""

from dataclasses import replace
from typing import Any, Self

import numpy as np

from isrlearn.display import brief
from isrlearn.estimators._transformer_base import ISRTransformer
from isrlearn.moments import FEW_COORDINATES, CellMoments, refuse_underflow, response_nulls
from isrlearn.rows import Rows
from isrlearn.subspace import (
    AUTO,
    Found,
    Search,
    subspace_from_both,
    subspace_from_covariances,
    subspace_from_means,
    subspace_given_response,
)
from isrlearn.typing import Float64Array


class ISRMean(ISRTransformer):
    r"""Remove the directions in which class means differ between environments (ISR-Mean).

    Given the class, the mean of environment e is :math:`A\mu_c + B\mu_e`; centred over
    environments, the means span the columns of B, the spurious subspace. Algorithm 1 of the paper:
    stack the means, centre, eigen-decompose, keep what is orthogonal to the leading directions.
    Needs :math:`E \ge d_s + 1` environments, in general position (Theorem ISR-Mean).

    Parameters
    ----------
    n_spurious : int or "auto", default=1
        Number of directions to remove. At most :math:`\sum_c (E_c - 1)`, where class c is seen in
        :math:`E_c` environments. 0 removes and compares nothing. "auto": as many as a sequence of
        tests finds different in mean.
    condition_on : label or sequence of labels, default=None
        Class or classes whose means are compared. None: all classes, pooled with their weights.
        One class: the paper's algorithm, each environment counting once.
    scale : float, default=0.0
        What is left of the spurious part, from 0 (removed) to 1 (untouched).
    reduced : bool, default=False
        Return the paper's :math:`P'x`, with ``n_features - n_spurious`` columns, instead of
        projecting in the original coordinates.
    alpha, rank_test, n_permutations, random_state
        Of the tests when `n_spurious` is "auto"; see `ISR`.

    Attributes
    ----------
    subspace_ : Subspace
        What is removed, as a frozen object.
    n_spurious_ : int
        Number of directions removed.
    spurious_components_ : ndarray of shape (n_spurious_, n_features)
        Orthonormal directions removed.
    spectrum_ : ndarray of shape (n_features,)
        Between-environment variance along each eigenvector, largest first.
    classes_, environments_ : ndarray
        Sorted labels.
    rank_choice_ : RankChoice or None
        The tests and their p-values when `n_spurious` is "auto".
    moments_ : CellMoments
        Sums that the result was computed from.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    See Also
    --------
    ISRCov : Uses covariances; needs two environments only, but with different variances.
    ISRClassifier : Removal and a linear head in one estimator.

    References
    ----------
    .. [1] H. Wang, H. Si, B. Li, H. Zhao. Provable Domain Generalization via Invariant-Feature
       Subspace Recovery. ICML 2022.

    Examples
    --------
    >>> from isrlearn import ISRMean
    >>> from isrlearn.datasets import load_penguins
    >>> X, y, species = load_penguins()
    >>> isr = ISRMean(n_spurious=1).fit(X, y, environments=species)
    >>> isr.transform(X).shape
    (333, 4)
    """

    _orders = "means"

    def __init__(
        self,
        n_spurious: int | str = 1,
        *,
        condition_on: Any = None,
        scale: float = 0.0,
        reduced: bool = False,
        alpha: float = 0.01,
        rank_test: str = "permutation",
        n_permutations: int = 449,
        random_state: Any = None,
    ) -> None:
        self.n_spurious = n_spurious
        self.condition_on = condition_on
        self.scale = scale
        self.reduced = reduced
        self.alpha = alpha
        self.rank_test = rank_test
        self.n_permutations = n_permutations
        self.random_state = random_state

    @property
    def _second_order(self) -> bool:
        return self._automatic  # the tests need the noise, a given rank only the means

    def _recover(self, moments: CellMoments, n_spurious: int | Search) -> Found:
        return subspace_from_means(
            moments, n_spurious, condition_on=self.condition_on, scale=self.scale
        )


class ISRCov(ISRTransformer):
    r"""Remove the directions in which class covariances differ between environments (ISR-Cov).

    Given the class, :math:`\Sigma_{e_1} - \Sigma_{e_2} = (\sigma_{e_1}^2 - \sigma_{e_2}^2) BB^T`:
    the eigenvectors of largest absolute eigenvalue span the spurious subspace (Algorithm 2). Two
    environments with different variances suffice (Theorem ISR-Cov). Over several pairs the
    subspaces are combined by their flag mean, the paper's robust version.

    Parameters
    ----------
    n_spurious : int or "auto", default=1
        Number of directions to remove. 0 removes and compares nothing. "auto": as many as a
        sequence of tests finds different in covariance.
    condition_on : label or sequence of labels, default=None
        Class or classes whose covariances are compared. None: all classes, pooled with their
        weights. One class: the paper's algorithm.
    pairs : {"all", "distinct"} or (environment, environment), default="all"
        "all": flag mean over all pairs, for more than 20 environments over the 190 most
        informative. "distinct": over those whose sample covariances differ at level 0.01 by a
        Gaussian test, in which weights count as numbers of rows. A tuple names one pair.
    scale : float, default=0.0
        What is left of the spurious part, from 0 (removed) to 1 (untouched).
    reduced : bool, default=False
        Return the paper's :math:`P'x`, with ``n_features - n_spurious`` columns, instead of
        projecting in the original coordinates.
    alpha, rank_test, n_permutations, random_state
        Of the tests when `n_spurious` is "auto"; see `ISR`.

    Attributes
    ----------
    subspace_ : Subspace
        What is removed, as a frozen object.
    n_spurious_ : int
        Number of directions removed.
    spurious_components_ : ndarray of shape (n_spurious_, n_features)
        Orthonormal directions removed.
    spectrum_ : ndarray of shape (n_features,)
        Of one pair: eigenvalues of the covariance difference, by descending absolute value. Of
        several: the share of the pairs that contain each direction, in [0, 1].
    classes_, environments_ : ndarray
        Sorted labels.
    rank_choice_ : RankChoice or None
        The tests and their p-values when `n_spurious` is "auto".
    moments_ : CellMoments
        Sums that the result was computed from.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    See Also
    --------
    ISRMean : Uses means; needs more environments, but no difference in variance.
    ISRClassifier : Removal and a linear head in one estimator.

    References
    ----------
    .. [1] H. Wang, H. Si, B. Li, H. Zhao. Provable Domain Generalization via Invariant-Feature
       Subspace Recovery. ICML 2022.

    Examples
    --------
    >>> from isrlearn import ISRCov
    >>> from isrlearn.datasets import make_linear_gaussian
    >>> model = make_linear_gaussian(n_environments=2, d_c=3, d_s=2, random_state=0)
    >>> X, y, e = model.sample(2000, random_state=0)
    >>> isr = ISRCov(n_spurious=2).fit(X, y, environments=e)
    >>> isr.spurious_components_.shape
    (2, 5)
    """

    _orders = "covariances"

    def __init__(
        self,
        n_spurious: int | str = 1,
        *,
        condition_on: Any = None,
        pairs: Any = "all",
        scale: float = 0.0,
        reduced: bool = False,
        alpha: float = 0.01,
        rank_test: str = "permutation",
        n_permutations: int = 449,
        random_state: Any = None,
    ) -> None:
        self.n_spurious = n_spurious
        self.condition_on = condition_on
        self.pairs = pairs
        self.scale = scale
        self.reduced = reduced
        self.alpha = alpha
        self.rank_test = rank_test
        self.n_permutations = n_permutations
        self.random_state = random_state

    def _recover(self, moments: CellMoments, n_spurious: int | Search) -> Found:
        return subspace_from_covariances(
            moments,
            n_spurious,
            condition_on=self.condition_on,
            pairs=self.pairs,
            scale=self.scale,
        )


class ISR(ISRTransformer):
    r"""Remove the directions in which environments differ given the class; nothing to choose.

    Means and covariances are compared together, in coordinates where all directions have
    comparable noise, and a sequence of tests finds how many directions differ. So neither the
    number of spurious directions nor the choice between `ISRMean` and `ISRCov` is left to the
    user, and units of the features do not matter. ``docs/method.md`` has the derivation.

    Parameters
    ----------
    n_spurious : "auto" or int, default="auto"
        "auto": as many directions as the tests find. A number: so many. 0 removes and compares
        nothing.
    condition_on : label or sequence of labels, default=None
        Class or classes whose moments are compared. None: all classes.
    alpha : float, default=0.01
        Level of each test. Where the environments do not differ, something is removed with
        probability at most `alpha`; after all true directions, one too many with about the same.
    rank_test : {"permutation", "moments"}, default="permutation"
        "permutation": environments are permuted within each class; needs all rows. "moments":
        parts of each cell are recombined; needs one pass and no rows afterwards. `partial_fit`
        always uses the latter.
    n_permutations : int, default=449
        How many permutations; the same serve all steps.
    scale : float, default=0.0
        What is left of the spurious part, from 0 (removed) to 1 (untouched).
    reduced : bool, default=False
        Return ``n_features - n_spurious_`` columns instead of projecting in the original
        coordinates.
    random_state : int, RandomState or None, default=None
        Source of the permutations. With a given `n_spurious` nothing is random.

    Attributes
    ----------
    subspace_ : Subspace
        What is removed, as a frozen object. The removal is oblique: along `directions`, by the
        amount that the noise within cells does not explain.
    n_spurious_ : int
        Number of directions removed.
    spurious_components_ : ndarray of shape (n_spurious_, n_features)
        Orthonormal directions removed, the strongest first.
    spectrum_ : ndarray of shape (n_features,)
        Eigenvalues of the joint scatter of means and covariances, in units of noise.
    rank_choice_ : RankChoice or None
        The tests and their p-values; None if `n_spurious` was given.
    classes_, environments_ : ndarray
        Sorted labels.
    moments_ : CellMoments
        Sums that the result was computed from.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    See Also
    --------
    ISRMean, ISRCov : The algorithms of the paper.
    ISRClassifier : Removal and a linear head in one estimator.

    Examples
    --------
    >>> from isrlearn import ISR
    >>> from isrlearn.datasets import make_linear_gaussian
    >>> model = make_linear_gaussian(n_environments=4, d_c=3, d_s=2, random_state=0)
    >>> X, y, e = model.sample(2000, random_state=0)
    >>> isr = ISR(random_state=0).fit(X, y, environments=e)
    >>> isr.n_spurious_
    2
    >>> bool(isr.subspace_.angles_to(model.B.T).max() < 0.1)
    True
    """

    def __init__(
        self,
        n_spurious: int | str = AUTO,
        *,
        condition_on: Any = None,
        scale: float = 0.0,
        reduced: bool = False,
        alpha: float = 0.01,
        rank_test: str = "permutation",
        n_permutations: int = 449,
        random_state: Any = None,
    ) -> None:
        self.n_spurious = n_spurious
        self.condition_on = condition_on
        self.scale = scale
        self.reduced = reduced
        self.alpha = alpha
        self.rank_test = rank_test
        self.n_permutations = n_permutations
        self.random_state = random_state

    def _recover(self, moments: CellMoments, n_spurious: int | Search) -> Found:
        return subspace_from_both(
            moments, n_spurious, condition_on=self.condition_on, scale=self.scale
        )

    def _fit_response(self, rows: Rows, environments_given: bool) -> Self:
        """Find the spurious subspace given a continuous target, for `ISRRegressor`."""
        if self.condition_on is not None:
            raise ValueError(
                f"condition_on={brief(self.condition_on)} names classes, but y is continuous: "
                "leave it out."
            )
        if self._automatic and self.rank_test != "permutation":
            raise ValueError(
                f"rank_test={brief(self.rank_test)} is for classes: with a continuous y use "
                "'permutation', or give n_spurious."
            )
        self._environments_given = environments_given
        self._parts = None
        rows = replace(rows, response=_standardised(rows.y, rows.sample_weight))
        joint = replace(rows, X=np.column_stack([rows.X, rows.y.astype(rows.X.dtype)]))
        moments = CellMoments.from_checked(joint)
        refuse_underflow(moments.largest[:-1])  # without the target, whose unit is one

        def recover(moments: CellMoments, n_spurious: int | Search) -> Found:
            return subspace_given_response(moments, n_spurious, scale=self.scale)

        self._found = self._find_with(moments, response_nulls(rows), recover)
        self.moments_ = moments
        return self


def default_isr(n_features: int) -> ISRTransformer:
    """Return the removal that is used where none is named.

    Up to 20 features `ISR()`, which needs nothing to be known, with the same permutations in each
    fit. With more, features of a network say:
    ``ISRMean(1)``, the direction in which the class means differ most. There the tests find
    that nearly every direction differs a little, and removing all of them takes the signal along
    (``docs/compare.md`` has the study).

    Parameters
    ----------
    n_features : int
        Number of features.

    Returns
    -------
    ISR or ISRMean
    """
    return ISR(random_state=0) if n_features <= FEW_COORDINATES else ISRMean(1)


def _standardised(y: Float64Array, weights: Float64Array | None) -> Float64Array:
    """Take offset and unit out of a target: they change nothing but rounding errors."""
    scaled = y / (np.abs(y).max() or 1.0)  # first, so that no square overflows or vanishes
    centred = scaled - np.average(scaled, weights=weights)
    # Once more: rows of little weight may lie so far away that the first mean is rounded by much.
    centred -= np.average(centred, weights=weights)
    spread = np.sqrt(np.average(centred**2, weights=weights))
    return np.asarray(centred / (spread or 1.0))
