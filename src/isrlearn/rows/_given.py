"""A chunk of rows as a user gives it: what can be none is refused by name."""

from typing import Any, NamedTuple

from isrlearn.display import brief
from isrlearn.rows._arrays import as_rows, some


class Chunk(NamedTuple):
    """Some rows, not checked."""

    X: Any
    """(n, d)"""
    y: Any
    """(n,) class labels."""
    environments: Any = None
    """(n,) environments; None where unknown, or for all."""
    sample_weight: Any = None
    """(n,) weights; None for ones."""


def chunk_of(given: Any, number: int, names: list[Any] | None = None) -> Chunk:
    """Return what a user gave for a chunk.

    Parameters
    ----------
    given : object
        A tuple or list of two to four arrays.
    number : int
        Its number, for messages.
    names : list, default=None
        Names of the columns of the first chunk, as of `names_of`; None for the first.
    """
    if not isinstance(given, tuple | list) or not 2 <= len(given) <= len(Chunk._fields):
        parts = isinstance(given, tuple | list)
        what = f"has {len(given)} part(s)" if parts else f"is a {type(given).__name__}"
        raise TypeError(
            f"chunk {number} {what}: give (X, y), (X, y, environments) or (X, y, environments, "
            "sample_weight)."
        )
    chunk = Chunk(*given)
    own = names_of(chunk)
    if names and len(own) == len(names) and own != names:
        raise ValueError(
            f"chunk {number} has the columns {some(own)}, the first {some(names)}: give the same "
            "columns in the same order."
        )
    return chunk


def names_of(chunk: Chunk) -> list[Any]:
    """Return the names of the columns of a chunk; none if it has none."""
    return list(getattr(chunk.X, "columns", ()))


def whole_chunk(columns: Chunk) -> Chunk:
    """Return all rows as one chunk; features without a shape become an array.

    Parameters
    ----------
    columns : Chunk
        As it was given.
    """
    X = columns.X if hasattr(columns.X, "shape") else as_rows(columns.X)
    if len(X.shape) != 2:
        raise ValueError(
            f"X has shape {tuple(X.shape)}, expected (rows, features): give two dimensions."
        )
    for name, column in zip(Chunk._fields[1:], columns[1:], strict=True):
        if column is None and name != "y":
            continue
        if not hasattr(column, "__len__") or isinstance(column, str):
            raise TypeError(f"{name}={brief(column)} is no array: give one value per row.")
        if len(column) != len(X):
            raise ValueError(
                f"{name} has {len(column)} values but X has {len(X)} rows: give one value per row."
            )
    return columns._replace(X=X)
