"""Features that are refused, with the names of their columns."""

from collections.abc import Iterator, Mapping, Set, Sized
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from sklearn.utils import check_array

from isrlearn.rows._arrays import some
from isrlearn.typing import FLOATS, BoolArray, FloatArray

LARGEST: Final = 1e150  # what can be squared and summed in float64
WAYS: Final = {"NaN": "fill the gaps first (sklearn.impute)", "infinity": "replace these values"}


@contextmanager
def naming_columns(X: Any, name: str = "X") -> Iterator[None]:
    """Name the array, and the columns, for which scikit-learn refuses X.

    Parameters
    ----------
    X : object
        Features as they were given.
    name : str, default="X"
        What the message calls them.
    """
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
        message = _not_finite_in_columns(X, error) or _other_width(error)
        if message:
            raise ValueError(message) from None
        raise


def _other_width(error: ValueError) -> str:
    """Say what to do about another number of columns than in ``fit``."""
    text = str(error)
    way_out = "give the columns that it was fitted on, in the same order"
    return f"{text.rstrip('.')}: {way_out}." if "features as input" in text else ""


def _not_finite_in_columns(X: Any, error: ValueError) -> str:
    if not str(error).startswith("Input X contains"):
        return ""
    values = check_array(X, dtype=FLOATS, ensure_all_finite=False)
    what = "NaN" if np.isnan(values).any() else "infinity"
    bad = np.isnan(values) if what == "NaN" else np.isinf(values)
    return not_finite_message(X, what, bad.any(axis=0), int(bad.any(axis=1).sum()))


def not_finite_message(X: Any, what: str, bad: BoolArray, n_rows: int) -> str:
    """Return what is said of features that are not finite.

    Parameters
    ----------
    X : object
        Features as they were given.
    what : {"NaN", "infinity"}
        What they hold.
    bad : ndarray of shape (d,)
        In which columns.
    n_rows : int
        In how many rows.
    """
    columns = np.flatnonzero(bad)
    named = some([getattr(X, "columns", range(len(bad)))[j] for j in columns])
    return (
        f"X contains {what} in column(s) {named}, in {n_rows} of {length_of(X)} rows: drop "
        f"these rows, or {WAYS[what]}."
    )


def refuse_large_features(X: FloatArray, names: Any = None) -> None:
    """Raise a ValueError that names the columns whose squares cannot be added up, if there are any.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features; NaN where a value is missing.
    names : sequence of str, default=None
        Of the features.
    """
    largest = np.fmax.reduce(np.abs(X), axis=0, initial=0.0).astype(np.float64)
    large = np.flatnonzero(largest > LARGEST)
    if len(large):
        named = some([int(j) if names is None else names[j] for j in large])
        raise ValueError(overflow_message(largest.max(), f" in column(s) {named}"))


def overflow_message(largest: float, where: str = "", weight: float = 0.0) -> str:
    """Return what is said where squares of X cannot be added up.

    Parameters
    ----------
    largest : float
        Largest absolute value of X.
    where : str, default=""
        Which columns these are.
    weight : float, default=0.0
        What X is multiplied with, which is to blame where X alone is not.
    """
    if largest <= LARGEST:
        return (
            f"X (up to {largest:.3g}) and the weights of its rows (up to {weight:.3g} in a cell) "
            "are so large that sums of squares overflow: scale sample_weight, or the features."
        )
    return (
        f"X is so large (up to {largest:.3g}{where}, above {LARGEST:g}) that squares of it "
        "overflow: scale the features first, for example with StandardScaler."
    )


def length_of(values: Any) -> int | None:
    """Return how many rows there are, or None where scikit-learn's own message is the better.

    Parameters
    ----------
    values : object
        What was given for an array.
    """
    if hasattr(values, "shape"):
        return int(values.shape[0]) if len(values.shape) else None
    sized = isinstance(values, Sized) and not isinstance(values, str | Mapping | Set)
    return len(values) if sized else None
