"""The transformers: thin scikit-learn shells over moments and the subspace of these."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from isrlearn.diagnosis import Diagnosis, chance_of, diagnose
from isrlearn.display import brief
from isrlearn.exceptions import SingleEnvironmentWarning, warn_user
from isrlearn.moments import (
    FEW_COORDINATES,
    AddMoments,
    AddUnits,
    CellEvidence,
    CellMoments,
    Evidence,
    PartMoments,
    PermuteEnvironments,
    evidence_given_classes,
    evidence_given_response,
    refuse_underflow,
    resampled,
)
from isrlearn.rows import (
    InMemory,
    Rows,
    RowSource,
    as_source,
    check_features,
    check_rows,
    check_scale,
    seeded,
)
from isrlearn.subspace import (
    AUTO,
    RankChoice,
    RankTest,
    Recovery,
    Subspace,
    check_n_spurious,
    check_search,
    evidence_of_pairs,
    subspace_from_both,
    subspace_from_covariances,
    subspace_from_means,
    subspace_given_response,
)
from isrlearn.typing import Float64Array, FloatArray, LabelArray

Null = Callable[[CellEvidence], Evidence]
"""Draws what some cells would show if the environments did not differ."""


def names_of_features(estimator: Any) -> tuple[str, ...]:
    """Return the names of the columns that an estimator was fitted on; without names x0, x1, ..."""
    numbered = [f"x{j}" for j in range(estimator.n_features_in_)]
    return tuple(getattr(estimator, "feature_names_in_", numbered))


def set_features(estimator: Any, source: RowSource) -> None:
    """Tell an estimator which features it is fitted on."""
    estimator.__dict__.pop("feature_names_in_", None)
    estimator.n_features_in_ = source.n_features
    if source.feature_names is not None:
        estimator.feature_names_in_ = np.asarray(source.feature_names, dtype=object)


class SubspaceAttributes:
    """Attributes of a fitted estimator that are read off its ``subspace_``."""

    subspace_: Any

    @property
    def n_spurious_(self) -> int:
        """Number of directions removed."""
        return int(self.subspace_.rank)

    @property
    def spurious_components_(self) -> Float64Array:
        """Directions removed, (n_spurious_, n_features)."""
        return np.asarray(self.subspace_.directions)

    @property
    def spectrum_(self) -> Float64Array:
        """All eigenvalues by descending absolute value, (n_features,)."""
        return np.asarray(self.subspace_.spectrum)


class ISRTransformer(SubspaceAttributes, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """What the ISR transformers share; a subclass says how moments become a subspace."""

    # With metadata routing on, `environments` reaches `fit` without any call of set_fit_request.
    __metadata_request__fit: ClassVar = {"environments": True}
    __metadata_request__partial_fit: ClassVar = {"environments": True}

    _environments_given: bool
    _found: Recovery | None  # None: to be found from the moments when asked for
    _parts: PartMoments | None  # what a stream keeps for the rank test
    _orders: ClassVar[str] = "both"  # what the method looks at

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

    @abstractmethod
    def _recover(self, moments: CellMoments, rank: int | RankTest) -> Recovery:
        """Return the subspace of moments with at least one known environment."""

    @abstractmethod
    def _evidence(self, moments: CellMoments) -> CellEvidence:
        """Return the cells that are compared, for a test of the rank."""

    @property
    def _automatic(self) -> bool:
        return isinstance(self.n_spurious, str)

    @property
    def _second_order(self) -> bool:
        """Whether the moments need scatters."""
        return True

    @property
    def _reads_rows(self) -> bool:
        """Whether a fit needs more of the rows than sums: then they must be on the host."""
        return self._automatic

    def fit(
        self, X: Any, y: Any = None, *, environments: Any = None, sample_weight: Any = None
    ) -> Self:
        """Find the spurious subspace.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or ChunkedRows
            Features; or rows with all that belongs to them, read chunk by chunk. Of a tensor on a
            GPU only sums come to the host, if `n_spurious` is given.
        y : array-like of shape (n_samples,)
            Class labels; not with `ChunkedRows`, which have their own, as they have environments
            and weights.
        environments : array-like of shape (n_samples,), default=None
            Environment of each row, by position: strings or numbers; None, NaN or NA where it is
            unknown (any other value, also -1 or "", is an environment). Rows of unknown
            environment are not used here. None: nothing is removed, with a
            `SingleEnvironmentWarning`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in the moments. A weight of zero is the same as no row.

        Returns
        -------
        self
        """
        self._check_parameters()
        self.__dict__.pop("moments_", None)  # a fit that fails must not look like a fit
        source = as_source(X, y, environments, sample_weight)
        if source is not None:
            set_features(self, source)
            return self._fit_source(source)
        given = X, y, environments, sample_weight
        rows = check_rows(*given, estimator=self, look_for_nan=self._second_order)
        return self._fit_source(InMemory(rows), environments is not None)

    def _fit_source(
        self,
        source: RowSource,
        environments_given: bool | None = None,
        moments: CellMoments | None = None,
    ) -> Self:
        """Find the spurious subspace of checked rows; their moments may be known already.

        Without word on whether environments were given, they were if one is known.
        """
        if moments is None and isinstance(source, InMemory):  # rows of no cell are not added up
            moments = CellMoments.from_checked(source.rows, second_order=self._second_order)
        elif moments is None:
            moments = source.total(AddMoments(self._second_order)).known
        if environments_given is None:
            environments_given = len(moments.environments) > 0
        self._environments_given, self._parts = environments_given, None
        self._found = self._find(moments, partial(self._null, source))
        self.moments_ = moments
        return self

    def partial_fit(
        self, X: Any, y: Any, *, environments: Any = None, sample_weight: Any = None
    ) -> Self:
        """Add rows. The subspace is found when it is next asked for, from all rows so far.

        The result is that of one `fit` on all rows; a chunk need not have all classes or
        environments. With ``n_spurious="auto"`` the rank is tested as by ``rank_test="moments"``,
        whatever is set: rows that are gone cannot be permuted.

        Parameters
        ----------
        X, y, environments, sample_weight : array-like
            As in `fit`.

        Returns
        -------
        self

        Examples
        --------
        >>> from isrlearn import ISRMean
        >>> isr, y = ISRMean(1), [0, 1] * 5
        >>> for e in ("lab", "field"):
        ...     isr = isr.partial_fit([[len(e), i] for i in range(10)], y, environments=[e] * 10)
        >>> isr.spurious_components_.round(6).tolist()
        [[1.0, 0.0]]
        """
        self._check_parameters()
        first = not hasattr(self, "moments_")
        given = X, y, environments, sample_weight
        rows = check_rows(*given, estimator=self, reset=first, chunk=True)
        if first:
            self._environments_given = False
            self._parts = PartMoments.empty(rows.X.shape[1]) if self._automatic else None
        if self._automatic:
            if self._parts is None:  # added or fitted before: all these rows are one part
                self._parts = PartMoments.beginning_with(self.moments_)
            self.moments_ = self._parts.update_checked(rows).total()
        else:
            self._parts = None
            known = None if first else self.moments_
            both = self._second_order or (known is not None and known.scatters is not None)
            added = CellMoments.from_checked(rows, second_order=both)
            self.moments_ = added if known is None else known.absorb(added)
        self._environments_given |= environments is not None
        self._found = None
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
            In the original coordinates; (n_samples, n_features - n_spurious_) if `reduced`. For
            a tensor on a GPU a tensor there.
        """
        check_is_fitted(self, "moments_")
        return self._remove(check_features(X, self))

    def _remove(self, X: FloatArray) -> FloatArray:
        """Do what `transform` does, on an array that was checked before."""
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
            The input names, or if `reduced` that of the class with numbers: ``isr0, isr1, ...``.
        """
        names = super().get_feature_names_out(input_features)
        if not self.reduced:
            return np.asarray(names)
        prefix, n_out = type(self).__name__.lower(), self.n_features_in_ - self.n_spurious_
        return np.asarray([f"{prefix}{i}" for i in range(n_out)], dtype=object)

    @property
    def subspace_(self) -> Subspace:
        """The spurious subspace, a frozen `Subspace`."""
        return self._result().subspace

    @property
    def rank_choice_(self) -> RankChoice | None:
        """How the rank was chosen: the tests and their p-values; None if it was given."""
        return self._result().choice

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

    def diagnose(self) -> Diagnosis:
        """Say what was found, how sure it is, and which assumption fails.

        Returns
        -------
        Diagnosis
            A report to print or to show in a notebook. Tests and intervals need
            ``n_spurious="auto"``.
        """
        return diagnose(
            self._condense(),
            self.moments_,
            method=type(self).__name__,
            orders=self._orders,
            condition_on=self.condition_on,
            names=names_of_features(self),
        )

    def _result(self) -> Recovery:
        check_is_fitted(self, "moments_")
        if self._found is None:
            null = None if self._parts is None else partial(self._null, self._parts)
            try:
                self._found = self._find(self.moments_, null)
            except ValueError as error:
                # Also an AttributeError, so that hasattr and reprs work in the midst of a stream.
                raise NotFittedError(f"the rows so far do not give a subspace: {error}") from error
        return self._found

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy keeps: of null draws what they say, and from then on no more here."""
        if getattr(self, "_found", None) is not None:
            self._condense()
        return dict(super().__getstate__())

    def _condense(self) -> Recovery:
        """Return what was found; of null draws what they say is worked out once, and kept."""
        found = self._result()
        chance = chance_of(found)
        if chance is not found.workings:
            self._found = found = found._replace(workings=chance)
        return found

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check_parameters(self) -> None:
        """Raise an error if a parameter has a value that it cannot have."""
        check_n_spurious(self.n_spurious)
        check_search(self.alpha, self.rank_test, self.n_permutations)
        if not isinstance(self.reduced, bool | np.bool_):
            raise ValueError(f"reduced={brief(self.reduced)} must be True or False.")
        if check_scale(self.scale) != 0 and self.reduced:
            raise ValueError(
                f"reduced=True drops the spurious directions, so scale={brief(self.scale)} has no "
                "meaning: use scale=0, or reduced=False to shrink them."
            )

    def _find(
        self, moments: CellMoments, null: Null | None, *, given_classes: bool = True
    ) -> Recovery:
        """Find the subspace; `null` is None where there is nothing left to draw from."""
        if given_classes and len(moments.classes) < 2:
            raise ValueError(
                f"y has one class ({moments.classes.tolist()}): at least two are needed to learn "
                "what tells classes apart."
            )
        if len(moments.environments) == 0 and self._environments_given:
            raise ValueError(
                "environments has no known value: all are None or NaN. Give the environment of "
                "some rows, or leave the argument out to remove nothing."
            )
        if len(moments.environments) == 0:
            warn_user(
                f"{type(self).__name__} was fitted without environments: nothing can be seen to "
                "differ, so nothing is removed. Pass environments= to fit.",
                SingleEnvironmentWarning,
            )
            return Recovery(Subspace.nothing(self.n_features_in_))
        if not self._automatic and self.n_spurious == 0:
            return Recovery(Subspace.nothing(self.n_features_in_))  # asked for: nothing to compare
        if self._automatic and null is None:
            raise ValueError(
                "n_spurious='auto' was set after rows had been added: the test needs parts of all "
                "cells. Set it before the first partial_fit, or add more rows."
            )
        if null is None or not self._automatic:
            return self._recover(moments, int(self.n_spurious))
        evidence = self._evidence(moments)
        drawn = evidence.observed if evidence.frame.n_leading == 0 else null(evidence)
        return self._recover(moments, RankTest(evidence, drawn, self.alpha))

    def _null(self, source: RowSource | PartMoments, evidence: CellEvidence) -> Evidence:
        """Draw the null of the rank test: a pass over the rows, or over what a stream has kept."""
        random = np.random.default_rng(seeded(self.random_state).randint(2**31 - 1))
        if isinstance(source, PartMoments):
            units = source.units(evidence)
        elif isinstance(source, InMemory) and self.rank_test == "permutation":
            return source.total(PermuteEnvironments(evidence, self.n_permutations, random))
        else:
            by_chance = not isinstance(source, InMemory)
            units = source.total(AddUnits.of(evidence, by_chance=by_chance)).units()
        return resampled(units, evidence, self.n_permutations, random)


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

    @property
    def _second_order(self) -> bool:
        return self._automatic  # the tests need the noise, a given rank only the means

    def _evidence(self, moments: CellMoments) -> CellEvidence:
        return evidence_given_classes(moments, self.condition_on)

    def _recover(self, moments: CellMoments, rank: int | RankTest) -> Recovery:
        return subspace_from_means(moments, rank, condition_on=self.condition_on, scale=self.scale)


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

    def _evidence(self, moments: CellMoments) -> CellEvidence:
        return evidence_of_pairs(moments, self.condition_on, self.pairs)

    def _recover(self, moments: CellMoments, rank: int | RankTest) -> Recovery:
        return subspace_from_covariances(
            moments, rank, condition_on=self.condition_on, pairs=self.pairs, scale=self.scale
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

    def _evidence(self, moments: CellMoments) -> CellEvidence:
        if self._is_given_response(moments):
            return evidence_given_response(moments)
        return evidence_given_classes(moments, self.condition_on, needs_spread=True)

    def _recover(self, moments: CellMoments, rank: int | RankTest) -> Recovery:
        if self._is_given_response(moments):
            return subspace_given_response(moments, rank, scale=self.scale)
        return subspace_from_both(moments, rank, condition_on=self.condition_on, scale=self.scale)

    def _is_given_response(self, moments: CellMoments) -> bool:
        """Whether the last column of the moments is a continuous target."""
        return moments.n_features > self.n_features_in_

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
        self._environments_given, self._parts = environments_given, None
        rows = replace(rows, response=_standardised(rows.y, rows.sample_weight))
        joint = replace(rows, X=np.column_stack([rows.X, rows.y.astype(rows.X.dtype)]))
        moments = CellMoments.from_checked(joint)
        refuse_underflow(moments.largest[:-1])  # without the target, whose unit is one

        null = partial(self._null, InMemory(rows))
        self._found = self._find(moments, null, given_classes=False)
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
