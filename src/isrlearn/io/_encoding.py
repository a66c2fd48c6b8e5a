"""Features out of the columns of a table."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from isrlearn.display import brief
from isrlearn.exceptions import DataError
from isrlearn.io._schema import Column
from isrlearn.io._tables import OtherCells, Table
from isrlearn.io._values import closest, is_date, is_formula, listed, named
from isrlearn.typing import BoolArray, Float64Array, FloatArray, IntArray

MOST_CATEGORIES: Final = 20
MOSTLY: Final = 0.8
FEWEST_FOR_A_COUNTER: Final = 20

_WITH_COMMA: Final = re.compile(r"[+-]?\d*,\d+")
_WHOLE: Final = re.compile(r"[+-]?\d+")


@dataclass(frozen=True)
class Choice:
    """Columns that become features, and why the others do not."""

    columns: tuple[Column, ...]
    left_out: dict[str, list[str]]
    """Names of columns by reason."""

    def notes(self) -> list[str]:
        """Say which columns were left out, and which were encoded."""
        notes = [f"left out {named(names)}: {reason}." for reason, names in self.left_out.items()]
        encoded = [column.name for column in self.columns if column.categories is not None]
        if encoded:
            notes.append(f"encoded as one 0/1 feature per value: {named(encoded)}.")
        return notes


def choose_columns(table: Table, names: Iterable[str], rows: BoolArray) -> Choice:
    """Decide which columns become features, by the rows to train on.

    Parameters
    ----------
    table : Table
        What was read.
    names : iterable of str
        Columns that are not labels, environments or the split.
    rows : ndarray of shape (n,)
        True for the rows to train on.

    Returns
    -------
    Choice
    """
    training = np.flatnonzero(rows)
    columns: list[Column] = []
    left_out: dict[str, list[str]] = {}
    for name in names:
        found = _column_or_reason(table, name, training)
        if isinstance(found, Column):
            columns.append(found)
        else:
            left_out.setdefault(found, []).append(name)
    choice = Choice(tuple(columns), left_out)
    if not columns:
        why = " ".join(choice.notes()) or "It has no other columns."
        raise DataError(f"{table.path} has no column left for the features: add one. {why}")
    return choice


def encode_columns(table: Table, columns: Iterable[Column]) -> Float64Array:
    """Return features, (n, d): numbers with NaN where missing, and one 0/1 column per category.

    A category that is missing, or was not among those to train on, is 0 in all its columns.
    """
    return np.column_stack([_encoded(table, column) for column in columns])


def refuse_absent(path: Path, names: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise `DataError` if columns that a model was fitted on are not there.

    Parameters
    ----------
    path : Path
        What has the columns, for the message.
    names : sequence of str
        Columns that are there.
    wanted : sequence of str
        Columns that the model was fitted on.
    """
    there, known = {*names}, {*wanted}  # thousands of columns are no rarity
    absent = [name for name in wanted if name not in there]
    if absent:
        others = [name for name in names if name not in known]
        meant = [(name, close) for name in absent if (close := closest(name, others)) is not None]
        renamed = listed([f"{brief(close)} to {brief(name)}" for name, close in meant])
        raise DataError(
            f"{path} lacks {len(absent)} of the {len(wanted)} columns that the model was fitted "
            f"on: add {named(absent)}{f', or rename {renamed}' if meant else ''}."
        )


def notes_on_gaps(names: Iterable[str], features: FloatArray) -> list[str]:
    """Say which features have missing values, and how many."""
    counts = zip(names, np.isnan(features).sum(axis=0).tolist(), strict=True)
    gaps = [f"{brief(name)} ({count})" for name, count in counts if count]
    return [f"missing values in {listed(gaps)}."] if gaps else []


def notes_on_categories(table: Table, columns: Iterable[Column]) -> list[str]:
    """Say which text columns have no value, or one that was not among those to train on."""
    notes = []
    for column in columns:
        if column.categories is None:
            continue
        texts = table.texts(column.name)
        absent = sum(text is None for text in texts)
        others = {text for text in texts if text is not None} - set(column.categories)
        if absent:
            notes.append(
                f"no value in {absent} rows of {brief(column.name)}: 0 in all its features."
            )
        if others:
            notes.append(
                f"{brief(column.name)} has values that were not there in training, such as "
                f"{brief(sorted(others)[0])}: 0 in all its features."
            )
    return notes


def notes_on_counters(names: Iterable[str], features: FloatArray) -> list[str]:
    """Say which features seem to be numbers of the rows."""
    columns = zip(names, features.T, strict=True)
    counters = [name for name, column in columns if _counts_rows(column)]
    return [f"{named(counters)} numbers the rows: if it is an ID, drop it."] if counters else []


def _column_or_reason(table: Table, name: str, training: IntArray) -> Column | str:
    cells = table.columns[name]
    if isinstance(cells, OtherCells):
        return cells.what
    if cells.numbers is None:
        return _text_column_or_reason(table, name, training)
    return _count_reason(len(_distinct(cells.numbers[training]))) or Column(name)


def _text_column_or_reason(table: Table, name: str, training: IntArray) -> Column | str:
    texts = table.texts(name)
    known = Counter(text for text in texts if text is not None)  # each is looked at once
    if all(is_formula(text) or _is_number(text) for text in known):
        table.refuse_formulas(name)
    _refuse_decimal_commas(table, name, known)
    _refuse_stray_text(table, name, known)
    if all(map(is_date, known)):
        return "dates or times"
    seen = [text for row in training if (text := texts[row]) is not None]
    categories = sorted(set(seen))
    return (
        _count_reason(len(categories))
        or _name_reason(len(categories), len(seen))
        or Column(name, tuple(categories))
    )


def _count_reason(n_values: int) -> str:
    reasons = {0: "no value is known", 1: "one value only, in all rows to train on"}
    return reasons.get(n_values, "")


def _name_reason(n_categories: int, n_rows: int) -> str:
    if n_categories == n_rows:
        return "every value is another text (an ID, or free text)"
    if n_categories > MOST_CATEGORIES:
        return f"more than {MOST_CATEGORIES} different texts (an ID, or free text)"
    return ""


def _refuse_decimal_commas(table: Table, name: str, known: Counter[str]) -> None:
    with_comma = [text for text in known if _WITH_COMMA.fullmatch(text)]
    others = (text for text in known if not _WITH_COMMA.fullmatch(text))
    if with_comma and all(_WHOLE.fullmatch(text) for text in others):
        raise DataError(
            f"{table.path} writes the numbers of column {brief(name)} with a comma, such as "
            f"{brief(with_comma[0])}: save it with decimal points, or drop the column."
        )


def _refuse_stray_text(table: Table, name: str, known: Counter[str]) -> None:
    share = sum(n for text, n in known.items() if _is_number(text)) / known.total()
    if share >= MOSTLY:
        way_out = "correct the value, leave it empty if it is missing, or drop the column"
        _refuse_text(table, name, f"{share:.0%} of the column are numbers: {way_out}")


def _refuse_text(table: Table, name: str, why: str) -> None:
    texts = table.texts(name)
    row = next(i for i, text in enumerate(texts) if text is not None and not _is_number(text))
    raise DataError(
        f"{table.path}, {table.place(row)}: column {brief(name)} is {brief(texts[row])}, but {why}."
    )


def _encoded(table: Table, column: Column) -> Float64Array:
    table.refuse_formulas(column.name)
    if column.categories is None:
        return _finite_numbers(table, column.name)
    place = {category: j for j, category in enumerate(column.categories)}
    codes = np.array([place.get(text or "", -1) for text in table.texts(column.name)])
    return np.asarray(codes[:, None] == np.arange(len(place)), dtype=np.float64)


def _finite_numbers(table: Table, name: str) -> Float64Array:
    cells = table.columns[name]
    if cells.numbers is None:
        way_out = "correct the value, or leave it empty if it is missing"
        _refuse_text(table, name, f"the model was fitted on numbers there: {way_out}")
    numbers = np.asarray(cells.numbers)
    if np.isinf(numbers).any():
        row = int(np.flatnonzero(np.isinf(numbers))[0])
        raise DataError(
            f"{table.path}, {table.place(row)}: column {brief(name)} is infinite: replace the "
            "value, or leave it empty if it is missing."
        )
    return numbers


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _distinct(numbers: Float64Array) -> Float64Array:
    return np.unique(numbers[~np.isnan(numbers)])


def _counts_rows(numbers: FloatArray) -> bool:
    """Return whether the values are n whole numbers in a row, in any order."""
    if len(numbers) < FEWEST_FOR_A_COUNTER or np.isnan(numbers).any():
        return False
    return bool(np.array_equal(np.diff(np.sort(numbers)), np.ones(len(numbers) - 1)))
