"""The figures: the paper's six panels, and the environments that each method needs."""

from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from isrlearn import plots
from isrlearn._files import write_whole
from isrlearn.benchmark.complexity import TOLERANCE
from isrlearn.benchmark.methods import METHODS
from isrlearn.benchmark.spec import FIGURE_EXAMPLES
from isrlearn.benchmark.summary import published

LARGEST_ERROR: Final = 0.6
_ORACLE: Final[dict[str, Any]] = {"color": "0.75", "linewidth": 6, "marker": None, "zorder": 1}
_STYLES: Final[dict[str, dict[str, Any]]] = {
    "oracle": _ORACLE,
    "oracle-adam": {**_ORACLE, "linewidth": 4, "color": "0.6"},
    "isr": {"color": "#0072b2", "marker": "o", "linewidth": 2.2, "zorder": 4},
    "isr-mean": {"color": "#56b4e9", "marker": "^"},
    "isr-cov": {"color": "#009e73", "marker": "s"},
    "erm": {"color": "#c49a00", "marker": "D"},
    "erm-standardised": {"color": "#e69f00", "marker": "v"},
    "erm-whitened": {"color": "#a65628", "marker": "P"},
    "isr-mean-adam": {"color": "#2b6c99", "marker": "<"},
    "isr-cov-adam": {"color": "#00664b", "marker": ">"},
    "erm-adam": {"color": "#d62728", "marker": "X"},
    "irmv1": {"color": "#cc79a7", "marker": "p"},
    "iga": {"color": "#7a4fa3", "marker": "h"},
    "and-mask": {"color": "#5c5c3d", "marker": "d"},
    "vrex": {"color": "#17becf", "marker": "*"},
}
_OTHER_COLORS: Final = ("#e7298a", "#1b9e77", "#7570b3", "#666666")
_VARIANTS: Final = ("-.", ":", (0, (5, 1, 1, 1, 1, 1)))
_PUBLISHED: Final = {"linestyle": "--", "linewidth": 1.1, "marker": None, "alpha": 0.9}
_COMMON: Final = {"markersize": 4.5, "linewidth": 1.4, "markerfacecolor": "white"}


def unit_test_figure(means: pd.DataFrame) -> Figure:
    """Draw mean test errors against the number of environments, a panel for each example.

    Parameters
    ----------
    means : DataFrame
        As from `isrlearn.benchmark.summary.mean_errors`.

    Returns
    -------
    Figure
        Lines with bands are ours: the mean and its 95 % interval. Dashed lines are published.
    """
    figure = Figure(figsize=(15, 4.4), layout="constrained", dpi=150)
    axes = figure.subplots(1, len(FIGURE_EXAMPLES), sharey=True)
    known, styles = published(), _styles(means)
    most = max(10, means["n_environments"].max())
    for ax, example in zip(axes, FIGURE_EXAMPLES, strict=True):
        _draw_published(ax, known[known["example"] == example])
        for label, rows in means[means["example"] == example].groupby("label", sort=False):
            x, y, half = (rows[name] for name in ("n_environments", "error_test", "half"))
            plots.plot_curve(ax, x, y, half, label=label, **styles[label])
        ax.set_title(f"Example {example}", fontsize=11)
        ax.set(xlabel="number of environments", ylim=(0, LARGEST_ERROR), xlim=(1.8, most + 0.2))
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.grid(alpha=0.25, linewidth=0.6)
    axes[0].set_ylabel("mean test error")
    _add_legend(figure, axes)
    return figure


def complexity_figure(least: pd.DataFrame) -> Figure:
    """Draw the least number of environments that each method needs, against d_s.

    Parameters
    ----------
    least : DataFrame
        As from `isrlearn.benchmark.complexity.least_environments`.
    """
    examples = list(dict.fromkeys(least["example"]))
    figure = Figure(figsize=(5.2 * len(examples), 4.6), layout="constrained", dpi=150)
    axes = figure.subplots(1, len(examples), sharey=True, squeeze=False)[0]
    most, styles = int(least["most_environments"].max()), _styles(least)
    for ax, example in zip(axes, examples, strict=True):
        mine = least[(least["example"] == example) & (least["method"] != "oracle")]
        spurious = sorted(least["d_s"].unique())
        ax.plot(
            spurious,
            [d + 1 for d in spurious],
            color="0.8",
            linewidth=7,
            zorder=0,
            label="d_s + 1 (Theorem 1)",
        )
        for label, rows in mine.groupby("label", sort=False):
            ax.plot(rows["d_s"], rows["needed"].fillna(most + 1), label=label, **styles[label])
        ax.axhspan(most + 0.5, most + 1.5, color="0.94", zorder=-1)
        ax.text(spurious[0], most + 1.25, f"not with {most}", fontsize=8, va="center")
        ax.set_title(_COMPLEXITY_TITLES.get(example, f"Example {example}"), fontsize=10)
        ax.set(xlabel="spurious dimensions d_s", ylim=(1.5, most + 1.5))
        ax.grid(alpha=0.25, linewidth=0.6)
    axes[0].set_ylabel(f"least E within {TOLERANCE} of the oracle")
    _add_legend(figure, axes)
    return figure


_COMPLEXITY_TITLES: Final = {
    "3s'": "variances differ (Example 3s')",
    "3s": "variances are equal (Example 3s)",
}


def save(figure: Figure, path: Path) -> None:
    """Write a figure; the file is there wholly or not at all.

    Parameters
    ----------
    figure : Figure
        What to write.
    path : Path
        A file that ends in .png, .svg or .pdf.
    """
    kind = path.suffix.removeprefix(".")
    write_whole(path, lambda unfinished: figure.savefig(unfinished, format=kind))


def _draw_published(ax: Any, known: pd.DataFrame) -> None:
    for method, rows in known.groupby("method", sort=False):
        if method == "oracle-adam":
            continue  # it lies on ours; the table compares them
        style = {**_COMMON, **_STYLES[method], **_PUBLISHED}
        label = f"{METHODS[method].label.removesuffix(' (Adam)')}, published"
        plots.plot_curve(ax, rows["n_environments"], rows["error_test"], label=label, **style)


def _styles(table: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the style of each label, the same in all panels."""
    methods = dict(zip(table["label"], table["method"], strict=True))
    foreign = [label for label, method in methods.items() if method not in _STYLES]
    styles = {}
    for label, method in methods.items():
        if label in foreign:
            own = {"color": _OTHER_COLORS[foreign.index(label) % len(_OTHER_COLORS)], "marker": "o"}
        else:
            of_method = [other for other in methods if methods[other] == method]
            variants = [other for other in of_method if other != METHODS[method].label]
            own = {**_STYLES[method], "linestyle": _dashes(label, variants)}
        styles[label] = {**_COMMON, **own}
    return styles


def _dashes(label: str, variants: list[str]) -> Any:
    return _VARIANTS[variants.index(label) % len(_VARIANTS)] if label in variants else "-"


def _add_legend(figure: Figure, axes: Any) -> None:
    entries: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        entries.update(dict(zip(labels, handles, strict=True)))
    ours_first = sorted(entries, key=lambda label: label.endswith("published"))
    figure.legend(
        [entries[label] for label in ours_first],
        ours_first,
        loc="outside lower center",
        ncols=_columns(ours_first, figure.get_figwidth()),
        frameon=False,
    )


def _columns(labels: list[str], width: float) -> int:
    """Return into how many columns labels fit, at most 6: what does not fit would be cut off."""
    for n_columns in range(min(6, len(labels)), 1, -1):
        longest = [max(map(len, part)) for part in np.array_split(labels, n_columns)]
        if sum(0.6 + 0.08 * length for length in longest) <= width:  # inches: handle and letters
            return n_columns
    return 1
