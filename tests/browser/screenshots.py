"""Pictures of every section of the demonstration's report, to be looked at.

python tests/browser/screenshots.py report.html folder
"""

import os
import shutil
import sys
from pathlib import Path

from conftest import FLAGS, NAMES, SCHEMES, WIDTHS
from playwright.sync_api import sync_playwright


def shoot(report, folder):
    folder.mkdir(parents=True, exist_ok=True)
    path = os.environ.get("ISRLEARN_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
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
