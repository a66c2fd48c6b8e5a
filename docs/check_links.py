"""Check every internal link and anchor of the site: python docs/check_links.py FOLDER."""

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

NO_PAGES = {"webpack-macros.html"}  # a template that the theme leaves in its folder
TARGETS = {"a": "href", "link": "href", "img": "src", "script": "src", "iframe": "src"}


class Page(HTMLParser):
    """The anchors of a page, and where it points to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = {"", "top"}
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an anchor or a link."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag in TARGETS and TARGETS[tag] in values:
            self.links.append(values[TARGETS[tag]])


def read_site(folder: Path) -> dict[Path, Page]:
    """Return all pages of a folder by their paths."""
    paths = sorted(path for path in folder.rglob("*.html") if path.name not in NO_PAGES)
    return {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in paths}


def is_external(link: str) -> bool:
    """Tell whether a link leaves the site."""
    parts = urlsplit(link)
    return bool(parts.scheme or parts.netloc)


def fault(link: str, page: Path, site: dict[Path, Page]) -> str | None:
    """Return what is wrong with an internal link, or None."""
    parts = urlsplit(link)
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir():
        target = target / "index.html"
    if not target.exists():
        return "no such file"
    if parts.fragment and target in site and unquote(parts.fragment) not in site[target].anchors:
        return "no such anchor"
    return None


def faults(folder: Path) -> Iterator[str]:
    """Yield one line for every link that leads nowhere."""
    site = read_site(folder)
    for path, page in site.items():
        for link in page.links:
            wrong = None if is_external(link) else fault(link, path, site)
            if wrong:
                yield f"{path.relative_to(folder.resolve())}: {link}: {wrong}"


def main(folder: Path) -> int:
    """Print the faults; return 1 if there are any."""
    lines = list(dict.fromkeys(faults(folder)))
    n_pages = len(list(folder.rglob("*.html")))
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(f"{n_pages} pages, {len(lines)} links that lead nowhere\n")
    return int(bool(lines) or n_pages == 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
