"""The report: a frozen result that shows, saves and reads itself."""

from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any, Final, Self

from isrlearn._files import write_whole
from isrlearn._seal import read_sealed
from isrlearn.display import visible
from isrlearn.reporting._codec import from_plain, to_plain
from isrlearn.reporting._content import (
    Direction,
    Group,
    Made,
    Method,
    Plane,
    Spectrum,
    Table,
    Tests,
    Verdict,
)
from isrlearn.reporting._page import render

PROTOCOL: Final = 1
KEY: Final = "report"


@dataclass(frozen=True, repr=False)
class Report:
    """What a model leaned on and what the removal did, as one page; made by `report`.

    Parameters
    ----------
    title : str
        Heading.
    verdict : Verdict
        Worst group before and after.
    groups : tuple of Group
        Groups of the scored rows.
    methods : tuple of Method
        Models and their accuracies.
    tables : tuple of Table
        Figures of all models.
    spectrum : Spectrum or None
        How much differs in each direction, and how many were removed.
    plane : Plane or None
        Rows along the invariant and the spurious direction.
    directions : tuple of Direction
        Rows at the ends of what was removed.
    tests : Tests or None
        Diagnosis.
    made : Made
        Versions, command, seed, time.
    geometry : bool, default=False
        Whether the two pictures of the method are added.
    scale : float, default=0.0
        What the removal leaves of the directions: 0 nothing, 0.5 half.
    target : {"class", "target"}, default="class"
        What environments are compared given: a class, or a continuous target.
    intro : str, default=""
        What the task is.

    Examples
    --------
    >>> import isrlearn
    >>> from isrlearn.datasets import load_penguins
    >>> X, y, species = load_penguins()
    >>> model = isrlearn.ISRClassifier(isrlearn.ISRMean(1)).fit(X, y, environments=species)
    >>> page = isrlearn.report(model, X, y, environments=species, title="Penguins")
    >>> page
    Report('Penguins', 1 method, 6 groups)
    >>> page.html.startswith("<!doctype html>")
    True
    """

    title: str
    verdict: Verdict
    groups: tuple[Group, ...]
    methods: tuple[Method, ...]
    tables: tuple[Table, ...]
    spectrum: Spectrum | None
    plane: Plane | None
    directions: tuple[Direction, ...]
    tests: Tests | None
    made: Made
    geometry: bool = False
    scale: float = 0.0
    target: str = "class"
    intro: str = ""

    def __post_init__(self) -> None:
        if any(len(method.groups) != len(self.groups) for method in self.methods):
            raise ValueError(f"each method must have {len(self.groups)} groups.")
        if not 0 <= self.scale <= 1 or self.target not in ("class", "target"):
            raise ValueError(f"scale {self.scale} or target {self.target!r:.20}: not a report.")

    def __repr__(self) -> str:
        n = len(self.methods)
        return f"Report({self.title!r}, {n} method{'s'[: n != 1]}, {len(self.groups)} groups)"

    @property
    def html(self) -> str:
        """The page, one text that needs nothing else."""
        return render(self)

    def save(self, path: str | Path) -> Path:
        """Write the page.

        Parameters
        ----------
        path : path
            An .html file; what is there is replaced.

        Returns
        -------
        Path
        """
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = self.html
        write_whole(path, lambda p: p.write_text(text, encoding="utf-8"))
        return path

    def titled(self, title: str) -> Self:
        """Return the same report under another heading."""
        return replace(self, title=title)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for json; `from_dict` reads them."""
        return {"protocol": PROTOCOL, **to_plain(self)}

    @classmethod
    def from_dict(cls, plain: Any) -> Self:
        """Return a report from what `to_dict` gave.

        Parameters
        ----------
        plain : dict
            Plain values.

        Raises
        ------
        ValueError
            If it is something else.
        """
        protocol = plain.get("protocol") if isinstance(plain, dict) else None
        if protocol != PROTOCOL:
            raise ValueError(
                f"protocol {protocol!r:.40} is not {PROTOCOL}: not a report of this version. If a "
                "newer isrlearn made it, install that one."
            )
        found: Self = from_plain(cls, plain)
        return found

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read the report in a result file that a command of isrlearn wrote.

        Parameters
        ----------
        path : path
            A result.json, or the folder it is in.
        """
        path = Path(path)
        path = path / "result.json" if path.is_dir() else path
        if not path.is_file():
            raise ValueError(f"{path} is no file: name a result.json, or its folder.")
        try:
            plain = read_sealed(path)
        except (ValueError, OSError) as error:
            raise ValueError(
                f"{path} cannot be read ({_first_line(error)}): name a result.json of isrlearn."
            ) from error
        if KEY not in plain:
            raise ValueError(f"{path} holds no report: name a result.json that isrlearn wrote.")
        try:
            return cls.from_dict(plain[KEY])
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def _repr_html_(self) -> str:
        return (
            f'<iframe title="{escape(visible(self.title))}" srcdoc="{escape(self.html)}" '
            'style="width:100%;height:40rem;border:1px solid #888"></iframe>'
        )


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
