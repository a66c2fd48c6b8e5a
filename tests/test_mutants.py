"""The page of mutants and the reasons beside it; the mutants themselves are `make mutants`."""

import re
import tomllib

import pytest
from mutation import page

if not page.PAGE.exists():
    pytest.skip("the documentation is not part of this copy", allow_module_level=True)

TEXT = page.PAGE.read_text(encoding="utf-8")
ROW = re.compile(
    r"^\| (?:`(\w+)\.py`|all) \| (\d+) \| (\d+) \| (\d+) \| ([\d.]+) % \|", re.MULTILINE
)
SURVIVOR = re.compile(r"^- `([\w.]+)`: `(.*)` → `(.*)`$", re.MULTILINE)
LEAST_KILLED = 85.0


def rows():
    """Mutants, killed, survivors and share killed of each module, and of all under None."""
    return {name or None: [float(n) for n in numbers] for name, *numbers in ROW.findall(TEXT)}


def mutant(**given):
    return page.Mutant(
        **{"module": "a", "function": "f", "before": "x", "after": "y", "killed": False, **given}
    )


def test_the_table_adds_up_and_enough_are_killed():
    *modules, total = rows().values()
    assert total[:3] == [sum(column) for column in zip(*(m[:3] for m in modules), strict=True)]
    for mutants, killed, survivors, share in rows().values():
        assert mutants == killed + survivors
        assert share == pytest.approx(100 * killed / mutants, abs=0.051)
        assert share >= LEAST_KILLED


def test_every_module_that_is_mutated_is_in_the_table():
    settings = tomllib.loads((page.ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]
    mutated = {page.ROOT / path for path in settings["only_mutate"]}
    assert all(path.exists() for path in mutated)
    assert {path.stem for path in mutated} == rows().keys() - {None}


def test_every_survivor_has_a_reason_and_every_reason_a_survivor():
    shown = SURVIVOR.findall(TEXT)
    assert len(shown) == rows()[None][2]
    why = page.reasons()
    assert {f"{where}: {after}" for where, _, after in shown} == why.keys()
    for reason in why.values():
        assert reason in TEXT
        assert reason.endswith(".")


@pytest.mark.parametrize(
    ("before", "after", "of_string"),
    [
        ('raise ValueError("too small")', 'raise ValueError("XXtoo smallXX")', True),
        ('raise ValueError("Too small")', 'raise ValueError("too small")', True),
        ('raise ValueError("too small")', "raise ValueError(None)", False),
        ("x = a + b", "x = a - b", False),
        ("corner=1,", "", False),
    ],
)
def test_mutants_of_strings_are_told_apart(before, after, of_string):
    assert mutant(before=before, after=after).of_string == of_string


def test_a_page_lists_survivors_below_their_reason():
    mutants = [mutant(), mutant(after="z", killed=True), mutant(module="b", killed=True)]
    text = page.page(mutants, {"a.f: y": "It is the same."})
    assert "| `a.py` | 2 | 1 | 1 | 50.0 % | 50.0 % |\n| `b.py` | 1 | 1 | 0 | 100.0 %" in text
    assert text.endswith(
        "| all | 3 | 2 | 1 | 66.7 % | 66.7 % |\n"
        + page.SURVIVORS
        + ("\nIt is the same.\n\n- `a.f`: `x` → `y`\n")
    )
