"""Labels, environments and split of the rows of a file."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from isrlearn.display import brief
from isrlearn.exceptions import DataError
from isrlearn.io._archives import UNKNOWN, Archive
from isrlearn.io._roles import Roles
from isrlearn.io._tables import Table
from isrlearn.io._values import (
    Code,
    Texts,
    codes_of,
    crossed,
    refuse_measurements,
    refuse_wide,
    split_codes,
)
from isrlearn.rows import BIN_THEM
from isrlearn.typing import BoolArray, IntArray, LabelArray

Source: TypeAlias = Table | Archive

TRAIN: Final = 0


@dataclass(frozen=True, eq=False)
class Rows:
    """What the rows that are kept are, m of the n of the file."""

    labels: LabelArray | None
    """(m,) integers or strings."""
    environments: LabelArray | None
    """(m,) objects: integers or strings, None where unknown."""
    split: IntArray | None
    """(m,) 0 train, 1 validation, 2 test."""
    kept: BoolArray
    """(n,) True for the rows that are kept."""
    training: BoolArray
    """(n,) True for those of them to train on."""
    notes: tuple[str, ...]


def read_rows(source: Source, roles: Roles, *, predicting: bool) -> Rows:
    """Read what is no feature, and leave out rows without a label.

    Parameters
    ----------
    source : Table or Archive
        What was read.
    roles : Roles
        Names of columns or arrays.
    predicting : bool
        Whether all rows are kept, and a file without rows to train on is good.

    Returns
    -------
    Rows
    """
    split = _split(source, roles)
    environments = _environments(source, roles, predicting)
    codes = _labels(source, roles)
    kept, notes = _kept(source, codes, predicting)
    training = kept if split is None else kept & (split == TRAIN)
    if not predicting and not training.any():
        raise DataError(
            f"{source.path}: {source.part} {brief(roles.split)} has no row with a label to train "
            "on (train, or 0): mark some rows so."
        )
    return Rows(
        labels=_as_labels(codes, kept),
        environments=None if environments is None else environments[kept],
        split=None if split is None else split[kept],
        kept=kept,
        training=training,
        notes=(*notes, *_notes(source, roles, environments, kept)),
    )


def column_texts(source: Source, name: str) -> Texts:
    """Return a column, or an array of one value per row, as text; None where one is missing."""
    texts = source.texts(name)
    if len(texts) != source.n_rows:
        raise DataError(
            f"{source.path}: {name} has {len(texts)} values for {source.n_rows} rows of features: "
            "save one value per row."
        )
    return texts


def _column(source: Source, name: str) -> Texts:
    if isinstance(source, Table):
        source.refuse_formulas(name)
    return column_texts(source, name)


def _split(source: Source, roles: Roles) -> IntArray | None:
    if roles.split is None:
        return None
    who = f"{source.path}: {source.part} {brief(roles.split)}"
    return split_codes(_column(source, roles.split), who, source.place)


def _labels(source: Source, roles: Roles) -> Sequence[Code | None] | None:
    if roles.label is None:
        return None
    who = f"{source.path}: label {source.part} {brief(roles.label)}"
    way_out = "classes are needed, so bin it or name another"
    codes = codes_of(_column(source, roles.label), who, way_out)
    refuse_wide(codes, source.n_rows, who, source.path)
    return codes


def _environments(source: Source, roles: Roles, predicting: bool) -> LabelArray | None:
    if not roles.environment:
        return None
    codes = crossed([_environment(source, name, predicting) for name in roles.environment])
    environments = np.empty(len(codes), dtype=object)
    environments[:] = codes
    return environments


def _environment(source: Source, name: str, predicting: bool) -> Sequence[Code | None]:
    texts = _column(source, name)
    if isinstance(source, Archive):
        texts = [None if text == UNKNOWN else text for text in texts]
    who = f"{source.path}: environment {source.part} {brief(name)}"
    codes = codes_of(texts, who, BIN_THEM)
    refuse_wide(codes, source.n_rows, who, source.path)
    if not predicting:  # a new file may be small
        known = [code for code in codes if code is not None]
        refuse_measurements({*known}, len(known), who)
    return codes


def _kept(
    source: Source, labels: Sequence[Code | None] | None, predicting: bool
) -> tuple[BoolArray, list[str]]:
    """Return which rows are kept, (n,), and notes about those without a label."""
    n_rows = source.n_rows
    if labels is None or None not in labels:
        return np.ones(n_rows, dtype=bool), []
    known = np.array([label is not None for label in labels])
    gaps = n_rows - int(known.sum())
    if predicting:
        note = f"{gaps} of {n_rows} rows have no label, and are not scored."
        return np.ones(n_rows, dtype=bool), [note]
    if not known.any():
        raise DataError(f"{source.path} has no label in any row: fill them in or name another.")
    return known, [f"left out {gaps} of {n_rows} rows: they have no label."]


def _as_labels(codes: Sequence[Code | None] | None, kept: BoolArray) -> LabelArray | None:
    """Return labels of the rows that are kept, of type object if some have none."""
    labels = [code for code, keep in zip(codes or (), kept, strict=False) if keep]
    known = [code for code in labels if code is not None]
    if not known:
        return None
    dtype: Any = np.int64 if isinstance(known[0], int) else str
    return np.array(labels, dtype=dtype if len(known) == len(labels) else object)


def _notes(
    source: Source, roles: Roles, environments: LabelArray | None, kept: BoolArray
) -> list[str]:
    notes = []
    if roles.split is not None and isinstance(source, Table):
        notes.append(f"the rows are split by the column {brief(roles.split)}.")
    if environments is not None:
        unknown = sum(environment is None for environment in environments[kept])
        if unknown:
            notes.append(f"the environment of {unknown} of {kept.sum()} rows is unknown.")
    return notes
