"""Pages that come out of the code when the site is built, so that they cannot go stale."""

from pathlib import Path

import api_pages
import command_pages
from sphinx.application import Sphinx

from isrlearn.reporting import geometry_html

ROOT = Path(__file__).parents[2]


def write_if_new(path: Path, text: str) -> None:
    """Write a page; one that says the same keeps its time, and is not read again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def changelog() -> str:
    """Return the changelog, with the news that wait for the next release."""
    released = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    news = sorted((ROOT / "changes").glob("*.*.md"))
    lines = [f"- {path.read_text(encoding='utf-8').strip()}" for path in news]
    return released + "\n## Next release\n\n" + "\n".join(lines) + "\n"


def write_geometry() -> None:
    """Write the two pictures that can be turned, as one file of its own."""
    write_if_new(ROOT / "docs" / "_static" / "geometry.html", geometry_html())


def write_reference(folder: Path) -> None:
    """Write the pages of the reference; those of names that are gone go too."""
    pages = {folder / f"{name}.rst": text for name, text in api_pages.pages().items()}
    for path, text in pages.items():
        write_if_new(path, text)
    for path in set(folder.glob("*.rst")) - set(pages):
        path.unlink()


def write_all(app: Sphinx) -> None:
    """Write every generated page."""
    folder = Path(app.srcdir) / "generated"
    write_reference(folder / "api")
    write_if_new(folder / "commands.md", command_pages.page())
    write_if_new(folder / "changelog.md", changelog())
    write_geometry()


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before anything is read."""
    app.connect("builder-inited", write_all, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
