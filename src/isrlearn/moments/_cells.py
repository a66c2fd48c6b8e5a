r"""Stage 1: sufficient statistics of the rows, per (class, environment) cell.

Everything later is a function of these sums. They add up, so rows may come at once, in chunks, or
from several machines.

The target enters only through the cells. For a continuous target the moments are those of the rows
(x, y) in each environment: the regression of x on y follows from them.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Self

import numpy as np

from isrlearn.display import brief, table
from isrlearn.moments._device_sums import device_moments
from isrlearn.moments._sums import FEW_CELLS, cell_means, cell_sums
from isrlearn.rows import (
    LARGEST,
    UNKNOWN,
    Rows,
    check_number,
    check_rows,
    float_type,
    overflow_message,
    refuse_not_finite,
    saved_moments,
)
from isrlearn.typing import BoolArray, Float64Array, IntArray, LabelArray

__all__ = ["CellMoments"]

PROTOCOL: Final = 1
SMALLEST: Final = 1e-145  # what has all its digits when it is squared


@dataclass(eq=False, repr=False)
class CellMoments:
    r"""Weight, mean and centred scatter of the rows of each (class, environment) cell.

    Only cells that have rows are stored, sorted by class, then environment. Sums are centred and
    in float64 whatever the type of X: raw second moments lose all digits when means are large.

    Build it with `from_rows`, grow it with `update`, or add two of them: the result is the same.

    Parameters
    ----------
    classes : ndarray of shape (k,)
        Sorted labels, also of classes none of whose rows has a known environment.
    environments : ndarray of shape (E,)
        Sorted environments.
    class_index, environment_index : ndarray of shape (m,)
        Class and environment of each cell, as positions in `classes` and `environments`.
    counts : ndarray of shape (m,)
        Rows in each cell.
    weights : ndarray of shape (m,)
        Sum of the weights of each cell's rows.
    means : ndarray of shape (m, d)
        Weighted mean of each cell.
    scatters : ndarray of shape (m, d, d) or None
        :math:`\sum_i w_i (x_i - m)(x_i - m)^T` of each cell; None when only means are kept.
    largest : ndarray of shape (d,)
        Largest absolute value in each column (of means of more than 256 features: in every fourth
        block of rows), and
    precision : float
        the relative rounding error of the coarsest rows: together they say which differences are
        rounding errors only.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [2.0, 1.0], [5.0, 0.0]])
    >>> m = CellMoments.from_rows(X, ["a", "a", "a"], ["lab", "lab", "field"])
    >>> m
    CellMoments(classes=1, environments=2, cells=2 of 2, features=2, smallest_cell=1)
    >>> m.means
    array([[5., 0.],
           [1., 1.]])
    >>> (m + CellMoments.from_rows(X, ["b", "b", "b"], ["lab", "lab", "lab"])).counts_table()
    array([[1, 2],
           [0, 3]])
    """

    classes: LabelArray
    environments: LabelArray
    class_index: IntArray
    environment_index: IntArray
    counts: IntArray
    weights: Float64Array
    means: Float64Array
    scatters: Float64Array | None
    largest: Float64Array
    precision: float

    # --- three ways in, one result

    @classmethod
    def empty(cls, n_features: int, *, second_order: bool = True) -> Self:
        """Return the moments of no rows, to be grown by `update`."""
        check_number("n_features", n_features, 1, 2**31 - 1, whole=True)
        none = np.empty(0, dtype=np.intp)
        return cls._zeros(none, none, none, none, n_features, second_order)

    @classmethod
    def from_rows(
        cls,
        X: Any,
        y: Any,
        environments: Any,
        sample_weight: Any = None,
        *,
        second_order: bool = True,
    ) -> Self:
        """Compute the moments of whole arrays.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features.
        y : array-like of shape (n,)
            Class labels.
        environments : array-like of shape (n,)
            Environments; rows with None, NaN or NA do not enter.
        sample_weight : array-like of shape (n,), default=None
            A weight of 2 is the same as the row twice.
        second_order : bool, default=True
            False keeps means only, without any d x d work.

        Returns
        -------
        CellMoments
        """
        rows = check_rows(X, y, environments, sample_weight)
        return cls.from_checked(rows, second_order=second_order)

    @classmethod
    def from_checked(cls, rows: Rows, *, second_order: bool = True) -> Self:
        """Compute the moments of rows that `check_rows` has passed."""
        codes, cells = rows.cells()
        index = np.divmod(cells, max(len(rows.environments), 1))
        result = cls._zeros(rows.classes, rows.environments, *index, rows.X.shape[1], second_order)
        result.counts[:] = np.bincount(codes, minlength=len(cells) + 1)[:-1]
        there = not isinstance(rows.X, np.ndarray)
        dtype = float_type(rows.X) if there else rows.X.dtype
        result.precision = float(np.finfo(dtype).eps)
        given = rows.X, codes, len(cells), rows.sample_weight
        if there:
            sums = device_moments(*given, second_order)
            result.weights, result.means, result.scatters, result.largest = sums
        elif second_order or len(cells) > FEW_CELLS:
            result._add_cell_by_cell(rows, codes)
        elif len(rows.X):
            result.weights[:], result.means[:], result.largest = cell_means(*given)
        if not rows.seen_finite and not (len(cells) and np.isfinite(result.means).all()):
            refuse_not_finite(rows.X)
        result._refuse_overflow()
        return result

    def _add_cell_by_cell(self, rows: Rows, codes: IntArray) -> None:
        order = np.argsort(codes, kind="stable")
        for cell, members in enumerate(np.split(order, np.cumsum(self.counts))[:-1]):
            scatter = None if self.scatters is None else self.scatters[cell]
            sums = cell_sums(rows.X, members, rows.sample_weight, scatter)
            self.weights[cell], self.means[cell] = sums.weight, sums.mean
            self.largest = np.maximum(self.largest, sums.largest)

    def update(self, X: Any, y: Any, environments: Any, sample_weight: Any = None) -> Self:
        """Add a chunk of rows in place.

        Parameters
        ----------
        X, y, environments, sample_weight : array-like
            As in `from_rows`.

        Returns
        -------
        CellMoments
            Itself.
        """
        return self.update_checked(check_rows(X, y, environments, sample_weight, chunk=True))

    def update_checked(self, rows: Rows) -> Self:
        """Add rows that `check_rows` has passed."""
        return self.absorb(type(self).from_checked(rows, second_order=self.scatters is not None))

    def absorb(self, chunk: "CellMoments") -> Self:
        """Add the moments of other rows in place."""
        self._check_addable(chunk)
        if not self._has_cells_of(chunk):
            self.__dict__.update((self + chunk).__dict__)
            return self
        self._merge(chunk)  # no new cell: nothing has to be allocated
        return self

    def __add__(self, other: "CellMoments") -> Self:
        """Return the moments of the rows of both."""
        if not isinstance(other, CellMoments):
            return NotImplemented
        self._check_addable(other)
        labels = _union(self.classes, other.classes), _union(self.environments, other.environments)
        cells = np.union1d(self._cell_codes(*labels), other._cell_codes(*labels))
        index = np.divmod(cells, max(len(labels[1]), 1))
        total = self._zeros(*labels, *index, self.n_features, self.scatters is not None)
        total._merge(self)
        total._merge(other)
        return total

    def __radd__(self, other: object) -> Self:
        """Let ``sum`` begin with its zero; the result is a copy, safe to update."""
        if other != 0:
            return NotImplemented
        return self + self.empty(self.n_features, second_order=self.scatters is not None)

    # --- what stage 2 reads

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return int(self.means.shape[1])

    def covariances(self, cells: IntArray | None = None) -> Float64Array:
        """Return covariances: scatter / weight, of some cells or of all, (m, d, d).

        The divisor is the weight, not weight - 1: so multiplying all weights by a number changes
        nothing, and a weight of 2 is the same as the row twice.

        Parameters
        ----------
        cells : ndarray of shape (m,), default=None
            Positions of the cells; None for all.
        """
        chosen = slice(None) if cells is None else cells
        return np.asarray(self.known_scatters()[chosen] / self.weights[chosen, None, None])

    def variances(self) -> Float64Array:
        """Return the diagonal of each cell's covariance, (m, d)."""
        diagonals = np.diagonal(self.known_scatters(), axis1=1, axis2=2)
        return np.asarray(np.maximum(diagonals, 0) / self.weights[:, None])

    def centre(self) -> Float64Array:
        """Return the mean of the cell means, (d,): removal is relative to it."""
        return np.asarray(self.means.mean(axis=0))

    def counts_table(self) -> IntArray:
        """Return the number of rows of each class (rows) in each environment (columns), (k, E)."""
        table = np.zeros((len(self.classes), len(self.environments)), dtype=np.intp)
        table[self.class_index, self.environment_index] = self.counts
        return table

    def take(self, kept: BoolArray) -> Self:
        """Return the moments of some of the cells: those where the mask `kept`, (m,), is true."""
        kept = np.asarray(kept)
        if kept.dtype != bool or kept.shape != self.counts.shape:
            raise ValueError(f"kept={brief(kept)} must be a mask of {len(self.counts)} cells.")
        classes, class_index = _seen(self.classes, self.class_index[kept])
        environments, environment_index = _seen(self.environments, self.environment_index[kept])
        return type(self)(
            classes=classes,
            environments=environments,
            class_index=class_index,
            environment_index=environment_index,
            counts=self.counts[kept],
            weights=self.weights[kept],
            means=self.means[kept],
            scatters=None if self.scatters is None else self.scatters[kept],
            largest=self.largest,
            precision=self.precision,
        )

    # --- on disk

    def to_arrays(self) -> dict[str, Any]:
        """Return plain arrays from which `from_arrays` rebuilds the moments."""
        arrays = {k: np.asarray(v) for k, v in self.__dict__.items() if v is not None}
        return {"protocol": np.array(PROTOCOL), **arrays}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Self:
        """Rebuild moments from `to_arrays`; `ValueError` for arrays that do not fit together."""
        return cls(**saved_moments(arrays, PROTOCOL))

    def __repr__(self) -> str:
        n_cells = len(self.classes) * len(self.environments)
        smallest = self.counts.min() if len(self.counts) else 0
        return (
            f"{type(self).__name__}(classes={len(self.classes)}, "
            f"environments={len(self.environments)}, cells={len(self.counts)} of {n_cells}, "
            f"features={self.n_features}, smallest_cell={smallest})"
        )

    def _repr_html_(self) -> str:
        rows = list(zip(self.classes.tolist(), self.counts_table().tolist(), strict=True))
        caption = f"Rows by class and environment, {self.n_features} features"
        return table(caption, self.environments.tolist(), rows, corner="class")

    # --- inside

    @classmethod
    def _zeros(
        cls,
        classes: LabelArray,
        environments: LabelArray,
        class_index: IntArray,
        environment_index: IntArray,
        n_features: int,
        second_order: bool,
    ) -> Self:
        """Return cells of weight zero."""
        m = len(class_index)
        return cls(
            classes=classes,
            environments=environments,
            class_index=class_index,
            environment_index=environment_index,
            counts=np.zeros(m, dtype=np.intp),
            weights=np.zeros(m),
            means=np.zeros((m, n_features)),
            scatters=np.zeros((m, n_features, n_features)) if second_order else None,
            largest=np.zeros(n_features),
            precision=0.0,
        )

    def known_scatters(self) -> Float64Array:
        """Return the scatters, (m, d, d); moments that hold means only are refused."""
        if self.scatters is None:
            raise ValueError(
                "these moments hold means only: build them with second_order=True for covariances."
            )
        return self.scatters

    def _refuse_overflow(self) -> None:
        fits = np.abs(self.means).max(initial=0.0) <= LARGEST
        if not fits or not (self.scatters is None or np.isfinite(self.scatters).all()):
            weight = float(self.weights.max(initial=0.0))
            raise ValueError(overflow_message(float(self.largest.max()), weight=weight))

    def _merge(self, other: "CellMoments") -> None:
        """Add the cells of `other`, all of which are among these, in place."""
        mine = self._cell_codes(self.classes, self.environments)
        theirs = other._cell_codes(self.classes, self.environments)
        for i, cell in enumerate(np.searchsorted(mine, theirs)):
            scatter = None if other.scatters is None else other.scatters[i]
            self._merge_cell(cell, other.counts[i], other.weights[i], other.means[i], scatter)
        self.largest = np.maximum(self.largest, other.largest)
        self.precision = max(self.precision, other.precision)

    def _merge_cell(
        self, cell: int, count: int, weight: float, mean: Float64Array, scatter: Float64Array | None
    ) -> None:
        """Merge two centred sums: the scatter grows by that of the two means about their mean."""
        total = self.weights[cell] + weight
        delta = mean - self.means[cell]
        if self.scatters is not None and scatter is not None:
            self.scatters[cell] += scatter
            factor = self.weights[cell] * (weight / total)
            self.scatters[cell] += np.outer(factor * delta, delta)
        self.means[cell] += delta * (weight / total)
        self.weights[cell] = total
        self.counts[cell] += count

    def _cell_codes(self, classes: LabelArray, environments: LabelArray) -> IntArray:
        """Return one integer per cell: its place in the table of `classes` x `environments`."""
        class_places = np.searchsorted(classes, self.classes)
        environment_places = np.searchsorted(environments, self.environments)
        return np.asarray(
            class_places[self.class_index] * len(environments)
            + environment_places[self.environment_index]
        )

    def _has_cells_of(self, other: "CellMoments") -> bool:
        if not (
            np.isin(other.classes, self.classes).all()
            and np.isin(other.environments, self.environments).all()
        ):
            return False
        labels = self.classes, self.environments
        return bool(np.isin(other._cell_codes(*labels), self._cell_codes(*labels)).all())

    def _check_addable(self, other: "CellMoments") -> None:
        if self.n_features != other.n_features:
            raise ValueError(
                f"cannot add moments of {self.n_features} and of {other.n_features} features: "
                "all rows must have the same columns."
            )
        if (self.scatters is None) != (other.scatters is None):
            raise ValueError(
                "one of the moments has no scatters: give both the same second_order. A saved "
                "estimator leaves out scatters that are large: fit it again on all rows."
            )


def _union(a: LabelArray, b: LabelArray) -> LabelArray:
    """Return the sorted labels of both, which must be of one kind."""
    if len(a) == 0 or len(b) == 0:
        return a if len(b) == 0 else b
    kinds = {"number" if labels.dtype.kind in "biuf" else labels.dtype.kind for labels in (a, b)}
    if len(kinds) > 1:
        labels = f"{brief(a[0])} and {brief(b[0])}"
        raise TypeError(f"cannot join labels {labels}: use only strings or only numbers.")
    return np.union1d(a, b)


def _seen(labels: LabelArray, index: IntArray) -> tuple[LabelArray, IntArray]:
    """Drop the labels that no cell has."""
    seen, new_index = np.unique(index, return_inverse=True)
    return labels[seen], new_index.astype(np.intp)


@dataclass(frozen=True, eq=False)
class AllMoments:
    """Moments of the rows of known environment, and by class of the others.

    Parameters
    ----------
    known : CellMoments
        Of each (class, environment).
    others : CellMoments
        Of the rows of unknown environment, by class.
    """

    known: CellMoments
    others: CellMoments

    def __add__(self, other: "AllMoments") -> "AllMoments":
        """Return the moments of the rows of both."""
        return AllMoments(self.known + other.known, self.others + other.others)

    def __iadd__(self, other: "AllMoments") -> Self:
        """Add rows in place: a loop allocates nothing."""
        self.known.absorb(other.known)
        self.others.absorb(other.others)
        return self

    @classmethod
    def with_others(cls, known: CellMoments, rows: Rows) -> Self:
        """Return the moments of all rows, given those of known environment."""
        second_order, unknown = known.scatters is not None, rows.environment_codes == UNKNOWN
        if not unknown.any():
            none = np.empty(0, dtype=np.intp)
            cells = CellMoments._zeros(none, none, none, none, rows.X.shape[1], second_order)
            return cls(known, cells)
        found = rows.take(unknown)
        one, codes = np.zeros(1, dtype=np.intp), np.zeros_like(found.environment_codes)
        found = replace(found, environments=one, environment_codes=codes)
        return cls(known, CellMoments.from_checked(found, second_order=second_order))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.known.counts.sum() + self.others.counts.sum())


@dataclass(frozen=True)
class AddMoments:
    """The moments of all rows.

    Parameters
    ----------
    second_order : bool
        Whether scatters are needed.
    """

    title: ClassVar = "Moments"
    works_on_device: ClassVar = True
    second_order: bool

    def __call__(self, rows: Rows) -> AllMoments:
        """Return the moments of a chunk."""
        known = CellMoments.from_checked(rows, second_order=self.second_order)
        return AllMoments.with_others(known, rows)
