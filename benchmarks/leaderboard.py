"""The leaderboard on real data: make DATA files from raw folders, compare, write the table.

python benchmarks/leaderboard.py files RAW_FOLDER --out build/data
python benchmarks/leaderboard.py table --data build/data --out docs/leaderboard

RAW_FOLDER holds what ``SOURCES`` names. The second command runs ``isrlearn compare`` on every file,
as a user would, and writes a csv for each and one markdown table.
"""

import csv
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from cyclopts import App

app = App(help=__doc__)
HOSPITALS = ("cleveland", "hungarian", "switzerland", "va")
MOSTLY_MISSING = ("slope", "ca", "thal")  # outside Cleveland
PAGE = Path("docs/compare.md")
MARKS = "<!-- leaderboard -->", "<!-- end of leaderboard -->"
ABOUT_AVERAGES = (
    "Average / worst group, percent, `isrlearn compare` with its defaults (leave one environment "
    "out for the last three):"
)
ABOUT_GAINS = (
    "Worst group of ISR less that of others, in points, paired over the same resampled test rows:"
)
GAINS = (
    "directions removed",
    "best rival",
    "ISR − best rival",
    "ISR − ERM",
    "ISR − ISR without removal",
    "ISR − ISR chosen",
)
OURS = ("isr", "isr-head", "isr-chosen", "isr-chosen-head")
KEYS = (
    *OURS,
    *("group-reweighted", "group-dro", "dfr", "subsampled", "leace-class"),
    *("leace", "inlp", "coral", "v-rex", "irm", "class-reweighted", "erm"),
)
ONE_OUT = ("--test", "leave-one-environment-out")


def pair_features(pairs: Any) -> Any:
    """Return [u, v, |u - v|, 10 u v] of sentence pairs whose embeddings stand side by side."""
    u, v = np.split(pairs.astype(np.float32), 2, axis=1)
    return np.hstack([u, v, np.abs(u - v), 10 * u * v])


def waterbirds(raw: Path, out: Path) -> None:
    """Rebuilt Waterbirds: frozen features, label bird, environment background."""
    _archive(raw / "waterbirds_rebuilt_efficientnet_lite0", out, "environments", lambda X: X)


def multinli(raw: Path, out: Path) -> None:
    """MultiNLI development set: pair features, environment extended negation."""
    folder = raw / "multinli_dev_matched_minilm"
    _archive(folder, out, "environments_extended", pair_features)


def pacs(raw: Path, out: Path) -> None:
    """PACS: frozen features, environment domain."""
    _archive(raw / "pacs_efficientnet_lite0", out, "environments", lambda X: X)


def heart_disease(raw: Path, out: Path) -> None:
    """Heart disease of four hospitals: ten columns; a cholesterol of 0 is a missing one."""
    rows = []
    for hospital in HOSPITALS:
        text = (raw / "heart_disease" / f"processed.{hospital}.data").read_text(encoding="utf-8")
        for row in csv.DictReader(text.splitlines()):
            kept = {name: v for name, v in row.items() if name not in MOSTLY_MISSING}
            kept["chol"] = "" if kept["chol"] in ("0", "0.0") else kept["chol"]
            disease = "yes" if float(kept.pop("target")) > 0 else "no"
            rows.append({"hospital": hospital, "disease": disease, **kept})
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def penguins(raw: Path, out: Path) -> None:
    """Palmer penguins: sex from four measurements, environment species; embedded."""
    from isrlearn.datasets import PENGUIN_FEATURES, load_penguins

    X, y, species = load_penguins()
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*PENGUIN_FEATURES, "sex", "species"])
        writer.writerows([*map(float, x), s, e] for x, s, e in zip(X, y, species, strict=True))


SOURCES: dict[str, tuple[str, Callable[[Path, Path], None], tuple[str, ...]]] = {
    "rebuilt Waterbirds": ("waterbirds.npz", waterbirds, ()),
    "MultiNLI": ("multinli.npz", multinli, ()),
    "PACS": ("pacs.npz", pacs, ONE_OUT),
    "heart disease": (
        "heart-disease.csv",
        heart_disease,
        ("--label", "disease", "--environment", "hospital", "--impute", "median", *ONE_OUT),
    ),
    "penguins": (
        "penguins.csv",
        penguins,
        ("--label", "sex", "--environment", "species", *ONE_OUT),
    ),
}


@app.command
def files(raw: Path, *, out: Path = Path("build/data")) -> None:
    """Turn raw folders into DATA files; folders that are not there are left out."""
    out.mkdir(parents=True, exist_ok=True)
    for title, (name, load, _) in SOURCES.items():
        try:
            load(raw, out / name)
            print(f"{title}: {out / name}")
        except FileNotFoundError as error:
            print(f"{title}: left out, {error.filename} is not there")


@app.command
def table(*, data: Path = Path("build/data"), out: Path = Path("docs/leaderboard")) -> None:
    """Run isrlearn compare on every DATA file and write what it found."""
    out.mkdir(parents=True, exist_ok=True)
    parts, found = [], {}
    for title, (name, _, options) in SOURCES.items():
        if (data / name).exists():
            text, found[title] = _section(title, data / name, options, out)
            parts.append(text)
    (out / "table.md").write_text("\n".join(parts), encoding="utf-8")
    _put_into_page(_summary(found))
    print(f"{out / 'table.md'} and {PAGE}")


def _archive(folder: Path, out: Path, environments: str, features: Callable[[Any], Any]) -> None:
    path = folder / f"{folder.name}.npz"
    with np.load(path, allow_pickle=False) as raw:
        np.savez(
            out,
            features=features(raw["features"]),
            labels=raw["labels"],
            environments=raw[environments],
            split=raw["split"],
        )


def _section(
    title: str, file: Path, options: tuple[str, ...], out: Path
) -> tuple[str, dict[str, Any]]:
    words = ["compare", str(file), *options]
    place = Path("build/compare") / file.stem
    begin = time.perf_counter()
    run = [sys.executable, "-m", "isrlearn", *words, "--out", str(place), "--force"]
    subprocess.run(run, check=True)
    seconds = time.perf_counter() - begin
    found = json.loads((place / "result.json").read_text(encoding="utf-8"))
    (out / f"{file.stem}.csv").write_bytes((place / "table.csv").read_bytes())
    command = "isrlearn " + " ".join(words)
    head = f"### {title}\n\n`{command}` ({seconds:.0f} s)\n\n{found['verdict']}\n"
    return "\n".join([head, *_lines(found["methods"]), ""]), found


def _lines(methods: list[dict[str, Any]]) -> list[str]:
    heading = "method | average | training mix | worst group | ISR minus this | removed | fit"
    lines = [f"| {heading} |", "|---|---|---|---|---|---|---|"]
    for entry in methods:
        cells = (
            entry["title"],
            _percent(entry["average"]),
            _percent(entry["adjusted_average"]),
            _with_interval(entry, "worst_group"),
            _with_interval(entry, "isr_minus_this", signed=True),
            _distinct(entry["n_spurious"]),
            f"{entry['fit_seconds']:.2f} s",
        )
        bold = "**" if entry["method"] == "isr" else ""
        lines.append("| " + " | ".join(f"{bold}{cell}{bold}" for cell in cells) + " |")
    return lines


def _percent(value: float | None, *, signed: bool = False) -> str:
    return "–" if value is None else f"{100 * value:{'+' if signed else ''}.1f}"


def _with_interval(entry: dict[str, Any], name: str, *, signed: bool = False) -> str:
    if entry[name] is None:
        return "–"
    low, high = (_percent(entry[f"{name}_{side}"]) for side in ("low", "high"))
    return f"{_percent(entry[name], signed=signed)} [{low}, {high}]"


def _distinct(numbers: list[int]) -> str:
    return " to ".join(map(str, sorted({min(numbers), max(numbers)}))) if numbers else "–"


def _summary(found: dict[str, dict[str, Any]]) -> str:
    """Return both short tables of the page: all methods, and ISR against some."""
    by_key = {t: {m["method"]: m for m in result["methods"]} for t, result in found.items()}
    columns = f"| {' | '.join(found)} |\n|---|{'---|' * len(found)}"
    averages = [f"| {columns}"]
    for key in KEYS:
        bold = "**" if key == "isr" else ""
        cells = [
            f"{_percent(methods[key]['average'])} / {_percent(methods[key]['worst_group'])}"
            for methods in by_key.values()
        ]
        words = [next(iter(by_key.values()))[key]["title"], *cells]
        averages.append("| " + " | ".join(f"{bold}{word}{bold}" for word in words) + " |")
    return "\n".join([ABOUT_AVERAGES, "", *averages, "", ABOUT_GAINS, "", *_gains(by_key)])


def _gains(by_key: dict[str, dict[str, Any]]) -> list[str]:
    lines = [f"| | {' | '.join(GAINS)} |", f"|---|{'---|' * len(GAINS)}"]
    for title, methods in by_key.items():
        rival = next(m for m in methods.values() if m["method"] not in OURS)
        compared = (rival, methods["erm"], methods["isr-head"], methods["isr-chosen"])
        gains = [_with_interval(m, "isr_minus_this", signed=True) for m in compared]
        removed = _distinct(methods["isr"]["n_spurious"])
        lines.append("| " + " | ".join([title, removed, rival["title"], *gains]) + " |")
    return lines


def _put_into_page(text: str) -> None:
    before, rest = PAGE.read_text(encoding="utf-8").split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    parts = (before, MARKS[0], "\n\n", text, "\n\n", MARKS[1], after)
    PAGE.write_text("".join(parts), encoding="utf-8")


if __name__ == "__main__":
    app()
