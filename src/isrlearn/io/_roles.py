"""Which column or array of a file is for what."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from isrlearn.display import brief
from isrlearn.exceptions import DataError
from isrlearn.io._schema import Schema
from isrlearn.io._values import MOST_LISTED, Texts, holds_split, looks_like_split, named, nearest


class Source(Protocol):
    """A file whose parts have names."""

    @property
    def path(self) -> Path:
        """Where it is."""

    @property
    def part(self) -> str:
        """What its parts are called: "column" of a table, "array" of an archive."""

    @property
    def names(self) -> Sequence[str]:
        """Names of its parts."""

    def texts(self, name: str) -> Texts:
        """Return the values of a part as text; those of a large file without repetition."""


COLUMN: Final = "column"
ARRAY: Final = "array"
LABELS: Final = "labels"
ENVIRONMENTS: Final = "environments"
SPLIT: Final = "split"


@dataclass(frozen=True)
class Asked:
    """What the user said about the columns, names without blanks around them."""

    label: str | None
    environment: tuple[str, ...]
    split: str | None
    drop: tuple[str, ...]
    schema: Schema | None


@dataclass(frozen=True)
class Roles:
    """Names of the columns, or arrays, that are no features; None or () where there is none."""

    label: str | None
    environment: tuple[str, ...]
    split: str | None

    def names(self) -> tuple[str, ...]:
        """Return all names."""
        others = (name for name in (self.label, self.split) if name is not None)
        return (*others, *self.environment)


def asked_for(
    label: str | None,
    environment: str | Sequence[str],
    split: str | None,
    drop: str | Sequence[str],
    schema: Schema | None = None,
) -> Asked:
    """Return what the user said about the columns, without blanks around the names."""
    if not (schema is None or isinstance(schema, Schema)):
        raise TypeError(f"schema={brief(schema)} must be that of a model, or None.")
    return Asked(
        label=None if label is None else _name("label", label),
        environment=_names("environment", environment),
        split=None if split is None else _name("split", split),
        drop=_names("drop", drop),
        schema=schema,
    )


def _name(role: str, given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError(f"{role}={brief(given)} must be the name of a column or array, as text.")
    return given.strip()


def _names(role: str, given: Any) -> tuple[str, ...]:
    if given is None or isinstance(given, str):
        return () if given is None else (_name(role, given),)
    if not isinstance(given, Iterable):
        raise TypeError(f"{role}={brief(given)} must be a name, or a list of names.")
    return tuple(_name(role, name) for name in given)


def find_roles(source: Source, asked: Asked) -> Roles:
    """Find the columns or arrays that were asked for; `DataError` if they are not there."""
    _check_drop(source, asked)
    there = [name for name in source.names if name not in asked.drop]
    label = _label(source, asked, there)
    environment = _environment(source, asked, there)
    split = asked.split or _found_split(source, asked, there, (label, *environment))
    if asked.split is not None:
        require(source, asked.split, there, "split")
    roles = Roles(label, environment, split)
    _refuse_two_roles(source, roles)
    return roles


def _label(source: Source, asked: Asked, there: Sequence[str]) -> str | None:
    wanted = asked.label or _by_default(source, asked.schema, "label")
    if asked.schema is not None and asked.label is None and wanted not in there:
        return None
    if not wanted:
        raise DataError(_not_named(source, there, "label", "classes"))
    require(source, wanted, there, "label")
    return wanted


def _environment(source: Source, asked: Asked, there: Sequence[str]) -> tuple[str, ...]:
    if asked.environment:
        wanted = asked.environment
    elif asked.schema is not None:
        wanted = asked.schema.environment
        return wanted if all(name in there for name in wanted) else ()
    else:
        wanted = tuple(filter(None, [_by_default(source, None, "environment")]))
    if not wanted:
        raise DataError(_not_named(source, there, "environment", "environments"))
    for name in wanted:
        require(source, name, there, "environment")
    return wanted


def _by_default(source: Source, schema: Schema | None, role: str) -> str | None:
    if schema is not None:
        return schema.label
    if source.part == COLUMN:
        return None
    return {"label": LABELS, "environment": ENVIRONMENTS}[role]


def _found_split(
    source: Source, asked: Asked, there: Sequence[str], taken: Sequence[str | None]
) -> str | None:
    """Return a column that is called "split" and holds one, or the array of that name."""
    if source.part == ARRAY:
        return SPLIT if SPLIT in there else None
    columns = () if asked.schema is None else asked.schema.columns
    excluded = {*taken, *(column.name for column in columns)}
    free = (name for name in there if name.casefold() == SPLIT and name not in excluded)
    return next((name for name in free if _holds_split(source.texts(name), asked)), None)


def _holds_split(texts: Texts, asked: Asked) -> bool:
    # A gap or a misprint is a mistake of a file to fit on, but no reason not to predict.
    return looks_like_split(texts) if asked.schema is None else holds_split(texts)


def _check_drop(source: Source, asked: Asked) -> None:
    if asked.drop and source.part == ARRAY:
        raise DataError(
            f"{source.path} holds arrays, so drop={list(asked.drop)} cannot name columns: leave "
            "them out of the array 'features'."
        )
    for name in asked.drop:
        require(source, name, source.names, "drop")


def require(source: Source, name: str, there: Sequence[str], role: str) -> None:
    """Raise `DataError` unless a column or array is there, and not dropped."""
    if name in there:
        return
    if name in source.names:
        raise DataError(
            f"{source.path}: {source.part} {brief(name)} is named as {role} and is dropped: do one "
            "of the two."
        )
    raise DataError(
        f"{source.path} has no {source.part} {brief(name)} (named as {role}): "
        f"{nearest(name, there, source.part)}"
    )


def _not_named(source: Source, there: Sequence[str], role: str, what: str) -> str:
    return (
        f"{source.path} is a table, so {role} must name the column of the {what}. The columns are "
        f"{named(there, MOST_LISTED)}."
    )


def _refuse_two_roles(source: Source, roles: Roles) -> None:
    names = roles.names()
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        pairs = [(roles.label, "label"), (roles.split, "split")]
        pairs += [(name, "environment") for name in roles.environment]
        both = " and ".join(role for name, role in pairs if name == twice)
        raise DataError(
            f"{source.path}: {source.part} {brief(twice)} is named as {both}: name another for one "
            "of them."
        )
