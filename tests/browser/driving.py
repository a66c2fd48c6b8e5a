"""How a browser is started; run as a script it takes pictures of every section of a page.

python tests/browser/driving.py report.html folder
"""

import os
import shutil
import sys
from pathlib import Path

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTHS = (360, 1440)
SCHEMES = ("light", "dark")


def chromium():
    """Return the path of a browser, or None."""
    return os.environ.get("ISRLEARN_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def shoot(report, folder):
    """Write pictures of a page and of its sections, at both widths, light and dark."""
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        for width in WIDTHS:
            for scheme in SCHEMES:
                page = browser.new_page(
                    viewport={"width": width, "height": 900}, color_scheme=scheme
                )
                page.goto(report.resolve().as_uri())
                page.screenshot(path=folder / f"page-{width}-{scheme}.png", full_page=True)
                for section in page.query_selector_all("section"):
                    name = section.get_attribute("aria-labelledby")
                    section.screenshot(path=folder / f"{name}-{width}-{scheme}.png")
                page.close()
        browser.close()


if __name__ == "__main__":
    shoot(Path(sys.argv[1]), Path(sys.argv[2]))
