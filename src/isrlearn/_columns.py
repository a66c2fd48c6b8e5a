"""Features that are refused, with the names of their columns."""

from collections.abc import Iterator, Sized
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from sklearn.utils import check_array

from isrlearn._typing import FLOATS, BoolArray

MOST_NAMED: Final = 5
WAYS: Final = {"NaN": "fill the gaps first (sklearn.impute)", "infinity": "replace these values"}


@contextmanager
def naming_columns(X: Any) -> Iterator[None]:
    """Name the columns for which scikit-learn refuses X.

    Parameters
    ----------
    X : object
        Features as they were given.
    """
    try:
        yield
    except ValueError as error:
        message = _text_in_columns(X, error) or _not_finite_in_columns(X, error)
        if message:
            raise ValueError(message) from None
        raise


def _text_in_columns(X: Any, error: ValueError) -> str:
    if "convert string" not in str(error) or not hasattr(X, "columns"):
        return ""
    named = [name for name in X.columns if any(isinstance(v, str | bytes) for v in X[name])]
    return (
        f"X has text in column(s) {named}: drop or encode them. Environments are not a feature; "
        "pass them as environments=."
    )


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
    named = [getattr(X, "columns", range(len(bad)))[j] for j in columns[:MOST_NAMED]]
    more = f" and {len(columns) - MOST_NAMED} more" if len(columns) > MOST_NAMED else ""
    return (
        f"X contains {what} in column(s) {named}{more}, in {n_rows} of {length_of(X)} rows: drop "
        f"these rows, or {WAYS[what]}."
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
    return len(values) if isinstance(values, Sized) and not isinstance(values, str) else None
