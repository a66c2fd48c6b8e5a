"""The paper's two pictures: what means and covariances of environments show, to be turned."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from scipy.spatial.transform import Rotation

from isrlearn.reporting._page import page
from isrlearn.typing import Float64Array

YAW, PITCH = 0.3, 0.5  # radians, as it is first seen
SIZE: Final = 52.0  # units of the drawing for one unit of space
ROWS: Final = 45
HALF: Final = 1.55  # side of the plane: it stays in the picture however it is turned
INVARIANT, NOISE = 1.1, 0.16
MEANS: Final = np.array([[1.25, 0.1], [-0.55, 1.1], [-0.45, -1.05]])
STRETCH: Final = (0.45, 1.25)
# The invariant direction points upwards and aside, along no axis; the plane lies like a table.
MIXED: Final = Rotation.from_euler("yx", [-1.32, 0.18]).as_matrix()


def geometry_html() -> str:
    """Return a page with both pictures that needs nothing else.

    Returns
    -------
    str

    Examples
    --------
    >>> from isrlearn.reporting import geometry_html
    >>> geometry_html().count("<svg")
    2
    """
    return page("geometry_page.html.j2", scenes=[mean_scene(), covariance_scene()])


def pictures() -> str:
    """Return both pictures as a part of a page."""
    from markupsafe import Markup

    return Markup(page("geometry.html.j2", scenes=[mean_scene(), covariance_scene()]))


def mean_scene(random_state: int = 0) -> dict[str, Any]:
    """Return ISR-Mean's picture: class means of three environments span the spurious plane.

    Coordinates are (invariant, spurious, spurious), then mixed: nothing is along an axis. The means
    of one class share their invariant coordinate (Theorem 1).

    Parameters
    ----------
    random_state : int, default=0
        Seed of the rows.
    """
    random = np.random.default_rng(random_state)
    shapes: list[dict[str, Any]] = []
    centre = np.array([INVARIANT / 2, 0.0, 0.0])
    shapes.append(_area("plane", _rectangle(INVARIANT / 2, HALF)))
    means = np.column_stack([np.full(3, INVARIANT / 2), MEANS])
    shapes.append(_area("triangle", means))
    for e, mean in enumerate(means):
        rows = mean + NOISE * np.array([1.6, 1.0, 1.0]) * random.normal(size=(ROWS, 3))
        shapes += [_dot(f"e{e} cloud", row, 2.1) for row in rows]
    shapes += _arrow(centre, 1.25)
    shapes += [_dot(f"e{e} mean", mean, 5.0) for e, mean in enumerate(means)]
    places = means * [1, 1.25, 1.25] + [0.3, 0.0, 0.0]
    shapes += [_text(f"environment {e + 1}", at, f"e{e}") for e, at in enumerate(places)]
    shapes.append(_text("invariant", centre + [1.45, 0, 0]))
    return _scene(
        "ISR-Mean",
        shapes,
        "Rows of one class in three environments. Their means (large dots) differ along the "
        "shaded plane only: E environments show up to E − 1 spurious directions for each class. "
        "The arrow, at right angles to the plane, is what all environments share, and what is "
        "kept.",
    )


def covariance_scene() -> dict[str, Any]:
    """Return ISR-Cov's picture: covariances that stretch only along the spurious plane.

    The ellipsoids of two environments have the same extent along the invariant direction and differ
    in the others (Theorem 2).
    """
    shapes: list[dict[str, Any]] = [_area("plane", _rectangle(0.0, HALF))]
    for e, stretch in enumerate(STRETCH):
        for circle in _ellipsoid(np.array([0.7, stretch, 0.8 * stretch])):
            shapes.append(_path(f"e{e} wire", circle))
    shapes += _arrow(np.zeros(3), 1.5)
    shapes.append(_text("environment 1", np.array([-0.95, 0.0, 0.35]), "e0"))
    shapes.append(_text("environment 2", np.array([0.0, 0.0, -STRETCH[1] - 0.4]), "e1"))
    shapes.append(_text("invariant", np.array([1.7, 0, 0])))
    return _scene(
        "ISR-Cov",
        shapes,
        "Covariances of one class in two environments, as ellipsoids. They agree along the arrow "
        "and differ along the shaded plane: the difference of the two covariances shows the "
        "spurious directions, and two environments are enough.",
    )


def _scene(title: str, shapes: list[dict[str, Any]], sentence: str) -> dict[str, Any]:
    return {"title": title, "shapes": shapes, "sentence": sentence, "yaw": YAW, "pitch": PITCH}


def project(points: Float64Array, yaw: float = YAW, pitch: float = PITCH) -> Float64Array:
    """Return where points of space are seen, (n, 2), after two turns; as the page's script does."""
    x, y, z = np.asarray(points, dtype=float).T
    across = x * np.cos(yaw) - y * np.sin(yaw)
    deep = x * np.sin(yaw) + y * np.cos(yaw)
    up = z * np.cos(pitch) - deep * np.sin(pitch)
    return SIZE * np.stack([across, -up], axis=1)


def _rectangle(invariant: float, half: float) -> Float64Array:
    corners = [(-half, -half), (half, -half), (half, half), (-half, half)]
    return np.array([[invariant, *corner] for corner in corners])


def _ellipsoid(radii: Float64Array) -> list[Float64Array]:
    """Return circles of latitude and longitude, closed."""
    turn = np.linspace(0, 2 * np.pi, 49)
    round_, flat = np.stack([np.cos(turn), np.sin(turn)]), np.zeros_like(turn)
    found = []
    for angle in np.linspace(0, np.pi, 4, endpoint=False):
        meridian = np.stack([round_[0], np.cos(angle) * round_[1], np.sin(angle) * round_[1]])
        found.append((radii[:, None] * meridian).T)
    for height in (-0.6, 0.0, 0.6):
        ring = np.sqrt(1 - height**2) * round_
        found.append((radii[:, None] * np.stack([flat + height, *ring])).T)
    return found


def _arrow(foot: Float64Array, length: float) -> list[dict[str, Any]]:
    tip = foot + [length, 0.0, 0.0]
    back = [tip + [-0.16, aside, 0.0] for aside in (-0.07, 0.07)]
    return [_path("axis", [foot, tip]), _path("axis", [back[0], tip, back[1]])]


def _area(kind: str, points: Any) -> dict[str, Any]:
    return _shape("polygon", kind, points)


def _path(kind: str, points: Any) -> dict[str, Any]:
    return _shape("polyline", kind, points)


def _dot(kind: str, point: Any, radius: float) -> dict[str, Any]:
    return {**_shape("circle", kind, [point]), "radius": radius}


def _text(text: str, point: Any, colour: str = "") -> dict[str, Any]:
    return {**_shape("text", f"name {colour}".strip(), [point]), "text": text}


def _shape(tag: str, kind: str, points: Sequence[Any]) -> dict[str, Any]:
    mixed = np.asarray(points) @ MIXED.T
    space = " ".join(",".join(f"{value:.3g}" for value in point) for point in mixed)
    seen = [(round(float(x), 1), round(float(y), 1)) for x, y in project(mixed)]
    return {"tag": tag, "kind": kind, "space": space, "seen": seen}
