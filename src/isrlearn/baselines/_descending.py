"""The rivals of the paper's first experiment, and V-REx: descent on an objective with a penalty."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets

from isrlearn.baselines._rival import LinearRival
from isrlearn.baselines._trials import PUBLISHED_STEPS, Trial, starting_weights, train
from isrlearn.rows import UNKNOWN, Rows, check_number, check_rows, refuse_large_features, seeded
from isrlearn.typing import BoolArray, FloatArray, IntArray


class DescendingRival(LinearRival):
    """Full-batch descent on the objective that `recipe` names. Two classes."""

    recipe: ClassVar[str]
    strength: ClassVar[str | None] = None
    """Name of the parameter that weighs the penalty, if there is one."""
    largest_strength: ClassVar[float] = np.inf
    needs_environments: ClassVar[bool] = True

    def __init__(
        self,
        *,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        n_steps: int = PUBLISHED_STEPS,
        random_state: Any = None,
    ) -> None:
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.n_steps = n_steps
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features; float32 is computed in single precision.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        environments : array-like of shape (n_samples,), default=None
            One label per row. Rows of unknown environment are left out where the objective needs
            the environment. None: all rows are one environment.

        Returns
        -------
        self
        """
        rows = check_rows(X, y, environments, estimator=self)
        refuse_large_features(rows.X)
        self._check(rows)
        codes = self._codes(rows, environments is not None)
        used = codes != UNKNOWN
        self._check_classes_left(rows, used)
        start = starting_weights(seeded(self.random_state), rows.X.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):  # looked for below
            weights = train(
                self.recipe,
                rows.X[used],
                rows.class_codes[used] == 1,
                codes[used],
                [self._trial()],
                start[None],
                self.n_steps,
            )
        self._refuse_overflow(weights)
        self.coef_, self.intercept_ = weights[:, :-1], weights[:, -1]
        self.classes_, self.environments_ = rows.classes, rows.environments
        return self

    def _trial(self) -> Trial:
        penalty = 0.0 if self.strength is None else getattr(self, self.strength)
        return Trial(self.learning_rate, self.weight_decay, penalty)

    def _codes(self, rows: Rows, given: bool) -> IntArray:
        """Return the environment of each row that is used, -1 for the others."""
        if not self.needs_environments:
            return np.zeros(len(rows.y), np.intp)
        return self._environment_codes(rows, given)

    def _check(self, rows: Rows) -> None:
        check_classification_targets(rows.y)
        if len(rows.classes) != 2:
            raise ValueError(
                f"Only binary classification is supported by {type(self).__name__}; y has "
                f"{len(rows.classes)} class(es)."
            )
        check_number("learning_rate", self.learning_rate, 0)
        check_number("weight_decay", self.weight_decay, 0)
        check_number("n_steps", self.n_steps, 1, whole=True)
        if self.strength is not None:
            check_number(self.strength, getattr(self, self.strength), 0, self.largest_strength)

    def _refuse_overflow(self, weights: FloatArray) -> None:
        if not np.isfinite(weights).all():
            raise ValueError(
                f"the steps of {type(self).__name__} left the range of numbers, with learning_rate="
                f"{self.learning_rate:g} and weight_decay={self.weight_decay:g}: lower them, or "
                "scale the features."
            )

    def _check_classes_left(self, rows: Rows, used: BoolArray) -> None:
        if len(np.unique(rows.class_codes[used])) < 2:
            raise ValueError(
                f"{(~used).sum()} rows of unknown environment are left out by "
                f"{type(self).__name__}, and the others are all of one class: label the "
                "environments of rows of both classes."
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class AdamERM(DescendingRival):
    r"""Logistic regression by Adam, as the published experiments fit it.

    It sees features and labels; environments are taken and not used. After 10 000 steps it is
    often far from its optimum, which `ERM` finds.

    Parameters
    ----------
    learning_rate : float, default=1e-3
        Length of a step.
    weight_decay : float, default=0.0
        Multiple of the weights, bias included, that is added to the gradient.
    n_steps : int, default=10000
        Full-batch steps of Adam.
    random_state : int, RandomState instance or None, default=None
        Draws the starting weights; trial t of the published experiments has 1000 + t.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights.
    intercept_ : ndarray of shape (1,)
        Bias.
    classes_ : ndarray of shape (2,)
        Sorted labels.
    environments_ : ndarray of shape (E,)
        Sorted environments.

    Examples
    --------
    >>> from isrlearn.baselines import AdamERM
    >>> from isrlearn.datasets import LinearUnitTest
    >>> X, y, environments = LinearUnitTest("3", 4, seed=0).sample(200)
    >>> model = AdamERM(n_steps=500, random_state=0)
    >>> model.fit(X, y, environments=environments).coef_.shape
    (1, 10)
    """

    recipe = "erm"
    needs_environments = False


class IRMv1(DescendingRival):
    r"""Invariant risk minimisation, version 1.

    Minimises :math:`(1-\lambda)\,\bar R + \lambda \sum_e \|\nabla_{a,b} R_e(a f + b)\|^2` at
    a = 1, b = 0 over linear f, where :math:`R_e` is the logistic risk of environment e and
    :math:`\bar R` their mean. It sees features, labels and environments of the training rows.

    Parameters
    ----------
    penalty : float, default=0.9
        :math:`\lambda`, from 0 to 1.
    learning_rate : float, default=1e-3
        Length of a step.
    weight_decay : float, default=0.0
        Multiple of the weights, bias included, that is added to the gradient.
    n_steps : int, default=10000
        Full-batch steps of Adam.
    random_state : int, RandomState instance or None, default=None
        Draws the starting weights; trial t of the published experiments has 1000 + t.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights.
    intercept_ : ndarray of shape (1,)
        Bias.
    classes_ : ndarray of shape (2,)
        Sorted labels.
    environments_ : ndarray of shape (E,)
        Sorted environments.

    References
    ----------
    .. [1] M. Arjovsky, L. Bottou, I. Gulrajani, D. Lopez-Paz. Invariant risk minimization. 2019.

    Examples
    --------
    >>> from isrlearn.baselines import IRMv1
    >>> from isrlearn.datasets import LinearUnitTest
    >>> X, y, environments = LinearUnitTest("3", 4, seed=0).sample(200)
    >>> model = IRMv1(n_steps=500, random_state=0)
    >>> model.fit(X, y, environments=environments).coef_.shape
    (1, 10)
    """

    recipe = "irmv1"
    strength = "penalty"
    largest_strength = 1.0

    def __init__(
        self,
        penalty: float = 0.9,
        *,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        n_steps: int = PUBLISHED_STEPS,
        random_state: Any = None,
    ) -> None:
        self.penalty = penalty
        super().__init__(
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            n_steps=n_steps,
            random_state=random_state,
        )


class IGA(DescendingRival):
    r"""Inter-environmental gradient alignment.

    Minimises :math:`\bar R + \lambda \sum_e \|g_e - \bar g\|^2`, where :math:`g_e` is the
    gradient of the logistic risk of environment e. It sees features, labels and environments of
    the training rows.

    Parameters
    ----------
    penalty : float, default=1000.0
        :math:`\lambda`.
    learning_rate : float, default=1e-3
        Length of a step.
    weight_decay : float, default=0.0
        Multiple of the weights, bias included, that is added to the gradient.
    n_steps : int, default=10000
        Full-batch steps of Adam.
    random_state : int, RandomState instance or None, default=None
        Draws the starting weights; trial t of the published experiments has 1000 + t.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights.
    intercept_ : ndarray of shape (1,)
        Bias.
    classes_ : ndarray of shape (2,)
        Sorted labels.
    environments_ : ndarray of shape (E,)
        Sorted environments.

    References
    ----------
    .. [1] M. Koyama, S. Yamaguchi. When is invariance useful in an out-of-distribution
       generalization problem? 2020.

    Examples
    --------
    >>> from isrlearn.baselines import IGA
    >>> from isrlearn.datasets import LinearUnitTest
    >>> X, y, environments = LinearUnitTest("3", 4, seed=0).sample(200)
    >>> model = IGA(n_steps=500, random_state=0)
    >>> model.fit(X, y, environments=environments).coef_.shape
    (1, 10)
    """

    recipe = "iga"
    strength = "penalty"

    def __init__(
        self,
        penalty: float = 1000.0,
        *,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        n_steps: int = PUBLISHED_STEPS,
        random_state: Any = None,
    ) -> None:
        self.penalty = penalty
        super().__init__(
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            n_steps=n_steps,
            random_state=random_state,
        )


class VREx(DescendingRival):
    r"""Risk extrapolation by the variance of risks.

    Minimises :math:`\bar R + \lambda\,\mathrm{Var}_e(R_e)`, where :math:`R_e` is the logistic risk
    of environment e. It sees features, labels and environments of the training rows.

    Parameters
    ----------
    penalty : float, default=10.0
        :math:`\lambda`; the variance divides by E.
    learning_rate : float, default=1e-3
        Length of a step.
    weight_decay : float, default=0.0
        Multiple of the weights, bias included, that is added to the gradient.
    n_steps : int, default=10000
        Full-batch steps of Adam.
    random_state : int, RandomState instance or None, default=None
        Draws the starting weights; trial t of the published experiments has 1000 + t.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights.
    intercept_ : ndarray of shape (1,)
        Bias.
    classes_ : ndarray of shape (2,)
        Sorted labels.
    environments_ : ndarray of shape (E,)
        Sorted environments.

    References
    ----------
    .. [1] D. Krueger et al. Out-of-distribution generalization via risk extrapolation. ICML 2021.

    Examples
    --------
    >>> from isrlearn.baselines import VREx
    >>> from isrlearn.datasets import LinearUnitTest
    >>> X, y, environments = LinearUnitTest("3", 4, seed=0).sample(200)
    >>> model = VREx(n_steps=500, random_state=0)
    >>> model.fit(X, y, environments=environments).coef_.shape
    (1, 10)
    """

    recipe = "vrex"
    strength = "penalty"

    def __init__(
        self,
        penalty: float = 10.0,
        *,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        n_steps: int = PUBLISHED_STEPS,
        random_state: Any = None,
    ) -> None:
        self.penalty = penalty
        super().__init__(
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            n_steps=n_steps,
            random_state=random_state,
        )


class ANDMask(DescendingRival):
    r"""AND-mask: steps only where the gradients of the environments agree in sign.

    The weight part of each :math:`g_e` is scaled to length one, the bias is not; an entry of their
    mean is kept where :math:`|\sum_e \mathrm{sign}\,g_e| > \tau E`. Plain steps, as in the
    published experiments. It sees features, labels and environments of the training rows.

    Parameters
    ----------
    agreement : float, default=0.9
        :math:`\tau`, from 0 to 1; at 1 no entry is ever kept.
    learning_rate : float, default=1e-3
        Length of a step.
    weight_decay : float, default=0.0
        Multiple of the weights, bias included, that is added to the gradient.
    n_steps : int, default=10000
        Full-batch steps.
    random_state : int, RandomState instance or None, default=None
        Draws the starting weights; trial t of the published experiments has 1000 + t.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights.
    intercept_ : ndarray of shape (1,)
        Bias.
    classes_ : ndarray of shape (2,)
        Sorted labels.
    environments_ : ndarray of shape (E,)
        Sorted environments.

    References
    ----------
    .. [1] G. Parascandolo, A. Neitz, A. Orvieto, L. Gresele, B. Schoelkopf. Learning explanations
       that are hard to vary. ICLR 2021.

    Examples
    --------
    >>> from isrlearn.baselines import ANDMask
    >>> from isrlearn.datasets import LinearUnitTest
    >>> X, y, environments = LinearUnitTest("3", 4, seed=0).sample(200)
    >>> model = ANDMask(n_steps=500, random_state=0)
    >>> model.fit(X, y, environments=environments).coef_.shape
    (1, 10)
    """

    recipe = "and-mask"
    strength = "agreement"
    largest_strength = 1.0

    def __init__(
        self,
        agreement: float = 0.9,
        *,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        n_steps: int = PUBLISHED_STEPS,
        random_state: Any = None,
    ) -> None:
        self.agreement = agreement
        super().__init__(
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            n_steps=n_steps,
            random_state=random_state,
        )
