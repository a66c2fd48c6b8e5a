"""Rows as a report shows them: in the plane, and at the ends of what was removed."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from isrlearn._shown import (
    DIRECTIONS,
    EXTREMES,
    UNNUMBERED,
    Head,
    Shown,
    amounts_of,
    feature_shares,
    within_classes,
)
from isrlearn.reporting._content import Direction, Example, Plane
from isrlearn.typing import Float64Array, IntArray

UNKNOWN: Final = "(unknown)"
FEATURES: Final = 5
VALUES: Final = 3
DIGITS: Final = 4
Illustrate = Callable[[int], tuple[str | None, str | None]]
"""From the place of a row to its text and its image, each None where there is none."""


def plane_of(shown: Shown) -> Plane | None:
    r"""Put rows along the invariant and the spurious direction.

    Invariant: the new decision value :math:`w \cdot x + b`; with several classes, the direction in
    which the new weights differ most. Spurious: of the removed directions the mix that the old
    weights lean on most, the first where there is no old head. Both in units of their spread.

    Parameters
    ----------
    shown : Shown
        Rows, removal and heads.

    Returns
    -------
    Plane or None
        None where nothing was removed or there is no new head.
    """
    if n_removed(shown) == 0 or shown.after is None:
        return None
    X = np.asarray(shown.X, dtype=np.float64)
    invariant, has_threshold = _invariant(X, shown.after)
    if not shown.decides:
        invariant, has_threshold = invariant - invariant.mean(), False
    mix = _mix(shown)
    spurious = amounts_of(shown.subspace, X) @ mix
    spread = float(np.std(spurious)) or 1.0
    spurious = (spurious - spurious.mean()) / spread
    labels, label_codes = _coded(shown.y)
    environments, environment_codes = _coded(shown.environments)
    boundary = leaning = None
    if shown.before is not None and has_threshold:
        weights = _equal_groups(label_codes, environment_codes)
        step = spread * (mix @ shown.subspace.directions)
        boundary = _boundary(X, shown.before, invariant, spurious, step, weights)
        leaning = boundary[2]
    return Plane(
        _rounded(invariant),
        _rounded(spurious),
        tuple(label_codes.tolist()),
        tuple(environment_codes.tolist()),
        labels,
        environments,
        boundary,
        has_threshold,
        leaning,
        shown.n_rows,
    )


def directions_of(shown: Shown, illustrate: Illustrate | None = None) -> tuple[Direction, ...]:
    """Return the rows at both ends of the first removed directions.

    Parameters
    ----------
    shown : Shown
        Rows and removal; the ends are among the rows.
    illustrate : callable, default=None
        Texts and images of rows.
    """
    amounts = amounts_of(shown.subspace, shown.X)
    first = range(min(DIRECTIONS, n_removed(shown)))
    return tuple(_direction(shown, amounts[:, r], illustrate) for r in first)


def _direction(shown: Shown, amount: Float64Array, illustrate: Illustrate | None) -> Direction:
    classes = _coded(shown.y)[1]
    shares = feature_shares(shown.features, amount, classes)
    first = np.argsort(-shares, kind="stable")[:FEATURES]
    # The sign of a direction is arbitrary: more of it is more of the feature that goes with it.
    strongest = within_classes(shown.features[:, first[:1]], classes)[:, 0]
    amount = amount if strongest @ amount >= 0 else -amount
    order = np.argsort(amount, kind="stable")
    in_spreads = amount / (float(amount.std()) or 1.0)

    def examples(places: IntArray) -> tuple[Example, ...]:
        return tuple(
            _example(shown, int(i), in_spreads[i], first[:VALUES], illustrate) for i in places
        )

    each = min(EXTREMES, len(order) // 2)
    return Direction(
        most=examples(order[::-1][:each]),
        least=examples(order[:each]),
        features=tuple((shown.feature_names[j], float(shares[j])) for j in first),
    )


def _invariant(X: Float64Array, head: Head) -> tuple[Float64Array, bool]:
    """Return the coordinate, and whether the head decides at zero."""
    if len(head.weight) <= 2:
        return _decision(X, head)[0], True
    centred = head.weight - head.weight.mean(axis=0)
    along = X @ np.linalg.svd(centred, full_matrices=False)[2][0]
    return (along - along.mean()) / (float(np.std(along)) or 1.0), False


def _decision(X: Float64Array, head: Head) -> tuple[Float64Array, float]:
    """Return the decision values for two classes in units of their spread, and that unit."""
    weight, bias = _one_row(head)
    values = X @ weight + bias
    unit = float(np.std(values)) or 1.0
    return values / unit, unit


def _one_row(head: Head) -> tuple[Float64Array, float]:
    weight, bias = head
    if len(weight) == 2:
        weight, bias = weight[1:] - weight[:1], bias[1:] - bias[:1]
    return weight[0], float(bias[0])


def n_removed(shown: Shown) -> int:
    """Return how many directions are removed: none where all of them is left."""
    return 0 if shown.subspace.scale == 1 else shown.subspace.rank


def _mix(shown: Shown) -> Float64Array:
    rank = shown.subspace.rank
    first = np.eye(rank)[0]
    if shown.before is None:
        return first
    weight = shown.before.weight
    lean = (
        weight - weight.mean(axis=0) if len(weight) > 1 else weight
    ) @ shown.subspace.directions.T
    if not np.any(np.abs(lean) > 1e-12 * np.abs(weight).max(initial=1.0)):
        return first
    mix = np.linalg.svd(lean, full_matrices=False)[2][0]
    return np.asarray(mix * (np.sign(mix[np.argmax(np.abs(mix))]) or 1.0))


def _boundary(
    X: Float64Array,
    head: Head,
    invariant: Float64Array,
    spurious: Float64Array,
    step: Float64Array,
    weights: Float64Array,
) -> tuple[float, float, float]:
    """Return the old decision as a function of the two coordinates.

    How far a step along the spurious direction moves it is exact; with the invariant coordinate,
    which stands for many, it goes as least squares say.
    """
    decision, unit = _decision(X, head)
    c = float(_one_row(head)[0] @ step) / unit
    design = np.stack([np.ones(len(X)), invariant], axis=1)
    root = np.sqrt(weights)[:, None]
    rest = root[:, 0] * (decision - c * spurious)
    a, b = (float(value) for value in np.linalg.lstsq(root * design, rest, rcond=None)[0])
    return a, b, c


def _equal_groups(label_codes: IntArray, environment_codes: IntArray) -> Float64Array:
    groups = label_codes * (environment_codes.max(initial=0) + 1) + environment_codes
    return np.asarray(1.0 / np.bincount(groups)[groups])


def _coded(labels: Any) -> tuple[tuple[str, ...], IntArray]:
    """Return the names of labels and the code of each row; unknown ones come last."""
    values = np.asarray(labels).tolist()
    known = [value for value in values if not _is_missing(value)]
    names = [str(value) for value in _in_order(set(known))]
    if len(known) < len(values):
        names.append(UNKNOWN)
    names = list(dict.fromkeys(names))
    place = {name: code for code, name in enumerate(names)}
    texts = (UNKNOWN if _is_missing(value) else str(value) for value in values)
    return tuple(names), np.array([place[text] for text in texts], dtype=np.intp)


def _in_order(values: set[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:  # of several kinds
        return sorted(values, key=str)


def _is_missing(value: Any) -> bool:
    return value is None or value != value


def _example(
    shown: Shown, place: int, amount: float, first: IntArray, illustrate: Illustrate | None
) -> Example:
    row = None if shown.rows[place] == UNNUMBERED else int(shown.rows[place])
    text, image = (None, None) if illustrate is None or row is None else illustrate(row)
    values: tuple[tuple[str, float], ...] = ()
    if text is None and image is None:
        values = tuple(
            (shown.feature_names[j], float(f"{shown.features[place, j]:.{DIGITS}g}"))
            for j in first.tolist()
        )
    return Example(
        row,
        _coded(shown.y[place : place + 1])[0][0],
        _coded(shown.environments[place : place + 1])[0][0],
        round(float(amount), 2),
        text,
        image,
        values,
    )


def _rounded(values: Float64Array) -> tuple[float, ...]:
    return tuple(np.round(values, 3).tolist())
