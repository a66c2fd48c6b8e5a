"""Which model `fit` ships: the default, one chosen on validation rows, or a rival."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from sklearn.base import clone

from isrlearn._predictors import ISRClassifier
from isrlearn._rules import WORST_GROUP
from isrlearn._select import Selection, default_grid, in_words, isr_grid
from isrlearn._shown import amounts_of, shares_removed
from isrlearn._text import brief
from isrlearn._typing import Float64Array, FloatArray, LabelArray
from isrlearn.baselines import DFR, GroupDRO, GroupSubsampling
from isrlearn.baselines._last_layer import WeightedRival
from isrlearn.leaderboard._methods import CHOSEN_KEY, ISR_KEY, Method, chosen_methods

DISAGREE: Final = 0.05  # share of rows that two models predict differently
NOTABLE: Final = 0.2  # share of a feature that is removed, to be named
MOST_NAMED: Final = 3


class Asked(NamedTuple):
    """What the user asked `fit` for; None leaves it to us."""

    rule: str | None = None
    method: str | None = None
    n_spurious: int | None = None

    @property
    def rival(self) -> Method | None:
        """The method that is named, unless it is ISR."""
        if self.method in (None, ISR_KEY, CHOSEN_KEY):
            return None
        if self.n_spurious is not None:
            raise ValueError(
                f"n_spurious={self.n_spurious} is a setting of ISR, and method="
                f"{brief(self.method)} has none: leave one of the two out."
            )
        return chosen_methods([self.method])[0]

    @property
    def wants_default(self) -> bool:
        """Whether the default estimator may be shipped."""
        named = self.method == ISR_KEY or (self.method is None and self.rule is None)
        if self.method == ISR_KEY and self.rule is not None:
            raise ValueError(
                f"method='isr' is the default, which chooses nothing, and rule={self.rule!r} "
                "chooses: leave one of the two out, or use method='isr-chosen'."
            )
        return named

    @property
    def wants_chosen(self) -> bool:
        """Whether a setting is to be chosen on validation rows."""
        return not (self.wants_default and (self.method or self.n_spurious is not None))

    def default(self, labels: LabelArray, n_features: int) -> dict[str, Any]:
        """Return the setting of the default, with the number of directions that was asked for."""
        (grid,) = default_grid(labels, n_features)
        setting = {name: values[0] for name, values in grid.items()}
        if self.n_spurious is not None:
            setting["isr"] = clone(setting["isr"]).set_params(n_spurious=self.n_spurious)
        return setting

    def grid(self, labels: LabelArray, n_features: int) -> list[dict[str, list[Any]]]:
        """Return the settings to choose from."""
        grids = isr_grid(labels, n_features)
        if self.n_spurious is None:
            return grids
        fixed: dict[str, Any] = {}
        for removal in (removal for grid in grids for removal in grid["isr"]):
            same = clone(removal).set_params(n_spurious=self.n_spurious)
            fixed.setdefault(in_words({"isr": same}), same)
        return [{**grid, "isr": list(fixed.values())} for grid in grids[:-1]]


class Shipped(NamedTuple):
    """A model that was settled on."""

    estimator: Any
    title: str
    setting: dict[str, Any]
    rule: str | None
    """By which it was chosen; None for the default, which chooses nothing."""
    score: float | None
    """By the rule; None where no rows were scored."""
    selection: Selection | None
    """What was tried; None where nothing was."""
    removed: str
    """What it removes, in words."""
    sentence: str = ""
    """Where the default and the chosen model disagree."""


def settle(
    asked: Asked,
    sample: tuple[FloatArray, LabelArray],
    choose: Callable[[Method | None, str], Selection],
    fit: Callable[[dict[str, Any]], Any],
    finish: Callable[[Selection], Any],
    features: FloatArray,
    names: Sequence[str],
) -> Shipped:
    """Fit what was asked for; if nothing was, the default and the chosen model, and settle on one.

    The default is shipped where it removes something: whether that is right no row of the training
    environments can tell.

    Parameters
    ----------
    asked : Asked
        What the user wants.
    sample : (X, y)
        Prepared training rows, all or some.
    choose : callable
        Takes a rival, or None for ISR, and a rule; returns what was tried.
    fit : callable
        Takes a setting of `ISRClassifier` and returns it fitted on all training rows.
    finish : callable
        Takes a selection and returns its estimator fitted on all training rows.
    features : ndarray of shape (n, p)
        The sample as the user knows it.
    names : sequence of str
        Names of these features; empty where they mean nothing.
    """
    X, y = sample
    rule = asked.rule or WORST_GROUP

    def removed_by(model: Any) -> str:
        return removed_in_words(model, X, y, features, names)

    rival = asked.rival
    if rival is not None:
        found = choose(rival, rule)
        model = finish(found)
        chosen = found.setting, rule, found.score, found
        return Shipped(model, rival.title, *chosen, removed_by(model))
    default = asked.default(y, X.shape[1])
    model = fit(default) if asked.wants_default else None
    if not asked.wants_chosen:
        return Shipped(model, "ISR", default, None, None, None, removed_by(model))
    found = choose(None, rule)
    if model is not None and model.n_spurious_ > 0:
        place = [in_words(setting) for setting in found.settings].index(in_words(default))
        score, sentence = float(found.scores[place].mean()), ""
        if np.mean(model.predict(X) != found.estimator.predict(X)) > DISAGREE:
            parts = removed_by(model), removed_by(found.estimator), score, found.score
            sentence = disagreement(*parts)
        shipped = default, None, score, found
        return Shipped(model, "ISR", *shipped, removed_by(model), sentence)
    nothing = "The default finds nothing to remove. " if model is not None else ""
    model = finish(found)
    chosen = found.setting, rule, found.score, found
    return Shipped(model, "ISR chosen", *chosen, removed_by(model), nothing.strip())


def counts_classes_alike(model: Any) -> bool | None:
    """Return whether a logistic head counted classes alike; None where that is not known.

    Parameters
    ----------
    model : classifier
        What was fitted.
    """
    if isinstance(model, ISRClassifier):
        return None if isinstance(model.head, GroupDRO) else model.group_weight is not None
    if isinstance(model, DFR | GroupSubsampling):
        return True
    return model.weight is not None if isinstance(model, WeightedRival) else None


def disagreement(default: str, chosen: str, default_score: float, chosen_score: float) -> str:
    """Say where the default and the chosen model disagree, and when to believe which.

    Parameters
    ----------
    default, chosen : str
        What each removes.
    default_score, chosen_score : float
        Worst group of the validation rows.

    Examples
    --------
    >>> disagreement("1 direction (brightness 100%)", "nothing", 0.816, 0.843)[:51]
    'The default removes 1 direction (brightness 100%); '
    """
    return (
        f"The default removes {default}; validation rows prefer a model that removes {chosen}: "
        f"{100 * chosen_score:.1f} % in their worst group against {100 * default_score:.1f} %. "
        "Believe the default for an environment that training has not seen, validation for rows "
        "from these environments: --rule worst-group ships its choice."
    )


def removed_in_words(
    model: Any, X: FloatArray, y: LabelArray, features: FloatArray, names: Sequence[str]
) -> str:
    """Say how many directions a model removes, and which features go with them.

    Parameters
    ----------
    model : fitted classifier
        One that removes nothing says so.
    X : ndarray of shape (n, d)
        Prepared rows.
    y : ndarray of shape (n,)
        Their labels.
    features : ndarray of shape (n, p)
        The rows as the user knows them.
    names : sequence of str
        Their columns; empty where they mean nothing.
    """
    n_removed = getattr(model, "n_spurious_", getattr(model, "n_erased_", 0))
    if n_removed == 0:
        return "nothing"
    text = f"{n_removed} direction{'s'[: n_removed != 1]}"
    if not names or not hasattr(model, "subspace_"):
        return text
    shares: Float64Array = shares_removed(features, amounts_of(model.subspace_, X), y)
    order = [j for j in np.argsort(-shares, kind="stable")[:MOST_NAMED] if shares[j] >= NOTABLE]
    named = ", ".join(f"{names[j]} {100 * shares[j]:.0f}%" for j in order)
    return f"{text} ({named})" if named else text
