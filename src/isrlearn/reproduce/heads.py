"""Heads on features, with and without removal, chosen on validation rows alone."""

import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from isrlearn.estimators import ISR, ISRCov, ISRMean, ISRTransformer, fold
from isrlearn.exceptions import PrecisionWarning, TinyCellWarning
from isrlearn.heads import scheme_weights
from isrlearn.io import Features
from isrlearn.metrics import GroupScores, group_scores
from isrlearn.networks._repair import Weights, predictions, two_outputs
from isrlearn.rows import check_number, check_rows

METHODS: Final = ("refit", "isr-mean", "isr-cov", "isr")
HEADS: Final = ("plain", "balanced")
RULE: Final = "worst group of the validation rows, then their average"


@dataclass(frozen=True)
class HeadGrid:
    """What is tried on the features of a network.

    Parameters
    ----------
    pca : int, default=100
        Principal components that are kept, or all if there are fewer features.
    C : tuple of float
        Inverse penalties of the logistic head, for components of mean variance one.
    cov_directions : tuple of int
        Numbers of directions that ISR-Cov may remove. ISR-Mean removes E - 1, as in the paper.
    isr_directions : tuple of int or "auto"
        Numbers of directions that ISR may remove; "auto" is what its tests find.
    heads : tuple of str
        "plain": rows count alike; "balanced": groups count alike.

    Examples
    --------
    >>> HeadGrid(pca=20, C=(0.1, 1.0), heads=("balanced",)).isr_directions
    ('auto', 1, 2)
    """

    pca: int = 100
    C: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0)
    cov_directions: tuple[int, ...] = (1, 2, 5, 10, 20)
    isr_directions: tuple[int | str, ...] = ("auto", 1, 2)
    heads: tuple[str, ...] = HEADS

    def __post_init__(self) -> None:
        check_number("pca", self.pca, 1, whole=True)
        for name in ("C", "cov_directions", "isr_directions", "heads"):
            if not isinstance(getattr(self, name), tuple) or not getattr(self, name):
                raise ValueError(
                    f"{name}={getattr(self, name)!r} must be a list that is not empty."
                )
        for C in self.C:
            check_number("C", C, 1e-12)
        for n in (*self.cov_directions, *(n for n in self.isr_directions if n != "auto")):
            check_number("a number of directions", n, 0, whole=True)
        for head in self.heads:
            if head not in HEADS:
                raise ValueError(f"heads: {head!r} must be one of {', '.join(HEADS)}.")


@dataclass(frozen=True)
class Choice:
    """One setting of one method."""

    method: str
    head: str
    C: float
    n_spurious: int


@dataclass(frozen=True, eq=False)
class Outcome:
    """A method with the setting that did best on the validation rows, scored on the test rows.

    Parameters
    ----------
    choice : Choice or None
        The setting; None for the network's own head.
    method, head : str
        What it is.
    validation, test : GroupScores
        Scores.
    adjusted_average : float
        Test accuracy with groups weighted by their sizes in training.
    weights : (weight, bias)
        The head in the coordinates of the features.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.io import Features
    >>> from isrlearn.reproduce import HeadGrid, compare_heads
    >>> labels, environments = np.repeat([0, 1], 40), np.arange(80) % 2
    >>> noise = np.random.default_rng(0).normal(size=(80, 3))
    >>> rows = Features(labels[:, None] + noise, labels, environments)
    >>> grid = HeadGrid(heads=("plain",))
    >>> (found,) = compare_heads(rows, rows, rows, grid, methods=("isr-mean",))
    >>> found.method, found.choice.n_spurious, found.record()["worst_group"] == found.test.worst
    ('isr-mean', 1, True)
    """

    choice: Choice | None
    method: str
    head: str
    validation: GroupScores
    test: GroupScores
    adjusted_average: float
    weights: Weights

    def record(self) -> dict[str, Any]:
        """Return the figures for a table.

        Returns
        -------
        dict
        """
        setting = {} if self.choice is None else asdict(self.choice)
        return {
            "method": self.method,
            "head": self.head,
            "average": self.test.average,
            "adjusted_average": self.adjusted_average,
            "worst_group": self.test.worst,
            "validation_average": self.validation.average,
            "validation_worst_group": self.validation.worst,
            "C": setting.get("C"),
            "n_spurious": setting.get("n_spurious"),
            "groups": self.test.accuracies.tolist(),
        }


class Reduced:
    """Features in principal components of mean variance one: what all heads are fitted on."""

    def __init__(self, rows: Features, n_components: int) -> None:
        n_components = min(n_components, *rows.features.shape)
        X = rows.features.astype(np.float64)
        self.pca = PCA(n_components, svd_solver="covariance_eigh").fit(X)
        self.unit = float(np.mean(self.pca.explained_variance_))
        self.rows, self.Z = rows, self.pca.transform(X)

    def remove(self, isr: ISRTransformer, environments: Any = None) -> ISRTransformer:
        """Fit a removal on the components.

        Parameters
        ----------
        isr : transformer
            Not fitted.
        environments : array-like, default=None
            Others than those of the rows, as when some are not known.
        """
        if environments is None:
            environments = self.rows.known_environments()
        with warnings.catch_warnings():
            # What few labels are bound to give: tiny cells, and directions without noise.
            warnings.simplefilter("ignore", TinyCellWarning)
            warnings.simplefilter("ignore", PrecisionWarning)
            return isr.fit(self.Z, self.rows.labels, environments=environments)

    def head(self, isr: ISRTransformer, C: float, kind: str, environments: Any = None) -> Weights:
        """Fit a logistic head without what a fitted removal removes.

        Parameters
        ----------
        isr : transformer
            Fitted by `remove`.
        C : float
            Inverse penalty, for components of mean variance one.
        kind : {"plain", "balanced"}
            How rows count.
        environments : array-like, default=None
            As in `remove`.

        Returns
        -------
        weight, bias
            In the coordinates of the features.
        """
        if environments is None:
            environments = self.rows.known_environments()
        weights = None
        if kind == "balanced":
            weights = scheme_weights(check_rows(self.Z, self.rows.labels, environments), "balanced")
        head = LogisticRegression(C=C / self.unit, max_iter=5000)
        head.fit(isr.transform(self.Z), self.rows.labels, sample_weight=weights)
        n_outputs = len(head.classes_)
        return two_outputs(*fold(make_pipeline(self.pca, isr, head)), n_outputs)


def compare_heads(
    train: Features,
    validation: Features,
    test: Features,
    grid: HeadGrid,
    *,
    original: Weights | None = None,
    methods: tuple[str, ...] = METHODS,
    random_state: int = 0,
) -> list[Outcome]:
    """Fit every method on the training rows and choose its setting on the validation rows.

    The rule is the worst group of the validation rows, then their average. The test rows are
    scored once, for the settings that were chosen.

    Parameters
    ----------
    train, validation, test : Features
        Rows of three splits.
    grid : HeadGrid
        What is tried.
    original : (weight, bias), default=None
        The network's own head, scored beside the others.
    methods : tuple of str
        Out of "refit" (no removal), "isr-mean", "isr-cov" and "isr".
    random_state : int, default=0
        Of the tests of `ISR`.

    Returns
    -------
    list of Outcome
        The best for each method and kind of head.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.io import Features
    >>> from isrlearn.reproduce import HeadGrid, compare_heads
    >>> labels, environments = np.repeat([0, 1], 40), np.arange(80) % 2
    >>> noise = np.random.default_rng(0).normal(size=(3, 80, 4))
    >>> splits = [Features(labels[:, None] + part, labels, environments) for part in noise]
    >>> found = compare_heads(*splits, HeadGrid(C=(1.0,)), methods=("refit", "isr-mean"))
    >>> [(outcome.method, outcome.head) for outcome in found]
    [('refit', 'plain'), ('refit', 'balanced'), ('isr-mean', 'plain'), ('isr-mean', 'balanced')]
    """
    space = Reduced(train, grid.pca)
    splits = train, validation, test
    outcomes = []
    if original is not None:
        outcomes.append(_outcome(None, "original", "", original, *splits))
    for method in methods:
        removals = list(_removals(space, grid, method, random_state))
        for head in grid.heads:
            choice, weights = _best(space, grid, method, head, removals, validation)
            outcomes.append(_outcome(choice, method, head, weights, *splits))
    return outcomes


def selected(outcomes: list[Outcome], method: str) -> Outcome:
    """Return the outcome of a method with the kind of head that validation prefers."""
    own = [outcome for outcome in outcomes if outcome.method == method]
    return max(own, key=lambda o: (o.validation.worst, o.validation.average))


def score(rows: Features, weights: Weights) -> GroupScores:
    """Score a linear head on features."""
    predicted = predictions(rows.features, weights)
    return group_scores(rows.labels, predicted, environments=rows.known_environments())


def removal(
    method: str, n_spurious: int | str, n_environments: int, random_state: int = 0
) -> ISRTransformer:
    """Return the transformer of a method, not fitted.

    Parameters
    ----------
    method : {"refit", "isr-mean", "isr-cov", "isr"}
        Which.
    n_spurious : int or "auto"
        Directions to remove; ISR-Mean takes E - 1, whatever is given.
    n_environments : int
        E.
    random_state : int, default=0
        Of the tests of `ISR`.

    Returns
    -------
    transformer
    """
    if method == "refit":
        return ISR(0)
    if method == "isr-mean":
        return ISRMean(n_environments - 1)
    if method == "isr-cov":
        return ISRCov(n_spurious)
    return ISR(n_spurious, random_state=random_state)


def _removals(
    space: Reduced, grid: HeadGrid, method: str, random_state: int
) -> Iterator[ISRTransformer]:
    known = space.rows.environments[space.rows.environments >= 0]
    sizes: dict[str, tuple[int | str, ...]] = {
        "isr-cov": grid.cov_directions,
        "isr": grid.isr_directions,
    }
    for size in sizes.get(method, (0,)):
        if isinstance(size, int) and size >= space.Z.shape[1]:
            continue
        yield space.remove(removal(method, size, len(np.unique(known)), random_state))


def _best(
    space: Reduced,
    grid: HeadGrid,
    method: str,
    head: str,
    removals: list[ISRTransformer],
    validation: Features,
) -> tuple[Choice, Weights]:
    """Return the setting with the best worst group of the validation rows, then average."""
    tried = []
    for isr in removals:
        for C in grid.C:
            weights = space.head(isr, C, head)
            scores = score(validation, weights)
            choice = Choice(method, head, C, isr.n_spurious_)
            tried.append(((scores.worst, scores.average), choice, weights))
    _, choice, weights = max(tried, key=lambda t: t[0])
    return choice, weights


def _outcome(
    choice: Choice | None,
    method: str,
    head: str,
    weights: Weights,
    train: Features,
    validation: Features,
    test: Features,
) -> Outcome:
    scores = score(test, weights)
    adjusted = scores.adjusted_average(train.labels, train.known_environments())
    return Outcome(
        choice, method, head, score(validation, weights), scores, float(adjusted), weights
    )
