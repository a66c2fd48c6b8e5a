"""From a report to its page: one text without any address but those inside itself."""

import base64
import hashlib
from typing import Any, Final

from isrlearn.display import visible
from isrlearn.reporting import _draw

LONGEST_NAME: Final = 42


def render(report: Any) -> str:
    """Return the page of a `Report`; whatever names the data have, they stay text.

    Parameters
    ----------
    report : Report
        What to show.
    """
    looks = _draw.Looks.of(report.groups, report.plane)
    charts = {
        "rows": _draw.method_rows(report.methods, report.groups, looks),
        "accuracy_ticks": _draw.accuracy_axis(report.methods).ticks(5),
        "legend": looks.legend(),
        "spectrum": report.spectrum and _draw.spectrum_chart(report.spectrum),
        "plane": report.plane and _draw.plane_chart(report.plane, looks),
    }
    geometry = ""
    if report.geometry:
        from isrlearn.reporting._geometry import pictures

        geometry = pictures()
    return page("report.html.j2", report=report, charts=charts, geometry=geometry)


def page(template: str, **values: Any) -> str:
    """Return a page from a template of this package, its script allowed by its hash alone."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("isrlearn.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_seen,
    )
    templates.filters.update(percent=percent, short=short, p=p_text, signed=signed)
    loader = templates.loader
    script = loader.get_source(templates, "turn.js")[0] if loader else ""
    return templates.get_template(template).render(
        script=script, script_hash=script_hash(script), **values
    )


def _seen(value: Any) -> Any:
    """Write out what cannot be seen in texts; markup is our own."""
    return visible(value) if type(value) is str else value


def script_hash(script: str) -> str:
    """Return what a page's policy calls a script by."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")


def percent(value: float | None) -> str:
    """Return a share in percent with one digit."""
    return "–" if value is None or value != value else f"{100 * value:.1f}"


def short(name: str, most: int = LONGEST_NAME) -> str:
    """Return a name that fits beside a chart."""
    return name if len(name) <= most else name[: most - 1] + "…"


def p_text(value: float | None) -> str:
    """Return a p-value as text."""
    if value is None:
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def signed(value: float) -> str:
    """Return a number with its sign and one digit."""
    return f"{value:+.1f}".replace("-", "−")
