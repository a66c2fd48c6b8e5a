"""Labels of any type as sorted distinct values and integer codes; targets that are refused."""

from numbers import Integral, Real
from typing import Any, Final

import numpy as np

from isrlearn.display import brief
from isrlearn.rows._features import OTHERS, of_list, of_tensor, shape_of
from isrlearn.typing import BoolArray, Float64Array, IntArray, LabelArray

UNKNOWN: Final = -1
SMALL_RANGE: Final = 2**10
LONGEST: Final = 1000
MOST_NUMBERS: Final = 20  # different ones that may be codes of groups, however few rows they have
FEWEST_OF_A_NUMBER: Final = 3
BIN_THEM: Final = (
    "bin them first, for example with pandas.cut or pandas.qcut, or name groups of rows, such as "
    "the hospital"
)
MISSING: Final = "y has missing {} (None, NaN or NA): drop those rows before fitting."


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


def encode_environments(environments: Any, n_rows: int) -> tuple[LabelArray, IntArray]:
    """Return the sorted environments and the code of each row (-1: unknown)."""
    if environments is None:
        return np.empty(0, dtype=np.intp), np.full(n_rows, UNKNOWN, dtype=np.intp)
    return encode_labels(as_labels(environments, "environments", n_rows), "environments")


def as_labels(values: Any, name: str, n_rows: int | None = None) -> LabelArray:
    """Return labels as an array of one dimension, of the length `n_rows` if that is given."""
    if np.ma.isMaskedArray(values):
        hidden = np.ma.getmaskarray(values)
        values = np.ma.getdata(values).astype(object)
        values[hidden] = None
    elif hasattr(values, "to_numpy"):
        values = values.to_numpy()
    elif hasattr(values, "detach"):
        values = of_tensor(values, name)
    elif isinstance(values, list | tuple):
        of_list(values, name)  # refuses rows that are not equally long
    # A list goes through object: NumPy would turn ["a", nan] into the strings "a" and "nan".
    array = np.asarray(values, dtype=None if hasattr(values, "dtype") else object)
    if array.dtype.kind == "T":  # NumPy's strings of variable width
        array = array.astype(object)
    if array.ndim == 0:
        raise ValueError(
            f"{name}={brief(array)} is one value: give one label per row, such as a column."
        )
    if array.ndim > 1:
        several = "join several attributes into one label"
        way_out = (
            several if array.shape[1] > 1 else "pass the column itself, or .ravel() of an array"
        )
        raise ValueError(
            f"{name} has shape {array.shape}, expected one label per row in one dimension: "
            f"{way_out}."
        )
    kind = array.dtype.kind
    if kind in "cV":
        raise ValueError(
            f"{name} holds {OTHERS[kind][1]}, which are no labels: use whole numbers or strings."
        )
    if kind == "S":
        raise TypeError(_one_kind_only(name, "has", ["bytes"]))
    if n_rows is not None and len(array) != n_rows:
        raise ValueError(
            f"{name} has {len(array)} values for {n_rows} rows: give one label per row."
        )
    return array


def is_missing(array: LabelArray) -> BoolArray:
    """Return the mask of missing labels."""
    kind = array.dtype.kind
    if kind == "O":
        try:
            missing = [value is None or bool(value != value) for value in array]
        except TypeError:  # pandas.NA refuses to be a bool
            missing = [value is None or _is_not_itself(value) for value in array]
        return np.array(missing, dtype=bool)
    if kind in "fmM":
        return np.asarray(array != array)
    # np.array(["a", nan]) is an array of the strings "a" and "nan".
    return np.asarray(array == "nan") if kind == "U" else np.zeros(len(array), dtype=bool)


def _is_not_itself(value: Any) -> bool:
    try:
        return bool(value != value)
    except TypeError:
        return True


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


def _one_type(known: LabelArray, name: str) -> LabelArray:
    """Turn an object array of strings or of numbers into an array of that type."""
    kinds = {_kind_of(kind) for kind in set(map(type, known))}
    if len(kinds) > 1 or not kinds <= {"str", "number"}:
        raise TypeError(_one_kind_only(name, "mixes" if len(kinds) > 1 else "has", sorted(kinds)))
    if not len(known):
        return known.astype(np.intp)
    # An array of strings gives every row the room of the longest.
    longest = max(known, key=len) if kinds == {"str"} else ""
    if len(longest) > LONGEST:
        raise ValueError(
            f"{name} has a label of {len(longest)} characters, {brief(longest)}: give at most "
            f"{LONGEST}, such as a short name."
        )
    found = np.array(known.tolist())
    # Whole numbers that 64 bits do not hold would be rounded, and two labels become one.
    whole = kinds == {"number"} and all(isinstance(value, Integral) for value in known)
    if whole and found.dtype.kind in "fO":
        raise TypeError(f"{name} has whole numbers of more than 64 bits: use strings for them.")
    if found.dtype == object:
        raise TypeError(_one_kind_only(name, "has", sorted({type(v).__name__ for v in known})))
    return found


def _kind_of(kind: type) -> str:
    if issubclass(kind, str):
        return "str"
    return "number" if issubclass(kind, Real | np.bool_) else kind.__name__


def _one_kind_only(name: str, verb: str, kinds: list[str]) -> str:
    return (
        f"{name} {verb} labels of type {', '.join(kinds)}: use only strings or only numbers, for "
        "example by .astype(str)."
    )


def refuse_measurements(labels: LabelArray, n_rows: int | None) -> None:
    """Refuse environments that are numbers or dates of too many values, such as an age.

    Without `n_rows` (of known environment), as in a chunk, whole numbers are left alone.
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


def as_target(y: Any) -> Any:
    """Refuse what is not one value per row: several columns, one value, a bag of values."""
    if y is None:
        raise ValueError(
            "fit requires y to be passed, but the target y is None: give one label, or one number, "
            "per row."
        )
    y = of_tensor(y, "y") if hasattr(y, "detach") else y
    shape = y.shape if isinstance(y, np.ndarray) else shape_of(y)
    if len(shape) > 1 and shape[1] != 1:
        raise ValueError(
            f"y should be a 1d array, got an array of shape {shape} instead: fit one model for "
            "each target, or join them to one label."
        )
    return as_labels(y, "y") if len(shape) == 0 else y


def refuse_text(y: Any) -> None:
    """Raise an error if a target that must be numbers has text in it."""
    values = np.asarray(y)
    if isinstance(y, str) or values.dtype.kind in "biufc":
        return
    text = next((value for value in values.ravel().tolist() if isinstance(value, str)), None)
    if text is not None:
        raise ValueError(
            f"y holds text, such as {brief(text)}, but a regressor needs numbers: convert it, "
            "or use ISRClassifier for class labels."
        )


def refuse_large(y: Float64Array) -> None:
    """Raise an error if a target cannot be summed."""
    with np.errstate(over="ignore"):
        if not np.isfinite(np.abs(y).sum()):
            raise ValueError(
                f"y is so large (up to {np.abs(y).max():.3g}) that its sum overflows: scale it "
                "first."
            )
