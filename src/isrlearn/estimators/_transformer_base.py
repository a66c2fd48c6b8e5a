"""Stage 3: what the transformers share. They check rows, add up moments, ask for the subspace."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from isrlearn.diagnosis import Diagnosis, Fit, diagnose
from isrlearn.exceptions import SingleEnvironmentWarning, warn_user
from isrlearn.moments import (
    AddMoments,
    CellMoments,
    NullSource,
    PartMoments,
    chunk_nulls,
    part_nulls,
    row_nulls,
    row_part_nulls,
)
from isrlearn.rows import (
    ChunkedRows,
    Rows,
    as_chunks,
    check_features,
    check_removal,
    check_rows,
    seeded,
)
from isrlearn.subspace import Found, RankChoice, Search, Subspace, check_n_spurious, check_search
from isrlearn.typing import Float64Array, FloatArray, LabelArray


def names_of_features(estimator: Any) -> tuple[str, ...]:
    """Return the names of the columns that an estimator was fitted on; without names x0, x1, ..."""
    numbered = [f"x{j}" for j in range(estimator.n_features_in_)]
    return tuple(getattr(estimator, "feature_names_in_", numbered))


def set_features(estimator: Any, rows: ChunkedRows) -> None:
    """Tell an estimator which features it is fitted on."""
    estimator.__dict__.pop("feature_names_in_", None)
    estimator.n_features_in_ = rows.n_features
    if rows.feature_names is not None:
        estimator.feature_names_in_ = np.asarray(rows.feature_names, dtype=object)


class SubspaceAttributes(ABC):
    """Attributes of a fitted estimator that are read off its subspace."""

    @property
    @abstractmethod
    def subspace_(self) -> Subspace:
        """The spurious subspace, a frozen `Subspace`."""

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


class ISRTransformer(SubspaceAttributes, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """What the ISR transformers share; a subclass says how moments become a subspace."""

    # With metadata routing on, `environments` reaches `fit` without any call of set_fit_request.
    __metadata_request__fit: ClassVar = {"environments": True}
    __metadata_request__partial_fit: ClassVar = {"environments": True}

    _environments_given: bool
    _found: Found | None  # None: to be found from the moments when asked for
    _parts: PartMoments | None  # what a stream keeps for the rank test
    _orders: ClassVar[str] = "both"  # what the method looks at
    n_spurious: Any
    condition_on: Any
    alpha: float
    rank_test: str
    n_permutations: int
    random_state: Any
    scale: float
    reduced: bool

    @abstractmethod
    def _recover(self, moments: CellMoments, n_spurious: int | Search) -> Found:
        """Return the subspace of moments with at least one known environment."""

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
        chunks = as_chunks(X, y, environments, sample_weight)
        if chunks is not None:
            set_features(self, chunks)
            return self._fit_chunks(chunks, chunks.total(AddMoments(self._second_order)).known)
        rows = check_rows(
            X, y, environments, sample_weight, estimator=self, look_for_nan=self._second_order
        )
        return self._fit_rows(rows, environments is not None)

    def _fit_rows(
        self, rows: Rows, environments_given: bool, moments: CellMoments | None = None
    ) -> Self:
        """Find the spurious subspace of rows that `check_rows` has passed.

        Their moments, scatters included, may be given: a search over settings adds them up once.
        """
        self._environments_given = environments_given
        self._parts = None
        if moments is None:
            moments = CellMoments.from_checked(rows, second_order=self._second_order)
        by_permutation = self.rank_test == "permutation"
        self._found = self._find(
            moments, row_nulls(rows) if by_permutation else row_part_nulls(rows)
        )
        self.moments_ = moments
        return self

    def _fit_chunks(self, rows: ChunkedRows, moments: CellMoments) -> Self:
        """Find the spurious subspace from moments of chunks; a rank test adds a pass."""
        self._environments_given = len(moments.environments) > 0
        self._parts = None
        self._found = self._find(moments, chunk_nulls(rows))
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
        rows = check_rows(
            X, y, environments, sample_weight, estimator=self, reset=first, chunk=True
        )
        self._add(rows, first)
        self._environments_given |= environments is not None
        self._found = None
        return self

    def _add(self, rows: Rows, first: bool) -> None:
        if first:
            self._environments_given = False
            self._parts = PartMoments.empty(rows.X.shape[1]) if self._automatic else None
        if self._automatic:
            if self._parts is None:  # added or fitted before: all these rows are one part
                self._parts = PartMoments.beginning_with(self.moments_)
            self.moments_ = self._parts.update_checked(rows).total()
            return
        self._parts = None
        known = None if first else self.moments_
        both = self._second_order or (known is not None and known.scatters is not None)
        added = CellMoments.from_checked(rows, second_order=both)
        self.moments_ = added if known is None else known.absorb(added)

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
        prefix = type(self).__name__.lower()
        n_out = self.n_features_in_ - self.n_spurious_
        return np.asarray([f"{prefix}{i}" for i in range(n_out)], dtype=object)

    @property
    def subspace_(self) -> Subspace:
        """The spurious subspace, a frozen `Subspace`."""
        return self._result().subspace

    @property
    def rank_choice_(self) -> RankChoice | None:
        """How the rank was chosen: the tests and their p-values; None if it was given."""
        return self._result().choice

    def diagnose(self) -> Diagnosis:
        """Say what was found, how sure it is, and which assumption fails.

        Returns
        -------
        Diagnosis
            A report to print or to show in a notebook. Tests and intervals need
            ``n_spurious="auto"``.
        """
        return diagnose(
            Fit(
                type(self).__name__,
                self._orders,
                self.condition_on,
                self._result(),
                self.moments_,
                names_of_features(self),
            )
        )

    def _result(self) -> Found:
        check_is_fitted(self, "moments_")
        if self._found is None:
            try:
                parts = self._parts
                self._found = self._find(
                    self.moments_, None if parts is None else part_nulls(parts)
                )
            except ValueError as error:
                # Also an AttributeError, so that hasattr and reprs work in the midst of a stream.
                raise NotFittedError(f"the rows so far do not give a subspace: {error}") from error
        return self._found

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
        """Raise an error if a parameter has a value that it cannot have."""
        check_n_spurious(self.n_spurious)
        check_search(self.alpha, self.rank_test, self.n_permutations)
        check_removal(self.scale, self.reduced)

    @property
    def _automatic(self) -> bool:
        return isinstance(self.n_spurious, str)

    def _find(self, moments: CellMoments, nulls: NullSource | None) -> Found:
        """Find the subspace; `nulls` are None where there is nothing left to draw from."""
        if len(moments.classes) < 2:
            raise ValueError(
                f"y has one class ({moments.classes.tolist()}): at least two are needed to learn "
                "what tells classes apart."
            )
        return self._find_with(moments, nulls, self._recover)

    def _find_with(
        self,
        moments: CellMoments,
        nulls: NullSource | None,
        recover: Callable[[CellMoments, int | Search], Found],
    ) -> Found:
        """Find the subspace by one way of conditioning on the target."""
        if len(moments.environments) == 0 and self._environments_given:
            raise ValueError(
                "environments has no known value: all are None or NaN. Give the environment of "
                "some rows, or leave the argument out to remove nothing."
            )
        nothing = Found(Subspace.nothing(self.n_features_in_))
        if len(moments.environments) == 0:
            warn_user(
                f"{type(self).__name__} was fitted without environments: nothing can be seen to "
                "differ, so nothing is removed. Pass environments= to fit.",
                SingleEnvironmentWarning,
            )
            return nothing
        if not self._automatic and self.n_spurious == 0:
            return nothing  # asked for nothing: nothing to compare
        if not self._automatic:
            return recover(moments, int(self.n_spurious))
        if nulls is None:
            raise ValueError(
                "n_spurious='auto' was set after rows had been added: the test needs parts of all "
                "cells. Set it before the first partial_fit, or add more rows."
            )
        seed = seeded(self.random_state).randint(2**31 - 1)
        random = np.random.default_rng(seed)
        return recover(moments, Search(nulls, self.alpha, self.n_permutations, random))
