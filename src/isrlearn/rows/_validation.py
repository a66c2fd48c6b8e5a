"""The one place that checks and encodes features, labels, environments, weights, parameters."""

import sys
from collections.abc import Mapping, Set, Sized
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Final, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state, check_X_y
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import validate_data

from isrlearn.display import brief
from isrlearn.rows._device import float_type, not_finite, on_device, take_rows, to_host
from isrlearn.rows._features import (
    WAYS,
    as_numbers,
    as_rows,
    naming_columns,
    not_finite_message,
    shape_of,
)
from isrlearn.rows._labels import (
    MISSING,
    UNKNOWN,
    as_labels,
    as_target,
    encode_environments,
    encode_labels,
    is_missing,
    refuse_large,
    refuse_measurements,
    refuse_text,
)
from isrlearn.typing import FLOATS, Float64Array, FloatArray, IntArray, LabelArray


def seeded(random_state: Any) -> np.random.RandomState:
    """Return the source of random numbers that a user named.

    Parameters
    ----------
    random_state : int, RandomState or None
        A seed, a source, or None for another one each time.
    """
    try:
        source: np.random.RandomState = check_random_state(random_state)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(
            f"random_state={brief(random_state)} must be a whole number from 0 to {2**32 - 1}, a "
            "numpy.random.RandomState, or None for another one each time."
        ) from None
    return source


def check_number(
    name: str, value: Any, least: float, largest: float = np.inf, *, whole: bool = False
) -> None:
    """Raise `ValueError` unless `value` is a number from `least` to `largest`."""
    kind: Any = Integral if whole else Real
    is_number = isinstance(value, kind) and not isinstance(value, bool)
    if not is_number or not least <= value <= largest or value > sys.float_info.max:
        what = "a whole number" if whole else "a number"
        limits = f"of at least {least}" if largest == np.inf else f"from {least} to {largest}"
        raise ValueError(f"{name}={brief(value)} must be {what} {limits}.")


def check_scale(scale: Any) -> float:
    """Return `scale` as a float in [0, 1]."""
    if isinstance(scale, bool) or not isinstance(scale, NUMBER) or not 0 <= scale <= 1:
        raise ValueError(
            f"scale={brief(scale)} is not a number in [0, 1]: 0 removes the spurious directions, "
            "1 leaves them as they are."
        )
    return float(scale)


HEAVIEST, FAINTEST = 1e200, 1e-300  # weights that can be summed, and inverted
NUMBER: Any = Real  # with an order that type checkers do not know
LIGHTEST: Final = 1e-100  # relative to the heaviest of the rows


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

    @property
    def columns(self) -> IntArray:
        """Environment of each row, (n,), as a column of a table whose last is for unknown ones."""
        unknown, n_environments = self.environment_codes == UNKNOWN, len(self.environments)
        return np.where(unknown, n_environments, self.environment_codes)

    def take(self, places: Any) -> Self:
        """Return the rows of a mask, indices or a slice; all classes and environments stay."""
        weights, response = self.sample_weight, self.response
        return replace(
            self,
            X=self.X[places],
            class_codes=self.class_codes[places],
            environment_codes=self.environment_codes[places],
            sample_weight=None if weights is None else weights[places],
            response=None if response is None else response[places],
        )

    def where(self, mask: Any) -> Self:
        """Return the rows where a mask is true; these rows themselves if it is true everywhere."""
        return self if mask.all() else self.take(mask)

    def cells(self) -> tuple[IntArray, IntArray]:
        """Return the cell of each row, (n,), and the place of each cell among all, (m,).

        Rows of unknown environment have the cell m.
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
    numeric: bool = False,
) -> Rows:
    """Check and encode the arguments of `fit`. Rows of weight zero are left out.

    Parameters
    ----------
    X, y, environments, sample_weight : array-like
        As users give them.
    estimator : estimator, default=None
        Whose features these are; None for none.
    reset : bool, default=True
        Whether it is to learn these features, or must know them.
    chunk : bool, default=False
        Whether these are some of the rows: their weights may all be zero.
    look_for_nan : bool, default=True
        False where sums find what is not finite.
    numeric : bool, default=False
        Whether y is a continuous target; then all rows are of one class.
    """
    there = not isinstance(X, np.ndarray) and on_device(X)
    X = X if there else as_rows(X)
    y, environments, sample_weight = (
        column if column is None or isinstance(column, np.ndarray) else to_host(column)
        for column in (y, environments, sample_weight)
    )
    _check_lengths(X, y=y, environments=environments, sample_weight=sample_weight)
    # Of a table the columns are named in the message, so it is looked through at once.
    finite = (look_for_nan or not isinstance(X, np.ndarray)) and not there
    X, y = _check_X_y(X, y, estimator, reset, finite, numeric)
    weights = None
    if sample_weight is not None:
        weights = check_weights(sample_weight, X.shape[0], may_be_zero=chunk)
    if environments is not None:
        environments = as_labels(environments, "environments", X.shape[0])
    if weights is not None and not weights.all():  # before labels are encoded: these are no rows
        kept = weights > 0
        X, y, weights = take_rows(X, kept), y[kept], weights[kept]
        environments = None if environments is None else environments[kept]
    classes, codes = np.zeros(1, dtype=np.intp), np.zeros(X.shape[0], dtype=np.intp)
    if not numeric:
        classes, codes = encode_labels(y, "y")
        if np.any(codes == UNKNOWN):
            raise ValueError(MISSING.format("labels"))
        if environments is not None:
            refuse_continuous(classes, "y", "use ISRRegressor, or bin it to classes")
    labels, environment_codes = encode_environments(environments, X.shape[0])
    n_known = int(np.sum(environment_codes != UNKNOWN))
    refuse_measurements(labels, None if chunk else n_known)
    response = np.asarray(y, dtype=np.float64) if numeric else None
    return Rows(X, classes, codes, labels, environment_codes, weights, finite, response)


def _check_X_y(
    X: Any, y: Any, estimator: BaseEstimator | None, reset: bool, finite: bool, numeric: bool
) -> tuple[FloatArray, LabelArray]:
    y, missing = as_target(y), MISSING.format("values" if numeric else "labels")
    if numeric:
        refuse_text(y)
        y = as_numbers(y, "y")
    elif len(y.shape if isinstance(y, np.ndarray) else shape_of(y)) == 1:
        labels = as_labels(y, "y")
        # scikit-learn would look behind a mask, and does not know NumPy's strings of any length.
        if np.ma.isMaskedArray(y) or getattr(getattr(y, "dtype", None), "kind", "") == "T":
            y = labels
    if not isinstance(X, np.ndarray) and on_device(X):
        X = _check_device(X, estimator, reset)
        # Only y is looked at.
        return X, _check_X_y(np.zeros((X.shape[0], 1)), y, None, reset, finite, numeric)[1]
    how = {"dtype": FLOATS, "ensure_all_finite": finite, "y_numeric": numeric}
    try:
        with naming_columns(X):
            if estimator is None:
                X, y = check_X_y(X, y, **how)
            else:
                X, y = validate_data(estimator, X, y, reset=reset, **how)
    except TypeError:
        if len(shape_of(y)) == 1 and is_missing(as_labels(y, "y")).any():  # sklearn trips over NA
            raise ValueError(missing) from None
        raise
    except ValueError as error:
        if str(error).startswith("Input y contains NaN"):
            raise ValueError(missing) from None
        if str(error).startswith("Input y contains infinity"):
            raise ValueError(
                "y contains infinity: drop those rows, or replace the values."
            ) from None
        raise
    if numeric:
        if np.isnan(y).any():  # None in an array of objects
            raise ValueError(missing)
        refuse_large(y)
    return X, y


def check_weights(
    sample_weight: Any, n_rows: int, *, may_be_zero: bool = False
) -> Float64Array | None:
    """Return the weights as float64, or None; refuse negative and all-zero ones."""
    if sample_weight is None:
        return None
    if np.ma.isMaskedArray(sample_weight):
        raise ValueError("sample_weight is a masked array: fill it, with 0 where a row is absent.")
    given = np.asarray(as_numbers(sample_weight, "sample_weight"))
    with naming_columns(given, "sample_weight"):
        weights: Float64Array = check_array(
            np.atleast_1d(given),
            ensure_2d=False,
            dtype=np.float64,
            ensure_all_finite=False,
            input_name="sample_weight",
        )
    if given.ndim == 0 or weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {given.shape}, expected ({n_rows},): give one weight per row."
        )
    if not np.isfinite(weights).all():
        raise ValueError(
            f"sample_weight contains NaN or infinity in {np.sum(~np.isfinite(weights))} of "
            f"{n_rows} rows: weights must be finite, and 0 where a row is absent."
        )
    if weights.min() < 0:
        raise ValueError(
            f"sample_weight has a negative value ({weights.min():g}): weights must be >= 0."
        )
    if not weights.any() and not may_be_zero:
        raise ValueError("sample_weight is zero for every row: at least one must be positive.")
    most = float(weights.max())
    least = float(weights.min(where=weights > 0, initial=most))
    if most > HEAVIEST or 0 < least < max(most * LIGHTEST, FAINTEST):
        raise ValueError(
            f"sample_weight goes from {least:g} to {most:g}: those that are not 0 must be within a "
            f"factor of {1 / LIGHTEST:g}, and from {FAINTEST:g} to {HEAVIEST:g}: scale them."
        )
    return weights


def check_features(X: Any, estimator: BaseEstimator) -> FloatArray:
    """Check the features that a fitted estimator is to transform or to predict."""
    if not isinstance(X, np.ndarray) and on_device(X):
        there: FloatArray = _check_device(X, estimator, reset=False, fitting=False)
        refuse_not_finite(there)
        return there
    X = as_rows(X)
    with naming_columns(X):
        checked: FloatArray = validate_data(estimator, X, dtype=FLOATS, reset=False)
    return checked


def check_scored(X: Any, y: Any, sample_weight: Any) -> None:
    """Refuse a target and weights that predictions for X cannot be scored by."""
    _check_lengths(X, y=y, sample_weight=sample_weight)
    labels = as_labels(np.ravel(y) if len(shape_of(as_target(y))) == 2 else y, "y")
    if is_missing(labels).any():
        raise ValueError("y has missing values (None, NaN or NA): drop those rows before scoring.")
    check_weights(sample_weight, len(labels))


def refuse_not_finite(X: FloatArray) -> None:
    """Raise a ValueError that names the columns in which X is not finite, if it is not."""
    if not on_device(X):
        with naming_columns(X):
            check_array(X, dtype=FLOATS, input_name="X")
        return
    for what in WAYS:
        bad, n_rows = not_finite(X, what)
        if n_rows:
            raise ValueError(not_finite_message(X, what, bad, n_rows))


def refuse_continuous(labels: LabelArray, name: str, way_out: str) -> None:
    """Raise an error if distinct labels are numbers that no class would have."""
    kind = type_of_target(labels)
    if kind.startswith("continuous"):
        raise ValueError(
            f"{name} is {kind} with {len(labels)} distinct values, but class labels are needed: "
            f"{way_out}."
        )


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


def _check_lengths(X: Any, **others: Any) -> None:
    lengths = {}
    for name, values in ({"X": X} | others).items():
        if hasattr(values, "shape"):
            lengths[name] = int(values.shape[0]) if len(values.shape) else None
        elif isinstance(values, Sized) and not isinstance(values, str | Mapping | Set):
            lengths[name] = len(values)
    # Where there is no length, scikit-learn's own message is the better one.
    n_rows = lengths.pop("X", None)
    for name, length in lengths.items():
        if n_rows is not None and length is not None and length != n_rows:
            raise ValueError(
                f"{name} has {length} values but X has {n_rows} rows: give one value per row."
            )
