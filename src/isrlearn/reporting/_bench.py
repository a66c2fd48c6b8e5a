"""The page of a benchmark: the paper's figure, its tables, and how near the oracle we are."""

import io
from typing import Any, Final

from isrlearn.benchmark.figures import unit_test_figure
from isrlearn.benchmark.spec import FIGURE_EXAMPLES
from isrlearn.benchmark.summary import agreement, wide_table
from isrlearn.reporting._content import Made, Table
from isrlearn.reporting._images import png_address
from isrlearn.reporting._page import page

NEAR: Final = 0.01
TITLE: Final = "Linear Unit-Tests"


def bench_html(means: Any, made: Made, *, title: str = TITLE) -> str:
    """Return the page of a benchmark.

    Parameters
    ----------
    means : DataFrame
        As from `isrlearn.benchmark.summary.mean_errors`.
    made : Made
        How it came about.
    title : str, default="Linear Unit-Tests"
        Heading.

    Returns
    -------
    str

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from isrlearn.benchmark import Store, grid, run
    >>> from isrlearn.benchmark.summary import frame_of, mean_errors
    >>> from isrlearn.reporting import bench_html, made_now
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(Path(folder) / "store.sqlite").create()
    ...     _ = run(grid(["oracle", "isr"], ["2"], [3], range(2)), store, n_jobs=1)
    ...     page = bench_html(mean_errors(frame_of(store)), made_now())
    >>> page.startswith("<!doctype html>")
    True
    """
    figure = unit_test_figure(means)
    written = io.BytesIO()
    figure.savefig(written, format="png")
    return page(
        "bench.html.j2",
        title=title,
        verdict=nearness(means),
        picture=png_address(written.getvalue()),
        tables=[_errors(means, example) for example in FIGURE_EXAMPLES if _has(means, example)],
        published=_published(means),
        made=made,
    )


def nearness(means: Any) -> str:
    """Say in how many cells the methods are at the oracle.

    Parameters
    ----------
    means : DataFrame
        Mean errors.
    """
    keys = ["example", "n_environments"]
    oracle = means[means["method"] == "oracle"][[*keys, "error_test"]]
    said = []
    for method in ("isr", "isr-mean", "isr-cov", "erm"):
        own = means[means["method"] == method].drop_duplicates(keys)
        both = own.merge(oracle, on=keys, suffixes=("", "_oracle"))
        if len(both):
            near = int((both["error_test"] - both["error_test_oracle"] <= NEAR).sum())
            said.append(f"{both['label'].iloc[0]} in {near} of {len(both)}")
    if not said:
        return "The store has no oracle to compare with."
    return f"Within {NEAR} of the oracle's mean test error: {', '.join(said)} cells."


def _has(means: Any, example: str) -> bool:
    return bool((means["example"] == example).any())


def _errors(means: Any, example: str) -> Table:
    wide = wide_table(means, example)
    rows = tuple(
        (str(label), *(_error(value) for value in values))
        for label, values in zip(wide.index, wide.to_numpy().tolist(), strict=True)
    )
    ours = next((i for i, label in enumerate(wide.index) if str(label) == "ISR"), None)
    heads = ("method", *(f"E = {E}" for E in wide.columns))
    return Table(f"Example {example}", "", heads, rows, ours)


def _published(means: Any) -> Table | None:
    both = agreement(means)
    if both.empty:
        return None
    rows = tuple(
        (
            f"Example {row['example']}, {row['label']}, E = {row['n_environments']}",
            _error(row["error_test"]),
            _error(row["error_test_published"]),
            f"{row['difference']:+.4f}",
        )
        for row in both.to_dict("records")
    )
    heads = ("cell", "ours", "published", "difference")
    return Table("", "Mean test errors, ours and those that were published.", heads, rows)


def _error(value: float) -> str:
    return "–" if value != value else f"{value:.4f}"
