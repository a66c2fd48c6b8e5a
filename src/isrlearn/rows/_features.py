"""Features: what can be no array of numbers is refused, and its columns are named."""

import datetime
import sys
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from numbers import Number
from typing import Any, Final

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array

from isrlearn.display import brief, some
from isrlearn.exceptions import SparseInputError
from isrlearn.typing import FLOATS, BoolArray, FloatArray

LARGEST: Final = 1e150  # what can be squared and summed in float64
PLAIN: Final = "biuf"  # kinds of numbers that need no second look
# What NumPy would turn into floats, or into an error that names nothing: also as objects.
OTHERS: Final[dict[str, tuple[Any, str, str]]] = {
    "c": (
        (complex, np.complexfloating),
        "complex numbers",
        "pass the real part, or real and imaginary parts as two columns",
    ),
    "M": (
        (datetime.date, datetime.time, np.datetime64),
        "dates or times",
        "turn them into numbers, such as days since a date",
    ),
    "m": (
        (datetime.timedelta, np.timedelta64),
        "durations",
        "turn them into numbers, such as seconds",
    ),
    "V": ((), "records with fields", "stack the fields as columns"),
}
WAYS: Final = {"NaN": "fill the gaps first (sklearn.impute)", "infinity": "replace these values"}


def as_rows(X: Any, name: str = "X") -> Any:
    """Return features that may be numbers in rows and columns, of at least one each."""
    if type(X) is np.ndarray and X.ndim == 2 and X.size and X.dtype.kind in PLAIN:
        return X
    refuse_sparse(X, name)
    X = as_numbers(X, name)
    shape = tuple(getattr(X, "shape", (1, 1)))
    # In the words that scikit-learn's checks look for.
    if len(shape) < 2:
        raise ValueError(
            f"Expected 2D array, got {len(shape)}D array instead: {name} has the shape {shape}, "
            f"but rows and columns are needed. Reshape your data, with {name}.reshape(-1, 1) if it "
            f"is one feature or {name}.reshape(1, -1) if it is one row."
        )
    if len(shape) > 2:
        raise ValueError(
            f"{name} has {len(shape)} dimensions, shape {shape}, but rows and columns are needed: "
            f"make one row of each, with {name}.reshape(len({name}), -1)."
        )
    for count, what, which in zip(shape, ("sample", "feature"), ("rows", "columns"), strict=True):
        if count == 0:
            raise ValueError(
                f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required: "
                f"{name} has no {which}, so look at how they were chosen."
            )
    return X


def as_numbers(values: Any, name: str) -> Any:
    """Return an array or a table that may hold real numbers only; a list becomes an array."""
    if isinstance(values, np.ndarray) and not np.ma.isMaskedArray(values):
        if values.dtype.kind in PLAIN:
            return values
    elif not hasattr(values, "dtypes"):
        values = _as_array(values, name)
    if np.ma.is_masked(values):
        raise ValueError(
            f"{name} is an array with {np.ma.getmaskarray(values).sum()} masked values: fill them "
            f"({name}.filled), or drop their rows."
        )
    if hasattr(values, "columns") and hasattr(values, "dtypes"):
        _refuse_columns(values, name)
        return values
    kind = getattr(getattr(values, "dtype", None), "kind", "f")
    _refuse_kind(kind, name)
    return _of_objects(np.asarray(values), name) if kind in "OUST" else values


def _as_array(values: Any, name: str) -> Any:
    """Refuse what is one thing, or a bag of things; return a list or a tensor as an array."""
    if isinstance(values, str | bytes):
        way_out = "read a file with isrlearn.io.read_data" if name == "X" else "give numbers"
        raise ValueError(f"{name}={brief(values)} is text, but an array is needed: {way_out}.")
    array = any(hasattr(values, how) for how in ("__array__", "__len__"))
    bag = isinstance(values, Mapping | Set | Iterator | type | None)
    if bag or not (array or isinstance(values, Number)):
        kind = "class" if isinstance(values, type) else type(values).__name__
        what = "None" if values is None else f"a {kind}"
        raise TypeError(
            f"{name} is {what}, but an array or a table is needed: make one first, for example "
            "with numpy.array(list(...))."
        )
    if hasattr(values, "detach"):
        return of_tensor(values, name)
    return values if hasattr(values, "__array__") else of_list(values, name)


def of_tensor(values: Any, name: str) -> Any:
    """Return the numbers of a tensor of torch that is on the host; gradients are left behind."""
    try:
        return values.detach().numpy()
    except (TypeError, RuntimeError, NotImplementedError) as error:
        raise TypeError(
            f"{name} is a tensor of the type {values.dtype} ({error}): pass {name}.float().cpu(), "
            f"or {name}.to_dense() of a sparse one."
        ) from None


def of_list(values: Any, name: str) -> Any:
    """Return a list as an array; refuse one whose rows are not equally long."""
    try:
        array = np.asarray(values)
        # Beside text, NumPy turns numbers into text: look for that which was given.
        return np.asarray(values, dtype=object) if array.dtype.kind in "US" else array
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ValueError(
            f"{name} is a list whose rows are not equally long: give each as many numbers as the "
            "others."
        ) from None


def refuse_sparse(X: Any, name: str = "X") -> None:
    """Raise an error that says what to do with sparse features."""
    if isinstance(X, np.ndarray):
        return
    dtypes = X.dtypes if hasattr(X, "columns") and hasattr(X, "dtypes") else ()
    if issparse(X) or any(str(dtype).startswith("Sparse") for dtype in dtypes):
        dense = f"{name}.toarray()" if issparse(X) else f"{name}.sparse.to_dense()"
        raise SparseInputError(
            f"{name} is sparse, and removing directions would fill it: reduce it first "
            f"(sklearn.decomposition.TruncatedSVD) or pass {dense}."
        )


def shape_of(values: Any) -> tuple[int, ...]:
    """Return the shape of an array, or that which a list or a single value would have."""
    if hasattr(values, "shape"):
        return tuple(values.shape)
    try:
        return np.asarray(values).shape
    except ValueError:  # rows of a list that are not equally long
        return np.asarray(values, dtype=object).shape


def _refuse_kind(kind: str, name: str) -> None:
    if kind in OTHERS:
        _, what, way_out = OTHERS[kind]
        # The words that scikit-learn's own checks look for.
        first = "Complex data not supported: " if kind == "c" else ""
        raise ValueError(f"{first}{name} holds {what}: {way_out}.")


def _of_objects(values: Any, name: str) -> Any:
    """Return an array of objects, NaN in the place of NA, if all may be numbers."""
    missing = [type(value).__name__ == "NAType" for value in values.ravel().tolist()]
    if any(missing):
        values = values.copy()
        values[np.reshape(missing, values.shape)] = np.nan
    for value in values.ravel():
        if isinstance(value, str | bytes):
            raise ValueError(
                f"{name} holds text, such as {brief(value)}, but numbers are needed: encode it, or "
                "convert it if it looks like numbers."
            )
        for kind, (classes, *_) in OTHERS.items():
            if isinstance(value, classes):
                _refuse_kind(kind, name)
        if isinstance(value, int) and abs(value) > sys.float_info.max:
            raise ValueError(f"{name} holds {brief(value)}, too large for a float: scale it.")
        is_array = getattr(value, "ndim", 0) > 0
        if value is not None and (is_array or not hasattr(value, "__float__")):
            raise TypeError(  # in the words that scikit-learn's checks look for
                f"{name} holds a {type(value).__name__}, {brief(value)}: every value of this "
                "argument must be neither string nor other object, but one number."
            )
    return values


def _refuse_columns(X: Any, name: str) -> None:
    names = list(X.columns)
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise ValueError(f"{name} has the column {brief(twice)} more than once: rename one.")
    kinds = [getattr(dtype, "kind", "") for dtype in X.dtypes]
    for column, kind in zip(names, kinds, strict=True):
        _refuse_kind(kind, f"{name}, column {brief(column)},")
    objects = [column for column, kind in zip(names, kinds, strict=True) if kind == "O"]
    texts = [c for c in objects if any(isinstance(value, str | bytes) for value in X[c])]
    if texts:
        raise ValueError(
            f"{name} has text in column(s) {some(texts)}: drop or encode them, or convert them if "
            "they look like numbers. Environments are not a feature; pass them as environments=."
        )
    for column in objects:
        _of_objects(np.asarray(X[column], dtype=object), f"{name}, column {brief(column)},")


@contextmanager
def naming_columns(X: Any, name: str = "X") -> Iterator[None]:
    """Name the array, and the columns, for which scikit-learn refuses X."""
    try:
        # scikit-learn adds up X to find what is not finite: large values may overflow.
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except OverflowError:
        raise ValueError(
            f"{name} holds a whole number that is too large for a float: scale it first."
        ) from None
    except TypeError as error:
        if "argument must be" not in str(error):
            raise
        raise TypeError(f"{name} holds what is no number: {error}. Give numbers only.") from None
    except ValueError as error:
        text = str(error)
        if text.startswith("Input X contains"):
            values = check_array(X, dtype=FLOATS, ensure_all_finite=False)
            what = "NaN" if np.isnan(values).any() else "infinity"
            bad = np.isnan(values) if what == "NaN" else np.isinf(values)
            n_rows = int(bad.any(axis=1).sum())
            raise ValueError(not_finite_message(X, what, bad.any(axis=0), n_rows)) from None
        if "features as input" in text:
            raise ValueError(
                f"{text.rstrip('.')}: give the columns that it was fitted on, in the same order."
            ) from None
        raise


def not_finite_message(X: Any, what: str, bad: BoolArray, n_rows: int) -> str:
    """Return what is said of "NaN" or "infinity" in some columns, (d,), and so many rows."""
    names, n_all = (
        getattr(X, "columns", range(len(bad))),
        X.shape[0] if hasattr(X, "shape") else len(X),
    )
    return (
        f"X contains {what} in column(s) {some([names[j] for j in np.flatnonzero(bad)])}, in "
        f"{n_rows} of {n_all} rows: drop these rows, or {WAYS[what]}."
    )


def refuse_large_features(X: FloatArray, names: Any = None) -> None:
    """Raise a ValueError that names the columns whose squares cannot be added up."""
    largest = np.fmax.reduce(np.abs(X), axis=0, initial=0.0).astype(np.float64)
    large = np.flatnonzero(largest > LARGEST)
    if len(large):
        named = some([int(j) if names is None else names[j] for j in large])
        raise ValueError(overflow_message(largest.max(), f" in column(s) {named}"))


def overflow_message(largest: float, where: str = "", weight: float = 0.0) -> str:
    """Return what is said where squares of X, or their sums with weights, overflow."""
    if largest <= LARGEST:
        return (
            f"X (up to {largest:.3g}) and the weights of its rows (up to {weight:.3g} in a cell) "
            "are so large that sums of squares overflow: scale sample_weight, or the features."
        )
    return (
        f"X is so large (up to {largest:.3g}{where}, above {LARGEST:g}) that squares of it "
        "overflow: scale the features first, for example with StandardScaler."
    )
