"""The methods of the benchmark: a name, how it is drawn, and how it is fitted."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from isrlearn._plugins import load_named
from isrlearn.baselines import ERM, PUBLISHED_STEPS, PUBLISHED_TRIALS, Oracle
from isrlearn.datasets import LinearUnitTest
from isrlearn.estimators import ISR, ISRClassifier, ISRCov, ISRMean

Maker = Callable[[LinearUnitTest, int], Any]
"""Maps the unit test and the number of environments in the training rows to an estimator."""


@dataclass(frozen=True)
class Method:
    """A method: an estimator that is solved exactly, or a recipe of descent with many trials."""

    name: str
    label: str
    """As figures and tables show it."""
    estimator: Maker | None = None
    """Makes an estimator with ``fit(X, y, environments=...)``."""
    recipe: str | None = None
    """Objective of a method that descends; see `isrlearn.baselines.published_trials`."""
    removal: Maker | None = None
    """Makes a transformer that is applied before the descent."""
    rule: str | None = None
    """The rule it is always judged by; None: the one that the run asks for."""
    shuffled: bool = False
    """Whether it is trained on rows whose spurious features are shuffled."""

    @property
    def n_trials(self) -> int:
        """Number of trials, as published."""
        return PUBLISHED_TRIALS if self.recipe else 1

    @property
    def n_steps(self) -> int:
        """Number of steps, as published; 0 if there are none."""
        return PUBLISHED_STEPS if self.recipe else 0


def _mean(problem: LinearUnitTest, E: int, **options: Any) -> ISRMean:
    # The means of E environments differ in E - 1 directions; more cannot be asked for.
    return ISRMean(n_spurious=min(problem.d_s, E - 1), **options)


def _cov(problem: LinearUnitTest, E: int, **options: Any) -> ISRCov:
    return ISRCov(n_spurious=problem.d_s, **options)


METHODS: Final = {
    method.name: method
    for method in (
        Method("oracle", "Oracle", lambda p, E: Oracle(p.B.T)),
        Method(
            "isr", "ISR", lambda p, E: ISRClassifier(ISR(random_state=p.seed), group_weight=None)
        ),
        Method("isr-mean", "ISR-Mean", lambda p, E: ISRClassifier(_mean(p, E), group_weight=None)),
        Method("isr-cov", "ISR-Cov", lambda p, E: ISRClassifier(_cov(p, E), group_weight=None)),
        Method("erm", "ERM", lambda p, E: ERM()),
        Method("erm-standardised", "ERM, standardised", lambda p, E: ERM("standardised")),
        Method("erm-whitened", "ERM, whitened", lambda p, E: ERM("whitened")),
        Method("oracle-adam", "Oracle (Adam)", recipe="erm", rule="oracle", shuffled=True),
        Method(
            "isr-mean-adam",
            "ISR-Mean (Adam)",
            recipe="erm",
            removal=lambda p, E: _mean(p, E, reduced=True),
        ),
        Method(
            "isr-cov-adam",
            "ISR-Cov (Adam)",
            recipe="erm",
            removal=lambda p, E: _cov(p, E, reduced=True),
        ),
        Method("erm-adam", "ERM (Adam)", recipe="erm"),
        Method("irmv1", "IRMv1", recipe="irmv1"),
        Method("iga", "IGA", recipe="iga"),
        Method("and-mask", "AND-mask", recipe="and-mask"),
        Method("vrex", "V-REx", recipe="vrex"),
    )
}


def method_named(name: str) -> Method:
    """Return a method by its name here, or a user's class by ``module:Class``.

    Parameters
    ----------
    name : str
        A key of `METHODS`, or ``my_module:MyEstimator``: a class with
        ``fit(X, y, environments=...)`` and ``predict(X)`` that is made without arguments. The
        module is looked for in the current folder too.

    Returns
    -------
    Method
    """
    if name in METHODS:
        return METHODS[name]
    if ":" not in name:
        raise ValueError(
            f"method {name!r} must be one of {', '.join(METHODS)}, or my_module:MyEstimator for a "
            "class of your own."
        )
    estimator = _load(name)
    return Method(name, name, lambda problem, E: estimator())


def _load(name: str) -> Any:
    found = load_named(name, "method", "my_module:MyEstimator")
    if not callable(found) or not hasattr(found, "fit"):
        raise ValueError(f"method {name!r} must be a class with fit and predict, not {found!r}.")
    return found
