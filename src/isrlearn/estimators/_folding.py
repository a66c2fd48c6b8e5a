"""Fold a fitted linear pipeline into one weight and bias; repair an existing head."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from isrlearn.display import brief
from isrlearn.estimators._transformers import ISRTransformer, default_isr
from isrlearn.typing import Float64Array

Head = tuple[Float64Array, Float64Array]


def fold(estimator: Any) -> Head:
    r"""Return weight and bias, in the original coordinates, of a fitted linear pipeline.

    Scaling, PCA, removal and a linear head are affine maps; so is what they do together.

    Parameters
    ----------
    estimator : fitted estimator
        A linear model (`coef_` and `intercept_`), an `ISRClassifier`, or a Pipeline that ends in
        one, with steps out of: the ISR transformers, StandardScaler, RobustScaler, MaxAbsScaler,
        MinMaxScaler, PCA, IncrementalPCA, TruncatedSVD, feature selectors, "passthrough". Also a
        fitted search over such a pipeline.

    Returns
    -------
    weight : ndarray of shape (k, d) or (d,)
        Of the shape of the head's `coef_`.
    bias : ndarray of shape (k,) or ()
        ``X @ weight.T + bias`` are the decision values of the pipeline.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from isrlearn import ISRMean, fold
    >>> from isrlearn.datasets import load_penguins
    >>> X, y, species = load_penguins()
    >>> pipe = make_pipeline(StandardScaler(), ISRMean(), LogisticRegression())
    >>> pipe = pipe.fit(X, y, isrmean__environments=species)
    >>> weight, bias = fold(pipe)
    >>> np.allclose(X @ weight[0] + bias, pipe.decision_function(X))
    True
    """
    check_is_fitted(estimator)
    if hasattr(estimator, "best_estimator_"):
        return fold(estimator.best_estimator_)
    if not hasattr(estimator, "steps"):
        return _head(estimator)
    *steps, (_, last) = estimator.steps
    return _fold_steps(steps, fold(last))


def repair_head(
    weight: Any,
    bias: Any,
    X: Any,
    y: Any,
    *,
    environments: Any,
    sample_weight: Any = None,
    isr: ISRTransformer | None = None,
    centre: Any = None,
) -> tuple[Any, Any]:
    """Take the spurious directions out of an existing linear head, without refitting it.

    The result gives on x what the old head gives on x with the spurious part removed: same shape,
    same cost, no projection left to apply.

    Parameters
    ----------
    weight : array-like of shape (k, d) or (d,)
        Weights of the head, for example of the last layer of a network.
    bias : array-like of shape (k,) or (), or None
        Its bias. A head without bias needs ``centre=0``.
    X : array-like of shape (n, d)
        Rows in the head's input space.
    y : array-like of shape (n,)
        Class labels.
    environments : array-like of shape (n,)
        Environments; None, NaN or NA where unknown.
    sample_weight : array-like of shape (n,), default=None
        Weights of the rows.
    isr : transformer, default=None
        How to find the subspace, not fitted; None is ``ISR()`` up to 20 features, with more
        ``ISRMean(1)``.
    centre : float or array-like of shape (d,), default=None
        Point relative to which to remove; None is the mean of the cell means.

    Returns
    -------
    weight, bias
        New arrays of the shapes and types that came in.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from isrlearn import repair_head
    >>> from isrlearn.datasets import load_penguins
    >>> X, y, species = load_penguins()
    >>> old = LogisticRegression(max_iter=10_000).fit(X, y)
    >>> weight, bias = repair_head(old.coef_, old.intercept_, X, y, environments=species)
    >>> weight.shape, bias.shape
    ((1, 4), (1,))
    """
    if isr is not None and not isinstance(isr, ISRTransformer):
        raise TypeError(
            f"isr={brief(isr)} is not an ISR transformer: give ISR(), ISRMean() or ISRCov()."
        )
    finder = default_isr(np.shape(X)[-1]) if isr is None else clone(isr)
    finder.fit(X, y, environments=environments, sample_weight=sample_weight)
    return finder.subspace_.fold_into(weight, bias, centre=centre)


def _head(estimator: Any) -> Head:
    linear = hasattr(estimator, "coef_") and hasattr(estimator, "intercept_")
    # SVC with three classes votes over pairs of them; PLS centres X before it applies coef_.
    votes = hasattr(estimator, "decision_function_shape") and len(estimator.classes_) > 2
    if not linear or votes or hasattr(estimator, "x_rotations_"):
        raise TypeError(
            f"{type(estimator).__name__} is not a linear model whose decision values are "
            "X @ coef_.T + intercept_, so it cannot be folded into one weight and bias. End the "
            "pipeline with one, such as LogisticRegression."
        )
    coef = estimator.coef_
    weight = np.array(coef.toarray() if issparse(coef) else coef, dtype=np.float64)
    bias = np.asarray(estimator.intercept_, dtype=np.float64)
    shape = weight.shape[:-1]
    # Some binary heads pair a 1-D weight with a bias of shape (1,); a missing bias is one zero.
    return weight, bias.reshape(shape) if bias.size == np.prod(shape) else np.full(shape, bias)


def _fold_steps(steps: list[tuple[str, Any]], head: Head) -> Head:
    for name, step in reversed(steps):
        head = _fold_step(name, step, *head)
    return head


def _fold_step(name: str, step: Any, weight: Float64Array, bias: Float64Array) -> Head:
    if step is None or step == "passthrough":
        return weight, bias
    if hasattr(step, "fold_into"):
        return step.fold_into(weight, bias)
    if hasattr(step, "steps"):
        return _fold_steps(step.steps, (weight, bias))
    if getattr(step, "clip", False):
        raise TypeError(f"step {brief(name)} clips, which is not linear: use clip=False to fold.")
    for types, folder in _folders():
        if isinstance(step, types):
            return folder(step, weight, bias)
    raise TypeError(
        f"step {brief(name)} ({type(step).__name__}) is not known to be linear, so the pipeline "
        "cannot be folded. Known are the ISR transformers, scalers, PCA, TruncatedSVD and feature "
        "selectors; apply other steps before the pipeline."
    )


def _folders() -> list[tuple[Any, Callable[[Any, Float64Array, Float64Array], Head]]]:
    # Imported here: `import isrlearn` must not load these modules.
    from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
    from sklearn.feature_selection import SelectorMixin
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

    return [
        (StandardScaler, _fold_standard),
        (RobustScaler, lambda s, w, b: _unscale(w, b, s.center_, s.scale_)),
        (MaxAbsScaler, lambda s, w, b: _unscale(w, b, None, s.scale_)),
        (MinMaxScaler, lambda s, w, b: (w * s.scale_, b + w @ s.min_)),
        ((PCA, IncrementalPCA), _fold_pca),
        (TruncatedSVD, lambda s, w, b: (w @ s.components_, b)),
        (SelectorMixin, _fold_selector),
    ]


def _unscale(weight: Float64Array, bias: Float64Array, centre: Any, scale: Any) -> Head:
    """Fold ``(x - centre) / scale``."""
    if scale is not None:
        weight = weight / scale
    return weight, bias if centre is None else bias - weight @ centre


def _fold_standard(step: Any, weight: Float64Array, bias: Float64Array) -> Head:
    # With with_mean=False the mean is stored all the same, and not used.
    return _unscale(weight, bias, step.mean_ if step.with_mean else None, step.scale_)


def _fold_pca(step: Any, weight: Float64Array, bias: Float64Array) -> Head:
    if step.whiten:
        smallest = np.finfo(step.explained_variance_.dtype).eps
        weight = weight / np.maximum(np.sqrt(step.explained_variance_), smallest)
    return _unscale(weight @ step.components_, bias, step.mean_, None)


def _fold_selector(step: Any, weight: Float64Array, bias: Float64Array) -> Head:
    support = step.get_support()
    full = np.zeros((*weight.shape[:-1], len(support)))
    full[..., support] = weight
    return full, bias
