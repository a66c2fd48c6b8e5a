"""Tables of results beside the published ones."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

import numpy as np

from isrlearn._csv import write_records

METHODS: Final = ("original", "probe", "refit", "isr-mean", "isr-cov", "isr")
TITLES: Final = {
    "original": "original",
    "probe": "linear probe",
    "refit": "refit",
    "isr-mean": "ISR-Mean",
    "isr-cov": "ISR-Cov",
    "isr": "ISR",
    "erm": "ERM",
    "reweighting": "Reweighting",
    "groupdro": "GroupDRO",
}
SCORES: Final = {
    "average": "average",
    "adjusted_average": "average, training mix",
    "worst_group": "worst group",
}


@dataclass(frozen=True)
class Cell:
    """Mean and standard deviation over runs, in percent."""

    mean: float
    std: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.2f}±{self.std:.2f}"


def cell(values: Sequence[float]) -> Cell:
    """Return mean and standard deviation of shares, in percent."""
    percent = 100 * np.asarray(values, dtype=np.float64)
    std = float(np.std(percent, ddof=1)) if len(percent) > 1 else 0.0
    return Cell(float(np.mean(percent)), std, len(percent))


def published(table: int, data: str) -> dict[tuple[str, str], dict[str, Cell]]:
    """Return the paper's figures by objective and method.

    Parameters
    ----------
    table : int
        1 or 2.
    data : str
        "waterbirds", "celeba" or "multinli".

    Returns
    -------
    dict of (objective, method) to dict of score to Cell
    """
    source = files("isrlearn.reproduce").joinpath("data/published.csv")
    rows = csv.DictReader(source.read_text(encoding="utf-8").splitlines())
    return {
        (row["objective"], row["method"]): {
            score: Cell(float(row[score]), float(row[f"{score}_std"]), 10)
            for score in ("average", "worst_group")
        }
        for row in rows
        if row["table"] == str(table) and row["data"] == data
    }


def chosen(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the record of each method with the kind of head that validation preferred."""
    return {method: result["outcomes"][place] for method, place in result["selected"].items()}


def table_rows(
    results: Iterable[dict[str, Any]], head: str | None = None
) -> dict[tuple[str, str], dict[str, Cell]]:
    """Return the figures of results by objective and method.

    Parameters
    ----------
    results : iterable of dict
        As written for each network.
    head : {"plain", "balanced"}, default=None
        One kind of head for all; None is what validation preferred in each.

    Returns
    -------
    dict of (objective, method) to dict of score to Cell
    """
    collected: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for result in results:
        records = chosen(result)
        if head is not None:
            own = {o["method"]: o for o in result["outcomes"] if o["head"] == head}
            records = {**records, **own}
        for method, record in records.items():
            collected.setdefault((result["objective"], method), []).append(record)
    return {
        key: {score: cell([record[score] for record in records]) for score in SCORES}
        for key, records in collected.items()
    }


def text_table(
    ours: dict[tuple[str, str], dict[str, Cell]],
    theirs: dict[tuple[str, str], dict[str, Cell]],
    scores: Sequence[str] = tuple(SCORES),
) -> str:
    """Return a table in Markdown: a block per score, objectives in rows, methods in columns.

    Parameters
    ----------
    ours, theirs : dict
        As `table_rows` and `published` return them.
    scores : sequence of str
        Which of "average", "adjusted_average", "worst_group".

    Returns
    -------
    str
    """
    methods = [m for m in METHODS if any(method == m for _, method in ours)]
    objectives = list(dict.fromkeys(objective for objective, _ in ours))
    lines = []
    for score in scores:
        lines += ["", f"{SCORES[score]} (%)", ""]
        lines.append("| | " + " | ".join(TITLES[m] for m in methods) + " |")
        lines.append("|---|" + "---|" * len(methods))
        for objective in objectives:
            cells = [ours.get((objective, m), {}).get(score) for m in methods]
            lines.append(_line(TITLES[objective], cells))
            paper = [theirs.get((objective, m), {}).get(score) for m in methods]
            if any(paper):
                lines.append(_line("  paper", paper))
    return "\n".join(lines[1:])


def csv_rows(results: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row per network and outcome, with all that decided it.

    Parameters
    ----------
    results : iterable of dict
        As written for each network.

    Returns
    -------
    list of dict
    """
    rows = []
    for result in results:
        preferred = set(result["selected"].values())
        settings = {f"training_{k}": v for k, v in result.get("settings", {}).items()}
        common = {k: result.get(k) for k in ("data", "backbone", "plan", "rule", "best_epoch")}
        for place, outcome in enumerate(result["outcomes"]):
            figures = {k: v for k, v in outcome.items() if k != "groups"}
            rows.append(
                {
                    "objective": result["objective"],
                    "seed": result["seed"],
                    **figures,
                    "preferred_by_validation": place in preferred,
                    **common,
                    **settings,
                }
            )
    return rows


def write_csv(path: Any, rows: list[dict[str, Any]]) -> None:
    """Write rows as csv that no spreadsheet runs."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", encoding="utf-8", newline="") as file:
        write_records(file, names, rows)


def _line(title: str, cells: Sequence[Cell | None]) -> str:
    return f"| {title} | " + " | ".join("" if c is None else str(c) for c in cells) + " |"
