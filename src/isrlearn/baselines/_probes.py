"""Logistic regression on frozen features: plain, reweighted, subsampled, averaged (DFR)."""

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from isrlearn.baselines._rival import (
    MOST_ITERATIONS,
    Head,
    LastLayerRival,
    WeightedRival,
    group_codes,
    logistic_head,
)
from isrlearn.rows import Rows, check_number, seeded
from isrlearn.typing import Float64Array, IntArray


class LinearProbe(WeightedRival):
    r"""Logistic regression on all features, with a choice of weights.

    Minimises :math:`\sum_i w_i \ell_i + \|W\|^2/(2C)` with weights of mean one. It sees features
    and labels of all rows; environments only for "group" and "balanced", where a row of unknown
    environment gets the mean weight of its class.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty.
    weight : {None, "class", "group", "balanced"}, default=None
        "class" makes all classes count alike, "group" all (class, environment) groups, and
        "balanced" all classes and, within a class, the environments that it has: the weights of
        `ISRClassifier`. The last two differ where a group has no rows.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Bias.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    environments_ : ndarray of shape (E,)
        Sorted environments.

    References
    ----------
    .. [1] B. Y. Idrissi, M. Arjovsky, M. Pezeshki, D. Lopez-Paz. Simple data balancing achieves
       competitive worst-group-accuracy. CLeaR 2022.

    Examples
    --------
    >>> from isrlearn.baselines import LinearProbe
    >>> from isrlearn.datasets import load_penguins
    >>> X, y, environments = load_penguins()
    >>> LinearProbe(weight="group").fit(X, y, environments=environments).coef_.shape
    (1, 4)
    """

    uses = "labels, and environments with weight='group' or 'balanced'"
    _doubles = False

    def _needs_environments(self) -> bool:
        return self.weight in ("group", "balanced")

    def _solve(self, rows: Rows) -> Head:
        return self._head(rows)


class GroupSubsampling(LastLayerRival):
    r"""Logistic regression on equally many rows of every (class, environment) group.

    Groups are cut down to the size of the smallest at random, and
    :math:`\sum_i \ell_i + \|W\|^2/(2C)` is minimised over what is left. It sees features, labels
    and environments; rows of unknown environment are left out, and groups without rows are not
    there.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty.
    random_state : int, RandomState instance or None, default=None
        Draws the rows.

    Attributes
    ----------
    n_rows_used_ : int
        How many rows were fitted.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Bias.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    environments_ : ndarray of shape (E,)
        Sorted environments.

    References
    ----------
    .. [1] B. Y. Idrissi, M. Arjovsky, M. Pezeshki, D. Lopez-Paz. Simple data balancing achieves
       competitive worst-group-accuracy. CLeaR 2022.

    Examples
    --------
    >>> from isrlearn.baselines import GroupSubsampling
    >>> from isrlearn.datasets import load_penguins
    >>> X, y, environments = load_penguins()
    >>> model = GroupSubsampling(random_state=0).fit(X, y, environments=environments)
    >>> model.n_rows_used_ < len(X)
    True
    """

    uses = "labels and environments"

    def __init__(self, C: float = 1.0, *, random_state: Any = None) -> None:
        super().__init__(C)
        self.random_state = random_state

    def _solve(self, rows: Rows) -> Head:
        known = self._known(rows)
        used = equal_groups(group_codes(known), seeded(self.random_state))
        self.n_rows_used_ = len(used)
        return logistic_head(known.take(used), self.C, start=self._start)


class DFR(LastLayerRival):
    r"""Deep feature reweighting: the last layer retrained on groups of equal size.

    Rows are standardised. Then, `n_refits` times, all rows of the smallest (class, environment)
    group and as many random ones of every other are fitted by minimising
    :math:`C \sum_i \ell_i + \|w\|_1`, as published; weights and biases are averaged. With more
    than two classes each is told from the rest. It sees features, labels and environments; rows of
    unknown environment are left out. The rows should be held out from the training of the features.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty, which is not that of the other rivals: it falls on absolute
        weights of standardised features, and, since liblinear knows no other way, on the bias.
    n_refits : int, default=10
        How many random subsets are averaged over.
    random_state : int, RandomState instance or None, default=None
        Draws the subsets.

    Attributes
    ----------
    n_rows_used_ : int
        How many distinct rows were in some subset.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights in the coordinates of X.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Bias.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    environments_ : ndarray of shape (E,)
        Sorted environments.

    References
    ----------
    .. [1] P. Kirichenko, P. Izmailov, A. G. Wilson. Last layer re-training is sufficient for
       robustness to spurious correlations. ICLR 2023.

    Examples
    --------
    >>> from isrlearn.baselines import DFR
    >>> from isrlearn.datasets import load_penguins
    >>> X, y, environments = load_penguins()
    >>> model = DFR(random_state=0).fit(X, y, environments=environments)
    >>> model.n_rows_used_ <= len(X)
    True
    """

    uses = "labels and environments"

    def __init__(self, C: float = 1.0, *, n_refits: int = 10, random_state: Any = None) -> None:
        super().__init__(C)
        self.n_refits = n_refits
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("n_refits", self.n_refits, 1, whole=True)

    def _solve(self, rows: Rows) -> Head:
        known, random = self._known(rows), seeded(self.random_state)
        scaler = StandardScaler().fit(known.X)
        X, groups = scaler.transform(known.X), group_codes(known)
        subsets = [equal_groups(groups, random) for _ in range(self.n_refits)]
        self.n_rows_used_ = len(np.unique(np.concatenate(subsets)))
        heads = [_sparse_head(X[used], known.class_codes[used], self.C, random) for used in subsets]
        coef = np.mean([head[0] for head in heads], axis=0) / scaler.scale_
        return coef, np.mean([head[1] for head in heads], axis=0) - coef @ scaler.mean_


def equal_groups(groups: IntArray, random: np.random.RandomState) -> IntArray:
    """Return the places, sorted, of as many random rows of every group as the smallest has."""
    sizes = np.bincount(groups)
    drawn = [
        random.choice(np.flatnonzero(groups == g), sizes.min(), replace=False)
        for g in range(len(sizes))
    ]
    return np.sort(np.concatenate(drawn))


def sparse_logistic(C: float, seed: int) -> LogisticRegression:
    """Return logistic regression with an L1 penalty, in the words of this scikit-learn."""
    # From 1.8 on `penalty` is deprecated, which its default says; before, l1_ratio was ignored.
    before = LogisticRegression().penalty == "l2"
    words: dict[str, Any] = {"penalty": "l1"} if before else {"l1_ratio": 1.0}
    words |= {"solver": "liblinear", "max_iter": MOST_ITERATIONS, "random_state": seed}
    return LogisticRegression(C=C, **words)


def _sparse_head(
    X: Float64Array, class_codes: IntArray, C: float, random: np.random.RandomState
) -> Head:
    """Return the head of the least :math:`C sum l + |w|_1`, one class against the rest if k > 2."""
    n_classes, seed = int(class_codes.max()) + 1, random.randint(2**31 - 1)
    fits = [
        sparse_logistic(C, seed).fit(X, class_codes == c)
        for c in ([1] if n_classes == 2 else range(n_classes))
    ]
    coef = np.concatenate([fit.coef_ for fit in fits])
    return coef, np.concatenate([fit.intercept_ for fit in fits])
