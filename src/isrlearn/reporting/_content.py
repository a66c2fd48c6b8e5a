"""What a report holds: plain values, ready to be drawn, saved and read again."""

from dataclasses import dataclass


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"{what}: not a report of isrlearn.")


@dataclass(frozen=True)
class Estimate:
    """A share with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Method:
    """A model and how it does."""

    name: str
    average: float
    worst: Estimate
    where: str
    """The worst group."""
    groups: tuple[float | None, ...]
    """Accuracy of each group; None without rows."""
    ours: bool = False

    def __post_init__(self) -> None:
        shares = (self.average, self.worst.low, self.worst.value, self.worst.high, *self.groups)
        _require(all(s is None or 0 <= s <= 1 for s in shares), "shares must be from 0 to 1")


@dataclass(frozen=True)
class Group:
    """A class in an environment, with the number of its scored rows."""

    label: str
    environment: str
    size: int


@dataclass(frozen=True)
class Verdict:
    """Worst group before and after, and what to make of it."""

    before: Method | None
    after: Method | None
    sentence: str
    rows: str
    """Which rows were scored, in words."""
    headline: str = ""
    """What to do, in a few words."""
    steps: tuple[str, ...] = ()
    """Commands to go on with, each with what it does."""


@dataclass(frozen=True)
class Step:
    """One test of how many directions differ."""

    n_removed: int
    p_mean: float | None
    p_covariance: float | None
    p_value: float
    level: float
    differs: bool


@dataclass(frozen=True)
class Spectrum:
    """How much differs in each direction, and how much chance alone would show."""

    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    n_removed: int
    """Directions that the model removes; its own tests', or those of a setting."""
    n_found: int | None
    """Directions that tests find; None where none were made."""
    n_permutations: int
    steps: tuple[Step, ...]
    own: bool = True
    """Whether the tests are those of the model, and not made for the page."""

    def __post_init__(self) -> None:
        n = len(self.values)
        _require(n > 0 and min(self.values) > 0, "values must be positive, and one at least")
        for band in (self.low, self.high):
            _require(len(band) in (0, n), f"the band must have {n} values, or none")
            _require(all(value > 0 for value in band), "the band must be positive")
        _require(len(self.low) == len(self.high), "the band must have two sides")
        _require(self.n_removed >= 0, "n_removed must not be negative")


@dataclass(frozen=True)
class Plane:
    """Rows along the invariant and the spurious direction."""

    invariant: tuple[float, ...]
    spurious: tuple[float, ...]
    label_codes: tuple[int, ...]
    environment_codes: tuple[int, ...]
    labels: tuple[str, ...]
    environments: tuple[str, ...]
    boundary: tuple[float, float, float] | None
    """The old model's: a + b * invariant + c * spurious = 0."""
    has_threshold: bool
    """Whether the new model decides at invariant = 0: with two classes."""
    leaning: float | None
    """How far the old decision moves with one spread of the spurious direction."""
    n_rows: int

    def __post_init__(self) -> None:
        n = len(self.invariant)
        columns = (self.spurious, self.label_codes, self.environment_codes)
        _require(n > 0 and all(len(c) == n for c in columns), "columns must be equally long")
        for codes, names in (
            (self.label_codes, self.labels),
            (self.environment_codes, self.environments),
        ):
            _require(min(codes) >= 0 and max(codes) < len(names), "codes must have a name each")


@dataclass(frozen=True)
class Example:
    """A row at one end of a spurious direction."""

    row: int | None
    """Its place among the rows that were given, from 0; None where it is not known."""
    label: str
    environment: str
    amount: float
    text: str | None
    image: str | None
    """As a data address."""
    values: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Direction:
    """A direction that was removed, by the rows at its ends."""

    most: tuple[Example, ...]
    least: tuple[Example, ...]
    features: tuple[tuple[str, float], ...]
    """Features that go with it most, with the share of their variance given the class."""


@dataclass(frozen=True)
class Finding:
    """One thing to know."""

    is_warning: bool
    text: str
    advice: str


@dataclass(frozen=True)
class Table:
    """A table with a sentence above it."""

    title: str
    sentence: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    highlight: int | None = None
    """Row that is ours."""
    left_out: int = 0
    """Rows that are not shown."""
    in_words: bool = False
    """Whether cells hold text, not figures."""


@dataclass(frozen=True)
class Tests:
    """What tests say of the rows, whatever the model removes."""

    sentence: str
    findings: tuple[Finding, ...]
    facts: tuple[tuple[str, str], ...]
    counts: Table | None


@dataclass(frozen=True)
class Made:
    """How the report came about."""

    version: str
    versions: tuple[tuple[str, str], ...]
    date: str
    seconds: float | None
    seed: str | None
    command: str | None
    notes: tuple[str, ...]
