"""Stage 3: removal and a linear regression in one estimator."""

from typing import Any, Self, cast

from sklearn.base import RegressorMixin, is_regressor
from sklearn.linear_model import Ridge
from sklearn.utils import Tags, get_tags

from isrlearn.display import brief
from isrlearn.estimators._predictor_base import ISRPredictor
from isrlearn.estimators._transformers import ISR
from isrlearn.rows import check_rows, check_scored, refuse_text


class ISRRegressor(RegressorMixin, ISRPredictor):
    r"""Remove the spurious subspace given a continuous target, then fit a linear head.

    In each environment X is regressed on :math:`\varphi(y) = (1, y)`. Directions in which the
    coefficients or the residual covariances differ between environments are removed as in `ISR`.
    With E environments the coefficients alone show at most 2 (E - 1) directions. The authors of ISR
    describe such an extension (arXiv 2311.00966); the steps here are our reconstruction of it.

    It assumes that the target stands before the features: some directions relate to y in the same
    way everywhere. Where features cause y instead, all directions may differ given y; `diagnose`
    warns where the data show it.

    Parameters
    ----------
    isr : ISR, default=None
        How to find the subspace, not fitted; None is ``ISR()``.
    head : regressor, default=None
        Fitted on the rows without their spurious part; None is ``Ridge()``.

    Attributes
    ----------
    isr_ : ISR
        The fitted `isr`.
    head_ : regressor
        The fitted `head`, in the coordinates of ``isr_.transform``.
    coef_ : ndarray of shape (n_features,)
        Weights in the original coordinates, removal included, if the head is linear.
    intercept_ : float
        Bias in the original coordinates.
    subspace_, n_spurious_, spurious_components_, spectrum_, rank_choice_, environments_
        As in `isr_`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    See Also
    --------
    ISRClassifier : The same for class labels.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn import ISRRegressor
    >>> random = np.random.default_rng(0)
    >>> e = np.repeat([0, 1, 2], 1000)
    >>> y = random.normal(size=3000)
    >>> cause = y + random.normal(size=3000)
    >>> cue = np.array([2.0, 1.0, -1.0])[e] * y + 0.5 * random.normal(size=3000)
    >>> X = np.column_stack([cause, cue])
    >>> reg = ISRRegressor().fit(X, y, environments=e)
    >>> reg.n_spurious_
    1
    >>> bool(abs(reg.coef_[1]) < 0.05 * abs(reg.coef_[0]))
    True
    """

    @staticmethod
    def _default_head() -> Ridge:
        return Ridge()

    def __init__(self, isr: ISR | None = None, head: Any = None) -> None:
        self.isr = isr
        self.head = head

    def fit(self, X: Any, y: Any, *, environments: Any = None, sample_weight: Any = None) -> Self:
        """Find the spurious subspace and fit the head without it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Target.
        environments : array-like of shape (n_samples,), default=None
            Environment of each row; None, NaN or NA where it is unknown. Such rows train the head
            only. None: nothing is removed, with a `SingleEnvironmentWarning`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, in the moments and in the head.

        Returns
        -------
        self
        """
        self._check_parts()
        self._forget()
        rows = check_rows(X, y, environments, sample_weight, estimator=self, numeric=True)
        isr = cast(ISR, self._fresh_isr())
        self.isr_ = isr._fit_response(rows, environments is not None)
        self._fit_head(rows, rows.sample_weight)
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination of the predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of any environment.
        y : array-like of shape (n_samples,)
            Target.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        """
        check_scored(X, y, sample_weight)
        refuse_text(y)
        return float(super().score(X, y, sample_weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = get_tags(self._head_or_default()).non_deterministic
        return tags

    def _check_parts(self) -> None:
        isr, head = self.isr, self._head_or_default()
        if isr is not None and not isinstance(isr, ISR):
            raise TypeError(f"isr={brief(isr)} is not an ISR(), the only one for a continuous y.")
        if isinstance(head, type) or not hasattr(head, "fit") or not is_regressor(head):
            raise TypeError(f"head={brief(head)} is not a regressor: give one such as Ridge().")
