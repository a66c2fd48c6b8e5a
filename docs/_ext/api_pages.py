"""The reference: a page for every module and for every name in its `__all__`."""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import isrlearn

INTRODUCTION = """\
Reference
=========

Everything that may be relied on. Names and modules that begin with an underscore may change at
any time. Nothing is imported before it is used: ``import isrlearn`` loads no other package.
"""


@dataclass(frozen=True)
class Entry:
    """A public name and the page that documents it."""

    module: str
    name: str
    value: Any
    page: str

    @property
    def full_name(self) -> str:
        """The name to import it by."""
        return f"{self.module}.{self.name}"


def modules() -> list[str]:
    """Return the names of the public modules."""
    names = sorted({*isrlearn._SUBMODULES, "distributed"})
    return ["isrlearn", *(f"isrlearn.{name}" for name in names)]


def entries() -> list[Entry]:
    """Return all public names; an object with two homes is documented in the first."""
    result: list[Entry] = []
    taken = {name.lower() for name in modules()}
    for module_name in modules():
        module = import_module(module_name)
        for name in module.__all__:
            value = getattr(module, name)
            if not inspect.ismodule(value):
                page = _page(taken, f"{module_name}.{name}", value)
                taken.add(page.lower())
                result.append(Entry(module_name, name, value, page))
    return result


def _page(taken: set[str], name: str, value: Any) -> str:
    """Return the name of a page that no other has, also where case does not count."""
    kind = "class" if inspect.isclass(value) else "function"
    return f"{name}-{kind}" if name.lower() in taken else name


def documented(everything: list[Entry]) -> list[Entry]:
    """Return one entry for each object."""
    first: dict[int, Entry] = {}
    for entry in everything:
        first.setdefault(id(entry.value), entry)
    return list(first.values())


def pages() -> dict[str, str]:
    """Return the text of all pages by their names."""
    everything = entries()
    kept = documented(everything)
    homes = {id(entry.value): entry for entry in kept}
    result = {"index": _index()}
    for module in modules():
        own = [entry for entry in everything if entry.module == module]
        result[module] = _module_page(module, own, homes)
    result |= {entry.page: _entry_page(entry) for entry in kept}
    return result


def _index() -> str:
    tree = "".join(f"   {module}\n" for module in modules())
    rows = "".join(
        f"   * - :doc:`{module} <{module}>`\n     - {_summary(module)}\n" for module in modules()
    )
    return (
        f"{INTRODUCTION}\n.. list-table::\n   :widths: 30 70\n\n{rows}\n"
        f".. toctree::\n   :hidden:\n   :maxdepth: 2\n\n{tree}"
    )


def _summary(module: str) -> str:
    return str(inspect.getdoc(import_module(module))).split("\n\n")[0].replace("\n", " ")


def _module_page(module: str, own: list[Entry], homes: dict[int, Entry]) -> str:
    shown = [homes[id(entry.value)] for entry in own]
    table = "".join(f"   {_name_in(module, entry)}\n" for entry in shown)
    tree = "".join(f"   {entry.page}\n" for entry in shown if entry.module == module)
    listing = f".. autosummary::\n   :nosignatures:\n\n{table}\n" if table else ""
    pages_below = f".. toctree::\n   :hidden:\n\n{tree}\n" if tree else ""
    return f"{_title(module)}\n.. automodule:: {module}\n\n{listing}{pages_below}"


def _name_in(module: str, entry: Entry) -> str:
    return entry.name if entry.module == module else f"~{entry.full_name}"


def _title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n"


def _entry_page(entry: Entry) -> str:
    head = f"{_title(entry.full_name)}\n.. currentmodule:: {entry.module}\n\n"
    if inspect.isclass(entry.value):
        members = ", ".join(_members(entry.value))
        listed = f"   :members: {members}\n" if members else ""
        return f"{head}.. autoclass:: {entry.name}\n{listed}"
    kind = "autofunction" if callable(entry.value) else "autodata"
    return f"{head}.. {kind}:: {entry.name}\n"


def _members(cls: type) -> list[str]:
    """Return public members that this package wrote, those of the class itself first."""
    return list(dict.fromkeys(_own_members(cls)))


def _own_members(cls: type) -> Iterator[str]:
    for base in cls.__mro__:
        if base.__module__.split(".")[0] == "isrlearn":
            names = [*getattr(base, "__annotations__", {}), *vars(base)]
            yield from (n for n in names if n[0] != "_" and _is_ours(vars(base).get(n)))


def _is_ours(member: Any) -> bool:
    """Tell what is written here from what scikit-learn puts into every class."""
    return type(member).__name__ != "RequestMethod"
