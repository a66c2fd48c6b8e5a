"""What a fit can be trusted for: a report in plain words, from what the fit has seen."""

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from isrlearn._rank_test import RankChoice
from isrlearn._typing import IntArray, LabelArray

__all__ = ["Diagnosis", "Finding"]


@dataclass(frozen=True)
class Finding:
    """One thing to know about a fit."""

    code: str
    """A fixed name, such as ``"too_few_environments"``."""
    is_warning: bool
    """Whether the result should not be relied on without acting on it."""
    text: str
    """What was seen."""
    advice: str
    """What to do about it."""


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What a fitted estimator saw and which of its assumptions hold; made by ``diagnose()``.

    Printed, it is plain text; in a notebook it is a table.

    Parameters
    ----------
    method : str
        Name of the estimator.
    verdict : str
        The result in one sentence.
    findings : tuple of Finding
        What to know, warnings first.
    classes, environments : ndarray
        Labels; one class stands for a continuous target.
    counts : ndarray of shape (k, E)
        Rows of each class in each environment.
    n_features, n_spurious : int
        Features, and directions removed.
    most_by_means : int
        Directions that the means of these environments could show at most.
    tests, means, covariances : RankChoice or None
        Tests of the method, and of means and covariances alone; None if the rank was given.
    angle : tuple of three float, or None
        2.5, 50 and 97.5 percent points of the largest principal angle, in radians, between what was
        removed and what would be removed from data with as much noise again.
    target_share_removed : float or None
        Share of what separates the classes (or follows the target), in units of noise, that lies
        along the removed directions.
    """

    method: str
    verdict: str
    findings: tuple[Finding, ...]
    classes: LabelArray
    environments: LabelArray
    counts: IntArray
    n_features: int
    n_spurious: int
    most_by_means: int
    tests: RankChoice | None
    means: RankChoice | None
    covariances: RankChoice | None
    angle: tuple[float, float, float] | None
    target_share_removed: float | None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Codes of the findings that are warnings."""
        return tuple(finding.code for finding in self.findings if finding.is_warning)

    def facts(self) -> list[tuple[str, str]]:
        """Return names and values of what was measured, as text."""
        rows = [
            ("environments", f"{len(self.environments)}: {_listed(self.environments)}"),
            ("features", str(self.n_features)),
            ("directions removed", str(self.n_spurious)),
            ("means can show at most", str(self.most_by_means)),
        ]
        for name, choice in (
            ("found by means alone", self.means),
            ("found by covariances alone", self.covariances),
            ("tests", self.tests),
        ):
            if choice is not None:
                rows.append((name, _described(choice, with_rank=name != "tests")))
        if self.angle is not None:
            low, middle, high = np.degrees(self.angle)
            rows.append(
                ("angle to the true subspace", f"{middle:.1f} degrees ({low:.1f} to {high:.1f})")
            )
        if self.target_share_removed is not None:
            rows.append(("target information removed", f"{self.target_share_removed:.0%}"))
        return rows

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.facts())
        lines = [f"{self.method}: {self.verdict}", ""]
        lines += [f"  {name:<{width}}  {value}" for name, value in self.facts()]
        lines += ["", "  rows per class and environment", *self._table_lines()]
        for finding in self.findings:
            mark = "!" if finding.is_warning else "-"
            lines += ["", f"{mark} {finding.text}", f"  {finding.advice}"]
        return "\n".join(line.rstrip() for line in lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        facts = "".join(
            f'<tr><th scope="row" style="text-align:left">{escape(name)}</th>'
            f'<td style="text-align:left">{escape(value)}</td></tr>'
            for name, value in self.facts()
        )
        findings = "".join(
            f"<li>{'<strong>Warning.</strong> ' if f.is_warning else ''}{escape(f.text)} "
            f"<em>{escape(f.advice)}</em></li>"
            for f in self.findings
        )
        return (
            f"<div><p><strong>{escape(self.method)}: {escape(self.verdict)}</strong></p>"
            f"<ul>{findings}</ul><table>{facts}</table>{self._table_html()}</div>"
        )

    def _table_lines(self) -> list[str]:
        rows = [["", *map(str, self.environments.tolist())]]
        for label, counts in zip(self._class_names(), self.counts.tolist(), strict=True):
            rows.append([label, *map(str, counts)])
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return [
            "    " + "  ".join(text.rjust(w) for text, w in zip(row, widths, strict=True))
            for row in rows
        ]

    def _table_html(self) -> str:
        head = "".join(f'<th scope="col">{escape(str(e))}</th>' for e in self.environments.tolist())
        body = "".join(
            f'<tr><th scope="row">{escape(name)}</th>'
            f"{''.join(f'<td>{n}</td>' for n in counts)}</tr>"
            for name, counts in zip(self._class_names(), self.counts.tolist(), strict=True)
        )
        return (
            "<table><caption>Rows per class and environment</caption>"
            f"<tr><th></th>{head}</tr>{body}</table>"
        )

    def _class_names(self) -> list[str]:
        return ["all rows"] if len(self.classes) == 1 else [str(c) for c in self.classes.tolist()]


def _described(choice: RankChoice, *, with_rank: bool) -> str:
    ps = ", ".join(f"{p:.3f}" if p >= 0.001 else "<0.001" for p in choice.p_values)
    return f"{choice.rank} (p = {ps})" if with_rank else f"p = {ps}, level {choice.alpha:g}"


def _listed(labels: Any, most: int = 6) -> str:
    names = [str(label) for label in labels.tolist()]
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
