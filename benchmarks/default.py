"""Which removal and which head should `ISRClassifier()` have? A study on validation rows alone.

python benchmarks/leaderboard.py files RAW_FOLDER --out build/data
python benchmarks/default.py --data build/data --out benchmarks/results/default.csv

Rebuilt Waterbirds and MultiNLI: fitted on the training rows, scored on the validation rows (worst
group). PACS and heart disease: for each environment that is kept for the test, the others are
predicted one by one from those left (accuracy, mean over all such pairs): the kept one is never
looked at. Coloured digits: a fifth of the training rows is validation (worst group).
"""

import csv
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from cyclopts import App

from isrlearn import ISR, ISRClassifier, ISRCov, ISRMean, LogisticHead
from isrlearn.datasets import load_colored_digits
from isrlearn.io import read_data
from isrlearn.leaderboard._preparation import prepare
from isrlearn.metrics import group_scores
from isrlearn.selection._rules import environment_folds, stratified_part

app = App(help=__doc__)
REMOVALS = {
    "nothing": lambda: ISR(0),
    "ISRMean(1)": lambda: ISRMean(1),
    "ISRMean(2)": lambda: ISRMean(2),
    'ISRMean("auto")': lambda: ISRMean("auto", random_state=0),
    "ISR(1)": lambda: ISR(1),
    "ISR()": lambda: ISR(random_state=0),
    "ISRCov(1)": lambda: ISRCov(1),
    "ISRMean(1, scale=0.5)": lambda: ISRMean(1, scale=0.5),
    "ISRMean(1), soft": None,
}
Rows = tuple[Any, Any, Any]


def soft(X: Any, y: Any, e: Any) -> ISRMean:
    """Return removal by the signal share l / (1 + l), l the variance between over that within."""
    direction = ISRMean(1).fit(X, y, environments=e).spurious_components_[0]
    along, between, within, n = X @ direction, 0.0, 0.0, 0
    for c in np.unique(y):
        means = [along[(y == c) & (e == k)].mean() for k in np.unique(e[y == c])]
        between += float(np.var(means)) * (y == c).sum()
        for k in np.unique(e[y == c]):
            cell = along[(y == c) & (e == k)]
            within, n = within + float(cell.var()) * len(cell), n + len(cell)
    share = (between / n) / (between / n + within / n)
    return ISRMean(1, scale=1 - share)


def folds(name: str, data: Path) -> Iterator[tuple[Rows, Rows, bool]]:
    """Yield rows to fit on, rows to score, and whether the worst group counts."""
    if name == "coloured digits":
        X, y, e = load_colored_digits(random_state=0)[0]
        apart = stratified_part(y, e, 0.2, np.random.default_rng(0))
        rest = np.setdiff1d(np.arange(len(y)), apart)
        yield *_prepared((X, y, e), rest, apart, False), True
        return
    columns = {"label": "disease", "environment": "hospital"} if "heart" in name else {}
    file = {"rebuilt Waterbirds": "waterbirds.npz", "MultiNLI": "multinli.npz"}.get(name)
    found = read_data(
        data / (file or {"PACS": "pacs.npz"}.get(name, "heart-disease.csv")), **columns
    )
    X, y, e = found.features, found.labels, np.asarray(found.environments)
    if file:
        parts = [np.flatnonzero(found.split == part) for part in (0, 1)]
        yield *_prepared((X, y, e), *parts, False), True
        return
    for outer in environment_folds(e, len(e)):
        inside = outer.fitted
        for fold in environment_folds(e[inside], len(inside)):
            places = inside[fold.fitted], inside[fold.scored]
            yield *_prepared((X, y, e), *places, found.schema.kind == "table"), False


def _prepared(rows: Rows, fitted: Any, scored: Any, with_units: bool) -> tuple[Rows, Rows]:
    X, y, e = rows
    names = tuple(f"x{j}" for j in range(X.shape[1]))
    learned = prepare(X[fitted], names, impute="median", with_units=with_units)
    first, second = ((learned.apply(X[part]), y[part], e[part]) for part in (fitted, scored))
    return first, second


@app.default
def study(*, data: Path = Path("build/data"), out: Path = Path("build/default.csv")) -> None:
    """Score every removal with both heads on every set."""
    warnings.simplefilter("ignore")
    records = []
    for name in ("rebuilt Waterbirds", "MultiNLI", "coloured digits", "PACS", "heart disease"):
        parts = list(folds(name, data))
        for removal, make in REMOVALS.items():
            for weight in ("balanced", None):
                scores = [_score(part, make, weight) for part in parts]
                value = float(np.mean([s for s, _ in scores]))
                ranks = sorted({rank for _, rank in scores})
                record = {"set": name, "removal": removal, "group_weight": str(weight)}
                records.append(record | {"score": f"{value:.3f}", "removed": f"{ranks}"})
                print(*records[-1].values(), sep="  ", flush=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]))
        writer.writeheader()
        writer.writerows(records)


def _score(part: tuple[Rows, Rows, bool], make: Any, weight: str | None) -> tuple[float, int]:
    (X, y, e), (X_new, y_new, e_new), by_group = part
    isr = soft(X, y, e) if make is None else make()
    head = LogisticHead(max_iter=1000, tol=1e-6)
    clf = ISRClassifier(isr, head, group_weight=weight).fit(X, y, environments=e)
    scores = group_scores(y_new, clf.predict(X_new), environments=e_new)
    return (scores.worst if by_group else scores.average), clf.n_spurious_


if __name__ == "__main__":
    app()
