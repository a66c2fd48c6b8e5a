"""Rows as a report shows them: in the plane, and at the ends of what was removed."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from isrlearn._shown import DIRECTIONS, EXTREMES, Head, Shown, amounts_of
from isrlearn._typing import Float64Array, FloatArray, IntArray
from isrlearn.reporting._content import Direction, Example, Plane

UNKNOWN: Final = "unknown"
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
    if shown.subspace.rank == 0 or shown.after is None:
        return None
    X = np.asarray(shown.X, dtype=np.float64)
    invariant, has_threshold = _invariant(X, shown.after)
    has_threshold = has_threshold and shown.decides
    spurious = _scaled(amounts_of(shown.subspace, X) @ _mix(shown), centre=True)
    labels, label_codes = _coded(shown.y)
    environments, environment_codes = _coded(shown.environments)
    boundary = leaning = None
    if shown.before is not None and has_threshold:
        weights = _equal_groups(label_codes, environment_codes)
        boundary = _boundary(X, shown.before, invariant, spurious, weights)
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
    first = range(min(DIRECTIONS, shown.subspace.rank))
    return tuple(_direction(shown, amounts[:, r], illustrate) for r in first)


def _direction(shown: Shown, amount: Float64Array, illustrate: Illustrate | None) -> Direction:
    order = np.argsort(amount, kind="stable")
    shares = feature_shares(shown.features, amount, _coded(shown.y)[1])
    first = np.argsort(-shares, kind="stable")[:FEATURES]
    in_spreads = amount / (float(amount.std()) or 1.0)

    def examples(places: IntArray) -> tuple[Example, ...]:
        return tuple(
            _example(shown, int(i), in_spreads[i], first[:VALUES], illustrate) for i in places
        )

    return Direction(
        most=examples(order[::-1][:EXTREMES]),
        least=examples(order[:EXTREMES]),
        features=tuple((shown.feature_names[j], float(shares[j])) for j in first),
    )


def feature_shares(features: FloatArray, amount: Float64Array, classes: IntArray) -> Float64Array:
    """Return the squared correlation of each feature with an amount, given the class, (p,).

    Parameters
    ----------
    features : ndarray of shape (n, p)
        Features as the user knows them.
    amount : ndarray of shape (n,)
        Of a removed direction.
    classes : ndarray of shape (n,)
        Codes of the classes.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([0.0, 1.0, 2.0, 3.0])
    >>> feature_shares(np.stack([-x, np.ones(4)], axis=1), x, np.zeros(4, dtype=int)).round(2)
    array([1., 0.])
    """
    inside_features, inside_amount = _within(features, classes), _within(amount[:, None], classes)
    crossed = inside_features.T @ inside_amount[:, 0]
    size = (inside_features**2).sum(axis=0) * (inside_amount**2).sum()
    least = np.finfo(np.float64).tiny + 1e-12 * (np.asarray(features) ** 2).sum(axis=0)
    return np.divide(crossed**2, size, out=np.zeros(len(crossed)), where=size > least)


def _within(values: FloatArray, codes: IntArray) -> Float64Array:
    counts = np.maximum(np.bincount(codes), 1)
    sums = np.zeros((len(counts), values.shape[1]))
    np.add.at(sums, codes, values)
    return np.asarray(values - (sums / counts[:, None])[codes])


def _invariant(X: Float64Array, head: Head) -> tuple[Float64Array, bool]:
    """Return the coordinate, and whether the head decides at zero."""
    weight, bias = head
    if len(weight) == 2:
        weight, bias = weight[1:] - weight[:1], bias[1:] - bias[:1]
    if len(weight) == 1:
        return _scaled(X @ weight[0] + bias[0], centre=False), True
    leading = np.linalg.svd(weight - weight.mean(axis=0))[2][0]
    return _scaled(X @ leading, centre=True), False


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
    mix = np.linalg.svd(lean)[2][0]
    return np.asarray(mix * (np.sign(mix[np.argmax(np.abs(mix))]) or 1.0))


def _boundary(
    X: Float64Array,
    head: Head,
    invariant: Float64Array,
    spurious: Float64Array,
    weights: Float64Array,
) -> tuple[float, float, float]:
    """Return the old decision as a function of the two coordinates, by least squares."""
    decision = _invariant(X, head)[0]
    design = np.stack([np.ones(len(X)), invariant, spurious], axis=1)
    root = np.sqrt(weights)[:, None]
    found = np.linalg.lstsq(root * design, root[:, 0] * decision, rcond=None)[0]
    a, b, c = (float(value) for value in found)
    return a, b, c


def _equal_groups(label_codes: IntArray, environment_codes: IntArray) -> Float64Array:
    groups = label_codes * (environment_codes.max(initial=0) + 1) + environment_codes
    return np.asarray(1.0 / np.bincount(groups)[groups])


def _scaled(values: Float64Array, *, centre: bool) -> Float64Array:
    moved = values - values.mean() if centre else values
    return np.asarray(moved / (float(np.std(values)) or 1.0))


def _coded(labels: Any) -> tuple[tuple[str, ...], IntArray]:
    """Return the names of labels and the code of each row; unknown ones come last."""
    texts = [UNKNOWN if _is_missing(value) else str(value) for value in np.asarray(labels).tolist()]
    names, codes = np.unique(texts, return_inverse=True)
    return tuple(names.tolist()), np.asarray(codes)


def _is_missing(value: Any) -> bool:
    return value is None or value != value


def _example(
    shown: Shown, place: int, amount: float, first: IntArray, illustrate: Illustrate | None
) -> Example:
    row = int(shown.rows[place])
    text, image = (None, None) if illustrate is None else illustrate(row)
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
