"""What a cell of a user's file means: missing, a number, a class, an environment, a split."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from isrlearn._limits import refuse_wide_names
from isrlearn.display import brief
from isrlearn.exceptions import DataError
from isrlearn.rows import LONGEST, MOST_NUMBERS, too_many_values
from isrlearn.typing import IntArray, LabelArray

Texts: TypeAlias = Sequence[str | None]
Code: TypeAlias = int | str

MISSING: Final = frozenset(
    {"", "NA", "<NA>", "NaN", "nan", "N/A", "n/a", "NULL", "null", "None", "?"}
)
TRUTH: Final = {"true": 1.0, "false": 0.0}
SPLITS: Final = {
    "train": 0,
    "validation": 1,
    "val": 1,
    "valid": 1,
    "dev": 1,
    "test": 2,
    "0": 0,
    "1": 1,
    "2": 2,
}
MOST_CLASSES_BY_FRACTION: Final = 20
# Of a number or date that is an environment, on average; with fewer, the groups of a test are tiny.
FEWEST_OF_A_NUMBER: Final = 30
MOST_NAMED: Final = 5
MOST_LISTED: Final = 12
CROSS: Final = " × "

# "007" is a name and not 7, and "1e5" may be one: only writers of numbers put a sign after the e.
_NUMBER: Final = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]\d+)?", re.ASCII)
_DATE: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
    r"|\d{1,2}[./]\d{1,2}[./](?:\d{4}|\d{2})"
)
_LARGEST: Final = 2**63 - 1


def known_text(text: str) -> str | None:
    """Return a cell without the blanks around it, or None if it says that a value is missing."""
    text = text.strip()
    return None if text in MISSING else text


def number_text(number: Any) -> str | None:
    """Return a number as text, whole ones without a point; None for NaN."""
    if number != number:
        return None
    if isinstance(number, float) and number.is_integer():
        return str(int(number))
    return str(number)


def is_formula(text: str | None) -> bool:
    """Return whether a cell holds a formula in the place of its value."""
    return text is not None and len(text) > 1 and text.startswith("=")


def is_date(text: str) -> bool:
    """Return whether a cell holds a date, or a date and a time."""
    return _DATE.fullmatch(text) is not None


def refuse_formula(text: str | None, who: str) -> None:
    """Raise `DataError` if a cell, or the name of a column, is a formula: nothing works it out."""
    if is_formula(text):
        raise DataError(
            f"{who} is the formula {brief(text)}: save values instead of formulas, or put "
            "another character before '='."
        )


def is_truth(texts: Iterable[str]) -> bool:
    """Return whether all texts are "true" or "false", in any case."""
    return all(text.casefold() in TRUTH for text in texts)


def codes_of(texts: Texts, who: str, way_out: str) -> list[Code | None]:
    """Return labels: integers if all are whole numbers, else strings, None where missing.

    Parameters
    ----------
    texts : sequence of str or None
        Cells of a column.
    who, way_out : str
        Beginning and end of the message about a column of fractions.

    Returns
    -------
    list of int, str or None
    """
    distinct = {text for text in texts if text is not None}
    _refuse_long(distinct, who)
    meaning = _meanings(distinct, who, way_out)
    return [None if text is None else meaning[text] for text in texts]


def class_codes(labels: LabelArray, classes: LabelArray) -> IntArray:
    """Return the place of each label among the classes of a model, (n,), -1 where it is unknown.

    Numbers are compared by value, however each of the two was written: 1, "1" and "1.0" are alike.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Labels of rows.
    classes : ndarray of shape (k,)
        Classes of the model.

    Examples
    --------
    >>> class_codes(np.array(["1.0", "0", "maybe"]), np.array([0, 1])).tolist()
    [1, 0, -1]
    """
    place = {_alone(str(name)): j for j, name in enumerate(classes.tolist())}
    distinct, inverse = np.unique(labels, return_inverse=True)
    codes = [place.get(_alone(str(label)), -1) for label in distinct.tolist()]
    return np.array(codes, dtype=np.intp)[inverse]


def _alone(text: str) -> str:
    """Return what a label would mean without others beside it, as text."""
    return str(codes_of([text], "", "")[0])


def _refuse_long(distinct: Iterable[str], who: str) -> None:
    """Refuse texts: an array of strings gives every row the room of the longest."""
    longest = max(distinct, key=len, default="")
    if len(longest) > LONGEST:
        raise DataError(
            f"{who} has a value of {len(longest)} characters, {brief(longest)}: give at most "
            f"{LONGEST}, such as a short name."
        )


def refuse_measurements(values: Collection[Code], n_rows: int, who: str) -> None:
    """Raise `DataError` if environments are numbers or dates of too many values, such as an age.

    Parameters
    ----------
    values : collection of int or str
        Distinct environments.
    n_rows : int
        Rows whose environment is known.
    who : str
        Beginning of the message.
    """
    if len(values) <= MOST_NUMBERS or n_rows >= FEWEST_OF_A_NUMBER * len(values):
        return
    if all(isinstance(value, int) for value in values):
        raise DataError(f"{who} has {too_many_values(len(values), 'numbers')}")
    if all(is_date(str(value)) for value in values):
        raise DataError(f"{who} has {too_many_values(len(values), 'dates')}")


def refuse_wide(values: Iterable[Code | None], n_rows: int, who: str, path: Path) -> None:
    """Raise `DataError` if one long label would take memory in every row of the file.

    Parameters
    ----------
    values : iterable of int, str or None
        Labels, or the distinct ones among them.
    n_rows : int
        Rows of the file.
    who : str
        Beginning of the message.
    path : Path
        The file.
    """
    texts = (value for value in set(values) if isinstance(value, str))
    longest = max(texts, key=lambda text: (len(text), text), default="")
    try:
        refuse_wide_names(n_rows, len(longest), path)
    except ValueError as error:
        raise DataError(f"{who} has the value {brief(longest)}: {error}.") from error


def crossed(columns: Sequence[Sequence[Code | None]]) -> list[Code | None]:
    """Join the labels of several columns; one that is unknown makes the whole unknown.

    Examples
    --------
    >>> crossed([["north", "south"], ["day", None]])
    ['north × day', None]
    """
    if len(columns) == 1:
        return list(columns[0])
    rows = zip(*columns, strict=True)
    return [None if None in row else CROSS.join(map(str, row)) for row in rows]


def looks_like_split(texts: Texts) -> bool:
    """Return whether every known cell is part of a split, or one names a part in words."""
    distinct = {_split_word(text) for text in texts if text is not None}
    named = distinct & {word for word in SPLITS if not word.isdecimal()}
    return bool(named) or (bool(distinct) and distinct <= SPLITS.keys())


def holds_split(texts: Texts) -> bool:
    """Return whether every cell is part of a split."""
    return all(text is not None and _split_word(text) in SPLITS for text in texts)


def split_codes(texts: Texts, who: str, place: Callable[[int], str]) -> IntArray:
    """Return 0 for train, 1 for validation and 2 for test."""
    codes = [-1 if text is None else SPLITS.get(_split_word(text), -1) for text in texts]
    if -1 in codes:
        row = codes.index(-1)
        found = "empty" if texts[row] is None else repr(texts[row])
        raise DataError(
            f"{who} is {found} in {place(row)}: write train, validation or test, or 0, 1 or 2."
        )
    return np.array(codes, dtype=np.intp)


def named(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """Return names in quotes, and how many more there are."""
    return listed([brief(name) for name in names], most)


def listed(items: Sequence[str], most: int = MOST_NAMED) -> str:
    """Return the first items with commas, and how many more there are."""
    shown = ", ".join(items[:most])
    return f"{shown} and {len(items) - most} more" if len(items) > most else shown


def nearest(name: str, names: Sequence[str], part: str) -> str:
    """Return a sentence that suggests which column or array was meant, and lists all."""
    close = closest(name, names)
    meant = "name one that is there. " if close is None else f"did you mean {brief(close)}? "
    return f"{meant}The {part}s are {named(names, MOST_LISTED)}."


def closest(name: str, names: Sequence[str]) -> str | None:
    """Return the name that is written almost as another, whatever the case; None if none is."""
    folded = {candidate.casefold(): candidate for candidate in names}
    close = get_close_matches(name.casefold(), folded, n=1)
    return folded[close[0]] if close else None


def _split_word(text: str) -> str:
    return text.casefold().removesuffix(".0")


def _meanings(distinct: set[str], who: str, way_out: str) -> dict[str, Code]:
    if is_truth(distinct):
        return {text: text.capitalize() for text in distinct}
    if not all(_NUMBER.fullmatch(text) for text in distinct):
        return {text: text for text in distinct}
    fractions = [text for text in distinct if not float(text).is_integer()]
    if fractions:
        _refuse_many(distinct, fractions, who, way_out)
        return {text: number_text(float(text)) or text for text in distinct}
    whole = {text: _integer(text) for text in distinct}
    fits = all(abs(number) <= _LARGEST for number in whole.values())
    return dict(whole) if fits else {text: text for text in distinct}


def _integer(text: str) -> int:
    # By way of a float only if there is no other: that keeps 53 bits.
    return int(text) if text.lstrip("+-").isdigit() else int(float(text))


def _refuse_many(distinct: set[str], fractions: list[str], who: str, way_out: str) -> None:
    if len(distinct) > MOST_CLASSES_BY_FRACTION:
        raise DataError(
            f"{who} holds {len(distinct)} different numbers that are not whole, such as "
            f"{min(fractions)}: {way_out}."
        )
