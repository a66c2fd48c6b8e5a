"""How the columns of a file become features, kept with a model as plain JSON."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, TypeAlias

from isrlearn._limits import LONGEST_NAME, MOST_CATEGORIES, MOST_NAMES
from isrlearn.display import brief
from isrlearn.exceptions import DataError
from isrlearn.io._values import named

Kind: TypeAlias = Literal["table", "array"]

PROTOCOL: Final = 1
KINDS: Final = ("table", "array")


@dataclass(frozen=True)
class Column:
    """A column that becomes one feature, or one feature per category.

    Parameters
    ----------
    name : str
        Its name in the file.
    categories : tuple of str, default=None
        Sorted values of a text column; None for a numeric column.

    Examples
    --------
    >>> Column("colour", ("blue", "red")).feature_names
    ('colour=blue', 'colour=red')
    """

    name: str
    categories: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if len(self.name) > LONGEST_NAME:
            raise DataError(
                f"column {brief(self.name)} has a name of {len(self.name)} characters: give at "
                f"most {LONGEST_NAME}."
            )
        if self.categories is not None and len(self.categories) > MOST_CATEGORIES:
            raise DataError(
                f"column {brief(self.name)} has {len(self.categories)} categories: give at most "
                f"{MOST_CATEGORIES}, each of which is a feature."
            )

    @property
    def n_features(self) -> int:
        """Number of features that it becomes."""
        return 1 if self.categories is None else len(self.categories)

    @property
    def n_characters(self) -> int:
        """Length of the names of its features, which are not made for it."""
        if self.categories is None:
            return len(self.name)
        return sum(len(self.name) + 1 + len(category) for category in self.categories)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features that it becomes."""
        if self.categories is None:
            return (self.name,)
        return tuple(f"{self.name}={category}" for category in self.categories)


@dataclass(frozen=True)
class Schema:
    """How another file is turned into the same features.

    Parameters
    ----------
    columns : tuple of Column
        In the order of the features.
    label : str or None
        Name of the column, or of the array, of the labels.
    environment : tuple of str
        Names of the columns, or arrays, whose crossing is the environment.
    kind : {"table", "array"}
        Whether the columns have names of their own, or are x0, x1, ... of an array.

    Examples
    --------
    >>> schema = Schema((Column("age"), Column("colour", ("blue", "red"))), "y", ("site",), "table")
    >>> schema.feature_names
    ('age', 'colour=blue', 'colour=red')
    >>> Schema.from_json(schema.to_json()) == schema
    True
    """

    columns: tuple[Column, ...]
    label: str | None
    environment: tuple[str, ...]
    kind: Kind

    def __post_init__(self) -> None:
        n_characters = sum(column.n_characters for column in self.columns)
        if n_characters > MOST_NAMES:
            raise DataError(
                f"the names of the features have {n_characters} characters together: at most "
                f"{MOST_NAMES} are read, so shorten the names of columns and the texts in them."
            )

    @property
    def n_features(self) -> int:
        """Number of features, d, without a look at their names."""
        return sum(column.n_features for column in self.columns)

    @classmethod
    def of_array(cls, n_features: int, label: str | None, environment: tuple[str, ...]) -> Self:
        """Return the schema of an array of `n_features` columns."""
        columns = tuple(Column(f"x{j}") for j in range(n_features))
        return cls(columns, label, environment, "array")

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, (d,)."""
        return tuple(name for column in self.columns for name in column.feature_names)

    def to_json(self) -> dict[str, Any]:
        """Return strings, numbers, lists and dicts that `json.dumps` takes."""
        return {
            "protocol": PROTOCOL,
            "kind": self.kind,
            "label": self.label,
            "environment": list(self.environment),
            "columns": [_column_to_json(column) for column in self.columns],
        }

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> Self:
        """Return what `to_json` wrote.

        Parameters
        ----------
        written : dict
            It is checked: `DataError` says what is wrong with it.

        Returns
        -------
        Schema
        """
        fields = _fields(written)
        _require(fields["protocol"] == PROTOCOL, f"protocol {brief(fields['protocol'])} is unknown")
        _require(fields["kind"] in KINDS, f"kind {brief(fields['kind'])} is not table or array")
        _require(_is_text_or_none(fields["label"]), f"label {brief(fields['label'])} is no text")
        _require(isinstance(fields["columns"], list | tuple), "columns is no list")
        columns = tuple(_column_from_json(column) for column in fields["columns"])
        _refuse_repeated(columns)
        environment = _texts(fields["environment"], "environment")
        return cls(columns, fields["label"], environment, fields["kind"])


def _column_to_json(column: Column) -> dict[str, Any]:
    categories = None if column.categories is None else list(column.categories)
    return {"name": column.name, "categories": categories}


def _column_from_json(written: Any) -> Column:
    _require(isinstance(written, Mapping), f"column {brief(written)} is no dict")
    name, categories = written.get("name"), written.get("categories")
    _require(isinstance(name, str), f"a column has the name {brief(name)}")
    if categories is None:
        return Column(name)
    return Column(name, _texts(categories, f"categories of {brief(name)}"))


def _fields(written: Any) -> Mapping[str, Any]:
    _require(isinstance(written, Mapping), f"{type(written).__name__} is no dict")
    wanted = ("protocol", "kind", "label", "environment", "columns")
    absent = [name for name in wanted if name not in written]
    _require(not absent, f"{', '.join(absent)} absent")
    return dict(written)


def _refuse_repeated(columns: tuple[Column, ...]) -> None:
    counts = Counter(column.name for column in columns)
    twice = sorted(name for name, count in counts.items() if count > 1)
    _require(not twice, f"column(s) {named(twice)} twice")
    _require(bool(columns), "no columns")


def _texts(values: Any, what: str) -> tuple[str, ...]:
    is_list = isinstance(values, list | tuple) and all(isinstance(v, str) for v in values)
    _require(is_list, f"{what} is no list of texts")
    return tuple(values)


def _is_text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise DataError(f"the schema of the columns is damaged ({problem}): fit the model again.")
