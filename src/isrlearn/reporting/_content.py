"""What a report holds: plain values, ready to be drawn, saved and read again."""

from dataclasses import dataclass


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
    """Directions that the model removes."""
    n_found: int | None
    """Directions that tests find; None where none were made."""
    n_permutations: int
    steps: tuple[Step, ...]


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


@dataclass(frozen=True)
class Example:
    """A row at one end of a spurious direction."""

    row: int
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
