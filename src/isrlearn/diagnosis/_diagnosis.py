"""What a fit can be trusted for: a report in plain words, from what the fit has seen."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from isrlearn.display import bullets, table, tagged, titled
from isrlearn.subspace import RankChoice
from isrlearn.typing import Float64Array, IntArray, LabelArray

__all__ = ["Diagnosis", "Finding"]

MOST_COLUMNS: Final = 12


@dataclass(frozen=True)
class Finding:
    """One thing to know about a fit.

    Parameters
    ----------
    code : str
        A fixed name, such as ``"too_few_environments"``.
    is_warning : bool
        Whether the result should not be relied on without acting on it.
    text : str
        What was seen.
    advice : str
        What to do about it.

    Examples
    --------
    >>> from isrlearn import ISRMean
    >>> from isrlearn.datasets import load_penguins
    >>> X, sex, species = load_penguins()
    >>> diagnosis = ISRMean(n_spurious=1).fit(X, sex, environments=species).diagnose()
    >>> all(finding.text and finding.advice for finding in diagnosis.findings)
    True
    """

    code: str
    is_warning: bool
    text: str
    advice: str


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
    feature_names : tuple of str
        Names of the features.
    feature_shares_removed : ndarray of shape (d,) or None
        Share of the variance of each feature, given the target, that goes with the removed
        coordinates.

    Examples
    --------
    >>> from isrlearn import ISRMean
    >>> from isrlearn.datasets import load_penguins
    >>> X, sex, species = load_penguins()
    >>> diagnosis = ISRMean(n_spurious=1).fit(X, sex, environments=species).diagnose()
    >>> diagnosis.method, diagnosis.n_spurious, diagnosis.most_by_means
    ('ISRMean', 1, 3)
    >>> dict(diagnosis.facts())["environments"]
    '3: Adelie, Chinstrap, Gentoo'
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
    feature_names: tuple[str, ...]
    feature_shares_removed: Float64Array | None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Codes of the findings that are warnings."""
        return tuple(finding.code for finding in self.findings if finding.is_warning)

    def facts(self) -> list[tuple[str, str]]:
        """Return names and values of what was measured, as text."""
        rows = [
            ("environments", _listed(self.environments)),
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
                ("uncertainty of the subspace", f"{middle:.1f} degrees ({low:.1f} to {high:.1f})")
            )
        if self.feature_shares_removed is not None:
            rows.append(("features most removed", self._most_removed()))
        if self.target_share_removed is not None:
            rows.append(("target information removed", f"{self.target_share_removed:.0%}"))
        return rows

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.facts())
        lines = [f"{self.method}: {self.verdict}", ""]
        lines += [f"  {name:<{width}}  {value}" for name, value in self.facts()]
        if self.counts.size:
            lines += ["", f"  {self._caption()}", *self._table_lines()]
        for finding in self.findings:
            mark = "!" if finding.is_warning else "-"
            lines += ["", f"{mark} {finding.text}", f"  {finding.advice}"]
        return "\n".join(line.rstrip() for line in lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        findings = bullets(
            f"{tagged('strong', 'Warning.') if f.is_warning else ''} {tagged('span', f.text)} "
            f"{tagged('em', f.advice)}"
            for f in self.findings
        )
        facts = table("What was seen", [], [(n, [v]) for n, v in self.facts()], words=True)
        return titled(f"{self.method}: {self.verdict}", findings, facts, self._table_html())

    def _most_removed(self, most: int = 5) -> str:
        shares = np.asarray(self.feature_shares_removed)
        first = np.argsort(-shares, kind="stable")[:most]
        return ", ".join(f"{self.feature_names[j]} {shares[j]:.0%}" for j in first)

    def _caption(self) -> str:
        what = "environment" if self._continuous else "class and environment"
        return f"rows per {what}"

    @property
    def _continuous(self) -> bool:
        return len(self.classes) == 1

    def _columns(self) -> tuple[list[str], list[list[int]]]:
        """Return the heads and the counts of the table; of many environments a summary."""
        if len(self.environments) <= MOST_COLUMNS:
            return [str(e) for e in self.environments.tolist()], self.counts.tolist()
        summary = np.quantile(self.counts, [0, 0.5, 1], axis=1, method="lower").T
        return ["least", "median", "most"], summary.astype(int).tolist()

    def _table_lines(self) -> list[str]:
        heads, rows_of_counts = self._columns()
        rows = [["", *heads]]
        for label, counts in zip(self._class_names(), rows_of_counts, strict=True):
            rows.append([label, *map(str, counts)])
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return [
            "    " + "  ".join(text.rjust(w) for text, w in zip(row, widths, strict=True))
            for row in rows
        ]

    def _table_html(self) -> str:
        if self.counts.size == 0:
            return ""
        heads, counts = self._columns()
        rows = list(zip(self._class_names(), counts, strict=True))
        return table(self._caption().capitalize(), heads, rows)

    def _class_names(self) -> list[str]:
        return ["all rows"] if self._continuous else [str(c) for c in self.classes.tolist()]


def _described(choice: RankChoice, *, with_rank: bool) -> str:
    shown = [f"{p:.3f}" if p >= 0.001 else "<0.001" for p in choice.p_values]
    if len(shown) > MOST_COLUMNS:
        shown = [*shown[: MOST_COLUMNS // 2], "...", shown[-1]]
    ps = ", ".join(shown)
    levels = sorted({step.level for step in choice.steps}, reverse=True)
    at = " and ".join(f"{level:.2g}" for level in levels)
    return f"{choice.rank} (p = {ps})" if with_rank else f"p = {ps}; level {at or choice.alpha}"


def _listed(labels: Any, most: int = 6) -> str:
    names = [str(label) for label in labels.tolist()]
    if not names:
        return "none"
    return f"{len(names)}: {', '.join(names[:most])}" + (", ..." if len(names) > most else "")
