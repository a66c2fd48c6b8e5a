"""Which cells can be compared across environments, and what to tell the user about the others."""

from typing import Any, Final
from warnings import warn

import numpy as np

from isrlearn._typing import IntArray
from isrlearn.exceptions import EmptyCellWarning, TinyCellWarning
from isrlearn.moments import CellMoments

TINY_CELL_ROWS: Final = 5
_NAMED: Final = 5  # cells named in a message before it says "and more"


def comparable(moments: CellMoments, condition_on: Any = None) -> CellMoments:
    """Return the cells of the classes that are seen in at least two environments.

    Parameters
    ----------
    moments : CellMoments
        All cells.
    condition_on : label or sequence of labels, default=None
        Use these classes only; None uses all.

    Returns
    -------
    CellMoments

    Warns
    -----
    EmptyCellWarning
        If a class has no rows in some environment.
    TinyCellWarning
        If a cell in use has fewer than five rows.
    """
    if len(moments.environments) < 2:
        raise ValueError(_too_few_environments(moments))
    classes = _class_positions(moments, condition_on)
    cells_of_class = np.bincount(moments.class_index, minlength=len(moments.classes))
    kept_classes = classes[cells_of_class[classes] >= 2]
    if len(kept_classes) == 0:
        raise ValueError(_no_class_to_compare(moments, classes))
    _warn_of_empty_cells(moments, classes)
    kept = np.isin(moments.class_index, kept_classes)
    result = moments if kept.all() else moments.take(kept)
    _warn_of_tiny_cells(result)
    return result


def _class_positions(moments: CellMoments, condition_on: Any) -> IntArray:
    if condition_on is None:
        return np.arange(len(moments.classes))
    wanted = [condition_on] if np.ndim(condition_on) == 0 else list(condition_on)
    known = moments.classes.tolist()
    strangers = [label for label in wanted if label not in known]
    if strangers or not wanted:
        raise ValueError(
            f"condition_on={condition_on!r} names {strangers or 'no class'}, but the classes are "
            f"{known}: name one of these or several, or None for all."
        )
    return np.unique([known.index(label) for label in wanted])


def _too_few_environments(moments: CellMoments) -> str:
    return (
        f"environments has {len(moments.environments)} distinct value(s) "
        f"({moments.environments.tolist()}), but differences between environments need at least 2. "
        "Give a label that varies, or leave environments out to remove nothing."
    )


def _no_class_to_compare(moments: CellMoments, classes: IntArray) -> str:
    cells = zip(moments.class_index, moments.environment_index, strict=True)
    where = [_name(moments, c, e) for c, e in cells if c in classes]
    return (
        f"no class is seen in two environments (rows: {_some(where)}), so environments cannot be "
        "compared given the class. Add rows, or use an environment that does not determine "
        "the label."
    )


def _warn_of_empty_cells(moments: CellMoments, classes: IntArray) -> None:
    table = moments.counts_table()
    empty = [_name(moments, c, e) for c in classes for e in np.flatnonzero(table[c] == 0)]
    if empty:
        warn(
            f"no rows of {_some(empty)}. These cells are left out, and so is a class that is seen "
            "in fewer than two environments.",
            EmptyCellWarning,
            stacklevel=2,
        )


def _warn_of_tiny_cells(moments: CellMoments) -> None:
    cells = zip(moments.class_index, moments.environment_index, moments.counts, strict=True)
    tiny = [f"{_name(moments, c, e)} has {n}" for c, e, n in cells if n < TINY_CELL_ROWS]
    if tiny:
        warn(
            f"cells with fewer than {TINY_CELL_ROWS} rows: {_some(tiny)}. Their moments are mostly "
            "noise; merge environments or add rows.",
            TinyCellWarning,
            stacklevel=2,
        )


def _name(moments: CellMoments, c: np.intp, e: np.intp) -> str:
    label, environment = moments.classes[c].item(), moments.environments[e].item()
    return f"class {label!r} in environment {environment!r}"


def _some(items: list[str]) -> str:
    more = f", and {len(items) - _NAMED} more" if len(items) > _NAMED else ""
    return ", ".join(items[:_NAMED]) + more
