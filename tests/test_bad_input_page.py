"""Every bad input of the registry is refused in one line that names it and the way out."""

import importlib.util
import re
from collections import Counter
from pathlib import Path

import pytest
from sklearn.exceptions import NotFittedError

for package in ("pandas", "pyarrow", "safetensors", "cyclopts", "matplotlib"):
    pytest.importorskip(package)

from bad_inputs import GROUPS, run  # noqa: E402

from isrlearn import exceptions  # noqa: E402

CASES = [(group, case) for group, cases in GROUPS.items() for case in cases]
PAGE = Path(__file__).parents[1] / "docs" / "bad-input.md"
LONGEST = 600
WAY_OUT = r"[:;,] \w|\. [A-Z]|\bmust\b|\bshould match\b|\bneeds --"
DAMAGE = "Model files and feature folders"  # of which there is no way out but another file


def is_documented(error):
    """Tell whether users can catch an error by a class that the documentation names."""
    ours = type(error) in {getattr(exceptions, name) for name in exceptions.__all__}
    return ours or type(error) in (ValueError, TypeError, NotFittedError)


@pytest.mark.parametrize(("group", "case"), CASES, ids=lambda value: str(value)[:60])
def test_a_bad_input_is_refused_in_words(group, case, tmp_path):
    found = run(case, tmp_path)
    assert re.search(case.says, found.message), found.message
    assert len(found.message) < LONGEST
    assert "Traceback" not in found.message
    assert found.message.isprintable() or "\n" in found.message
    words = found.message.removeprefix("isrlearn: ")
    assert re.search(WAY_OUT, words) or group == DAMAGE, words
    if found.error is None:
        assert found.kind == "exit code 2"
        assert re.fullmatch(r"(note: [^\n]+\n)*isrlearn: [^\n]+\n", found.message)
    else:
        assert is_documented(found.error), repr(found.error)
        assert "\n" not in found.message or "feature names" in found.message  # scikit-learn's


def page_script():
    path = PAGE.with_name("bad_input_page.py")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page():
    """The page as it would be written now."""
    if not PAGE.exists():
        pytest.skip("the documentation is not part of this copy")
    return page_script().page()


def table_rows(text):
    """Yield heading, what is wrong and what is said, out of the page."""
    heading = ""
    for line in text.splitlines():
        heading = line if line.startswith("## ") else heading
        cells = re.split(r"(?<!\\) \| ", line.removeprefix("| "))
        if line.startswith("| ") and cells[0] not in ("---", "What is wrong"):
            yield heading, cells[0], cells[1]


def test_the_page_shows_what_users_get_now(page):
    shown, now = (list(table_rows(text)) for text in (PAGE.read_text(encoding="utf-8"), page))
    assert len(shown) == len(CASES)
    for one, other, (_, case) in zip(shown, now, CASES, strict=True):
        wrong = "python docs/bad_input_page.py writes the page anew"
        assert one[:2] == other[:2], wrong
        assert one[2] == other[2] or case.theirs, wrong
    assert page.split("\n## ")[:2] == PAGE.read_text(encoding="utf-8").split("\n## ")[:2]


def test_no_two_mistakes_get_the_same_message(page):
    said = Counter((heading, text) for heading, _, text in table_rows(page) if "(...)" not in text)
    assert [message for message, count in said.items() if count > 1] == []
