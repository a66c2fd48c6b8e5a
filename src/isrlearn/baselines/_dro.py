"""Group distributionally robust optimisation of the last layer, solved to its optimum."""

from sklearn.exceptions import ConvergenceWarning

from isrlearn.baselines._environments import group_codes
from isrlearn.baselines._last_layer import Head, LastLayerRival
from isrlearn.baselines._softmax import SoftmaxLosses
from isrlearn.baselines._worst_group import CERTIFIED, best_worst_group
from isrlearn.exceptions import warn_user
from isrlearn.rows import Rows


class GroupDRO(LastLayerRival):
    r"""The last layer whose worst (class, environment) group has the least mean loss.

    .. math:: \min_W \max_g\; n L_g(W) + \|W\|^2 / (2C)

    with :math:`L_g` the mean loss of group g and n the number of rows used. The problem is convex
    and is solved, not descended on: `gap_` bounds how far the objective is from its minimum. It
    sees features, labels and environments; rows of unknown environment are left out.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty.

    Attributes
    ----------
    group_weights_ : ndarray of shape (G,)
        Weights q of the groups, which sum to one: logistic regression with these weights has the
        same solution. Groups are sorted by class, then by environment; empty ones are not there.
    gap_ : float
        Duality gap relative to the objective. Above 1e-4 there is a `ConvergenceWarning`.
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
    .. [1] S. Sagawa, P. W. Koh, T. B. Hashimoto, P. Liang. Distributionally robust neural networks
       for group shifts. ICLR 2020.

    Examples
    --------
    >>> from isrlearn.baselines import GroupDRO
    >>> from isrlearn.datasets import load_penguins
    >>> X, y, environments = load_penguins()
    >>> model = GroupDRO().fit(X / X.std(axis=0), y, environments=environments)
    >>> model.gap_ < 1e-4
    True
    """

    uses = "labels and environments"

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def _solve(self, rows: Rows) -> Head:
        known = self._known(rows)
        losses = SoftmaxLosses(known.X, known.class_codes, len(known.classes))
        found = best_worst_group(losses, group_codes(known), 1 / (self.C * len(known.X)))
        self.group_weights_, self.gap_ = found.group_weights, found.gap
        if found.gap > CERTIFIED:
            warn_user(
                f"GroupDRO may be {found.gap:.1e} of its objective away from the optimum: scale "
                "the features, or make C smaller.",
                ConvergenceWarning,
            )
        return losses.weights_of(found.point)
