"""Labels of any type as sorted distinct values and integer codes."""

from numbers import Integral, Real
from typing import Any, Final

import numpy as np

from isrlearn.display import brief
from isrlearn.rows._arrays import of_tensor
from isrlearn.typing import BoolArray, IntArray, LabelArray

UNKNOWN: Final = -1
SMALL_RANGE: Final = 2**10
LONGEST: Final = 1000
MOST_NUMBERS: Final = 20  # different ones that may be codes of groups, however few rows they have
FEWEST_OF_A_NUMBER: Final = 3
BIN_THEM: Final = (
    "bin them first, for example with pandas.cut or pandas.qcut, or name groups of rows, such as "
    "the hospital"
)


def encode_labels(values: Any, name: str) -> tuple[LabelArray, IntArray]:
    """Return sorted distinct labels and codes, -1 where a label is missing."""
    array = as_labels(values, name)
    if array.dtype.kind in "biu":
        found = _small_integers(array)
        if found is not None:
            return found
    missing = is_missing(array)
    known = array[~missing]
    if array.dtype == object:
        known = _one_type(known, name)
    labels, inverse = np.unique(known, return_inverse=True)
    codes = np.full(len(array), UNKNOWN, dtype=np.intp)
    codes[~missing] = inverse
    return labels, codes


def refuse_measurements(labels: LabelArray, n_rows: int | None) -> None:
    """Refuse environments that are numbers or dates of too many values, such as an age.

    Many whole numbers are codes of many groups if there are rows of each. Few are enough: a search
    fits on a part of the rows, and has fewer of each than the user.

    Parameters
    ----------
    labels : ndarray of shape (E,)
        Distinct environments.
    n_rows : int or None
        Rows whose environment is known; None if more may come.

    Examples
    --------
    >>> refuse_measurements(np.arange(100), 1000)
    >>> refuse_measurements(np.arange(18, 81), 120)
    Traceback (most recent call last):
        ...
    ValueError: environments has 63 different numbers: bin them first, ...
    """
    kind = labels.dtype.kind
    if kind not in "iufM" or len(labels) <= MOST_NUMBERS:
        return
    fractions = kind == "f" and not np.array_equal(labels, np.round(labels))
    if fractions or (n_rows is not None and n_rows < FEWEST_OF_A_NUMBER * len(labels)):
        what = "dates" if kind == "M" else "numbers"
        raise ValueError(f"environments has {too_many_values(len(labels), what)}")


def too_many_values(n_values: int, what: str) -> str:
    """Return the message about environments that are measured, behind the name of the column."""
    return (
        f"{n_values} different {what}: {BIN_THEM}. If these are codes of groups, write them as "
        "text, such as site7."
    )


def _small_integers(array: LabelArray) -> tuple[LabelArray, IntArray] | None:
    """Encode integers in a small range without sorting; None if it is not small, or far away."""
    if len(array) == 0:
        return None
    least, most = int(array.min()), int(array.max())
    if most - least > max(SMALL_RANGE, len(array)) or most > np.iinfo(np.intp).max:
        return None
    shifted = array.astype(np.intp)
    if least:
        shifted -= least
    present = np.flatnonzero(np.bincount(shifted))
    labels = (present + least).astype(array.dtype)
    if len(present) == most - least + 1:  # no gap between them
        return labels, shifted
    place = np.empty(most - least + 1, dtype=np.intp)
    place[present] = np.arange(len(present))
    return labels, place[shifted]


def as_labels(values: Any, name: str, n_rows: int | None = None) -> LabelArray:
    """Return labels as an array of one dimension, of the length `n_rows` if that is given."""
    if np.ma.isMaskedArray(values):
        hidden = np.ma.getmaskarray(values)
        values = np.ma.getdata(values).astype(object)
        values[hidden] = None
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    elif hasattr(values, "detach"):
        values = of_tensor(values, name)
    # A list goes through object: NumPy would turn ["a", nan] into the strings "a" and "nan".
    array = np.asarray(values, dtype=None if hasattr(values, "dtype") else object)
    if array.dtype.kind == "T":  # NumPy's strings of variable width
        array = array.astype(object)
    if array.ndim != 1:
        raise ValueError(_not_one_dimensional(array, name))
    if array.dtype.kind == "S":
        raise TypeError(_one_kind_only(name, "has", ["bytes"]))
    if n_rows is not None and len(array) != n_rows:
        raise ValueError(
            f"{name} has {len(array)} values for {n_rows} rows: give one label per row."
        )
    return array


def _not_one_dimensional(array: LabelArray, name: str) -> str:
    if array.ndim == 0:
        return f"{name}={brief(array)} is one value: give one label per row, such as a column."
    way_out = (
        "join several attributes into one label"
        if array.shape[1] > 1
        else "pass the column itself, or .ravel() of an array"
    )
    return (
        f"{name} has shape {array.shape}, expected one label per row in one dimension: {way_out}."
    )


def is_missing(array: LabelArray) -> BoolArray:
    """Return the mask of missing labels."""
    if array.dtype == object:
        return np.fromiter(
            (_value_is_missing(value) for value in array), dtype=bool, count=len(array)
        )
    if array.dtype.kind in "fc":
        return np.isnan(array)
    if array.dtype.kind in "mM":
        return np.isnat(array)
    if array.dtype.kind == "U":
        # np.array(["a", nan]) is an array of the strings "a" and "nan".
        return np.asarray(array == "nan")
    return np.zeros(len(array), dtype=bool)


def _value_is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA refuses to be a bool
        return True


def _one_type(known: LabelArray, name: str) -> LabelArray:
    """Turn an object array of strings or of numbers into an array of that type."""
    kinds = {"str" if isinstance(v, str) else _number_or_type(v) for v in known}
    if len(kinds) > 1 or not kinds <= {"str", "number"}:
        raise TypeError(_one_kind_only(name, "mixes" if len(kinds) > 1 else "has", sorted(kinds)))
    if not len(known):
        return known.astype(np.intp)
    if kinds == {"str"}:
        _refuse_long(known, name)
    found = np.array(known.tolist())
    # Whole numbers that 64 bits do not hold would be rounded, and two labels become one.
    rounded = found.dtype.kind == "f" and all(isinstance(value, Integral) for value in known)
    if found.dtype == object and not all(isinstance(value, Integral) for value in known):
        names = sorted({type(value).__name__ for value in known})
        raise TypeError(_one_kind_only(name, "has", names))
    if rounded or found.dtype == object:
        raise TypeError(f"{name} has whole numbers of more than 64 bits: use strings for them.")
    return found


def _refuse_long(known: LabelArray, name: str) -> None:
    """Refuse texts: an array of strings gives every row the room of the longest."""
    longest = max(known, key=len)
    if len(longest) > LONGEST:
        raise ValueError(
            f"{name} has a label of {len(longest)} characters, {brief(longest)}: give at most "
            f"{LONGEST}, such as a short name."
        )


def _one_kind_only(name: str, verb: str, kinds: list[str]) -> str:
    return (
        f"{name} {verb} labels of type {', '.join(kinds)}: use only strings or only numbers, for "
        "example by .astype(str)."
    )


def _number_or_type(value: Any) -> str:
    return "number" if isinstance(value, Real | np.bool_) else type(value).__name__
