"""Links that are right on a code host, and point to a page where the site has one."""

from sphinx.application import Sphinx

PAGES = {
    "../benchmarks/README.md": "benchmarks.md",
    "../CONTRIBUTING.md": "contributing.md",
    "../CHANGELOG.md": "changelog.md",
}


def point_to_pages(app: Sphinx, name: str, source: list[str]) -> None:
    """Replace links into the repository by links to pages of the site."""
    for target, page in PAGES.items():
        source[0] = source[0].replace(f"]({target})", f"]({page})")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the replacement."""
    app.connect("source-read", point_to_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
