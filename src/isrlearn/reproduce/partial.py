"""Partial environment labels: moments from a part of the rows, the head from all of them."""

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.stats

from isrlearn.estimators import ISR, ISRTransformer
from isrlearn.exceptions import EmptyCellWarning
from isrlearn.io import Features
from isrlearn.reproduce.heads import Reduced, removal, score
from isrlearn.reproduce.plans import Plan
from isrlearn.reproduce.tables import SCORES, TITLES, chosen
from isrlearn.typing import IntArray

FRACTIONS: Final = tuple(round(0.1 * i, 1) for i in range(1, 11))
N_SUBSETS: Final = 10
METHODS: Final = ("isr-mean", "isr-cov", "isr")


def partial_records(
    features: Features,
    result: dict[str, Any],
    plan: Plan,
    *,
    advance: Callable[[], None] = lambda: None,
) -> list[dict[str, Any]]:
    """Score one network with a part of the environment labels.

    The settings of each method are those of the table, chosen with all labels; a row whose
    environment is not known takes part in the head alone. Where the labels are too few to compare
    any class between environments, nothing is removed.

    Parameters
    ----------
    features : Features
        Of the network, with the split.
    result : dict
        Of the network in Table 1.
    plan : Plan
        Of the table.
    advance : callable
        Called after each subset.

    Returns
    -------
    list of dict
        Objective, seed, method, fraction, subset, directions removed and test scores.
    """
    train, test = features.take(0), features.take(2)
    space = Reduced(train, plan.heads.pca)
    n_environments = len(np.unique(train.environments[train.environments >= 0]))
    records = []
    for fraction in FRACTIONS:
        # All labels: every subset is the same.
        for subset in range(1 if fraction == 1 else N_SUBSETS):
            environments = hide(train.environments, fraction, [result["seed"], subset])
            for method in METHODS:
                setting = chosen(result)[method]
                isr = removal(method, setting["n_spurious"], n_environments)
                isr = _fitted(space, isr, environments)
                weights = space.head(isr, setting["C"], setting["head"], environments)
                scores = score(test, weights)
                records.append(
                    {
                        "objective": result["objective"],
                        "seed": result["seed"],
                        "method": method,
                        "fraction": fraction,
                        "subset": subset,
                        "n_removed": isr.n_spurious_,
                        "average": scores.average,
                        "worst_group": scores.worst,
                    }
                )
            advance()
    return records


def _fitted(space: Reduced, isr: ISRTransformer, environments: Any) -> ISRTransformer:
    """Fit a removal, or one that removes nothing where the labels are too few to compare."""
    if not _comparable(space.rows.labels, environments):
        return space.remove(ISR(0), environments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EmptyCellWarning)  # what few labels are bound to give
        return space.remove(isr, environments)


def _comparable(labels: IntArray, environments: Any) -> bool:
    """Say whether some class has two rows in each of two environments."""
    known = np.array([e is not None for e in environments])
    cells = Counter(zip(labels[known].tolist(), environments[known].tolist(), strict=True))
    large = Counter(label for (label, _), size in cells.items() if size > 1)
    return max(large.values(), default=0) > 1


def hide(environments: IntArray, fraction: float, seed: list[int]) -> Any:
    """Return environments of which a random share is known, and the rest None.

    Parameters
    ----------
    environments : ndarray of shape (n,)
        All of them; -1 where unknown.
    fraction : float
        Share of the known ones that stays known.
    seed : list of int
        Which rows.

    Returns
    -------
    ndarray of shape (n,)
    """
    shown = np.full(len(environments), None, dtype=object)
    known = np.random.default_rng(seed).permutation(np.flatnonzero(environments >= 0))
    kept_rows = known[: round(fraction * len(known))]
    shown[kept_rows] = environments[kept_rows]
    return shown


def partial_figure(records: list[dict[str, Any]], results: list[dict[str, Any]]) -> Any:
    """Draw mean accuracies against the share of known environments, with 95 % bands.

    A band is the interval of the mean over networks, each network by its mean over subsets: runs of
    one network are too much alike to count as independent. With one network it is over subsets.

    Parameters
    ----------
    records : list of dict
        Of `partial_records`, over networks.
    results : list of dict
        Of the networks in Table 1, for the level of the original heads.

    Returns
    -------
    matplotlib figure
    """
    from matplotlib.figure import Figure

    from isrlearn.plots import plot_curve

    figure = Figure(figsize=(9, 3.6), layout="constrained", dpi=130)
    for ax, score_name in zip(figure.subplots(1, 2), ("worst_group", "average"), strict=True):
        for method, color in zip(METHODS, ("#3b6fb6", "#d98032", "#7a4fa3"), strict=True):
            means, halves = _curve(records, method, score_name)
            label = TITLES[method]
            percent = [100 * f for f in FRACTIONS]
            plot_curve(ax, percent, means, halves, color=color, marker="o", label=label)
        level = 100 * np.mean([chosen(r)["original"][score_name] for r in results])
        ax.axhline(level, color="0.4", linestyle="--", label="original head")
        ax.set(xlabel="known environments (%)", ylabel=f"{SCORES[score_name]} accuracy (%)")
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


def _half(values: list[float]) -> float:
    """Return half the width of the 95 % interval of a mean."""
    if len(values) < 2:
        return 0.0
    quantile = scipy.stats.t.ppf(0.975, len(values) - 1)
    return float(quantile * np.std(values, ddof=1) / np.sqrt(len(values)))


def _curve(
    records: list[dict[str, Any]], method: str, score_name: str
) -> tuple[list[float], list[float]]:
    means, halves = [], []
    for fraction in FRACTIONS:
        runs: dict[int, list[float]] = {}
        for record in records:
            if record["method"] == method and record["fraction"] == fraction:
                runs.setdefault(record["seed"], []).append(100 * record[score_name])
        networks = [float(np.mean(values)) for values in runs.values()]
        means.append(float(np.mean(networks)))
        halves.append(_half(networks if len(networks) > 1 else next(iter(runs.values()))))
    return means, halves
