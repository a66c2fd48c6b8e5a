"""Every public name is documented, with an example that runs."""

import inspect
import re
from importlib import import_module

import pytest

import isrlearn

SUBMODULES = sorted({*isrlearn._SUBMODULES, "distributed"})
MODULES = ["isrlearn", *(f"isrlearn.{name}" for name in SUBMODULES)]
NEEDS = {
    "isrlearn.networks": "torch",
    "isrlearn.reproduce": "torch",
    "isrlearn.distributed": "dask",
}


def public(module):
    """Name and object of each public class or function of a module."""
    home = import_module(module)
    names = (name for name in home.__all__ if f"{module}.{name}" not in MODULES)
    objects = ((name, getattr(home, name)) for name in names)
    return [(n, o) for n, o in objects if inspect.isclass(o) or inspect.isroutine(o)]


def section(text, title):
    """What stands below a title of a docstring."""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)", text, re.M | re.S)
    return found[1] if found else ""


def documented(thing):
    """Names in the section on parameters: ``x, y : kind`` names two."""
    heads = re.findall(r"^\S.*", section(inspect.getdoc(thing), "Parameters"), re.M)
    names = (name for head in heads for name in head.partition(" : ")[0].split(","))
    return {name.strip().lstrip("*") for name in names}


def explains_its_own_parameters(thing):
    """Not so for errors, nor for a class that names the one whose parameters it takes."""
    if not inspect.isclass(thing):
        return True
    return not issubclass(thing, Exception) and "Parameters and attributes are those of" not in (
        thing.__doc__
    )


@pytest.fixture(params=MODULES)
def module(request):
    if request.param in NEEDS:
        pytest.importorskip(NEEDS[request.param])
    return request.param


def test_the_public_modules_are_the_ones_that_say_what_is_public(module):
    assert import_module(module).__all__, f"{module} has no __all__"


def test_every_public_name_has_an_example(module):
    bare = [name for name, thing in public(module) if ">>>" not in (thing.__doc__ or "")]
    assert not bare, f"without an example in {module}: {bare}"


def test_every_parameter_is_documented(module):
    missing = {}
    for name, thing in public(module):
        if explains_its_own_parameters(thing):
            absent = set(inspect.signature(thing).parameters) - documented(thing)
            missing |= {name: absent} if absent else {}
    assert not missing, f"parameters that {module} does not explain: {missing}"


def test_every_function_says_what_it_returns(module):
    for name, thing in public(module):
        if inspect.isclass(thing) or inspect.signature(thing).return_annotation is None:
            continue
        text = inspect.getdoc(thing)
        assert section(text, "Returns") or section(text, "Yields"), f"{module}.{name}"


def test_no_example_writes_where_it_is_run(module):
    for name, thing in public(module):
        examples = "\n".join(re.findall(r"^\s*(?:>>>|\.\.\.) (.*)$", thing.__doc__ or "", re.M))
        writes = re.search(r"write_text|savez|\.save\(|to_csv|\.create\(", examples)
        assert not writes or "tempfile" in examples, f"{module}.{name}"
