"""Which model `fit` ships: the default, one chosen on validation rows, or a rival."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Self

import numpy as np
from sklearn.base import clone

from isrlearn._shown import amounts_of, shares_removed
from isrlearn.display import brief
from isrlearn.estimators import ISR
from isrlearn.leaderboard._methods import CHOSEN_KEY, ISR_KEY, Method, chosen_methods
from isrlearn.selection import WORST_GROUP, Selection, default_grid, in_words, isr_grid
from isrlearn.typing import FloatArray, LabelArray

DISAGREE: Final = 0.05  # share of rows that two models predict differently
SAME: Final = 0.2  # radians between subspaces that are told apart no more
NOTABLE: Final = 0.2  # share of a feature that is removed, to be named
MOST_NAMED: Final = 3


@dataclass(frozen=True)
class Asked:
    """What the user asked `fit` for."""

    rule: str
    rival: Method | None
    """A method that is not ours."""
    default: bool
    """Whether ``ISRClassifier()`` may be shipped."""
    chosen: bool
    """Whether a setting is to be chosen by the rule."""
    n_spurious: int | None

    @classmethod
    def of(cls, rule: str | None, method: str | None, n_spurious: int | None) -> Self:
        """Return what was asked for; None leaves it to us."""
        rival = None if method in (None, ISR_KEY, CHOSEN_KEY) else chosen_methods([method])[0]
        if rival is not None and n_spurious is not None:
            raise ValueError(
                f"n_spurious={n_spurious} is a setting of ISR, and method={brief(method)} has "
                "none: leave one of the two out."
            )
        if method == ISR_KEY and rule is not None:
            raise ValueError(
                f"method='isr' is the default, which chooses nothing, and rule={rule!r} chooses: "
                "leave one of the two out, or use method='isr-chosen'."
            )
        default = method == ISR_KEY or (method is None and rule is None)
        chosen = not default or (method is None and n_spurious is None)
        return cls(rule or WORST_GROUP, rival, default, chosen, n_spurious)

    def setting(self, labels: LabelArray, n_features: int) -> dict[str, Any]:
        """Return the setting of the default, with the number of directions that was asked for."""
        (grid,) = default_grid(labels, n_features)
        setting = {name: values[0] for name, values in grid.items()}
        if self.n_spurious is not None:
            setting["isr"] = clone(setting["isr"]).set_params(n_spurious=self.n_spurious)
        return setting

    def grid(self, labels: LabelArray, n_features: int) -> list[dict[str, list[Any]]]:
        """Return the settings of ISR to choose from."""
        grids = isr_grid(labels, n_features)
        if self.n_spurious is None:
            return grids
        if self.n_spurious == 0:
            return [{"isr": [ISR(0)], "head": [None]}, grids[-1]]  # which removes nothing
        fixed: dict[str, Any] = {}
        for removal in (r for grid in grids for r in grid["isr"] if r.n_spurious != 0):
            same = clone(removal).set_params(n_spurious=self.n_spurious)
            fixed.setdefault(in_words({"isr": same}), same)
        return [{**grid, "isr": list(fixed.values())} for grid in grids[:-1]]


class Sample(NamedTuple):
    """Training rows, all or some."""

    X: FloatArray
    """(n, d) as they were prepared."""
    y: LabelArray
    features: FloatArray
    """(n, p) as the user knows them."""
    names: Sequence[str]
    """Names of these features; empty where they mean nothing."""


class Fitter(NamedTuple):
    """How models are fitted on all training rows: in memory, or in chunks."""

    choose: Callable[[Method | None, str], Selection]
    """Takes a rival, or None for ISR, and a rule; returns what was tried."""
    fit: Callable[[dict[str, Any]], Any]
    """Takes a setting of `ISRClassifier` and returns it fitted."""
    finish: Callable[[Selection], Any]
    """Takes a selection and returns its estimator fitted."""


@dataclass(frozen=True, eq=False)
class Shipped:
    """A model that was settled on.

    Parameters
    ----------
    estimator : classifier
        Fitted on all training rows.
    title : str
        The method.
    setting : dict
        Its parameters.
    removed : str
        What it removes, in words.
    selection : Selection or None
        What was tried; None where nothing was chosen.
    rule : str or None
        By which it was chosen; None for the default, which chooses nothing.
    sentence : str
        How the default and the model chosen on validation rows compare; empty where only one was
        asked for.
    validation : dict
        The same as plain values; empty where one of the two could not be fitted.
    """

    estimator: Any
    title: str
    setting: dict[str, Any]
    removed: str
    selection: Selection | None = None
    rule: str | None = None
    sentence: str = ""
    validation: dict[str, Any] = field(default_factory=dict)

    @property
    def score(self) -> float | None:
        """By the rule; None for the default."""
        return None if self.rule is None or self.selection is None else self.selection.score


def settle(asked: Asked, sample: Sample, fitter: Fitter) -> Shipped:
    """Fit what was asked for; if nothing was, the default and the chosen model, and settle on one.

    The default is shipped, for no row of the training environments can tell whether it is right to
    remove what differs between them; the chosen model where neither removes anything.

    Parameters
    ----------
    asked : Asked
        What the user wants.
    sample : Sample
        Training rows, to say what is removed and where models disagree.
    fitter : Fitter
        How models are fitted.
    """

    def chosen(title: str, found: Selection) -> Shipped:
        model = fitter.finish(found)
        removed = removed_in_words(model, sample)
        return Shipped(model, title, found.setting, removed, found, asked.rule)

    def default() -> Shipped:
        setting = asked.setting(sample.y, sample.X.shape[1])
        model = fitter.fit(setting)
        return Shipped(model, "ISR", setting, removed_in_words(model, sample))

    if asked.rival is not None:
        return chosen(asked.rival.title, fitter.choose(asked.rival, asked.rule))
    if not asked.default:
        return chosen("ISR chosen", fitter.choose(None, asked.rule))
    if not asked.chosen:
        return default()
    try:
        ours = default()
    except ValueError as error:
        why = f"The default cannot be fitted: {error}"
        try:
            found = fitter.choose(None, asked.rule)
        except ValueError:
            raise error from None
        return replace(chosen("ISR chosen", found), sentence=why)
    try:
        found = fitter.choose(None, asked.rule)
    except ValueError as error:
        return replace(ours, sentence=f"No model can be chosen on validation rows: {error}")
    seen = _seen(ours, found, asked.rule, sample)
    neither = ours.estimator.n_spurious_ == found.estimator.n_spurious_ == 0
    shipped = chosen("ISR chosen", found) if neither else replace(ours, selection=found)
    return replace(shipped, sentence=_comparison(ours, seen), validation=seen)


def _seen(ours: Shipped, found: Selection, rule: str, sample: Sample) -> dict[str, Any]:
    """Return what validation rows saw of the default and of the model they chose.

    The two agree where they remove the same, or predict nearly the same in the training rows.
    """
    model, other = ours.estimator, found.estimator
    differ = np.mean(model.predict(sample.X) != other.predict(sample.X))
    same = model.subspace_.rank == other.subspace_.rank and bool(
        np.max(model.subspace_.angles_to(other.subspace_), initial=0.0) < SAME
    )
    place = [in_words(tried) for tried in found.settings].index(in_words(ours.setting))
    at_default = float(found.scores[place].mean())
    return {
        "rule": rule,
        "score": found.score,
        "score_of_default": None if np.isnan(at_default) else at_default,
        "setting": in_words(found.setting),
        "removed": removed_in_words(other, sample),
        "agree": bool(same or differ <= DISAGREE),
    }


def _comparison(ours: Shipped, seen: dict[str, Any]) -> str:
    """Say how the default and the chosen model compare, and when to believe which."""
    at_default, removed = seen["score_of_default"], seen["removed"]
    against = "" if at_default is None else f", {100 * at_default:.1f} % for the default"
    score = f"accuracy in their worst group {100 * seen['score']:.1f} %{against}"
    if seen["agree"]:
        chosen = f"The model chosen on validation rows ({seen['setting']}: {score})"
        return f"{chosen} agrees with the default."
    if removed == ours.removed:
        removed = f"{removed} with {seen['setting']}"
    both = (
        f"The default removes {ours.removed}; the model chosen on validation rows removes "
        f"{removed} ({score})."
    )
    ship = f"--rule {seen['rule']}"
    if at_default is not None and at_default >= seen["score"]:
        return (
            f"{both} Validation rows do not tell the two apart: keep the default, or ship the "
            f"other model with {ship}."
        )
    if ours.estimator.n_spurious_ == 0:
        return (
            f"{both} The tests find no difference between the environments: keep the default, or "
            f"ship the other model with {ship} for rows like the validation rows."
        )
    return (
        f"{both} Validation rows come from the training environments only: keep the default if "
        f"what it removes may change in a new environment; ship the other model ({ship}) for rows "
        "like these, or if what is removed predicts the label everywhere."
    )


def removed_in_words(model: Any, sample: Sample) -> str:
    """Say how many directions a model removes, and which features go with them.

    Parameters
    ----------
    model : fitted classifier
        One that removes nothing says so.
    sample : Sample
        Training rows.
    """
    n_removed = getattr(model, "n_spurious_", getattr(model, "n_erased_", 0))
    if n_removed == 0:
        return "nothing"
    text = f"{n_removed} direction{'s'[: n_removed != 1]}"
    if not sample.names or not hasattr(model, "subspace_"):
        return text
    amounts = amounts_of(model.subspace_, sample.X)
    shares = shares_removed(sample.features, amounts, sample.y)
    order = [j for j in np.argsort(-shares, kind="stable")[:MOST_NAMED] if shares[j] >= NOTABLE]
    named = ", ".join(f"{sample.names[j]} {100 * shares[j]:.0f} %" for j in order)
    return f"{text} ({named})" if named else text
