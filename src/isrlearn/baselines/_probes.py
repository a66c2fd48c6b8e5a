"""Logistic regression on frozen features, plain, reweighted and subsampled."""

from typing import Any

import numpy as np

from isrlearn.baselines._environments import group_codes
from isrlearn.baselines._last_layer import Head, LastLayerRival, WeightedRival, logistic_head
from isrlearn.rows import Rows, seeded
from isrlearn.typing import IntArray


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

    def __init__(self, C: float = 1.0, *, weight: str | None = None) -> None:
        self.C = C
        self.weight = weight

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
        self.C = C
        self.random_state = random_state

    def _solve(self, rows: Rows) -> Head:
        known = self._known(rows)
        used = equal_groups(group_codes(known), seeded(self.random_state))
        self.n_rows_used_ = len(used)
        return logistic_head(known.take(used), self.C, start=self._start)


def equal_groups(groups: IntArray, random: np.random.RandomState) -> IntArray:
    """Return the places, sorted, of as many random rows of every group as the smallest has.

    Parameters
    ----------
    groups : ndarray of shape (n,)
        Group of each row: 0, ..., G - 1, none of them empty.
    random : RandomState
        Draws the rows.
    """
    sizes = np.bincount(groups)
    drawn = [
        random.choice(np.flatnonzero(groups == g), sizes.min(), replace=False)
        for g in range(len(sizes))
    ]
    return np.sort(np.concatenate(drawn))
