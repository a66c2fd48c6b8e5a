"""Which cells can be compared across environments, and what to tell the user about the others."""

from typing import Any, Final, NamedTuple, Self

import numpy as np

from isrlearn.display import brief
from isrlearn.exceptions import EmptyCellWarning, TinyCellWarning, warn_user
from isrlearn.moments._cells import SMALLEST, CellMoments
from isrlearn.rows import LIGHTEST, Rows
from isrlearn.typing import BoolArray, Float64Array, IntArray, LabelArray

TINY_CELL_ROWS: Final = 5
_NAMED: Final = 5  # cells named in a message before it says "and more"


def comparable(
    moments: CellMoments, condition_on: Any = None, *, needs_spread: bool = False
) -> CellMoments:
    """Return the cells of the classes that are seen in at least two environments.

    Parameters
    ----------
    moments : CellMoments
        All cells.
    condition_on : label or sequence of labels, default=None
        Use these classes only; None uses all.
    needs_spread : bool, default=False
        Whether a cell is of use only if its rows differ, as covariances need.

    Returns
    -------
    CellMoments

    Warns
    -----
    EmptyCellWarning
        If a class has no rows in some environment, or none that are of use.
    TinyCellWarning
        If a cell in use has fewer than five rows.
    """
    n_environments = len(moments.environments)
    if n_environments < 2:
        raise ValueError(
            f"environments has {n_environments} distinct value(s) "
            f"({brief(moments.environments.tolist())}), but differences between environments need "
            "at least 2. Give a label that varies, or leave environments out to remove nothing."
        )
    refuse_underflow(moments.largest)
    weights = moments.weights
    if weights.max() * LIGHTEST**1.5 > weights.min():  # as no rows of one call may: from chunks
        raise ValueError(
            f"the weights of cells go from {weights.min():g} to {weights.max():g}, too far apart "
            "to be compared: scale sample_weight in the same way in all chunks."
        )
    classes = class_positions(moments, condition_on)
    chosen = np.isin(moments.class_index, classes)
    usable = chosen & moments.variances().any(axis=1) if needs_spread else chosen
    cells_of_class = np.bincount(moments.class_index[usable], minlength=len(moments.classes))
    kept = usable & (cells_of_class[moments.class_index] >= 2)
    if not kept.any():
        raise ValueError(_no_class_to_compare(moments, classes, usable, chosen & ~usable))
    if usable.sum() < len(classes) * n_environments:
        _warn_of_empty_cells(moments, classes, chosen & ~usable)
    few = kept & (moments.counts < TINY_CELL_ROWS)
    if few.any():
        named = zip(_names(moments, few), moments.counts[few], strict=True)
        warn_user(
            f"cells with fewer than {TINY_CELL_ROWS} rows: "
            f"{_some([f'{name} has {n}' for name, n in named])}. Their moments are mostly noise; "
            "merge environments or add rows.",
            TinyCellWarning,
        )
    return moments if kept.all() else moments.take(kept)


class CellTable(NamedTuple):
    """Which cells there are, without their sums."""

    classes: LabelArray
    environments: LabelArray
    class_index: IntArray
    """(m,)"""
    environment_index: IntArray
    """(m,)"""

    @classmethod
    def of(cls, cells: CellMoments) -> Self:
        """Return the table of some moments."""
        return cls(cells.classes, cells.environments, cells.class_index, cells.environment_index)

    def codes(
        self,
        classes: LabelArray,
        class_codes: IntArray,
        environments: LabelArray,
        environment_codes: IntArray,
    ) -> IntArray:
        """Return the cell of each pair of codes, (n,); -1 where it is in none of them."""
        # Labels that the pairs lack may be in the table, and the other way round.
        table = np.full((len(self.classes) + 1, len(self.environments) + 1), -1, dtype=np.intp)
        table[self.class_index, self.environment_index] = np.arange(len(self.class_index))
        own = _places(classes, self.classes)[class_codes]
        # The last is for an unknown environment, -1.
        others = np.append(_places(environments, self.environments), -1)[environment_codes]
        return np.asarray(table[own, others])

    def codes_of(self, rows: Rows) -> IntArray:
        """Return the cell of each row, (n,); -1 where it is in none of them."""
        return self.codes(rows.classes, rows.class_codes, rows.environments, rows.environment_codes)


def _places(labels: LabelArray, known: LabelArray) -> IntArray:
    """Return the place of each label among sorted known ones, -1 where it is none of them."""
    place = np.minimum(np.searchsorted(known, labels), len(known) - 1)
    return np.asarray(np.where(known[place] == labels, place, -1), dtype=np.intp)


def class_positions(moments: CellMoments, condition_on: Any) -> IntArray:
    """Return the positions of the classes that `condition_on` names; of all if it is None."""
    if condition_on is None:
        return np.arange(len(moments.classes))
    wanted = np.atleast_1d(np.asarray(condition_on, dtype=object)).tolist()
    known = moments.classes.tolist()
    strangers = [label for label in wanted if label not in known]
    if strangers or not wanted:
        raise ValueError(
            f"condition_on={brief(condition_on)} names "
            f"{brief(strangers) if strangers else 'no class'}, but the classes are {brief(known)}: "
            "name one of these or several, or None for all."
        )
    return np.unique([known.index(label) for label in wanted])


def refuse_underflow(largest_values: Float64Array) -> None:
    """Raise a ValueError if squares of all features vanish.

    Parameters
    ----------
    largest_values : ndarray of shape (d,)
        Largest absolute value of each feature.
    """
    largest = largest_values.max(initial=0.0)
    if 0 < largest < SMALLEST:
        raise ValueError(
            f"X is so small (values up to {largest:.3g}, at least {SMALLEST:g} are needed) that "
            "squares of it vanish: scale the features first, for example with StandardScaler."
        )


def _no_class_to_compare(
    moments: CellMoments, classes: IntArray, usable: BoolArray, flat: BoolArray
) -> str:
    labels = moments.classes[classes].tolist()
    what = f"no class out of {brief(labels)}" if len(moments.classes) > 1 else "nothing"
    if flat.any():
        why = f"single or identical rows in {_some(_names(moments, flat))}"
        way_out = "add rows or merge environments"
    elif usable.any():
        why = f"each is seen in one environment only ({_some(_names(moments, usable))})"
        way_out = "use environments that share classes"
    else:
        why, way_out = "no row of these has a known environment", "give the environments of some"
    return f"{what} can be compared between two environments: {why}. To go on, {way_out}."


def _warn_of_empty_cells(moments: CellMoments, classes: IntArray, flat: BoolArray) -> None:
    table = moments.counts_table()
    empty = [_name(moments, c, e) for c in classes for e in np.flatnonzero(table[c] == 0)]
    notes = [f"no rows of {_some(empty)}"] if empty else []
    notes += [f"single or identical rows in {_some(_names(moments, flat))}"] if flat.any() else []
    warn_user(
        f"{'; '.join(notes)}. These cells are left out, and so is a class that is left with "
        "fewer than two environments.",
        EmptyCellWarning,
    )


def _names(moments: CellMoments, cells: BoolArray) -> list[str]:
    places = zip(moments.class_index[cells], moments.environment_index[cells], strict=True)
    return [_name(moments, c, e) for c, e in places]


def _name(moments: CellMoments, c: np.intp, e: np.intp) -> str:
    label, environment = moments.classes[c].item(), moments.environments[e].item()
    if len(moments.classes) == 1:  # a continuous target
        return f"environment {brief(environment)}"
    return f"class {brief(label)} in environment {brief(environment)}"


def _some(items: list[str]) -> str:
    more = f", and {len(items) - _NAMED} more" if len(items) > _NAMED else ""
    return ", ".join(items[:_NAMED]) + more
