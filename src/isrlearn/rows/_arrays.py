"""What is no array of numbers: refused by name, before a library makes something else of it."""

import datetime
import sys
from collections.abc import Iterator, Mapping, Set
from numbers import Number
from typing import Any, Final

import numpy as np
from scipy.sparse import issparse

from isrlearn.display import brief
from isrlearn.exceptions import SparseInputError

MOST_NAMED: Final = 5
_BAGS: Final = (Mapping, Set, Iterator, type(None))
# What NumPy would turn into floats, or into an error that names nothing.
_OTHER_KINDS: Final = {
    "c": ("complex numbers", "pass the real part, or real and imaginary parts as two columns"),
    "M": ("dates or times", "turn them into numbers, such as days since a date"),
    "m": ("durations", "turn them into numbers, such as seconds"),
    "V": ("records with fields", "stack the fields as columns"),
}
# The same as objects, which NumPy would count in days, or refuse without a name.
_KINDS_OF_OBJECTS: Final = (
    ((datetime.date, datetime.time, np.datetime64), "M"),
    ((datetime.timedelta, np.timedelta64), "m"),
    ((complex, np.complexfloating), "c"),
)


def as_numbers(values: Any, name: str) -> Any:
    """Return an array or a table that may hold real numbers only; a list becomes an array.

    Parameters
    ----------
    values : object
        What was given for an array. Its numbers are not looked at.
    name : str
        What the message calls it.

    Examples
    --------
    >>> as_numbers([[1, 2]], "X").tolist()
    [[1, 2]]
    """
    _refuse_objects(values, name)
    if hasattr(values, "detach"):
        values = of_tensor(values, name)
    elif not hasattr(values, "__array__") and not hasattr(values, "dtypes"):
        values = _of_list(values, name)
    if np.ma.is_masked(values):
        raise ValueError(
            f"{name} is an array with {np.ma.getmaskarray(values).sum()} masked values: fill them "
            f"({name}.filled), or drop their rows."
        )
    if hasattr(values, "columns") and hasattr(values, "dtypes"):
        _refuse_columns(values, name)
        return values
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    _refuse_kind(kind, name)
    return _of_objects(np.asarray(values), name) if kind in tuple("OUST") else values


def in_type(values: Any, dtype: Any, name: str) -> Any:
    """Return an array in another type; what is beyond its range is refused.

    Parameters
    ----------
    values : ndarray
        Numbers.
    dtype : dtype
        A type of floats.
    name : str
        What the message calls them.
    """
    with np.errstate(over="ignore"):
        array = np.asarray(values).astype(dtype)
    if not np.isfinite(array).all():
        raise ValueError(
            f"the new {name} has numbers beyond {np.finfo(dtype).max:.3g}, the largest of "
            f"{np.dtype(dtype)}: pass the head in a wider type, or scale the features."
        )
    return array


def of_tensor(values: Any, name: str) -> Any:
    """Return the numbers of a tensor of torch that is on the host; gradients are left behind.

    Parameters
    ----------
    values : torch.Tensor
        The tensor.
    name : str
        What the message calls it.
    """
    try:
        return values.detach().numpy()
    except (TypeError, RuntimeError, NotImplementedError) as error:
        raise TypeError(
            f"{name} is a tensor of the type {values.dtype} ({error}): pass {name}.float().cpu(), "
            f"or {name}.to_dense() of a sparse one."
        ) from None


def as_rows(X: Any, name: str = "X") -> Any:
    """Return features that may be numbers in rows and columns, of at least one each.

    Parameters
    ----------
    X : object
        What was given for features.
    name : str, default="X"
        What the message calls it.
    """
    refuse_sparse(X, name)
    X = as_numbers(X, name)
    shape = getattr(X, "shape", None)
    if shape is not None:
        _refuse_shape(tuple(shape), name)
    return X


def refuse_ragged(labels: Any, name: str) -> None:
    """Raise an error if labels are a list of lists that are not equally long."""
    if isinstance(labels, list | tuple):
        _of_list(labels, name)


def refuse_sparse(X: Any, name: str = "X") -> None:
    """Raise an error that says what to do with sparse features."""
    dense = f"{name}.toarray()" if issparse(X) else f"{name}.sparse.to_dense()"
    if issparse(X) or any(str(dtype).startswith("Sparse") for dtype in _dtypes(X)):
        raise SparseInputError(
            f"{name} is sparse, and removing directions would fill it: reduce it first "
            f"(sklearn.decomposition.TruncatedSVD) or pass {dense}."
        )


def refuse_kind(array: Any, name: str) -> None:
    """Raise an error if labels are complex numbers or records."""
    kind = array.dtype.kind
    if kind in "cV":
        raise ValueError(
            f"{name} holds {_OTHER_KINDS[kind][0]}, which are no labels: use whole numbers or "
            "strings."
        )


def shape_of(values: Any) -> tuple[int, ...]:
    """Return the shape of an array, or that which a list or a single value would have."""
    if hasattr(values, "shape"):
        return tuple(values.shape)
    try:
        return np.asarray(values).shape
    except ValueError:  # rows of a list that are not equally long
        return np.asarray(values, dtype=object).shape


def _dtypes(X: Any) -> list[Any]:
    return list(X.dtypes) if hasattr(X, "columns") and hasattr(X, "dtypes") else []


def _refuse_objects(values: Any, name: str) -> None:
    """Refuse what is one thing, or a bag of things, and no array."""
    if isinstance(values, str | bytes):
        way_out = "read a file with isrlearn.io.read_data" if name == "X" else "give numbers"
        raise ValueError(f"{name}={brief(values)} is text, but an array is needed: {way_out}.")
    bag = isinstance(values, _BAGS) and not hasattr(values, "dtypes")
    array = any(hasattr(values, how) for how in ("__array__", "__len__", "dtypes"))
    if bag or isinstance(values, type) or not (array or isinstance(values, Number)):
        kind = "class" if isinstance(values, type) else type(values).__name__
        what = "None" if values is None else f"a {kind}"
        raise TypeError(
            f"{name} is {what}, but an array or a table is needed: make one first, for example "
            "with numpy.array(list(...))."
        )


def _of_list(values: Any, name: str) -> Any:
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


def _refuse_kind(kind: str, name: str) -> None:
    if kind in _OTHER_KINDS:
        what, way_out = _OTHER_KINDS[kind]
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
        _refuse_value(value, name)
    return values


def _refuse_value(value: Any, name: str) -> None:
    """Refuse an object that is no number."""
    if isinstance(value, str | bytes):
        raise ValueError(
            f"{name} holds text, such as {brief(value)}, but numbers are needed: encode it, or "
            "convert it if it looks like numbers."
        )
    for classes, kind in _KINDS_OF_OBJECTS:
        if isinstance(value, classes):
            _refuse_kind(kind, name)
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        raise ValueError(f"{name} holds {brief(value)}, too large for a float: scale it.")
    is_array = getattr(value, "ndim", 0) > 0
    if value is not None and (is_array or not hasattr(value, "__float__")):
        raise TypeError(  # in the words that scikit-learn's checks look for
            f"{name} holds a {type(value).__name__}, {brief(value)}: every value of this argument "
            "must be neither string nor other object, but one number."
        )


def _refuse_columns(X: Any, name: str) -> None:
    names = list(X.columns)
    twice = next((n for n in names if names.count(n) > 1), None) if _repeats(names) else None
    if twice is not None:
        raise ValueError(f"{name} has the column {brief(twice)} more than once: rename one.")
    for column, dtype in zip(names, _dtypes(X), strict=True):
        kind = getattr(dtype, "kind", "")
        if kind in _OTHER_KINDS:
            _refuse_kind(kind, f"{name}, column {brief(column)},")
    texts = [c for c, dtype in zip(names, _dtypes(X), strict=True) if _is_text(X[c], dtype)]
    if texts:
        raise ValueError(
            f"{name} has text in column(s) {some(texts)}: drop or encode them, or convert them if "
            "they look like numbers. Environments are not a feature; pass them as environments=."
        )
    for column, dtype in zip(names, _dtypes(X), strict=True):
        if getattr(dtype, "kind", "") == "O":
            _of_objects(np.asarray(X[column], dtype=object), f"{name}, column {brief(column)},")


def _repeats(names: list[Any]) -> bool:
    return len(set(names)) < len(names)


def _is_text(column: Any, dtype: Any) -> bool:
    return getattr(dtype, "kind", "") == "O" and any(isinstance(v, str | bytes) for v in column)


def some(names: list[Any]) -> str:
    """Return a list of names, the first ones and how many more there are."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"[{', '.join(brief(name) for name in names[:MOST_NAMED])}]{more}"


def _refuse_shape(shape: tuple[int, ...], name: str) -> None:
    """Refuse what has no rows and columns; in the words that scikit-learn's checks look for."""
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
    for count, what in zip(shape, ("sample", "feature"), strict=True):
        if count == 0:
            raise ValueError(
                f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required: "
                f"{name} has no {'rows' if what == 'sample' else 'columns'}, so look at how they "
                "were chosen."
            )
