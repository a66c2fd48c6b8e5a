"""Tables as text or Markdown."""

from collections.abc import Sequence
from typing import Final

import pandas as pd

from isrlearn.benchmark.spec import FIGURE_EXAMPLES
from isrlearn.benchmark.summary import agreement, label_of, wide_table

FAR: Final = 2.0
TOO_FAR: Final = 4.0


def error_tables(means: pd.DataFrame, markdown: bool = False) -> str:
    """Return mean test errors, a table per example: methods in rows, environments in columns.

    Parameters
    ----------
    means : DataFrame
        As from `isrlearn.benchmark.summary.mean_errors`.
    markdown : bool, default=False
        Whether as Markdown.
    """
    parts = []
    for example in FIGURE_EXAMPLES:
        if example not in set(means["example"]):
            continue
        wide = wide_table(means, example)
        heads = ["method", *(f"E = {E}" for E in wide.columns)]
        rows = [
            [label, *map(_error, values)]
            for label, values in zip(wide.index, wide.to_numpy(), strict=True)
        ]
        seeds = _range(means.loc[means["example"] == example, "n_seeds"])
        title = f"Example {example}: mean test error, {seeds} seeds"
        parts.append(f"{title}\n\n{text_table(heads, rows, markdown)}")
    return "\n\n".join(parts)


def agreement_text(means: pd.DataFrame, markdown: bool = False) -> str:
    """Return each cell beside the published one, and how many are how far away.

    Parameters
    ----------
    means : DataFrame
        As from `isrlearn.benchmark.summary.mean_errors`.
    markdown : bool, default=False
        Whether as Markdown.
    """
    both = agreement(means)
    if both.empty:
        return "No cell of the store was published: examples 2, 2s, 3, 3s by the methods there."
    heads = ["example", "method", "E", "seeds", "ours", "published", "difference", "SE", "in SE"]
    rows = [
        [
            row["example"],
            row["label"],
            str(row["n_environments"]),
            str(row["n_seeds"]),
            _error(row["error_test"]),
            _error(row["error_test_published"]),
            f"{row['difference']:+.4f}",
            _error(row["se_difference"]),
            "-" if pd.isna(row["distance"]) else f"{row['distance']:.1f}",
        ]
        for row in both.to_dict("records")
    ]
    return f"{text_table(heads, rows, markdown)}\n\n{_verdict(both)}"


def _verdict(both: pd.DataFrame) -> str:
    is_oracle = both["method"].isin(["oracle", "oracle-adam"])
    lines = []
    if (~is_oracle).any():
        distance = both.loc[~is_oracle, "distance"].dropna()
        near, far = (distance <= FAR).sum(), (distance > TOO_FAR).sum()
        lines.append(
            f"{near} of {len(distance)} cells within {FAR:.0f} standard errors of the difference, "
            f"{far} beyond {TOO_FAR:.0f}."
        )
        alone = (~is_oracle).sum() - len(distance)
        if alone:
            lines.append(f"{alone} cells have one seed, which gives no standard error.")
    if is_oracle.any():
        largest = both.loc[is_oracle, "difference"].abs().max()
        lines.append(f"Oracle: at most {largest:.4f} from the published one.")
    return "\n".join(lines)


def count_table(rows: pd.DataFrame) -> str:
    """Return how many jobs of each method and example a store has.

    Parameters
    ----------
    rows : DataFrame
        As from `isrlearn.benchmark.summary.frame_of`.
    """
    jobs = rows[rows["trial"] == 0]
    jobs = jobs.assign(label=[label_of(row) for row in jobs.to_dict("records")])
    counts = jobs.pivot_table("seed", "label", "example", aggfunc="count", fill_value=0)
    heads = ["finished jobs", *(f"Ex. {example}" for example in counts.columns)]
    cells = zip(counts.index, counts.to_numpy(), strict=True)
    return text_table(heads, [[label, *map(str, values)] for label, values in cells], False)


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]], markdown: bool) -> str:
    """Return a table of strings; the first column is set left, the others right.

    Parameters
    ----------
    heads : sequence of str
        Heads of the columns.
    rows : sequence of sequences of str
        Cells.
    markdown : bool
        Whether as Markdown.
    """
    columns = zip(heads, *rows, strict=True)
    least = 3 if markdown else 1  # a rule of Markdown has at least one dash beside its colon
    widths = [max(least, *map(len, column)) for column in columns]
    lines = [_line(heads, widths, markdown), *(_line(row, widths, markdown) for row in rows)]
    if markdown:
        rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
        lines.insert(1, _line(rule, widths, markdown))
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int], markdown: bool) -> str:
    first, *others = zip(cells, widths, strict=True)
    padded = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
    return f"| {' | '.join(padded)} |" if markdown else "  ".join(padded).rstrip()


def _error(value: float) -> str:
    return "-" if pd.isna(value) else f"{value:.4f}"


def _range(values: pd.Series) -> str:
    low, high = values.min(), values.max()
    return f"{low}" if low == high else f"{low} to {high}"
