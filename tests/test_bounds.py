"""The versions that are tested are the versions that are promised."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
if not (ROOT / "pyproject.toml").exists():
    pytest.skip("what is promised is not part of this copy", allow_module_level=True)


def bounds(lines, operator):
    """Return the version after an operator by the name of the project."""
    found = {}
    for line in lines:
        requirement = Requirement(line)
        given = [s.version for s in requirement.specifier if s.operator == operator]
        if given:
            found.setdefault(requirement.name, set()).update(map(Version, given))
    return found


def promised():
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    extras = project["optional-dependencies"]
    lines = project["dependencies"] + [line for extra in extras.values() for line in extra]
    return [line for line in lines if not line.startswith("isrlearn[")]


def oldest_set():
    lines = (ROOT / "tests" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_the_oldest_set_has_every_lower_bound():
    assert bounds(oldest_set(), "==") == bounds(promised(), ">=")


def test_every_dependency_has_one_lower_bound():
    names = {Requirement(line).name for line in promised()}
    found = bounds(promised(), ">=")
    assert set(found) == names
    assert all(len(given) == 1 for given in found.values())
