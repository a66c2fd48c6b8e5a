"""From rows to tables: choose trials, average over seeds, compare with what was published."""

from collections.abc import Callable, Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy import stats

from isrlearn._csv import inert
from isrlearn._files import write_whole
from isrlearn.benchmark.methods import METHODS, Method
from isrlearn.benchmark.spec import FIGURE_EXAMPLES, Job
from isrlearn.benchmark.store import COLUMNS, SPEC_COLUMNS, Store

SETTING: Final = [name for name in SPEC_COLUMNS if name != "seed"]
"""What a mean over seeds is taken within."""
PUBLISHED_SEEDS: Final = 50
FIGURE_PROBLEM: Final = {"d_c": 5, "d_s": 5, "rows": 10_000, "constants": "published"}


def frame_of(store: Store) -> pd.DataFrame:
    """Return all rows of a store, one per job and trial.

    Parameters
    ----------
    store : Store
        The store.
    """
    return pd.DataFrame.from_records(store.records(), columns=list(COLUMNS))


def of_figure(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the paper's figure: d_c = d_s = 5, 10 000 rows per environment.

    Parameters
    ----------
    rows : DataFrame
        As from `frame_of`.
    """
    kept = np.logical_and.reduce([rows[name] == value for name, value in FIGURE_PROBLEM.items()])
    return rows[kept]


def of_jobs(rows: pd.DataFrame, jobs: Iterable[Job]) -> pd.DataFrame:
    """Return the rows that belong to the given jobs.

    Parameters
    ----------
    rows : DataFrame
        As from `frame_of`.
    jobs : iterable of Job
        Jobs.
    """
    wanted = pd.DataFrame.from_records([job.as_dict() for job in jobs]).drop_duplicates()
    return rows.merge(wanted, on=list(SPEC_COLUMNS))


def choose_trials(rows: pd.DataFrame) -> pd.DataFrame:
    """Keep one trial per setting: the one with the least mean validation error over the seeds.

    This is the published choice: one trial for all seeds. What a validation error is, the rule in
    each row says. Of equals the first is taken.

    Parameters
    ----------
    rows : DataFrame
        As from `frame_of`.
    """
    if rows.empty:
        return rows
    means = rows.groupby([*SETTING, "trial"], as_index=False)["error_validation"].mean()
    best = means.loc[means.groupby(SETTING)["error_validation"].idxmin(), [*SETTING, "trial"]]
    return rows.merge(best, on=[*SETTING, "trial"])


def mean_errors(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the mean test error over seeds of each setting, for the chosen trial.

    Parameters
    ----------
    rows : DataFrame
        As from `frame_of`.

    Returns
    -------
    DataFrame
        The columns of the setting, `label`, `trial`, `n_seeds`, `error_test`, `std`, `se` and
        `half`: half the width of the 95 % interval by Student's t.
    """
    chosen = choose_trials(rows)
    groups = chosen.groupby([*SETTING, "trial"], as_index=False)["error_test"]
    table = groups.agg(n_seeds="count", error_test="mean", std="std")
    table["se"] = table["std"] / np.sqrt(table["n_seeds"])
    free = np.maximum(table["n_seeds"] - 1, 1)
    table["half"] = table["se"] * stats.t.ppf(0.975, free)
    table["label"] = [label_of(row) for row in table.to_dict("records")]
    return _in_order(table)


def label_of(setting: dict[str, Any]) -> str:
    """Return the name of a method as figures and tables show it, with what is not as usual.

    Parameters
    ----------
    setting : dict
        With `method`, `trials`, `steps` and `rule`.
    """
    method = METHODS.get(setting["method"])
    if method is None:
        method = Method(setting["method"], setting["method"])
    unusual = [
        f"{setting[name]} {name}"
        for name, usual in (("trials", method.n_trials), ("steps", method.n_steps))
        if setting[name] != usual
    ]
    if setting["rule"] != (method.rule or "training-domain"):
        unusual.append(setting["rule"])
    return ", ".join([method.label, *unusual])


def wide_table(means: pd.DataFrame, example: str) -> pd.DataFrame:
    """Return mean test errors of one example: a row per method, a column per E.

    Parameters
    ----------
    means : DataFrame
        As from `mean_errors`.
    example : str
        Which example.
    """
    mine = means[means["example"] == example]
    table = mine.pivot(index="label", columns="n_environments", values="error_test")
    return table.loc[list(dict.fromkeys(mine["label"])), sorted(table.columns)]


def published() -> pd.DataFrame:
    """Return the published mean test errors of the benchmark's authors.

    Returns
    -------
    DataFrame
        `example`, `method`, `n_environments`, `error_test` and `std`: the mean over environments
        of the standard deviation over 50 seeds.
    """
    with (files("isrlearn.benchmark") / "data" / "published.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, dtype={"example": str})


def agreement(means: pd.DataFrame) -> pd.DataFrame:
    """Compare with what was published, cell by cell.

    Parameters
    ----------
    means : DataFrame
        As from `mean_errors`.

    Returns
    -------
    DataFrame
        `difference`, its standard error `se_difference` from both samples of seeds, and how many
        of these it is: `distance`, NaN with a single seed. The published part of the standard
        error is an upper bound: the published standard deviation is the mean of those of the
        environments, not that of their mean.
    """
    usual = [row["label"] == usual_label(row["method"]) for row in means.to_dict("records")]
    keys = ["example", "method", "n_environments"]
    both = means[usual].merge(_published_with_oracle(), on=keys, suffixes=("", "_published"))
    both["difference"] = both["error_test"] - both["error_test_published"]
    variance = both["std"] ** 2 / both["n_seeds"] + both["std_published"] ** 2 / PUBLISHED_SEEDS
    both["se_difference"] = np.sqrt(variance)
    equal = both["difference"] == 0
    both["distance"] = (both["difference"].abs() / both["se_difference"]).mask(equal, 0.0)
    return both


def write_csv(rows: pd.DataFrame, path: Path) -> None:
    """Write rows as csv that no spreadsheet runs, wholly or not at all."""
    safe = rows.rename(columns=inert)
    texts = safe.select_dtypes(exclude="number").columns
    safe[texts] = safe[texts].map(inert)
    write_whole(path, lambda target: safe.to_csv(target, index=False))


def write_parquet(rows: pd.DataFrame, path: Path) -> None:
    """Write rows as a Parquet file, wholly or not at all; needs the extra 'io'."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ValueError("Parquet needs the extra 'io': pip install 'isrlearn[io]'.") from error
    write_whole(path, lambda target: rows.to_parquet(target, index=False))


def usual_label(name: str) -> str | None:
    """Return the label of a method of ours as published; None for a user's.

    Parameters
    ----------
    name : str
        Name of the method.
    """
    return METHODS[name].label if name in METHODS else None


def _published_with_oracle() -> pd.DataFrame:
    """Return what was published, with the oracle also under the name of the exact one."""
    known = published()
    oracle = known[known["method"] == "oracle-adam"].assign(method="oracle")
    return pd.concat([known, oracle], ignore_index=True)


def _in_order(table: pd.DataFrame) -> pd.DataFrame:
    """Sort by the order of the figure's panels and of the methods, not by the alphabet."""
    keys = {"example": _place_in(FIGURE_EXAMPLES), "method": _place_in(METHODS)}
    return table.sort_values(
        ["example", "method", "label", "n_environments"],
        key=lambda column: column.map(keys[column.name]) if column.name in keys else column,
        kind="stable",
        ignore_index=True,
    )


def _place_in(known: Iterable[str]) -> Callable[[str], int]:
    order = {value: place for place, value in enumerate(known)}
    return lambda value: order.get(value, len(order))
