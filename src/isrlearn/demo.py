"""The demonstration: coloured digits, plain training against ISR."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression

from isrlearn import plots
from isrlearn._files import write_whole
from isrlearn._predictors import ISRClassifier
from isrlearn._transformers import ISR, ISRMean
from isrlearn.datasets import EnvironmentRows, load_colored_digits
from isrlearn.metrics import GroupScores, group_scores

N_SPURIOUS = 2  # two classes in two environments identify two directions
BEFORE_AFTER = ("ERM", "ISR")


@dataclass(frozen=True)
class DemoRow:
    """One model of the demonstration."""

    name: str
    model: Any
    scores: GroupScores
    adjusted_average: float


def run_models(train: EnvironmentRows, test: EnvironmentRows, seed: int) -> Iterator[DemoRow]:
    """Fit the models one by one and score them on the test rows.

    Parameters
    ----------
    train, test : EnvironmentRows
        Rows to fit on and to score.
    seed : int
        Of the permutations of `ISR`.

    Yields
    ------
    DemoRow
    """
    for name, model in _models(seed).items():
        model.fit(train.X, train.y, environments=train.environments)
        scores = group_scores(test.y, model.predict(test.X), environments=test.environments)
        adjusted = scores.adjusted_average(train.y, train.environments)
        yield DemoRow(name, model, scores, adjusted)


def load(seed: int) -> tuple[EnvironmentRows, EnvironmentRows]:
    """Return the training and test rows of the demonstration."""
    return load_colored_digits(random_state=seed)


def model_names() -> list[str]:
    """Return the names of the models in the order in which they are fitted."""
    return list(_models(seed=0))


def save_picture(rows: list[DemoRow], test: EnvironmentRows, path: Path) -> None:
    """Draw decision values before and after removal, and accuracies per group.

    Parameters
    ----------
    rows : list of DemoRow
        All models; "before" and "after" are the two without reweighting.
    test : EnvironmentRows
        Rows to draw.
    path : Path
        File to write.
    """
    figure = Figure(figsize=(11, 3.9), layout="constrained", dpi=130)
    axes = figure.subplots(1, 3)
    before, after = (row for row in rows if row.name in BEFORE_AFTER)
    amounts = test.X @ after.model.subspace_.directions[0]
    for ax, row, title in ((axes[0], before, "before"), (axes[1], after, "after")):
        decisions = row.model.decision_function(test.X)
        plots.plot_reliance(
            ax, amounts, decisions, test.y, test.environments, colors=("#2a8f5b", "#c8452e")
        )
        ax.set_title(f"{title}: {row.name}", fontsize=10)
        ax.set_ylabel("decision value (above 0: digit 5 to 9)")
    axes[1].sharey(axes[0])
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower left", ncols=4, frameon=False, fontsize=9)
    plots.plot_group_accuracies(axes[2], {row.name: row.scores for row in (before, after)})
    axes[2].set_title("accuracy per group", fontsize=10, pad=26)
    write_whole(path, lambda unfinished: figure.savefig(unfinished, format="png"))


def _models(seed: int) -> dict[str, ISRClassifier]:
    head = LogisticRegression(max_iter=1000)

    removals = {"ERM": ISR(0), "ISR-Mean": ISRMean(N_SPURIOUS), "ISR": ISR(random_state=seed)}
    weights = {"": None, ", reweighted": "balanced"}
    return {
        name + how: ISRClassifier(isr, head, group_weight=weight)
        for name, isr in removals.items()
        for how, weight in weights.items()
    }
