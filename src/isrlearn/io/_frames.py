"""Columns of a DataFrame, which become features as those of a file do."""

from pathlib import Path
from typing import Any, Final

import numpy as np

from isrlearn.io._encoding import encode_columns, refuse_absent
from isrlearn.io._schema import Column, Schema
from isrlearn.io._tables import Cells, NumberCells, Table, TextCells, refuse_repeated
from isrlearn.io._values import known_text, number_text
from isrlearn.rows import is_missing
from isrlearn.typing import Float64Array

FRAME: Final = Path("the DataFrame")  # messages name it where a table of a file has its path


def is_frame(rows: Any) -> bool:
    """Return whether rows have named columns, as those of pandas, polars and pyarrow do."""
    return hasattr(rows, "columns")


def frame_features(frame: Any, schema: Schema) -> Float64Array:
    """Return the features that a model reads from a DataFrame, (n, d); NaN where one is missing.

    Parameters
    ----------
    frame : DataFrame
        Columns are found by their names, in any order, and others are ignored. If the model was
        fitted on an array, and the names are not x0, x1, ..., they are taken by position.
    schema : Schema
        That of the model.
    """
    own = list(getattr(frame, "column_names", frame.columns))  # pyarrow keeps names apart
    names, columns = [str(name) for name in own], schema.columns
    if schema.kind == "array" and {*names} != {column.name for column in columns}:
        columns = tuple(map(Column, names))
    wanted = [column.name for column in columns]
    refuse_repeated(FRAME, filter({*wanted}.__contains__, names))
    # As in a file, blanks around a name do not count, unless a column has just this name.
    place = {name.strip(): j for j, name in enumerate(names)}
    place |= {name: j for j, name in enumerate(names)}
    refuse_absent(FRAME, list(place), wanted)
    cells = {name: _cells(frame[own[place[name]]]) for name in wanted}
    return encode_columns(Table(FRAME, cells, len(frame)), columns)


def _cells(column: Any) -> Cells:
    values = np.asarray(column)
    if values.dtype.kind in "iuf":
        return NumberCells(np.asarray(values, dtype=np.float64))
    if values.dtype.kind in "mM":
        return TextCells([known_text(text) for text in values.astype(str).tolist()])
    gaps = is_missing(np.asarray(values, dtype=object)).tolist()
    pairs = zip(values.tolist(), gaps, strict=True)
    return TextCells([None if gap else known_text(str(number_text(v))) for v, gap in pairs])
