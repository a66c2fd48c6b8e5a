"""From values to places on a chart, in percent of its width and height."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from isrlearn.reporting._content import Group, Method, Plane, Spectrum

COLOURS: Final = 8  # environments that have a colour of their own
OWN_COLOURS: Final = {
    "blue": 0,
    "orange": 1,
    "red": 1,
    "green": 2,
    "purple": 3,
    "yellow": 4,
    "pink": 5,
}
SHAPES: Final = 6
MOST_MARKS: Final = 40  # groups drawn as marks of their own
STRIPS: Final = 24


@dataclass(frozen=True)
class Axis:
    """A range of values on the way from 0 to 100 percent."""

    low: float
    high: float
    flipped: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(100 * (1 - share if self.flipped else share), 2)

    def ticks(self, n: int = 5) -> list[tuple[float, str]]:
        """Return places and texts of round values."""
        from matplotlib.ticker import MaxNLocator

        values = MaxNLocator(n, steps=[1, 2, 2.5, 5, 10]).tick_values(self.low, self.high)
        inside = [v for v in values if self.low - 1e-9 <= v <= self.high + 1e-9]
        return [(self(v), f"{v:g}".replace("-", "−")) for v in inside]


def axis_of(values: Sequence[float], *, flipped: bool = False, quantile: float = 0.0) -> Axis:
    """Return an axis with a margin around values, far outliers left out."""
    found = np.asarray(values, dtype=float)
    low, high = np.quantile(found, [quantile, 1 - quantile]) if len(found) else (0.0, 1.0)
    margin = 0.06 * ((high - low) or 1.0)
    return Axis(float(low - margin), float(high + margin), flipped)


def accuracy_axis(methods: Sequence[Method]) -> Axis:
    """Return an axis to 100 percent that begins at 0, 25, 50 or 75, below everything."""
    found = [m.worst.low for m in methods] + [m.average for m in methods]
    lowest = min([*found, *(a for m in methods for a in m.groups if a is not None)], default=0.0)
    return Axis(min(25 * int(4 * lowest), 75), 100)


@dataclass(frozen=True)
class Looks:
    """Colours of environments and shapes of classes, the same on the whole page."""

    colours: dict[str, int]
    shapes: dict[str, int]

    @classmethod
    def of(cls, groups: Sequence[Group], plane: Plane | None) -> "Looks":
        """Return the looks of all names of a page: groups first, so that unknown ones are last."""
        more = ((), ()) if plane is None else (plane.labels, plane.environments)
        labels = dict.fromkeys([*(g.label for g in groups), *more[0]])
        environments = dict.fromkeys([*(g.environment for g in groups), *more[1]])
        shapes = {name: min(i, SHAPES) for i, name in enumerate(labels)}
        return cls(_colours(list(environments)), shapes)

    def legend(self) -> dict[str, list[dict[str, Any]]]:
        """Return the names with their colours and shapes."""
        return {
            "environments": _named(self.colours, COLOURS),
            "labels": _named(self.shapes, SHAPES),
        }


def _named(codes: dict[str, int], most: int) -> list[dict[str, Any]]:
    found = [
        {"name": name, "code": code, "several": False}
        for name, code in codes.items()
        if code < most
    ]
    others = len(codes) - len(found)
    rest = {"name": f"{others} others", "code": most, "several": True}
    return found + ([rest] if others else [])


def _colours(names: list[str]) -> dict[str, int]:
    """Return the colour of each name: its own for one that is called "red" or "green"."""
    own = [OWN_COLOURS.get(name.lower()) for name in names]
    if None in own or len(set(own)) < len(own):
        return {name: min(i, COLOURS) for i, name in enumerate(names)}
    return {name: code or 0 for name, code in zip(names, own, strict=True)}


def method_rows(
    methods: Sequence[Method], groups: Sequence[Group], looks: Looks
) -> list[dict[str, Any]]:
    """Return for each method the places of its groups, its worst group and its average.

    Of more than 40 groups the 40 worst of each method are drawn, all alike.
    """
    axis, crowded = accuracy_axis(methods), len(groups) > MOST_MARKS
    rows = []
    for method in methods:
        worst = sorted((v, i) for i, v in enumerate(method.groups) if v is not None)[:MOST_MARKS]
        marks = [
            {
                "x": axis(100 * value),
                "colour": COLOURS if crowded else looks.colours[groups[i].environment],
                "shape": 0 if crowded else looks.shapes[groups[i].label],
            }
            for value, i in worst
        ]
        places = (method.average, method.worst.low, method.worst.high)
        average, low, high = (axis(100 * value) for value in places)
        rows.append(
            {"method": method, "marks": marks, "average": average, "low": low, "high": high}
        )
    return rows


def spectrum_chart(spectrum: Spectrum) -> dict[str, Any]:
    """Return places of eigenvalues and of the band of chance, on a logarithmic scale."""
    # The tests, where there are any, are of these very directions; a model may have others.
    marked = spectrum.n_removed if spectrum.n_found is None else spectrum.n_found
    values = np.log10(spectrum.values)
    low, high = np.log10(spectrum.low), np.log10(spectrum.high)
    bottom = float(np.min([*values, *low[: len(values)]]))
    y = axis_of([max(bottom, values.max() - 8), values.max()], flipped=True)
    step = 100 / len(values)
    x = [round((i + 0.5) * step, 2) for i in range(len(values))]
    band = [
        {"x": x[i], "top": y(high[i]), "bottom": min(y(low[i]), 100.0), "width": round(step, 2)}
        for i in range(len(high))
    ]
    dots = [
        {
            "x": x[i],
            "y": min(y(v), 100.0),
            "value": spectrum.values[i],
            "removed": i < marked,
        }
        for i, v in enumerate(values)
    ]
    decades = range(int(np.ceil(y.low)), int(np.floor(y.high)) + 1)
    every = max(1, len(decades) // 5)
    y_ticks = [(y(power), _power(power)) for power in list(decades)[::every]]
    shown = range(0, len(values), max(1, len(values) // 10))
    return {
        "dots": dots,
        "band": band,
        "cut": round(min(marked, len(values)) * step, 2),
        "x_ticks": [(x[i], str(i + 1)) for i in shown],
        "y_ticks": y_ticks,
    }


def _power(power: int) -> str:
    return f"{10.0**power:g}" if -3 <= power <= 5 else f"10^{power}"


def plane_chart(plane: Plane, looks: Looks) -> dict[str, Any]:
    """Return places of rows before and after the removal, and where models decide."""
    x = axis_of([*plane.invariant, 0.0], quantile=0.005)
    y = axis_of(plane.spurious, flipped=True, quantile=0.005)
    groups = _grouped(plane)

    def places(rows: list[int]) -> list[tuple[float, float]]:
        found = ((x(plane.invariant[i]), y(plane.spurious[i])) for i in rows)
        return [point for point in found if _inside(point)]

    largest_first = sorted(groups.items(), key=lambda item: -len(item[1]))
    return {
        "before": [
            {**_look(plane, looks, c, e), "points": places(rows)} for (c, e), rows in largest_first
        ],
        "line": _line(plane.boundary, x, y),
        "threshold": x(0.0) if plane.has_threshold else None,
        "x_ticks": x.ticks(),
        "y_ticks": y.ticks(),
        **_strips(plane, looks, groups, x),
    }


def _grouped(plane: Plane) -> dict[tuple[int, int], list[int]]:
    groups: dict[tuple[int, int], list[int]] = {}
    codes = zip(plane.label_codes, plane.environment_codes, strict=True)
    for i, code in enumerate(codes):
        groups.setdefault(code, []).append(i)
    return groups


def _inside(point: tuple[float, float]) -> bool:
    return 0 <= point[0] <= 100 and 0 <= point[1] <= 100


def _look(plane: Plane, looks: Looks, c: int, e: int) -> dict[str, int]:
    return {
        "colour": looks.colours[plane.environments[e]],
        "shape": looks.shapes[plane.labels[c]],
    }


def _strips(
    plane: Plane, looks: Looks, groups: dict[tuple[int, int], list[int]], x: Axis
) -> dict[str, Any]:
    """Return one strip per group; rows in it are apart by chance so that they can be seen."""
    random = np.random.default_rng(0)
    strips = []
    for c, e in sorted(groups)[:STRIPS]:
        places = [x(plane.invariant[i]) for i in groups[c, e]]
        heights = np.round(random.uniform(18, 82, len(places)), 1)
        points = [(p, h) for p, h in zip(places, heights.tolist(), strict=True) if 0 <= p <= 100]
        strips.append(
            {
                "label": plane.labels[c],
                "environment": plane.environments[e],
                **_look(plane, looks, c, e),
                "points": points,
            }
        )
    return {"strips": strips, "more_strips": max(0, len(groups) - STRIPS)}


def _line(
    boundary: tuple[float, float, float] | None, x: Axis, y: Axis
) -> tuple[float, float, float, float] | None:
    """Return the ends of a + bx + cy = 0 inside the chart; None if it does not cross it."""
    if boundary is None:
        return None
    a, b, c = boundary
    ends = []
    for side in (x.low, x.high):
        if c and y.low <= -(a + b * side) / c <= y.high:
            ends.append((x(side), y(-(a + b * side) / c)))
    for side in (y.low, y.high):
        if b and x.low <= -(a + c * side) / b <= x.high:
            ends.append((x(-(a + c * side) / b), y(side)))
    return (*ends[0], *ends[-1]) if len(ends) > 1 else None
