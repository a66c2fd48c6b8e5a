"""Run neighbours of isrlearn on the same rows: python docs/other_libraries.py.

Needs ``pip install concept-erasure fairlearn torch`` beside isrlearn.
"""

import sys
import time
import warnings
from importlib import metadata
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from isrlearn import ISRClassifier, ISRMean
from isrlearn.baselines import LEACE
from isrlearn.datasets import EnvironmentRows, load_colored_digits, make_linear_gaussian
from isrlearn.metrics import group_scores

SEEDS = range(10)


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")


def erased(rows: EnvironmentRows) -> np.ndarray:
    """Return the rows as concept-erasure's LEACE leaves them."""
    import torch
    from concept_erasure import LeaceEraser

    X = torch.tensor(rows.X, dtype=torch.float64)
    one_hot = torch.tensor(np.eye(3)[rows.environments])
    eraser = LeaceEraser.fit(X, one_hot)
    return np.asarray(eraser(X).numpy())


def erasure_difference(seed: int) -> float:
    """Return how far the decisions of two implementations of LEACE are apart, relative."""
    model = make_linear_gaussian(n_environments=3, d_c=4, d_s=3, random_state=seed)
    rows = model.sample(500, random_state=seed)
    theirs = erased(rows)
    head = LogisticRegression(tol=1e-10, max_iter=10_000).fit(theirs, rows.y)
    ours = LEACE(C=1.0).fit(rows.X, rows.y, environments=rows.environments)
    mine, other = ours.decision_function(rows.X), head.decision_function(theirs)
    return float(np.abs(mine - other).max() / np.abs(other).max())


def correlation_remover(train: EnvironmentRows, test: EnvironmentRows) -> np.ndarray:
    """Predict by fairlearn's CorrelationRemover of the colour, then logistic regression."""
    from fairlearn.preprocessing import CorrelationRemover

    with_color = [
        np.column_stack([part.environments == "green", part.X]).astype(float)
        for part in (train, test)
    ]
    remover = CorrelationRemover(sensitive_feature_ids=[0]).fit(with_color[0])
    head = LogisticRegression(max_iter=1000).fit(remover.transform(with_color[0]), train.y)
    return np.asarray(head.predict(remover.transform(with_color[1])))


def ours(removed: int, weight: str | None) -> Any:
    """Return a function that predicts by ISR-Mean with a plain or a balanced head."""

    def predict(train: EnvironmentRows, test: EnvironmentRows) -> np.ndarray:
        head = LogisticRegression(max_iter=1000)
        clf = ISRClassifier(ISRMean(removed), head, group_weight=weight)
        return clf.fit(train.X, train.y, environments=train.environments).predict(test.X)

    return predict


METHODS = {
    "logistic regression": ours(0, None),
    "groups count alike": ours(0, "balanced"),
    "fairlearn CorrelationRemover (1)": correlation_remover,
    "isrlearn ISRMean(1)": ours(1, None),
    "isrlearn ISRMean(1), groups alike": ours(1, "balanced"),
}


def measure(method: Any) -> tuple[float, float, float]:
    """Return average, worst group and seconds, means over the draws."""
    results = []
    for seed in SEEDS:
        train, test = load_colored_digits(random_state=seed)
        begin = time.perf_counter()
        predicted = method(train, test)
        spent = time.perf_counter() - begin
        scores = group_scores(test.y, predicted, environments=test.environments)
        results.append((scores.average, scores.worst, spent))
    average, worst, seconds = np.mean(results, axis=0)
    return float(average), float(worst), float(seconds)


def main() -> None:
    """Print versions, the agreement of two LEACEs, and the table on coloured digits."""
    warnings.simplefilter("ignore")
    names = ("concept-erasure", "fairlearn", "scikit-learn")
    say(", ".join(f"{name} {metadata.version(name)}" for name in names))
    difference = max(erasure_difference(seed) for seed in SEEDS)
    say(f"LEACE, ours and concept-erasure's: largest relative difference {difference:.0e}")
    say(f"coloured digits, {len(SEEDS)} draws         average  worst group  seconds")
    for name, method in METHODS.items():
        average, worst, seconds = measure(method)
        say(f"{name:34} {average:7.3f} {worst:12.3f} {seconds:8.3f}")


if __name__ == "__main__":
    main()
