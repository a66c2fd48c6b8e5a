"""What a repair did: accuracies per group before and after."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from isrlearn.diagnosis import Diagnosis
from isrlearn.display import figure, table, titled
from isrlearn.metrics import GroupScores


@dataclass(frozen=True, eq=False)
class RepairReport:
    """Accuracies per (class, environment) group before and after a repair.

    Parameters
    ----------
    layer : str
        Name of the layer that was changed.
    head : str
        "refit" or "fold".
    n_spurious : int
        Number of directions that were removed.
    n_features : int
        Number of inputs of the layer.
    before, after : GroupScores
        Scores of the old and the new head on the same rows.
    held_out : bool
        Whether these rows were kept from the repair.
    diagnosis : Diagnosis
        What was found, how sure it is, which assumption fails.

    Examples
    --------
    >>> import torch
    >>> from isrlearn import ISRMean
    >>> from isrlearn.networks import repair
    >>> network = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2))
    >>> x = torch.randn(80, 4, generator=torch.Generator().manual_seed(0))
    >>> batch = x, (x[:, 0] > 0).long(), torch.arange(80) % 2
    >>> report = repair(network, [batch], isr=ISRMean(n_spurious=1)).report
    >>> report.layer, report.held_out, sum(size for _, _, size, _, _ in report.rows())
    ('1', False, 80)
    """

    layer: str
    head: str
    n_spurious: int
    n_features: int
    before: GroupScores
    after: GroupScores
    held_out: bool
    diagnosis: Diagnosis

    def rows(self) -> Iterator[tuple[Any, Any, int, float, float]]:
        """Yield class, environment, size, accuracy before and after of each group with rows."""
        before, after = self.before.accuracies, self.after.accuracies
        for c, label in enumerate(self.before.classes.tolist()):
            for e, environment in enumerate(self.before.environments.tolist()):
                size = int(self.before.sizes[c, e])
                if size:
                    yield label, environment, size, float(before[c, e]), float(after[c, e])

    def to_dict(self) -> dict[str, Any]:
        """Return the figures for a machine.

        Returns
        -------
        dict
        """
        names = ("class", "environment", "rows", "before", "after")
        return {
            "layer": self.layer,
            "head": self.head,
            "n_spurious": self.n_spurious,
            "n_features": self.n_features,
            "held_out": self.held_out,
            "average": [self.before.average, self.after.average],
            "worst_group": [self.before.worst, self.after.worst],
            "groups": [dict(zip(names, row, strict=True)) for row in self.rows()],
        }

    def __str__(self) -> str:
        lines = [
            self._what(),
            f"{self._where()}:",
            f"{'class':>12}{'environment':>16}{'rows':>8}{'before':>9}{'after':>9}",
        ]
        lines += [f"{c!s:>12}{e!s:>16}{n:>8}{b:>9.3f}{a:>9.3f}" for c, e, n, b, a in self.rows()]
        lines += [f"{name:>28}{'':>8}{b:>9.3f}{a:>9.3f}" for name, b, a in self._summary()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows: list[tuple[str, list[Any]]] = [
            (name, ["", figure(b), figure(a)]) for name, b, a in self._summary()
        ]
        rows += [(f"{c}, {e}", [n, figure(b), figure(a)]) for c, e, n, b, a in self.rows()]
        heads = ["rows", "before", "after"]
        return titled(self._what(), table(self._where(), heads, rows, corner="class, environment"))

    def _what(self) -> str:
        way = "head fitted anew" if self.head == "refit" else "old head, folded"
        return f"Layer {self.layer}: {self.n_spurious} of {self.n_features} directions out; {way}."

    def _where(self) -> str:
        which = "rows kept from the repair" if self.held_out else "the rows used for the repair"
        return f"Accuracy on {which}"

    def _summary(self) -> list[tuple[str, float, float]]:
        return [
            ("average", self.before.average, self.after.average),
            ("worst group", self.before.worst, self.after.worst),
        ]
