"""A real browser and real pages; skipped where there is none, unless it is asked for."""

import os
import subprocess
import sys

import numpy as np
import pytest

from browser.driving import FLAGS, chromium


def missing(reason):
    if os.environ.get("ISRLEARN_BROWSER") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium, driven by Playwright."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed: make browser")
    if chromium() is None:
        missing("no Chromium: install the package chromium, or set ISRLEARN_CHROMIUM")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


def run(*arguments, cwd):
    command = [sys.executable, "-m", "isrlearn", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def demo_page(folder):
    """What ``make demo`` ends with."""
    run("demo", "--geometry", "--out", "demo", cwd=folder)
    return folder / "demo" / "report.html"


@pytest.fixture(scope="session")
def compare_page(folder):
    """A comparison whose names are hostile, from a csv."""
    import pandas as pd
    from report_support import HOSTILE, hostile_rows

    X, y, e = hostile_rows(np.random.default_rng(0), n=400)
    # A number first: a column whose name is a formula is refused.
    table = pd.DataFrame(X, columns=[f"{i} {name}" for i, name in enumerate(HOSTILE)])
    table[HOSTILE[3]], table["hospital"] = y, e
    table.to_csv(folder / "a <b>&'quoted' 😀 file.csv", index=False)
    run(
        "compare",
        "a <b>&'quoted' 😀 file.csv",
        "--label",
        HOSTILE[3],
        "--environment",
        "hospital",
        "--seeds",
        "1",
        "--out",
        "compare",
        cwd=folder,
    )
    return folder / "compare" / "report.html"


@pytest.fixture(scope="session")
def bench_page(folder):
    run("bench", "run", "--examples", "2", "3s'", "--seeds", "2", "--jobs", "1", cwd=folder)
    run("bench", "plot", "--html", "bench.html", cwd=folder)
    return folder / "bench.html"


@pytest.fixture(scope="session")
def geometry_page(folder):
    from isrlearn.reporting import geometry_html

    path = folder / "geometry.html"
    path.write_text(geometry_html(), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def regression_page(folder):
    from isrlearn import ISR, ISRRegressor, report

    random = np.random.default_rng(0)
    e = random.integers(0, 3, 300)
    X = random.normal(size=(300, 5)) + np.outer(e, [0, 2, 0, 0, 0])
    y = X[:, 0] + 0.2 * random.normal(size=300)
    model = ISRRegressor(ISR(random_state=0)).fit(X, y, environments=e)
    return report(model, X, y, environments=e).save(folder / "regression.html")


@pytest.fixture(scope="session")
def crowded_page(folder):
    """A page of a thousand groups with long names, from a classifier."""
    from isrlearn import ISRClassifier, ISRMean, report

    random = np.random.default_rng(0)
    n = 6000
    y, e = np.arange(n) % 2, np.arange(n) // 2 % 500
    X = random.normal(size=(n, 4)) + y[:, None]
    places = np.array([f"{'place ' * 20}{i}" for i in range(500)])[e]
    model = ISRClassifier(ISRMean(1)).fit(X, y, environments=places)
    return report(model, X, y, environments=places).save(folder / "crowded.html")


@pytest.fixture(
    params=[
        "demo_page",
        "compare_page",
        "bench_page",
        "geometry_page",
        "regression_page",
        "crowded_page",
    ]
)
def any_page(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def opened(browser):
    """A function that opens a page and remembers what went wrong."""
    contexts = []

    def open_(path, width=1440, scheme="light", **options):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.trouble = []
        page.on("console", lambda message: page.trouble.append(message.text))
        page.on("pageerror", lambda error: page.trouble.append(str(error)))
        page.on("dialog", lambda dialog: page.trouble.append(f"dialog {dialog.message}"))
        page.requests = []
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(path.as_uri())
        return page

    yield open_
    for context in contexts:
        context.close()
