"""Columns of labels as small integers and a table: what ten million rows can afford."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from isrlearn.exceptions import DataError
from isrlearn.io._values import Texts, codes_of, crossed, known_text, number_text, split_codes
from isrlearn.typing import IntArray, LabelArray


@dataclass(frozen=True, eq=False)
class Coded:
    """Labels of rows.

    Parameters
    ----------
    values : list
        Distinct values: integers or strings, the last None for a value that is missing.
    codes : ndarray of shape (n,)
        Place of each row's value.
    """

    values: list[Any]
    codes: IntArray

    def part(self, rows: Any) -> LabelArray:
        """Return the labels of some rows; an array of objects where one is missing."""
        codes = self.codes[rows]
        known = self.values[:-1]
        if len(codes) and codes.max() == len(known):
            table = np.empty(len(self.values), dtype=object)
            table[:] = self.values
            return np.asarray(table[codes])
        return np.asarray(np.array(known)[codes])

    @property
    def n_missing(self) -> int:
        """Number of rows whose value is missing."""
        return int(np.sum(self.codes == len(self.values) - 1))


def coded(values: Any, who: str, way_out: str, unknown: str | None = None) -> Coded:
    """Encode an array of labels, as `codes_of` reads them.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Numbers or strings.
    who, way_out : str
        Beginning and end of the message about a column of fractions.
    unknown : str, default=None
        A value that stands for an unknown one.
    """
    distinct, places = _distinct(values)
    texts = [_text(value) for value in distinct.tolist()]
    meanings = codes_of([None if t == unknown else t for t in texts], who, way_out)
    table = sorted({m for m in meanings if m is not None})
    where = {meaning: place for place, meaning in enumerate(table)}
    codes = [len(table) if m is None else where[m] for m in meanings]
    small = np.array(codes, dtype=np.min_scalar_type(len(table)))
    return Coded([*table, None], small[places])


def _distinct(values: Any) -> tuple[Any, IntArray]:
    """Return distinct values and the place of each row's; a missing one is an empty text."""
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    if values.dtype != object:
        distinct, places = np.unique(values, return_inverse=True)
        return distinct, places
    # Not as an array of strings, which gives every row the room of the longest.
    texts = ["" if value is None else str(value) for value in values]
    where = {text: place for place, text in enumerate(sorted(set(texts)))}
    places = np.fromiter((where[text] for text in texts), np.intp, len(texts))
    return np.array(list(where), dtype=object), places


def distinct_texts(values: Any) -> Texts:
    """Return the distinct values of a column as text; None for a missing one."""
    return [_text(value) for value in _distinct(values)[0].tolist()]


def _text(value: Any) -> str | None:
    return known_text(value) if isinstance(value, str) else number_text(value)


def crossed_columns(columns: list[Coded]) -> Coded:
    """Join the labels of several columns; one that is unknown makes the whole unknown."""
    if len(columns) == 1:
        return columns[0]
    sizes = [len(column.values) for column in columns]
    joint = np.ravel_multi_index(tuple(column.codes for column in columns), sizes)
    distinct, places = np.unique(joint, return_inverse=True)
    index = np.unravel_index(distinct, sizes)
    parts = [[column.values[i] for i in own] for column, own in zip(columns, index, strict=True)]
    labels = crossed(parts)
    table = sorted({str(label) for label in labels if label is not None})
    where = {label: place for place, label in enumerate(table)}
    codes = np.array([len(table) if label is None else where[str(label)] for label in labels])
    return Coded([*table, None], codes.astype(np.min_scalar_type(len(table)))[places])


def split_of(values: Any, who: str, place: Callable[[int], str]) -> LabelArray:
    """Return 0 for train, 1 for validation and 2 for test, (n,) of one byte each."""
    distinct, places = _distinct(values)
    texts = [_text(value) for value in distinct.tolist()]
    firsts = [int(np.argmax(places == j)) for j in range(len(texts))]
    codes = split_codes(texts, who, lambda j: place(firsts[j]))
    return np.asarray(codes.astype(np.int8)[places])


def refuse_length(column: Any, n_rows: int, name: str, path: Any) -> None:
    """Raise `DataError` unless there is one value per row."""
    if np.ndim(column) != 1:
        raise DataError(
            f"{path}: {name} has shape {np.shape(column)}, but one value per row is needed: save "
            "it with one dimension."
        )
    if len(column) != n_rows:
        raise DataError(
            f"{path}: {name} has {len(column)} values for {n_rows} rows of features: save one "
            "value per row."
        )
