"""Links that are right on a code host, and point to a page where the site has one."""

from sphinx.application import Sphinx

PAGES = {
    "../benchmarks/README.md": "benchmarks.md",
    "../CONTRIBUTING.md": "contributing.md",
    "../CHANGELOG.md": "changelog.md",
}
# Written by benchmarks/leaderboard.py as a part of a page, without a title.
TABLES, TITLE = "leaderboard/table", "# The leaderboard: all tables\n\n"


def point_to_pages(app: Sphinx, name: str, source: list[str]) -> None:
    """Replace links into the repository by links to pages of the site."""
    for target, page in PAGES.items():
        source[0] = source[0].replace(f"]({target})", f"]({page})")
    if name == TABLES:
        source[0] = TITLE + source[0].replace("### ", "## ")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the replacement."""
    app.connect("source-read", point_to_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
