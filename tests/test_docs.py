"""The documentation: pages print what they show, gallery examples run, links lead somewhere."""

import importlib.util
import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
if not (DOCS / "page_blocks.py").exists():
    pytest.skip("the documentation is not part of this copy", allow_module_level=True)
pytest.importorskip("pandas")
pytest.importorskip("safetensors")
matplotlib = pytest.importorskip("matplotlib")

LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(?:#([^)\s]+))?\)")
MADE_BY_THE_BUILD = ("gallery/", "generated/", "_static/geometry.html")
NEED_TORCH = {"images.md"}


def load(path):
    """Import a script of the documentation, which is no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


page_blocks = load(DOCS / "page_blocks.py")
check_links = load(DOCS / "check_links.py")
PAGES = page_blocks.pages()
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


@pytest.fixture(autouse=True)
def no_windows(monkeypatch):
    """Draw into memory, and leave no figure behind."""
    import matplotlib.pyplot as plt

    matplotlib.use("Agg")
    monkeypatch.setattr(plt, "show", lambda *args, **kwargs: None)
    yield
    plt.close("all")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_page_prints_what_it_shows(page, tmp_path):
    if page.name in NEED_TORCH:
        pytest.importorskip("torch")
    for result in page_blocks.run_page(page, tmp_path):
        wrong = page_blocks.difference(result)
        assert wrong is None, f"{result.place}: {wrong}\nmake docs-outputs writes pages anew"


def test_pages_that_promise_to_be_run_are_run():
    assert {"start.md", "fails.md", "environments.md", "method.md"} <= {p.name for p in PAGES}
    assert set((DOCS / "recipes").glob("*.md")) <= set(PAGES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_of_the_gallery_runs_and_draws(example, tmp_path, monkeypatch):
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")
    assert plt.get_fignums()
    assert not list(tmp_path.iterdir())


def printed(shown, what):
    return page_blocks.Printed("page:1", shown, what, 0, 1)


@pytest.mark.parametrize(
    ("shown", "what"),
    [
        ("worst 0.697", "worst 0.6966"),
        ("Page: /your/folder/out/report.html", "Page: /tmp/x-1/out/report.html"),
        ("fitted in 0.01 s", "fitted in 12.5 s"),
        ("┃ a   ┃\n━━━━", "┃ a ┃\n━━"),
    ],
)
def test_what_a_machine_decides_is_not_compared(shown, what):
    assert page_blocks.difference(printed(shown, what)) is None


@pytest.mark.parametrize(
    ("shown", "what"),
    [
        ("worst 0.697", "worst 0.701"),
        ("3 directions", "4 directions"),
        ("worst 0.697", "best 0.697"),
        ("one line", "one line\nand another"),
        ("", "printed, but not shown"),
        ("Page: report.html", "Page: other.html"),
    ],
)
def test_what_a_page_gets_wrong_is_seen(shown, what):
    assert page_blocks.difference(printed(shown, what)) is not None


def test_blocks_are_told_apart():
    text = "\n".join(
        [
            "<!-- file: a.py -->\n```python\nx = 1\n```",
            "<!-- not run -->\n```console\n$ rm x\n```",
            "```python\nprint(2)\n```\n\nIt prints\n\n```text\n2\n```",
        ]
    )
    found = page_blocks.blocks(text)
    assert [(b.language, b.file, b.how) for b in found] == [
        ("python", "a.py", None),
        ("console", None, "not run"),
        ("python", None, None),
        ("text", None, None),
    ]


def test_outputs_are_written_into_the_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(6 * 7)\n```\n\n```text\n41\n```\n")
    assert page_blocks.write_outputs(page)
    assert "```text\n42\n```" in page.read_text()
    assert not page_blocks.write_outputs(page)


def test_an_output_that_has_no_place_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(6 * 7)\n```\n")
    with pytest.raises(ValueError, match="no text block follows"):
        page_blocks.write_outputs(page)


def test_links_that_lead_nowhere_are_found(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#here">b</a><a href="b.html#gone">b</a>')
    (tmp_path / "b.html").write_text(
        '<h1 id="here">B</h1><img src="lost.png"><a href="//x.y">x</a>'
    )
    assert sorted(check_links.faults(tmp_path)) == [
        "a.html: b.html#gone: no such anchor",
        "b.html: lost.png: no such file",
    ]
    assert check_links.main(tmp_path) == 1


def written_pages():
    return [ROOT / "README.md", *DOCS.glob("*.md"), *DOCS.glob("recipes/*.md")]


@pytest.mark.parametrize("page", written_pages(), ids=lambda path: path.name)
def test_links_between_pages_work_on_a_code_host(page):
    for target, _ in LINK.findall(page.read_text(encoding="utf-8")):
        if not target.startswith(MADE_BY_THE_BUILD) and "/gallery/" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_public_name_has_a_page_of_the_reference():
    pytest.importorskip("torch")
    pytest.importorskip("distributed")
    import isrlearn

    api = load(DOCS / "_ext" / "api_pages.py")
    pages = api.pages()
    assert {entry.full_name for entry in api.entries()} >= {
        f"isrlearn.{name}" for name in isrlearn.__all__ if f"isrlearn.{name}" not in api.modules()
    }
    for entry in api.documented(api.entries()):
        assert f":: {entry.name}\n" in pages[entry.page]
    assert len({name.lower() for name in pages}) == len(pages)


def test_every_command_is_on_the_page_of_the_command_line():
    pytest.importorskip("cyclopts")
    commands = load(DOCS / "_ext" / "command_pages.py")
    page = commands.page()
    for words in (("compare",), ("fit",), ("bench", "run"), ("reproduce", "table1")):
        assert words in set(commands.commands())
        assert f"# isrlearn {' '.join(words)}\n" in page
