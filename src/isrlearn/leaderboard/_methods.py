"""The methods that are compared, and what each may choose from."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from sklearn.base import clone

from isrlearn import baselines
from isrlearn._plugins import load_named
from isrlearn.display import brief
from isrlearn.estimators import ISRClassifier
from isrlearn.selection import (
    FEW_CLASSES,
    ROBUST_STRENGTHS,
    STRENGTHS,
    default_grid,
    isr_grid,
    strengths,
)

ISR_KEY: Final = "isr"
CHOSEN_KEY: Final = "isr-chosen"
TWINS: Final = {ISR_KEY: "isr-head", CHOSEN_KEY: "isr-chosen-head"}
"""The same head on the same rows with nothing removed: what removal itself gains."""
TRAINING: Final = "training"
VALIDATION: Final = "validation"
LABELS: Final = "labels"
LABELS_AND_ENVIRONMENTS: Final = "labels and environments"


@dataclass(frozen=True)
class Method:
    """A method of the table.

    Parameters
    ----------
    key : str
        Its name on the command line.
    title : str
        Its name in the table.
    estimator : callable
        Takes a seed and returns the estimator, not fitted.
    grid : callable
        Takes the training labels and the number of features and returns what is tried, the
        preferred first.
    labels : str, default="labels and environments"
        Labels that it sees in the rows that it is fitted on.
    rows : {"training", "validation"}, default="training"
        Rows that it is fitted on, where the rule sets validation rows apart.
    draws : bool, default=False
        Whether it draws at random, so that seeds matter on the same rows.
    own : bool, default=False
        Whether it is the user's: then whatever it raises is reported, and the others go on.
    """

    key: str
    title: str
    estimator: Callable[[int], Any]
    grid: Callable[[Any, int], Any]
    labels: str = LABELS_AND_ENVIRONMENTS
    rows: str = TRAINING
    draws: bool = False
    own: bool = False


def _tried(*, C: Sequence[float], **grid: Sequence[Any]) -> Callable[[Any, int], Any]:
    return lambda labels, n_features: {**grid, "C": strengths(C, labels)}


_PROBE: Final = _tried(C=(*STRENGTHS, 1.0))
_WEIGHED: Final = _tried(weight=("balanced", None), C=STRENGTHS)
_FEWER: Final = _tried(weight=("balanced", None), C=(0.01, 0.1))
_PENALISED: Final = _tried(penalty=(1.0, 10.0, 100.0), C=(0.03,))


def _probes() -> list[Method]:
    def probe(weight: str | None) -> Callable[[int], Any]:
        return lambda seed: baselines.LinearProbe(weight=weight)

    def subsampling(seed: int) -> Any:
        return baselines.GroupSubsampling(random_state=seed)

    def retraining(seed: int) -> Any:
        return baselines.DFR(random_state=seed)

    def sparse(labels: Any, n_features: int) -> Any:
        return {"C": [0.03, 0.1, 0.3, 1.0]}  # an L1 penalty on the few rows of balanced parts

    def robust(seed: int) -> Any:
        return baselines.GroupDRO()

    def robust_grid(labels: Any, n_features: int) -> Any:
        few = len(np.unique(labels)) <= FEW_CLASSES  # with more, each fit takes seconds
        return {"C": strengths(ROBUST_STRENGTHS if few else ROBUST_STRENGTHS[-1:], labels)}

    return [
        Method("erm", "ERM", probe(None), _PROBE, LABELS),
        Method("class-reweighted", "Class-reweighted", probe("class"), _PROBE, LABELS),
        Method("group-reweighted", "Group-reweighted", probe("group"), _PROBE),
        Method("subsampled", "Group subsampling", subsampling, _PROBE, draws=True),
        Method("group-dro", "GroupDRO", robust, robust_grid),
        Method("dfr", "DFR", retraining, sparse, rows=VALIDATION, draws=True),
    ]


def _invariant() -> list[Method]:
    def erasing(given_class: bool) -> Callable[[int], Any]:
        return lambda seed: baselines.LEACE(given_class=given_class)

    def plain(estimator: Callable[[], Any]) -> Callable[[int], Any]:
        return lambda seed: estimator()

    return [
        Method("leace", "LEACE", erasing(False), _WEIGHED),
        Method("leace-class", "LEACE given class", erasing(True), _WEIGHED),
        Method("inlp", "INLP", plain(baselines.INLP), _FEWER),
        Method("coral", "CORAL", plain(baselines.CORAL), _WEIGHED),
        Method("v-rex", "V-REx", plain(baselines.LastLayerVREx), _PENALISED),
        Method("irm", "IRMv1", plain(baselines.LastLayerIRM), _PENALISED),
        Method(ISR_KEY, "ISR", plain(ISRClassifier), default_grid),
        Method(CHOSEN_KEY, "ISR chosen", plain(ISRClassifier), isr_grid),
    ]


def known_methods() -> dict[str, Method]:
    """Return all methods by their key, ISR last.

    Returns
    -------
    dict of str to Method

    Examples
    --------
    >>> from isrlearn.leaderboard import known_methods
    >>> {key: method.labels for key, method in known_methods().items() if key in ("erm", "isr")}
    {'erm': 'labels', 'isr': 'labels and environments'}
    """
    return {method.key: method for method in [*_probes(), *_invariant()]}


def chosen_methods(keys: Sequence[Any] | None) -> list[Method]:
    """Return methods by their keys; None is all of them.

    Parameters
    ----------
    keys : sequence or None
        Names out of `known_methods`, or for a method of your own ``my_module:MyEstimator``, the
        class or an estimator. Its ``fit`` gets ``environments`` if it takes them, with None where
        one is unknown.

    Returns
    -------
    list of Method
    """
    known = known_methods()
    if keys is None:
        return list(known.values())
    names = [keys] if isinstance(keys, str) or not isinstance(keys, Iterable) else list(keys)
    if len(names) == 0:
        raise ValueError(f"methods is an empty list: choose from {', '.join(known)}.")
    return [_method(key, known) for key in dict.fromkeys(names)]


def _method(key: Any, known: dict[str, Method]) -> Method:
    if not isinstance(key, str):
        if not hasattr(key, "fit"):
            raise TypeError(
                f"method {brief(key)} has no fit: give a name such as erm or isr, or an estimator."
            )
        title = (key if isinstance(key, type) else type(key)).__name__
        return _own(title, title, key)
    if ":" not in key:
        return _named(key, known)
    load_named(key, "method", "my_module:MyEstimator")  # a mistake is answered now
    return _own(key, key.partition(":")[2], _Named(key, str(Path.cwd())))


@dataclass(frozen=True)
class _Named:
    """A class by its name, so that a process that never saw its module can load it."""

    key: str
    folder: str

    def __call__(self) -> Any:
        if self.folder not in sys.path:
            sys.path.insert(0, self.folder)
        return load_named(self.key, "method", "my_module:MyEstimator")()


def _named(key: str, known: dict[str, Method]) -> Method:
    if key not in known:
        raise ValueError(
            f"method {brief(key)} is not known: choose from {', '.join(known)}, or name a class of "
            "your own as my_module:MyEstimator."
        )
    return known[key]


def _own(key: str, title: str, estimator: Any) -> Method:
    def make(seed: int) -> Any:
        made = isinstance(estimator, type | _Named)
        model = estimator() if made else clone(estimator)
        if "random_state" in getattr(model, "get_params", dict)():
            model.set_params(random_state=seed)
        return model

    return Method(key, title, make, lambda labels, n_features: {}, draws=True, own=True)
