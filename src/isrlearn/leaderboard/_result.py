"""What a comparison found: a frozen table that can print, save and show itself."""

import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from isrlearn._csv import write_records
from isrlearn._files import write_whole
from isrlearn.display import bullets, table, tagged, titled
from isrlearn.leaderboard._bootstrap import Interval
from isrlearn.leaderboard._recommendation import Recommendation, ends
from isrlearn.leaderboard._run import Failure, Outcome
from isrlearn.leaderboard._scene import Scene

NOT_DEFINED: Final = "–"


@dataclass(frozen=True)
class Group:
    """A (class, environment) group of the test rows."""

    label: Any
    environment: Any
    size: int

    @property
    def pair(self) -> tuple[Any, Any]:
        """Label and environment."""
        return self.label, self.environment

    @property
    def name(self) -> str:
        """Label and environment in words."""
        return f"{self.label}, {self.environment}"


@dataclass(frozen=True)
class Entry:
    """A line of the table.

    Parameters
    ----------
    key, title : str
        The method.
    uses : str
        Rows and labels that it has seen.
    average : float
        Share of test rows that are right.
    adjusted_average : float
        Group accuracies weighted by the sizes of the training groups; NaN where a training group
        has no test rows, as when an environment is left out.
    worst_group : Interval
        Accuracy of the worst group, mean over seeds.
    worst : str
        Which group that is.
    groups : tuple of float
        Accuracy of each group.
    left_out : dict of str to float
        Accuracy of the worst test group when a group was left out, by that group; empty for other
        tests.
    unseen : dict of str to float
        Accuracy of that group itself.
    against_isr : Interval or None
        Worst group of ISR less that of this method, on the same resampled rows.
    n_spurious : tuple of int
        Directions removed in each round; empty where a method removes none.
    settings : tuple of str
        What was chosen in each round.
    fit_seconds, seconds : float
        Time of the last fit and with the choice before it, mean over rounds.

    Examples
    --------
    >>> from isrlearn import compare
    >>> from isrlearn.datasets import load_penguins
    >>> X, sex, species = load_penguins()
    >>> found = compare(X, sex, environments=species, methods=["erm"], n_seeds=1, n_draws=50)
    >>> entry = found["erm"]
    >>> entry.title, len(entry.groups), entry.against_isr is None
    ('ERM', 6, True)
    """

    key: str
    title: str
    uses: str
    average: float
    adjusted_average: float
    worst_group: Interval
    worst: str
    groups: tuple[float, ...]
    left_out: dict[str, float]
    unseen: dict[str, float]
    against_isr: Interval | None
    n_spurious: tuple[int, ...]
    settings: tuple[str, ...]
    fit_seconds: float
    seconds: float

    def _repr_html_(self) -> str:
        (_, *heads), ((_, *cells),) = as_table([self])
        return table(self.title, [], [(h, [c]) for h, c in zip(heads, cells, strict=True)])

    def record(self, groups: tuple[Group, ...]) -> dict[str, Any]:
        """Return the line as plain values for a csv."""
        found = {
            "method": self.key,
            "title": self.title,
            "average": self.average,
            "adjusted_average": self.adjusted_average,
            "worst_group": self.worst_group.value,
            "worst_group_low": self.worst_group.low,
            "worst_group_high": self.worst_group.high,
            "worst": self.worst,
            "isr_minus_this": _part(self.against_isr, 0),
            "isr_minus_this_low": _part(self.against_isr, 1),
            "isr_minus_this_high": _part(self.against_isr, 2),
            "n_spurious": " ".join(map(str, self.n_spurious)),
            "setting": " | ".join(self.settings),
            "fit_seconds": self.fit_seconds,
            "seconds": self.seconds,
            "uses": self.uses,
        }
        names = [f"accuracy {group.name}" for group in groups]
        if len(set(names)) < len(names):  # commas in names
            names = [f"accuracy {group.label!r}, {group.environment!r}" for group in groups]
        without = {f"worst without {name}": value for name, value in self.left_out.items()}
        without |= {f"unseen {name}": value for name, value in self.unseen.items()}
        return found | without | dict(zip(names, self.groups, strict=True))


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Every method on the same test rows.

    Parameters
    ----------
    entries : tuple of Entry
        Best worst group first.
    groups : tuple of Group
        Groups of the test rows.
    recommendation : Recommendation
        Which method to ship for what was asked, and why.
    test, rule : str
        How rows were divided, and how settings were chosen.
    n_seeds : int
        How many times.
    rows : dict of str to int
        Training, validation and test rows of a round, on average.
    prepared : str
        What was done to the features.
    notes : tuple of str
        What limits the figures: small groups, rows and classes that no group holds.
    failures : tuple of Failure
        Methods that the rows did not allow.
    outcomes : tuple of Outcome
        All models and predictions.
    scene : Scene or None
        The rows of the first round, for a page; None where ISR was not compared.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from isrlearn import compare
    >>> from isrlearn.datasets import load_penguins
    >>> X, sex, species = load_penguins()
    >>> found = compare(X, sex, environments=species, methods=["erm"], n_seeds=1, n_draws=50)
    >>> found.rule, "erm" in found, found.failed()
    ('worst-group', True, {})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found.to_csv(f"{folder}/table.csv")
    ...     print(Path(f"{folder}/table.csv").read_text()[:21])
    method,title,average,
    """

    entries: tuple[Entry, ...]
    groups: tuple[Group, ...]
    recommendation: Recommendation
    test: str
    rule: str
    n_seeds: int
    rows: dict[str, int]
    prepared: str
    notes: tuple[str, ...]
    failures: tuple[Failure, ...]
    outcomes: tuple[Outcome, ...]
    scene: Scene | None = None

    def __repr__(self) -> str:
        return f"Comparison({len(self.entries)} methods, test={self.test!r}, rule={self.rule!r})"

    def __str__(self) -> str:
        """Return the table as text, without time and labels seen."""
        headings, lines = as_table(self.entries)
        lines = [headings[:-2], *(line[:-2] for line in lines)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in lines]
        return "\n".join([*(row.rstrip() for row in text), "", self.verdict])

    def _repr_html_(self) -> str:
        headings, lines = as_table(self.entries)
        caption = (
            f"Accuracy in percent: {len(self.entries)} methods, {self.n_seeds} seed(s), test by "
            f"{self.test}, choice by {self.rule}"
        )
        found = table(
            caption, headings[1:], [(first, rest) for first, *rest in lines], corner=headings[0]
        )
        failed = [f"{key} could not be fitted: {why}" for key, why in self.failed().items()]
        notes = bullets(tagged("span", note) for note in (*self.notes, *failed))
        return titled(self.verdict, found, notes)

    def __getitem__(self, key: str) -> Entry:
        """Return the line of a method by its key."""
        for entry in self.entries:
            if entry.key == key:
                return entry
        raise KeyError(f"{key!r} was not compared: {', '.join(e.key for e in self.entries)}.")

    def __contains__(self, key: object) -> bool:
        return any(entry.key == key for entry in self.entries)

    @property
    def verdict(self) -> str:
        """Say which method to ship for what was asked, and why."""
        return str(self.recommendation)

    def failed(self) -> dict[str, str]:
        """Return why methods could not be fitted, by their key."""
        return {failure.key: failure.reason for failure in reversed(self.failures)}

    def records(self) -> list[dict[str, Any]]:
        """Return one dict of plain values for each line."""
        return [entry.record(self.groups) for entry in self.entries]

    def to_csv(self, path: str | Path) -> None:
        """Write the table; a cell that a spreadsheet would run gets an apostrophe in front.

        Parameters
        ----------
        path : path
            A .csv; what is there is replaced.
        """
        text = io.StringIO(newline="")
        records = self.records()
        write_records(text, list(records[0]), records)
        written = text.getvalue().encode("utf-8", "backslashreplace")  # halves of characters
        write_whole(Path(path), lambda p: p.write_bytes(written))

    def to_dict(self) -> dict[str, Any]:
        """Return everything but models and predictions, for json; NaN becomes None."""
        plain = {
            "test": self.test,
            "rule": self.rule,
            "n_seeds": self.n_seeds,
            "rows": self.rows,
            "prepared": self.prepared,
            "notes": list(self.notes),
            "verdict": self.verdict,
            "recommendation": asdict(self.recommendation)
            | {"worst_group": self.recommendation.worst_group._asdict()},
            "groups": [asdict(group) for group in self.groups],
            "methods": [
                entry.record(self.groups) | {"n_spurious": list(entry.n_spurious)}
                for entry in self.entries
            ],
            "failures": [asdict(failure) for failure in self.failures],
        }
        return dict(_without_nan(plain))


def as_table(entries: Sequence[Entry]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the table in words: headings, and a line for each method.

    Parameters
    ----------
    entries : sequence of Entry
        Methods.

    Returns
    -------
    headings : tuple of str
        Title, averages, worst group, difference, directions removed, time and labels seen; of the
        averages those that the test defines.
    lines : list of tuple of str
        As many cells each.

    Examples
    --------
    >>> worst, groups = Interval(0.7, 0.6, 0.8), (0.7, 0.9)
    >>> entry = Entry(
    ...     key="isr", title="ISR", uses="labels", average=0.85, adjusted_average=0.84,
    ...     worst_group=worst, worst="sick, north", groups=groups, left_out={}, unseen={},
    ...     against_isr=None, n_spurious=(1, 2), settings=("isr=ISRMean(1)",), fit_seconds=0.1,
    ...     seconds=2.0,
    ... )
    >>> headings, lines = as_table([entry])
    >>> dict(zip(headings, lines[0], strict=True))["worst group"]
    '70.0 [60.0, 80.0]'
    """
    table = {heading: [cell(entry) for entry in entries] for heading, cell in COLUMNS.items()}
    for heading in AVERAGES:
        if {*table[heading]} == {NOT_DEFINED}:
            del table[heading]
    return tuple(table), list(zip(*table.values(), strict=True))


def _difference(gain: Interval | None) -> str:
    return NOT_DEFINED if gain is None else f"{100 * gain.value:+.1f} {ends(gain)}"


COLUMNS: Final[dict[str, Callable[[Entry], str]]] = {
    "method": lambda entry: entry.title,
    "average": lambda entry: _percent(entry.average),
    "training mix": lambda entry: _percent(entry.adjusted_average),
    "unseen group": lambda entry: _percent(float(np.mean([*entry.unseen.values()] or np.nan))),
    "worst group": lambda entry: f"{_percent(entry.worst_group.value)} {ends(entry.worst_group)}",
    "ISR minus this": lambda entry: _difference(entry.against_isr),
    "removed": lambda entry: _range(entry.n_spurious) if entry.n_spurious else NOT_DEFINED,
    "fit": lambda entry: f"{entry.fit_seconds:.2f} s",
    "uses": lambda entry: entry.uses,
}
AVERAGES: Final = {
    "training mix": "Training mix: groups weighted by their sizes in training.",
    "unseen group": "Unseen group: accuracy of the group left out, mean over these groups.",
}
"""Columns that some tests do not define, and what they mean."""


def averages_in_words(headings: Iterable[str]) -> str:
    """Say what the averages of a table are.

    Parameters
    ----------
    headings : iterable of str
        Of the table.

    Returns
    -------
    str

    Examples
    --------
    >>> averages_in_words(["method", "average", "worst group"])
    'Average: plain over the test rows.'
    """
    there = {*headings}
    found = [meaning for name, meaning in AVERAGES.items() if name in there]
    return " ".join(["Average: plain over the test rows.", *found])


def _range(numbers: tuple[int, ...]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high}"


def _percent(value: float) -> str:
    return NOT_DEFINED if math.isnan(value) else f"{100 * value:.1f}"


def _part(found: Interval | None, place: int) -> float:
    return math.nan if found is None else found[place]


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(part) for part in value]
    return None if isinstance(value, float) and math.isnan(value) else value
