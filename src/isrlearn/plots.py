"""Pictures: axes in, axes out. Needs matplotlib (``pip install isrlearn[bench]``)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from isrlearn.metrics import GroupScores
from isrlearn.subspace import Subspace
from isrlearn.typing import Float64Array, LabelArray

__all__ = ["plot_curve", "plot_group_accuracies", "plot_reliance", "plot_spectrum"]

_PALETTE = ("#3b6fb6", "#d98032", "#7a4fa3", "#2a8f5b", "#c8452e", "#4d4d4d")
_MARKERS = ("o", "^", "s", "D", "v", "P")


def plot_reliance(
    ax: Any,
    amounts: Float64Array,
    decisions: Float64Array,
    y: LabelArray,
    environments: LabelArray,
    *,
    colors: Sequence[str] = _PALETTE,
) -> Any:
    """Plot decision values against the amount of a spurious direction.

    A model that leans on the direction shows a slope; one that does not shows none.

    Parameters
    ----------
    ax : matplotlib axes
        Where to draw.
    amounts : ndarray of shape (n,)
        Coordinate of each row along the direction.
    decisions : ndarray of shape (n,)
        Decision value of each row.
    y, environments : ndarray of shape (n,)
        Class (marker) and environment (colour) of each row.
    colors : sequence of str, optional
        Colours of the environments in their sorted order, repeated if there are fewer.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> amounts, y, cameras = np.array([-1.0, 1.0]), np.array([0, 1]), np.array(["old", "new"])
    >>> axes = plot_reliance(Figure().subplots(), amounts, 2 * amounts, y, cameras)
    >>> axes.get_ylabel()
    'decision value'
    """
    for i, environment in enumerate(np.unique(environments)):
        for j, label in enumerate(np.unique(y)):
            rows = (environments == environment) & (y == label)
            ax.scatter(
                amounts[rows],
                decisions[rows],
                s=18,
                color=colors[i % len(colors)],
                marker=_MARKERS[j % len(_MARKERS)],
                facecolors=None if j else "none",
                linewidths=0.8,
                alpha=0.75,
                zorder=3 + 1 / (1 + rows.sum()),  # small groups on top, or they are not seen
                label=f"class {label}, {environment}",
            )
    ax.axhline(0, color="0.4", linewidth=0.8)
    ax.set(xlabel="amount of the spurious direction", ylabel="decision value")
    return ax


def plot_group_accuracies(ax: Any, scores: Mapping[str, GroupScores]) -> Any:
    """Plot the accuracy of each (class, environment) group for several models.

    Parameters
    ----------
    ax : matplotlib axes
        Where to draw.
    scores : mapping of str to GroupScores
        Scores of the same groups, by the name of the model.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from isrlearn.metrics import group_scores
    >>> y, hospitals = [0, 0, 1, 1], ["a", "b", "a", "b"]
    >>> before = group_scores(y, [0, 1, 1, 0], environments=hospitals)
    >>> after = group_scores(y, [0, 0, 1, 0], environments=hospitals)
    >>> axes = plot_group_accuracies(Figure().subplots(), {"before": before, "after": after})
    >>> [float(bar.get_height()) for bar in axes.patches[4:]]  # after
    [1.0, 1.0, 1.0, 0.0]
    """
    first = next(iter(scores.values()))
    names = [f"class {c}\n{e}" for c in first.classes for e in first.environments]
    width = 0.8 / len(scores)
    for i, (name, score) in enumerate(scores.items()):
        places = np.arange(len(names)) + (i - (len(scores) - 1) / 2) * width
        shade = _PALETTE[0] if i == len(scores) - 1 else "0.72"
        ax.bar(places, score.accuracies.ravel(), width, label=name, color=shade)
    ax.set(ylabel="accuracy", ylim=(0, 1))
    ax.set_xticks(np.arange(len(names)), names)
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=len(scores))
    return ax


def plot_curve(
    ax: Any,
    x: Sequence[float],
    middle: Sequence[float],
    half: Sequence[float] | None = None,
    **style: Any,
) -> Any:
    """Plot a line through means, with a band for their intervals.

    Parameters
    ----------
    ax : matplotlib axes
        Where to draw.
    x, middle : sequence of float
        Places and means.
    half : sequence of float, default=None
        Half the width of each interval; None draws no band.
    **style : dict
        Of the line, as in ``Axes.plot``.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> axes = plot_curve(Figure().subplots(), [2, 3], [0.3, 0.2], [0.1, 0.1], label="ISR")
    >>> axes.get_lines()[0].get_label(), len(axes.collections)
    ('ISR', 1)
    """
    (line,) = ax.plot(x, middle, **style)
    if half is not None:
        spread = np.nan_to_num(np.asarray(half, dtype=float))
        low, high = np.asarray(middle) - spread, np.asarray(middle) + spread
        ax.fill_between(x, low, high, color=line.get_color(), alpha=0.12, linewidth=0)
    return ax


def plot_spectrum(ax: Any, fitted: Any) -> Any:
    """Plot the eigenvalues that the directions were found by, with the removed ones marked.

    Parameters
    ----------
    ax : matplotlib axes
        Where to draw.
    fitted : estimator or Subspace
        A fitted transformer or predictor, or what it removes.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from isrlearn import ISRMean
    >>> from isrlearn.datasets import load_penguins
    >>> X, y, species = load_penguins()
    >>> isr = ISRMean(n_spurious=1).fit(X, y, environments=species)
    >>> axes = plot_spectrum(Figure().subplots(), isr)
    >>> axes.get_legend_handles_labels()[1]
    ['removed (1)', 'kept (3)']
    """
    found = _subspace_of(fitted)
    places, rank = np.arange(1, found.n_features + 1), found.rank
    common = {"linestyle": "", "marker": "o", "color": _PALETTE[0]}
    kept = found.n_features - rank
    ax.plot(places[:rank], found.spectrum[:rank], label=f"removed ({rank})", **common)
    ax.plot(places[rank:], found.spectrum[rank:], label=f"kept ({kept})", mfc="none", **common)
    ax.axhline(0, color="0.4", linewidth=0.8, zorder=0)
    ax.set(xlabel="direction, by size of its eigenvalue", ylabel="eigenvalue")
    ax.legend(frameon=False)
    return ax


def _subspace_of(fitted: Any) -> Subspace:
    if isinstance(fitted, Subspace):
        return fitted
    if not hasattr(type(fitted), "subspace_"):
        raise TypeError(
            f"fitted is a {type(fitted).__name__}: give a fitted ISR, ISRMean, ISRCov, "
            "ISRClassifier or ISRRegressor, or a Subspace."
        )
    found: Subspace = fitted.subspace_
    return found
