"""Environment complexity: how many environments each method needs, as an experiment."""

from typing import Final

import numpy as np
import pandas as pd

from isrlearn.benchmark.spec import Job, grid

TOLERANCE: Final = 0.01
EXAMPLES: Final = ("3s'", "3s")
"""The paper's Gaussian model, rotated: with spurious variances that differ, and with equal ones."""
METHODS: Final = ("oracle", "isr", "isr-mean", "isr-cov", "erm-whitened")
D_S: Final = tuple(range(1, 11))
N_ENVIRONMENTS: Final = tuple(range(2, 13))
N_SEEDS: Final = 5


def complexity_grid(
    methods: tuple[str, ...] = METHODS,
    d_s: tuple[int, ...] = D_S,
    n_environments: tuple[int, ...] = N_ENVIRONMENTS,
    n_seeds: int = N_SEEDS,
    *,
    trials: int | None = None,
    steps: int | None = None,
) -> list[Job]:
    """Return the jobs: every d_s with every number of environments, on both examples.

    Parameters
    ----------
    methods : tuple of str, optional
        Names of methods; the oracle is added if it is missing.
    d_s, n_environments : tuple of int, optional
        What is swept.
    n_seeds : int, default=5
        Seeds of each cell.
    trials, steps : int, default=None
        Of the methods that descend; None: as published.
    """
    with_oracle = dict.fromkeys(("oracle", *methods))
    return grid(
        with_oracle,
        EXAMPLES,
        n_environments,
        range(n_seeds),
        d_s=d_s,
        trials=trials,
        steps=steps,
    )


def least_environments(means: pd.DataFrame) -> pd.DataFrame:
    """Return the least E from which on a method stays within 0.01 of the oracle.

    Parameters
    ----------
    means : DataFrame
        As from `isrlearn.benchmark.summary.mean_errors`.

    Returns
    -------
    DataFrame
        `example`, `method`, `label`, `d_s`, `needed` (NaN: more than were tried) and
        `most_environments`, how many were tried.
    """
    oracle = means[means["method"] == "oracle"]
    keys = ["example", "d_s", "n_environments"]
    both = means.merge(oracle[[*keys, "error_test"]], on=keys, suffixes=("", "_oracle"))
    both["near"] = both["error_test"] <= both["error_test_oracle"] + TOLERANCE
    found = [
        {
            **dict(zip(["example", "method", "label", "d_s"], key, strict=True)),
            "needed": _first_of_last_run(rows["n_environments"], rows["near"]),
            "most_environments": rows["n_environments"].max(),
        }
        for key, rows in both.sort_values("n_environments", kind="stable").groupby(
            ["example", "method", "label", "d_s"], sort=False
        )
    ]
    return pd.DataFrame(found)


def _first_of_last_run(n_environments: pd.Series, near: pd.Series) -> float:
    """Return the least E such that it and all larger ones are near; NaN if the last is not."""
    far = np.flatnonzero(~near.to_numpy())
    start = far[-1] + 1 if len(far) else 0
    return float(n_environments.iloc[start]) if start < len(near) else float("nan")


def least_text(least: pd.DataFrame) -> str:
    """Return the table of least numbers of environments as text; "-" is more than were tried.

    Parameters
    ----------
    least : DataFrame
        As from `least_environments`.
    """
    parts = []
    for example, rows in least.groupby("example", sort=False):
        table = rows.assign(needed=[_whole(value) for value in rows["needed"]])
        wide = table.pivot(index="label", columns="d_s", values="needed")
        wide = wide.loc[list(dict.fromkeys(table["label"]))]
        parts.append(f"Example {example}: least E, by d_s\n{wide.to_string()}")
    return "\n\n".join(parts)


def _whole(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.0f}"
