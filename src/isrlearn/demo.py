"""The demonstration: coloured digits, plain training against ISR."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sklearn.linear_model import LogisticRegression

from isrlearn._shown import Head, show_rows
from isrlearn.datasets import EnvironmentRows, load_colored_digits
from isrlearn.estimators import ISR, ISRClassifier, ISRMean, fold
from isrlearn.metrics import GroupScores, group_scores
from isrlearn.reporting import Report
from isrlearn.reporting._content import Made
from isrlearn.reporting._sources import from_models
from isrlearn.typing import Float64Array

N_SPURIOUS: Final = 2  # two classes in two environments identify two directions
PLAIN: Final = "ERM"
REMOVED: Final = "ISR-Mean"  # the same head: what differs is the removal
TITLE: Final = "Digits whose colour misleads"
INTRO: Final = (
    "Is a digit 5 or more? In 9 of 10 training rows its colour agrees with the label, in 1 of 10 "
    "test rows it does. ERM is plain logistic regression; ISR-Mean fits the same without the two "
    "directions in which class means differ most between colours, ISR without all that tests show "
    "to differ; reweighted lets all groups (a label in a colour) count the same."
)
NAMES: Final = ("0 to 4", "5 to 9")
SIDE: Final = 8


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


def make_report(
    rows: list[DemoRow],
    train: EnvironmentRows,
    test: EnvironmentRows,
    *,
    seed: int,
    made: Made,
    geometry: bool = False,
) -> Report:
    """Return the page of the demonstration.

    Parameters
    ----------
    rows : list of DemoRow
        All models. The best stands in the verdict; the rows are drawn before and after the removal
        of ISR-Mean, with the same head.
    train, test : EnvironmentRows
        Rows that were fitted on and scored.
    seed : int
        Of the tests.
    made : Made
        How it came about.
    geometry : bool, default=False
        Whether to add the two pictures of the method.
    """
    before, after = (row.model for row in rows if row.name in (PLAIN, REMOVED))
    best = max(rows, key=lambda row: row.scores.worst).name
    tested = ISRMean("auto", random_state=seed)
    tested.fit(train.X, np.array(NAMES)[train.y], environments=train.environments)
    shown = show_rows(
        test.X,
        np.array(NAMES)[test.y],
        test.environments,
        subspace=after.subspace_,
        before=Head(*fold(before)),
        after=Head(*fold(after)),
        feature_names=_pixel_names(),
        tested=tested,
    )
    return from_models(
        {row.name: _named(row.scores) for row in rows},
        shown,
        names=(PLAIN, best),
        headline=f"Best worst group here: {best}",
        rows=f"{len(test.y)} test rows that no fit has seen.",
        made=made,
        examples=[picture_of(row) for row in test.X],
        title=TITLE,
        intro=INTRO,
        extra=_with_weights(rows),
        geometry=geometry,
    )


def picture_of(row: Float64Array) -> Float64Array:
    """Return a row as the picture it is, (8, 8, 3)."""
    red, green = row.reshape(2, SIDE, SIDE)
    return np.stack([red, green, np.zeros_like(red)], axis=2)


def _named(scores: GroupScores) -> GroupScores:
    names = np.array(NAMES)[scores.classes]
    return GroupScores(names, scores.environments, scores.sizes, scores.correct)


def _with_weights(rows: list[DemoRow]) -> str:
    """Say what weights of groups reach, and what removal does: here they are close rivals."""
    worst = {row.name: 100 * row.scores.worst for row in rows}
    return (
        f"Plain training has {worst[PLAIN]:.1f} % in the worst group. Weighting the groups alone "
        f"reaches {worst['ERM, reweighted']:.1f}, removal alone {worst[REMOVED]:.1f}, both "
        f"{worst['ISR-Mean, reweighted']:.1f}."
    )


def _pixel_names() -> list[str]:
    places = [f"row {i + 1} column {j + 1}" for i in range(SIDE) for j in range(SIDE)]
    return [f"{colour}, {place}" for colour in ("red", "green") for place in places]


def _models(seed: int) -> dict[str, ISRClassifier]:
    head = LogisticRegression(max_iter=1000)

    removals = {"ERM": ISR(0), "ISR-Mean": ISRMean(N_SPURIOUS), "ISR": ISR(random_state=seed)}
    weights = {"": None, ", reweighted": "balanced"}
    return {
        name + how: ISRClassifier(isr, head, group_weight=weight)
        for name, isr in removals.items()
        for how, weight in weights.items()
    }
