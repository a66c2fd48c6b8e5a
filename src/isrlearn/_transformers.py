"""Stage 3: the transformers. Thin shells: check the rows, add up moments, ask for the subspace."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self
from warnings import warn

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from isrlearn._rank import check_n_spurious
from isrlearn._recovery import subspace_from_covariances, subspace_from_means
from isrlearn._typing import Float64Array, FloatArray, LabelArray
from isrlearn._validation import FLOATS, check_rows, check_scale, refuse_sparse
from isrlearn.exceptions import SingleEnvironmentWarning
from isrlearn.moments import CellMoments
from isrlearn.subspace import Subspace


class ISRTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator, ABC):
    """What the ISR transformers share; a subclass says how moments become a subspace."""

    # With metadata routing on, `environments` reaches `fit` without any call of set_fit_request.
    __metadata_request__fit: ClassVar = {"environments": True}
    __metadata_request__partial_fit: ClassVar = {"environments": True}

    _second_order: ClassVar[bool]
    _subspace: Subspace | None  # None: to be found from the moments when asked for
    n_spurious: int
    scale: float
    reduced: bool

    @abstractmethod
    def _recover(self, moments: CellMoments) -> Subspace:
        """Return the subspace of moments with at least one known environment."""

    def fit(self, X: Any, y: Any, *, environments: Any = None, sample_weight: Any = None) -> Self:
        """Find the spurious subspace.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Class labels.
        environments : array-like of shape (n_samples,), default=None
            Environment of each row, by position: strings or numbers; None, NaN or NA where it is
            unknown (any other value, also -1 or "", is an environment). Rows of unknown
            environment are not used here. None: nothing is removed, with a
            `SingleEnvironmentWarning`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in the moments.

        Returns
        -------
        self
        """
        self.__dict__.pop("moments_", None)
        self.partial_fit(X, y, environments=environments, sample_weight=sample_weight)
        if environments is not None and len(self.environments_) == 0:
            raise ValueError(
                "environments has no known value: all are None or NaN. Give the environment of "
                "some rows, or leave the argument out to remove nothing."
            )
        self._subspace = self._find_subspace()
        return self

    def partial_fit(
        self, X: Any, y: Any, *, environments: Any = None, sample_weight: Any = None
    ) -> Self:
        """Add rows. The subspace is found when it is next asked for, from all rows so far.

        The result is that of one `fit` on all rows; a chunk need not have all classes or
        environments.

        Parameters
        ----------
        X, y, environments, sample_weight : array-like
            As in `fit`.

        Returns
        -------
        self
        """
        self._check_parameters()
        first = not hasattr(self, "moments_")
        rows = check_rows(X, y, environments, sample_weight, estimator=self, reset=first)
        if first:
            self.moments_ = CellMoments.from_checked(rows, second_order=self._second_order)
        else:
            self.moments_.update_checked(rows)
        self._subspace = None
        return self

    def transform(self, X: Any) -> FloatArray:
        """Remove the spurious subspace.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of any environment, also one never seen.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            In the original coordinates; (n_samples, n_features - n_spurious_) if `reduced`.
        """
        check_is_fitted(self, "moments_")
        refuse_sparse(X)
        X = validate_data(self, X, dtype=FLOATS, reset=False)
        return self.subspace_.reduce(X) if self.reduced else self.subspace_.project(X)

    def fold_into(self, weight: Any, bias: Any) -> tuple[Any, Any]:
        """Return the head that gives on X what the old one gives on ``transform(X)``.

        Parameters
        ----------
        weight : array-like of shape (n_features_out,) or (k, n_features_out)
            Weights of a linear head fitted on the output of `transform`.
        bias : array-like of shape () or (k,)
            Its bias.

        Returns
        -------
        weight, bias
            In the coordinates of X.
        """
        if self.reduced:
            return np.asarray(weight) @ self.subspace_.kept, bias
        return self.subspace_.fold_into(weight, bias)

    def get_feature_names_out(self, input_features: Any = None) -> LabelArray:
        """Return the names of the output columns.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the input columns; None uses those seen in `fit`.

        Returns
        -------
        ndarray of str
            The input names, or ``isrmean0, isrmean1, ...`` if `reduced`.
        """
        names = super().get_feature_names_out(input_features)
        if not self.reduced:
            return np.asarray(names)
        prefix = type(self).__name__.lower()
        n_out = self.n_features_in_ - self.n_spurious_
        return np.asarray([f"{prefix}{i}" for i in range(n_out)], dtype=object)

    @property
    def subspace_(self) -> Subspace:
        """The spurious subspace, a frozen `Subspace`."""
        check_is_fitted(self, "moments_")
        if self._subspace is None:
            self._subspace = self._find_subspace()
        return self._subspace

    @property
    def n_spurious_(self) -> int:
        """Number of directions removed."""
        return self.subspace_.rank

    @property
    def spurious_components_(self) -> Float64Array:
        """Directions removed, (n_spurious_, n_features)."""
        return self.subspace_.directions

    @property
    def spectrum_(self) -> Float64Array:
        """All eigenvalues by descending absolute value, (n_features,)."""
        return self.subspace_.spectrum

    @property
    def classes_(self) -> LabelArray:
        """Sorted class labels."""
        check_is_fitted(self, "moments_")
        return self.moments_.classes

    @property
    def environments_(self) -> LabelArray:
        """Sorted environments."""
        check_is_fitted(self, "moments_")
        return self.moments_.environments

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check_parameters(self) -> None:
        check_n_spurious(self.n_spurious)
        if not isinstance(self.reduced, bool | np.bool_):
            raise ValueError(f"reduced={self.reduced!r} must be True or False.")
        if check_scale(self.scale) != 0 and self.reduced:
            raise ValueError(
                f"reduced=True drops the spurious directions, so scale={self.scale!r} has no "
                "meaning: use scale=0, or reduced=False to shrink them."
            )

    def _find_subspace(self) -> Subspace:
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class ({self.classes_.tolist()}): at least two are needed to learn "
                "what tells classes apart."
            )
        if len(self.environments_) == 0:
            warn(
                f"{type(self).__name__} was fitted without environments: nothing can be seen to "
                "differ, so nothing is removed. Pass environments= to fit.",
                SingleEnvironmentWarning,
                stacklevel=3,
            )
            return Subspace.nothing(self.n_features_in_)
        if self.n_spurious == 0 and len(self.environments_) < 2:
            return Subspace.nothing(self.n_features_in_)  # asked for nothing: nothing to compare
        return self._recover(self.moments_)


class ISRMean(ISRTransformer):
    r"""Remove the directions in which class means differ between environments (ISR-Mean).

    Given the class, the mean of environment e is :math:`A\mu_c + B\mu_e`; centred over
    environments, the means span the columns of B, the spurious subspace. Algorithm 1 of the paper:
    stack the means, centre, eigen-decompose, keep what is orthogonal to the leading directions.
    Needs :math:`E \ge d_s + 1` environments, in general position (Theorem ISR-Mean).

    Parameters
    ----------
    n_spurious : int, default=1
        Number of directions to remove. At most :math:`\sum_c (E_c - 1)`, where class c is seen in
        :math:`E_c` environments. 0 removes nothing.
    condition_on : label or sequence of labels, default=None
        Class or classes whose means are compared. None: all classes, pooled with their weights.
        One class: the paper's algorithm, each environment counting once.
    scale : float, default=0.0
        What is left of the spurious part, from 0 (removed) to 1 (untouched).
    reduced : bool, default=False
        Return the paper's :math:`P'x`, with ``n_features - n_spurious`` columns, instead of
        projecting in the original coordinates.

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

    _second_order = False

    def __init__(
        self,
        n_spurious: int = 1,
        *,
        condition_on: Any = None,
        scale: float = 0.0,
        reduced: bool = False,
    ) -> None:
        self.n_spurious = n_spurious
        self.condition_on = condition_on
        self.scale = scale
        self.reduced = reduced

    def _recover(self, moments: CellMoments) -> Subspace:
        return subspace_from_means(
            moments, self.n_spurious, condition_on=self.condition_on, scale=self.scale
        )


class ISRCov(ISRTransformer):
    r"""Remove the directions in which class covariances differ between environments (ISR-Cov).

    Given the class, :math:`\Sigma_{e_1} - \Sigma_{e_2} = (\sigma_{e_1}^2 - \sigma_{e_2}^2) BB^T`:
    the eigenvectors of largest absolute eigenvalue span the spurious subspace (Algorithm 2). Two
    environments with different variances suffice (Theorem ISR-Cov). Over several pairs the
    subspaces are combined by their flag mean, the paper's robust version.

    Parameters
    ----------
    n_spurious : int, default=1
        Number of directions to remove. 0 removes nothing.
    condition_on : label or sequence of labels, default=None
        Class or classes whose covariances are compared. None: all classes, pooled with their
        weights. One class: the paper's algorithm.
    pairs : {"all", "distinct"} or (environment, environment), default="all"
        "all": flag mean over all pairs, for more than 20 environments over the 190 most
        informative. "distinct": over those whose sample covariances differ at level 0.01 by a
        Gaussian test. A tuple names one pair.
    scale : float, default=0.0
        What is left of the spurious part, from 0 (removed) to 1 (untouched).
    reduced : bool, default=False
        Return the paper's :math:`P'x`, with ``n_features - n_spurious`` columns, instead of
        projecting in the original coordinates.

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

    _second_order = True

    def __init__(
        self,
        n_spurious: int = 1,
        *,
        condition_on: Any = None,
        pairs: Any = "all",
        scale: float = 0.0,
        reduced: bool = False,
    ) -> None:
        self.n_spurious = n_spurious
        self.condition_on = condition_on
        self.pairs = pairs
        self.scale = scale
        self.reduced = reduced

    def _recover(self, moments: CellMoments) -> Subspace:
        return subspace_from_covariances(
            moments,
            self.n_spurious,
            condition_on=self.condition_on,
            pairs=self.pairs,
            scale=self.scale,
        )
