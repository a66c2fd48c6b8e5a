"""The page of a comparison: one HTML file that needs no network."""

from collections.abc import Sequence

from isrlearn import __version__
from isrlearn._rules import RULES
from isrlearn.leaderboard._result import HEADINGS, Comparison, line


def page(
    result: Comparison,
    *,
    title: str = "Comparison of methods",
    command: str = "",
    notes: Sequence[str] = (),
) -> str:
    """Return the page as text; whatever names the data have, they stay text.

    Parameters
    ----------
    result : Comparison
        What to show.
    title : str
        Heading.
    command : str, default=""
        What made it.
    notes : sequence of str, default=()
        What else the reader should know, such as columns that were left out.

    Returns
    -------
    str
    """
    from jinja2 import Environment, PackageLoader

    templates = Environment(loader=PackageLoader("isrlearn.leaderboard"), autoescape=True)
    return templates.get_template("comparison.html.j2").render(
        result=result,
        title=title,
        command=command,
        notes=notes,
        version=__version__,
        rule=RULES[result.rule],
        headings=HEADINGS,
        lines=[(entry, line(entry)) for entry in result.entries],
    )
