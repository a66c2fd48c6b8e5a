"""The methods that are compared, and what each may choose from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isrlearn import baselines
from isrlearn._plugins import load_named
from isrlearn._predictors import ISRClassifier
from isrlearn._select import STRENGTHS, isr_grid

TRAINING: Final = "training"
VALIDATION: Final = "validation"
PENALTIES: Final = (1.0, 10.0, 100.0)
FEWER_STRENGTHS: Final = (0.001, 0.01, 0.1)
SPARSE_STRENGTHS: Final = (0.03, 0.1, 0.3, 1.0)
"""For the L1 penalty of few rows; below, all weights are zero."""
SEEN: Final = "labels and environments"


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
        Takes the training labels and returns what is tried, the preferred first.
    labels : str
        Labels that it sees in the rows that it is fitted on.
    rows : {"training", "validation"}, default="training"
        Rows that it is fitted on, where the rule sets validation rows apart.
    draws : bool, default=False
        Whether it draws at random, so that seeds matter on the same rows.
    """

    key: str
    title: str
    estimator: Callable[[int], Any]
    grid: Callable[[Any], Any]
    labels: str
    rows: str = TRAINING
    draws: bool = False


def _fixed(**grid: Sequence[Any]) -> Callable[[Any], Any]:
    return lambda labels: {name: list(values) for name, values in grid.items()}


def _rivals() -> list[Method]:
    weighed = {"weight": ["group", None], "C": STRENGTHS}
    return [
        Method("erm", "ERM", lambda seed: baselines.LinearProbe(), _fixed(C=STRENGTHS), "labels"),
        Method(
            "class-reweighted",
            "Class-reweighted",
            lambda seed: baselines.LinearProbe(weight="class"),
            _fixed(C=STRENGTHS),
            "labels",
        ),
        Method(
            "group-reweighted",
            "Group-reweighted",
            lambda seed: baselines.LinearProbe(weight="group"),
            _fixed(C=STRENGTHS),
            SEEN,
        ),
        Method(
            "subsampled",
            "Group subsampling",
            lambda seed: baselines.GroupSubsampling(random_state=seed),
            _fixed(C=STRENGTHS),
            SEEN,
            draws=True,
        ),
        Method(
            "group-dro",
            "GroupDRO",
            lambda seed: baselines.GroupDRO(),
            _fixed(C=FEWER_STRENGTHS),
            SEEN,
        ),
        Method(
            "dfr",
            "DFR, validation rows",
            lambda seed: baselines.DFR(random_state=seed),
            _fixed(C=SPARSE_STRENGTHS),
            SEEN,
            VALIDATION,
            draws=True,
        ),
        Method(
            "dfr-train",
            "DFR, training rows",
            lambda seed: baselines.DFR(random_state=seed),
            _fixed(C=SPARSE_STRENGTHS),
            SEEN,
            draws=True,
        ),
        Method("leace", "LEACE", lambda seed: baselines.LEACE(), _fixed(**weighed), SEEN),
        Method(
            "leace-class",
            "LEACE given class",
            lambda seed: baselines.LEACE(given_class=True),
            _fixed(**weighed),
            SEEN,
        ),
        Method("inlp", "INLP", lambda seed: baselines.INLP(), _fixed(**weighed), SEEN),
        Method("coral", "CORAL", lambda seed: baselines.CORAL(), _fixed(**weighed), SEEN),
        Method(
            "v-rex",
            "V-REx",
            lambda seed: baselines.LastLayerVREx(),
            _fixed(penalty=PENALTIES, C=FEWER_STRENGTHS),
            SEEN,
        ),
        Method(
            "irm",
            "IRMv1",
            lambda seed: baselines.LastLayerIRM(),
            _fixed(penalty=PENALTIES, C=FEWER_STRENGTHS),
            SEEN,
        ),
    ]


ISR_KEY: Final = "isr"
SAME_HEAD: Final = "isr-head"


def known_methods() -> dict[str, Method]:
    """Return all methods by their key, ISR last.

    Returns
    -------
    dict of str to Method
    """
    ours = Method(ISR_KEY, "ISR", lambda seed: ISRClassifier(), isr_grid, SEEN)
    return {method.key: method for method in [*_rivals(), ours]}


def chosen_methods(keys: Sequence[str] | None) -> list[Method]:
    """Return methods by their keys; None is all of them.

    Parameters
    ----------
    keys : sequence of str or None
        Names out of `known_methods`, or ``my_module:MyEstimator`` for a class of your own, whose
        ``fit`` takes ``environments``.

    Returns
    -------
    list of Method
    """
    known = known_methods()
    if keys is None:
        return list(known.values())
    return [_own(key) if ":" in key else _named(key, known) for key in dict.fromkeys(keys)]


def _named(key: str, known: dict[str, Method]) -> Method:
    if key not in known:
        raise ValueError(
            f"method {key!r} is not known: choose from {', '.join(known)}, or name a class of your "
            "own as my_module:MyEstimator."
        )
    return known[key]


def _own(key: str) -> Method:
    estimator = load_named(key, "method", "my_module:MyEstimator")
    title = key.partition(":")[2]
    return Method(key, title, lambda seed: estimator(), lambda labels: [{}], SEEN, draws=True)
