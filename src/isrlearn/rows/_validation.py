"""The one place that checks and encodes features, labels, environments and weights."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_X_y
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import validate_data

from isrlearn.rows._arrays import (
    as_numbers,
    as_rows,
    refuse_kind,
    refuse_ragged,
    shape_of,
)
from isrlearn.rows._columns import WAYS, length_of, naming_columns, not_finite_message
from isrlearn.rows._device import (
    float_type,
    not_finite,
    on_device,
    take_rows,
    to_host,
)
from isrlearn.rows._labels import (
    UNKNOWN,
    as_labels,
    encode_labels,
    is_missing,
    refuse_measurements,
)
from isrlearn.rows._targets import (
    MISSING_LABELS,
    MISSING_VALUES,
    as_target,
    refuse_large,
    refuse_target_not_finite,
    refuse_text,
)
from isrlearn.rows._weights import check_weights
from isrlearn.typing import (
    FLOATS,
    Float64Array,
    FloatArray,
    IntArray,
    LabelArray,
)


@dataclass(frozen=True)
class Rows:
    """Checked rows: features with integer codes for class and environment."""

    X: FloatArray
    """(n, d), float32 or float64, finite; of NumPy, or of another library on its device."""
    classes: LabelArray
    """(k,) sorted distinct labels."""
    class_codes: IntArray
    """(n,) index into `classes`."""
    environments: LabelArray
    """(E,) sorted distinct environments, the unknown left out."""
    environment_codes: IntArray
    """(n,) index into `environments`, -1 where the environment is unknown."""
    sample_weight: Float64Array | None
    """(n,) positive weights, or None for equal weights."""
    seen_finite: bool = True
    """Whether X was looked through for NaN and infinity; else whoever sums it finds them."""
    response: Float64Array | None = None
    """(n,) a continuous target, or None for classes."""

    @property
    def y(self) -> LabelArray:
        """Labels, or the continuous target, (n,)."""
        return self.classes[self.class_codes] if self.response is None else self.response

    def take(self, places: Any) -> Self:
        """Return some of the rows; the classes and environments stay all.

        Parameters
        ----------
        places : ndarray or slice
            Which: a mask, or indices.
        """
        weights, response = self.sample_weight, self.response
        return replace(
            self,
            X=self.X[places],
            class_codes=self.class_codes[places],
            environment_codes=self.environment_codes[places],
            sample_weight=None if weights is None else weights[places],
            response=None if response is None else response[places],
        )

    def with_features(self, X: Any) -> Self:
        """Return the same rows with features that were checked before, and were not kept.

        Parameters
        ----------
        X : array of shape (n, d)
            Features; other numbers than floats are converted.
        """
        return replace(self, X=check_array(X, dtype=FLOATS, ensure_all_finite=False))

    @classmethod
    def of_cells(cls, X: FloatArray, codes: IntArray, weights: Float64Array | None) -> Self:
        """Return rows whose cells are numbers: these are the classes, in one environment.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Finite rows, float32 or float64.
        codes : ndarray of shape (n,)
            Cell of each row.
        weights : ndarray of shape (n,) or None
            Positive weights.
        """
        classes, places = encode_labels(codes, "codes")
        one = np.zeros(1, dtype=np.intp)
        return cls(X, classes, places, one, np.zeros_like(places), weights)

    def cells(self) -> tuple[IntArray, IntArray]:
        """Return the cell of each row, (n,), and the place of each cell among all, (m,).

        A place is that in the table of classes and environments, row by row. Rows of unknown
        environment are of a cell m that is not listed. The codes are of the smallest type that
        holds them: sixteen bits are sorted in one pass.
        """
        n_places = len(self.classes) * len(self.environments)
        codes = self.class_codes * len(self.environments) + self.environment_codes
        codes[self.environment_codes == UNKNOWN] = n_places
        cells = np.flatnonzero(np.bincount(codes, minlength=n_places + 1)[:n_places])
        number = np.full(n_places + 1, len(cells), dtype=np.min_scalar_type(len(cells)))
        number[cells] = np.arange(len(cells))
        return number[codes], cells


def check_rows(
    X: Any,
    y: Any,
    environments: Any = None,
    sample_weight: Any = None,
    *,
    estimator: BaseEstimator | None = None,
    reset: bool = True,
    chunk: bool = False,
    look_for_nan: bool = True,
) -> Rows:
    """Check and encode the arguments of `fit`. Rows of weight zero are left out.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Dense numeric features. An array on a device stays there.
    y : array-like of shape (n,)
        Class labels.
    environments : array-like of shape (n,), default=None
        One label per row; None, NaN and NA mark an unknown one. None: all are unknown.
    sample_weight : array-like of shape (n,), default=None
        One non-negative weight per row.
    estimator : estimator, default=None
        If given, its `n_features_in_` and `feature_names_in_` are set or checked.
    reset : bool, default=True
        Whether to set these attributes or to check against them.
    chunk : bool, default=False
        Whether more rows may come: then all weights of these may be zero.
    look_for_nan : bool, default=True
        False leaves it to whoever sums an array to find what is not finite, and saves a pass.

    Returns
    -------
    Rows
    """
    X = _as_features(X)
    refuse_ragged(y, "y")
    y, environments, sample_weight = map(to_host, (y, environments, sample_weight))
    _check_lengths(X, y=y, environments=environments, sample_weight=sample_weight)
    # Of a table the columns are named in the message, so it is looked through at once.
    seen_finite = (look_for_nan or not isinstance(X, np.ndarray)) and not on_device(X)
    X, y = _check_X_y(X, y, estimator, reset, seen_finite)
    weights = check_weights(sample_weight, X.shape[0], may_be_zero=chunk)
    X, y, environments, weights = _with_weight(X, y, environments, weights)
    classes, class_codes = encode_labels(y, "y")
    if np.any(class_codes == UNKNOWN):
        raise ValueError(MISSING_LABELS)
    if environments is not None:
        refuse_continuous(classes, "y", "use ISRRegressor, or bin it to classes")
    environment_labels, environment_codes = encode_environments(environments, X.shape[0])
    n_known = int(np.sum(environment_codes != UNKNOWN))
    refuse_measurements(environment_labels, None if chunk else n_known)
    return Rows(
        X=X,
        classes=classes,
        class_codes=class_codes,
        environments=environment_labels,
        environment_codes=environment_codes,
        sample_weight=weights,
        seen_finite=seen_finite,
    )


def check_response_rows(
    X: Any, y: Any, environments: Any, sample_weight: Any, *, estimator: BaseEstimator
) -> Rows:
    """Check and encode the arguments of `fit` for a continuous target: all rows are of one class.

    Parameters
    ----------
    X, y, environments, sample_weight, estimator
        As in `check_rows`, but y is numeric.
    """
    X = _as_features(X)
    if on_device(X):
        _check_device(X, estimator, reset=True)
    _check_lengths(X, y=y, environments=environments, sample_weight=sample_weight)
    y = as_target(y)
    refuse_text(y)
    y = as_numbers(y, "y")
    try:
        with naming_columns(X):
            X, y = validate_data(estimator, X, y, dtype=FLOATS, y_numeric=True)
    except ValueError as error:
        refuse_target_not_finite(error, MISSING_VALUES)
        raise
    if np.isnan(y).any():  # None in an array of objects
        raise ValueError(MISSING_VALUES)
    refuse_large(y)
    weights = check_weights(sample_weight, len(X))
    X, y, environments, weights = _with_weight(X, y, environments, weights)
    labels, codes = encode_environments(environments, len(X))
    refuse_measurements(labels, int(np.sum(codes != UNKNOWN)))
    return Rows(
        X=X,
        response=np.asarray(y, dtype=np.float64),
        classes=np.zeros(1, dtype=np.intp),
        class_codes=np.zeros(len(X), dtype=np.intp),
        environments=labels,
        environment_codes=codes,
        sample_weight=weights,
    )


def _with_weight(
    X: FloatArray, y: LabelArray, environments: Any, weights: Float64Array | None
) -> tuple[FloatArray, LabelArray, LabelArray | None, Float64Array | None]:
    """Leave out rows of weight zero, before labels are encoded: they are no rows."""
    if environments is not None:
        environments = as_labels(environments, "environments", X.shape[0])
    if weights is None or weights.all():
        return X, y, environments, weights
    kept = weights > 0
    known = None if environments is None else environments[kept]
    return take_rows(X, kept), y[kept], known, weights[kept]


def _as_features(X: Any) -> Any:
    """Refuse what can be no features, by name; what is on a device is looked at there."""
    return X if on_device(X) else as_rows(X)


def _check_X_y(
    X: Any, y: Any, estimator: BaseEstimator | None, reset: bool, finite: bool = True
) -> tuple[FloatArray, LabelArray]:
    y = as_target(y)
    if len(shape_of(y)) == 1:
        refuse_kind(labels := as_labels(y, "y"), "y")
        if np.ma.isMaskedArray(y) or getattr(getattr(y, "dtype", None), "kind", "") == "T":
            y = labels
    if on_device(X):
        X = _check_device(X, estimator, reset)
        return X, _check_X_y(np.zeros((X.shape[0], 1)), y, None, reset)[1]  # only y is looked at
    try:
        with naming_columns(X):
            if estimator is None:
                X, y = check_X_y(X, y, dtype=FLOATS, ensure_all_finite=finite)
            else:
                X, y = validate_data(
                    estimator, X, y, dtype=FLOATS, reset=reset, ensure_all_finite=finite
                )
    except TypeError:
        if (
            len(shape_of(y)) == 1 and is_missing(as_labels(y, "y")).any()
        ):  # scikit-learn trips over NA
            raise ValueError(MISSING_LABELS) from None
        raise
    except ValueError as error:
        refuse_target_not_finite(error, MISSING_LABELS)
        raise
    return X, y


def check_scored(X: Any, y: Any, sample_weight: Any) -> None:
    """Refuse a target and weights that predictions for X cannot be scored by.

    Parameters
    ----------
    X, y, sample_weight
        As they were given to ``score``.
    """
    _check_lengths(X, y=y, sample_weight=sample_weight)
    labels = as_labels(np.ravel(y) if len(shape_of(as_target(y))) == 2 else y, "y")
    if is_missing(labels).any():
        raise ValueError("y has missing values (None, NaN or NA): drop those rows before scoring.")
    check_weights(sample_weight, len(labels))


def refuse_not_finite(X: FloatArray) -> None:
    """Raise a ValueError that names the columns in which X is not finite, if it is not."""
    if on_device(X):
        for what in WAYS:
            bad, n_rows = not_finite(X, what)
            if n_rows:
                raise ValueError(not_finite_message(X, what, bad, n_rows))
        return
    with naming_columns(X):
        check_array(X, dtype=FLOATS, input_name="X")


def check_features(X: Any, estimator: BaseEstimator) -> FloatArray:
    """Check the features that a fitted estimator is to transform or to predict."""
    X = _as_features(X)
    if on_device(X):
        there: FloatArray = _check_device(X, estimator, reset=False, fitting=False)
        refuse_not_finite(there)
        return there
    with naming_columns(X):
        checked: FloatArray = validate_data(estimator, X, dtype=FLOATS, reset=False)
    return checked


def _check_device(
    X: Any, estimator: BaseEstimator | None, reset: bool, fitting: bool = True
) -> Any:
    """Check features on a device, where they stay; refuse them where rows are read on the host."""
    reads = False if estimator is None else getattr(estimator, "_reads_rows", None)
    if reads is None or (reads and fitting):  # None: more than a transformer
        who = "n_spurious='auto'" if reads else type(estimator).__name__
        way_out = "give n_spurious" if reads else "fit a head on transform(X) of an ISR transformer"
        raise ValueError(
            f"X is on device {X.device}, but {who} reads rows on the host: pass X.cpu(), or "
            f"{way_out}."
        )
    if len(X.shape) != 2 or 0 in X.shape:
        raise ValueError(f"X has shape {tuple(X.shape)}, expected (rows, features), one at least.")
    float_type(X)  # refuses others
    if estimator is not None:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    return X


def encode_environments(environments: Any, n_rows: int) -> tuple[LabelArray, IntArray]:
    """Return the sorted environments and the code of each row (-1: unknown).

    Parameters
    ----------
    environments : array-like of shape (n,) or None
        Labels of one type; None, NaN and NA mark an unknown one, and so does "nan" in an array of
        NumPy strings, which is what NumPy makes of NaN there. None: all are unknown.
    n_rows : int
        How many there must be.

    Returns
    -------
    labels : ndarray of shape (E,)
    codes : ndarray of shape (n,)

    Examples
    --------
    >>> labels, codes = encode_environments(["lab", None, "field"], 3)
    >>> labels.tolist(), codes.tolist()
    (['field', 'lab'], [1, -1, 0])
    """
    if environments is None:
        return np.empty(0, dtype=np.intp), np.full(n_rows, UNKNOWN, dtype=np.intp)
    labels = as_labels(environments, "environments", n_rows)
    refuse_kind(labels, "environments")
    return encode_labels(labels, "environments")


def refuse_continuous(labels: LabelArray, name: str, way_out: str) -> None:
    """Raise an error if distinct labels are numbers that no class would have."""
    kind = type_of_target(labels)
    if kind.startswith("continuous"):
        raise ValueError(
            f"{name} is {kind} with {len(labels)} distinct values, but class labels are needed: "
            f"{way_out}."
        )


def _check_lengths(X: Any, **others: Any) -> None:
    n_rows = length_of(X)
    for name, values in others.items():
        length = length_of(values)
        if n_rows is not None and length is not None and length != n_rows:
            raise ValueError(
                f"{name} has {length} values but X has {n_rows} rows: give one value per row."
            )
