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


def method_rows(methods: Sequence[Method], groups: Sequence[Group]) -> list[dict[str, Any]]:
    """Return for each method the places of its groups, its worst group and its average."""
    axis = accuracy_axis(methods)
    crowded = len(groups) > MOST_MARKS
    colours = colour_codes([g.environment for g in groups])
    shapes = shape_codes([g.label for g in groups])
    rows = []
    for method in methods:
        marks = [
            {
                "x": axis(100 * value),
                "colour": COLOURS if crowded else colours[i],
                "shape": 0 if crowded else shapes[i],
            }
            for i, value in enumerate(method.groups)
            if value is not None
        ]
        places = (method.average, method.worst.low, method.worst.high)
        average, low, high = (axis(100 * value) for value in places)
        rows.append(
            {"method": method, "marks": marks, "average": average, "low": low, "high": high}
        )
    return rows


def legend(groups: Sequence[Group]) -> dict[str, list[dict[str, Any]]]:
    """Return the names with their colours and shapes."""
    return names_legend([g.label for g in groups], [g.environment for g in groups])


def names_legend(labels: Sequence[str], environments: Sequence[str]) -> dict[str, Any]:
    """Return colours of environments and shapes of classes."""
    return {
        "environments": [
            {**item, "code": _colours(environments).get(item["name"], item["code"])}
            for item in _named(environments, COLOURS)
        ],
        "labels": _named(labels, SHAPES),
    }


def _named(names: Sequence[str], most: int) -> list[dict[str, Any]]:
    distinct = list(dict.fromkeys(names))
    found = [{"name": name, "code": i} for i, name in enumerate(distinct[:most])]
    if len(distinct) > most:
        found.append({"name": f"{len(distinct) - most} others", "code": most})
    return found


def colour_codes(names: Sequence[str]) -> list[int]:
    """Return the colour of each name; those beyond the eighth share one."""
    codes = _colours(names)
    return [codes[name] for name in names]


def _colours(names: Sequence[str]) -> dict[str, int]:
    """Return the colour of each name: its own for one that is called "red" or "green"."""
    distinct = list(dict.fromkeys(names))
    own = [OWN_COLOURS.get(name.lower()) for name in distinct]
    if None in own or len(set(own)) < len(own):
        own = list(range(len(distinct)))
    return {n: min(code or 0, COLOURS) for n, code in zip(distinct, own, strict=True)}


def shape_codes(names: Sequence[str]) -> list[int]:
    """Return the shape of each name; those beyond the sixth share one."""
    distinct = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return [min(distinct[name], SHAPES) for name in names]


def spectrum_chart(spectrum: Spectrum) -> dict[str, Any]:
    """Return places of eigenvalues and of the band of chance, on a logarithmic scale."""
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
            "removed": i < spectrum.n_removed,
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
        "cut": round(min(spectrum.n_removed, len(values)) * step, 2),
        "x_ticks": [(x[i], str(i + 1)) for i in shown],
        "y_ticks": y_ticks,
    }


def _power(power: int) -> str:
    return f"{10.0**power:g}" if -3 <= power <= 5 else f"10^{power}"


def plane_chart(plane: Plane) -> dict[str, Any]:
    """Return places of rows before and after the removal, and where models decide."""
    x = axis_of([*plane.invariant, 0.0], quantile=0.005)
    y = axis_of(plane.spurious, flipped=True, quantile=0.005)
    groups, colours = _grouped(plane), colour_codes(plane.environments)

    def places(rows: list[int]) -> list[tuple[float, float]]:
        found = ((x(plane.invariant[i]), y(plane.spurious[i])) for i in rows)
        return [point for point in found if _inside(point)]

    largest_first = sorted(groups.items(), key=lambda item: -len(item[1]))
    return {
        "before": [
            {"colour": colours[e], "shape": min(c, SHAPES), "points": places(rows)}
            for (c, e), rows in largest_first
        ],
        "line": _line(plane.boundary, x, y),
        "threshold": x(0.0) if plane.has_threshold else None,
        "x_ticks": x.ticks(),
        "y_ticks": y.ticks(),
        **_strips(plane, groups, x),
    }


def _grouped(plane: Plane) -> dict[tuple[int, int], list[int]]:
    groups: dict[tuple[int, int], list[int]] = {}
    codes = zip(plane.label_codes, plane.environment_codes, strict=True)
    for i, code in enumerate(codes):
        groups.setdefault(code, []).append(i)
    return groups


def _inside(point: tuple[float, float]) -> bool:
    return 0 <= point[0] <= 100 and 0 <= point[1] <= 100


def _strips(plane: Plane, groups: dict[tuple[int, int], list[int]], x: Axis) -> dict[str, Any]:
    """Return one strip per group; rows in it are apart by chance so that they can be seen."""
    random, colours = np.random.default_rng(0), colour_codes(plane.environments)
    strips = []
    for c, e in sorted(groups)[:STRIPS]:
        places = [x(plane.invariant[i]) for i in groups[c, e]]
        heights = np.round(random.uniform(18, 82, len(places)), 1)
        points = [(p, h) for p, h in zip(places, heights.tolist(), strict=True) if 0 <= p <= 100]
        strips.append(
            {
                "label": plane.labels[c],
                "environment": plane.environments[e],
                "colour": colours[e],
                "shape": min(c, SHAPES),
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
