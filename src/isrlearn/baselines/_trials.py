"""Train all hyper-parameter trials of a method as one batch."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from isrlearn.baselines._risk import (
    EnvironmentRisk,
    Objective,
    and_mask_gradient,
    erm_gradient,
    iga_gradient,
    irm_gradient,
    vrex_gradient,
)
from isrlearn.display import brief
from isrlearn.rows import check_number
from isrlearn.typing import BoolArray, Float64Array, FloatArray, IntArray

PUBLISHED_STEPS: Final = 10_000
PUBLISHED_TRIALS: Final = 20
FIRST_SEED: Final = 1000  # the published code seeds trial t with 1000 + t


@dataclass(frozen=True)
class Trial:
    """Hyper-parameters of one model.

    Parameters
    ----------
    learning_rate : float, default=0.001
        Step length.
    weight_decay : float, default=0.0
        Multiple of the weights that is added to the gradient.
    penalty : float, default=0.0
        Weight of the penalty; for AND-mask the agreement that is asked for.
    seed : int, default=1000
        Of the starting weights.

    Examples
    --------
    >>> Trial(penalty=10).as_dict()
    {'learning_rate': 0.001, 'weight_decay': 0.0, 'penalty': 10, 'seed': 1000}
    """

    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    penalty: float = 0.0
    seed: int = FIRST_SEED

    def as_dict(self) -> dict[str, Any]:
        """Return names and values."""
        return asdict(self)


@dataclass(frozen=True)
class Recipe:
    """A method that descends: its gradient, and where its hyper-parameters are drawn from."""

    gradient: Objective
    default_penalty: float = 0.0
    penalty_exponents: tuple[float, float] | None = None
    """Ends of the uniform draw; None draws nothing."""
    penalty_form: str = "power"
    """How the draw u becomes a penalty: 10^u, 1 - 10^u or u itself."""
    rate_exponents: tuple[float, float] = (-4, -2)
    decay_exponents: tuple[float, float] = (-6, -2)
    plain: bool = False
    """Whether it takes plain steps, not those of Adam."""


RECIPES: Final = {
    "erm": Recipe(erm_gradient),
    "irmv1": Recipe(irm_gradient, 0.9, (-3, -0.3), "one minus power"),
    "iga": Recipe(iga_gradient, 1000, (1, 5)),
    "and-mask": Recipe(and_mask_gradient, 0.9, (0.8, 1), "plain", (-4, 0), (-5, 0), plain=True),
    "vrex": Recipe(vrex_gradient, 10, (-1, 5)),
}
_FORMS: Final = {
    "power": lambda u: 10**u,
    "one minus power": lambda u: 1 - 10**u,
    "plain": lambda u: u,
}


def published_trials(method: str, n_trials: int = PUBLISHED_TRIALS) -> list[Trial]:
    """Return the trials of the published experiments: the default, then random draws.

    The draws are those of the public code, number by number, so that a trial here has the
    hyper-parameters and the starting weights of the same trial there. V-REx is not in it; its
    range is the one of its own authors' benchmark.

    Parameters
    ----------
    method : {"erm", "irmv1", "iga", "and-mask", "vrex"}
        Which method.
    n_trials : int, default=20
        Number of trials.

    Returns
    -------
    list of Trial

    Examples
    --------
    >>> from isrlearn.baselines import published_trials
    >>> [f"{trial.learning_rate:.4f}" for trial in published_trials("irmv1", 3)]
    ['0.0010', '0.0039', '0.0011']
    """
    recipe = _recipe(method)
    check_number("n_trials", n_trials, 1, whole=True)
    default = Trial(penalty=recipe.default_penalty)
    return [default, *(_drawn(recipe, FIRST_SEED + t) for t in range(1, n_trials))][:n_trials]


def _recipe(method: str) -> Recipe:
    if method not in RECIPES:
        raise ValueError(f"method={brief(method)} must be one of {tuple(RECIPES)}.")
    return RECIPES[method]


def _drawn(recipe: Recipe, seed: int) -> Trial:
    # Python's own generator: the published draws came out of it.
    source = random.Random(seed)
    rate = 10 ** source.uniform(*recipe.rate_exponents)
    decay = 10 ** source.uniform(*recipe.decay_exponents)
    if recipe.penalty_exponents is None:
        return Trial(rate, decay, recipe.default_penalty, seed)
    drawn = source.uniform(*recipe.penalty_exponents)
    return Trial(rate, decay, _FORMS[recipe.penalty_form](drawn), seed)


def starting_weights(source: np.random.RandomState, n_features: int) -> Float64Array:
    r"""Return weights and bias, (d + 1,), uniform in :math:`\pm 1/\sqrt d`.

    They are drawn as torch draws those of a linear layer from a generator with the same seed: 24
    bits of each number.

    Parameters
    ----------
    source : RandomState
        Where the numbers come from.
    n_features : int
        Number of features d.
    """
    bits = source.randint(0, 2**32, size=n_features + 1, dtype=np.uint32) & (2**24 - 1)
    return (bits / 2**23 - 1) / np.sqrt(n_features)


def fit_trials(
    method: str,
    X: FloatArray,
    positive: BoolArray,
    codes: IntArray,
    trials: Sequence[Trial],
    n_steps: int = PUBLISHED_STEPS,
) -> FloatArray:
    """Train one model per trial, all at once.

    Parameters
    ----------
    method : {"erm", "irmv1", "iga", "and-mask", "vrex"}
        Which objective.
    X : ndarray of shape (n, d)
        Features; float32 computes in single precision, as the published experiments did.
    positive : ndarray of shape (n,)
        Whether a row is of the second class.
    codes : ndarray of shape (n,)
        Environment of each row: 0, ..., E - 1.
    trials : sequence of Trial
        Hyper-parameters of each model.
    n_steps : int, default=10000
        Number of full-batch steps.

    Returns
    -------
    ndarray of shape (T, d + 1)
        Weights and, last, the bias of each model.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.baselines import Trial, fit_trials
    >>> X = np.array([[-2.0], [2.0], [-1.0], [1.0]])
    >>> trials = [Trial(learning_rate=0.1), Trial(learning_rate=0.1, penalty=1.0)]
    >>> weights = fit_trials("vrex", X, X[:, 0] > 0, [0, 0, 1, 1], trials, n_steps=100)
    >>> weights.shape, bool((weights[:, 0] > 0).all())
    ((2, 2), True)
    """
    if len(trials) == 0:
        raise ValueError("trials is an empty list: give at least one Trial().")
    X, positive, codes = np.asarray(X), np.asarray(positive), np.asarray(codes)
    if X.dtype.kind != "f":
        X = X.astype(np.float64)
    if not np.isin(positive, (0, 1)).all():
        raise ValueError(f"positive must be True or False (1 or 0), not {np.unique(positive)[:3]}.")
    if not len(X) == len(positive) == len(codes):
        raise ValueError(
            f"X has {len(X)} rows, positive {len(positive)} and codes {len(codes)}: one of each."
        )
    positive, seen = positive.astype(bool), np.unique(codes)
    if not np.array_equal(seen, np.arange(len(seen))):
        raise ValueError(f"codes must be 0, ..., E - 1, each at least once; they are {seen}.")
    sources = [np.random.RandomState(trial.seed) for trial in trials]
    start = np.array([starting_weights(source, X.shape[1]) for source in sources])
    return train(method, X, positive, codes, trials, start, n_steps)


def train(
    method: str,
    X: FloatArray,
    positive: BoolArray,
    codes: IntArray,
    trials: Sequence[Trial],
    start: FloatArray,
    n_steps: int,
) -> FloatArray:
    """Train one model per trial from given weights; the arguments are those of `fit_trials`."""
    recipe = _recipe(method)
    rate, decay, penalty = (
        np.array([getattr(trial, name) for trial in trials], X.dtype)
        for name in ("learning_rate", "weight_decay", "penalty")
    )
    risk = EnvironmentRisk(X, positive, codes)
    walk = plain_descent if recipe.plain else adam
    return walk(
        lambda weights: recipe.gradient(risk, weights, penalty),
        start.astype(X.dtype),
        rate,
        decay,
        n_steps,
    )


Gradient = Callable[[FloatArray], FloatArray]


FIRST_DECAY: Final = 0.9


SECOND_DECAY: Final = 0.999


SMALL: Final = 1e-8


def adam(
    gradient: Gradient,
    start: FloatArray,
    learning_rate: FloatArray,
    weight_decay: FloatArray,
    n_steps: int,
) -> FloatArray:
    r"""Return where Adam ends after `n_steps`.

    With :math:`g` the gradient plus `weight_decay` times the weights, :math:`m` and :math:`v` the
    decaying means of :math:`g` and :math:`g^2`, a step is
    :math:`w \leftarrow w - \eta\, \hat m / (\sqrt{\hat v} + 10^{-8})`.

    Parameters
    ----------
    gradient : callable
        Maps the models (T, p) to their gradients (T, p).
    start : ndarray of shape (T, p)
        Where the models begin.
    learning_rate, weight_decay : ndarray of shape (T,)
        Of each model. The decay falls on the bias too, as in the published code.
    n_steps : int
        Number of steps.

    Returns
    -------
    ndarray of shape (T, p)
    """
    weights, first, second = start.copy(), np.zeros_like(start), np.zeros_like(start)
    rate, decay = learning_rate[:, None], weight_decay[:, None]
    for step in range(1, n_steps + 1):
        slope = gradient(weights) + decay * weights
        first += (1 - FIRST_DECAY) * (slope - first)
        second += (1 - SECOND_DECAY) * (slope * slope - second)
        spread = np.sqrt(second) / math.sqrt(1 - SECOND_DECAY**step) + SMALL
        weights -= rate / (1 - FIRST_DECAY**step) * first / spread
    return weights


def plain_descent(
    gradient: Gradient,
    start: FloatArray,
    learning_rate: FloatArray,
    weight_decay: FloatArray,
    n_steps: int,
) -> FloatArray:
    r"""Return where plain descent ends: :math:`w \leftarrow w - \eta\,(g + \delta w)`.

    Parameters
    ----------
    gradient : callable
        Maps the models (T, p) to their gradients (T, p).
    start : ndarray of shape (T, p)
        Where the models begin.
    learning_rate, weight_decay : ndarray of shape (T,)
        :math:`\eta` and :math:`\delta` of each model.
    n_steps : int
        Number of steps.

    Returns
    -------
    ndarray of shape (T, p)
    """
    weights = start.copy()
    rate, decay = learning_rate[:, None], weight_decay[:, None]
    for _ in range(n_steps):
        weights -= rate * (gradient(weights) + decay * weights)
    return weights
