"""Logistic heads: one objective and its optimum, for rows in memory and for rows as sums."""

from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Tags
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from isrlearn.exceptions import warn_user
from isrlearn.heads._closed_forms import CLOSED_FORMS
from isrlearn.heads._loss import AddLoss, Loss, Sample, TakeSample, loss_of, shares_of
from isrlearn.heads._row_weights import GroupFactors, Pooled, group_factors
from isrlearn.heads._solver import (
    HeadCoordinates,
    Problem,
    Solution,
    descend,
    newton,
    sample_curvature,
    times,
)
from isrlearn.moments import (
    FEW_COORDINATES,
    ROWS_PER_COORDINATE,
    AddMoments,
    AllMoments,
    frame_of,
    in_safe_precision,
)
from isrlearn.rows import InMemory, RowSource, as_rows, check_rows, refuse_sparse
from isrlearn.subspace import Subspace
from isrlearn.typing import Float64Array, FloatArray

SOLVED: Final = 1e-6
"""Largest entry of the gradient of the mean loss at which a fit counts as solved. With the usual
1e-4 the error in a new environment can be off by several hundredths: along directions in which the
training environments differ the loss is flat."""
SCALE: Final = "scale"
"""The value of C for a penalty that is measured by how far apart the classes are."""
RIDGE: Final = 0.1
"""That penalty, for classes whose means have variance one. Chosen on training rows alone: the worst
seen group, cross-fitted, peaks between 0.03 and 0.1 (``benchmarks/unseen.py ridge``)."""
ROUNDED: Final = 8.0  # multiples of the rounding error that are no difference
MAPPED_BYTES: Final = 2**28  # of rows of which a copy is made, in the coordinates of the head
SAMPLE_ROWS: Final = 50  # of each weight, for the start and the curvature
LEAST_SAMPLE: Final = 20_000
SAMPLE_BYTES: Final = 2**28
SAMPLE_SOLVED: Final = 1e-4
SAMPLE_STEPS: Final = 200
FAR_FROM_SOLVED: Final = 10.0
LEAST_WORTH_A_WORD: Final = 1e-5  # of a gradient: predictions do not change
SHORT: Final = 20  # rows of each weight below which a sample is not solved: it would be overfitted
SHORT_STEPS: Final = 2


class LogisticHead(LogisticRegression):
    r"""Logistic regression in coordinates where the spread of the features is white.

    The penalty of plain logistic regression falls on weights in the units of the features: a
    feature of small scale is hardly used, however well it tells the classes apart, and features of
    mixed scales take many steps to fit. Here the same penalty falls on weights in units of spread,
    and scaling or mixing the features changes nothing in the predictions. The weights are given in
    the coordinates of X.

    With more than 20 features, or fewer than 10 rows for each, the features stay as they are:
    whitening would raise the noise of weak directions to the level of the strong ones, and the
    penalty could not tell them apart. So it is with ``warm_start=True``. The default solver is
    Newton's method for few weights, to a gradient of 1e-8, and L-BFGS for many.

    Parameters and attributes are those of :class:`sklearn.linear_model.LogisticRegression`, but
    for one value of ``C``. With ``C="scale"``, the head of `ISRClassifier`, the objective is

    .. math:: \frac1W \sum_i \omega_i \ell_i + \frac{0.1}{2}\, B\, \|w\|^2,
        \qquad B = \sum_c \pi_c \|\mu_c - \bar\mu\|^2,

    with weights :math:`\omega` that sum to W, the share :math:`\pi_c` and mean :math:`\mu_c` of
    class c. So the penalty is measured by how far apart the classes are. Multiplying all of X or
    all weights by a number changes no prediction; nor does repeating the rows or adding constant
    features, unless there are then ten rows for each feature, or more than 20 features.
    `warm_start` has no effect. ``docs/method.md`` has the study behind 0.1.

    Examples
    --------
    >>> from isrlearn import LogisticHead
    >>> from isrlearn.datasets import load_penguins
    >>> X, y, _ = load_penguins()
    >>> grams = LogisticHead().fit(X, y)
    >>> kilograms = LogisticHead().fit(X / [1, 1, 1, 1000], y)
    >>> bool((grams.predict(X) == kilograms.predict(X / [1, 1, 1, 1000])).all())
    True
    """

    coef_: Any
    intercept_: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self
        """
        refuse_sparse(X)
        if _why_not_plain(self):
            return self._fit_by_scikit_learn(X, y, sample_weight)
        rows = check_rows(X, y, None, sample_weight, estimator=self)
        check_classification_targets(rows.y)
        if len(rows.classes) < 2:
            raise ValueError(
                f"y has one class ({rows.classes.tolist()}), but a classifier tells at least 2 "
                "classes apart: give rows of another class."
            )
        return fit_logistic(self, InMemory(rows), Subspace.nothing(rows.X.shape[1]))

    def _fit_by_scikit_learn(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Fit with options that need scikit-learn's own solvers, in the same coordinates."""
        X = as_rows(X)
        n_rows, d = np.shape(X)
        as_they_are = d > FEW_COORDINATES or n_rows < ROWS_PER_COORDINATE * d or self.warm_start
        if as_they_are and not is_scaled(self):
            return super().fit(X, y, sample_weight)
        (clone(self).set_params(C=1.0) if is_scaled(self) else self)._validate_params()
        rows = check_rows(X, y, None, sample_weight, estimator=self)
        check_classification_targets(rows.y)
        names = LogisticRegression().get_params()  # a subclass may have others
        solver = LogisticRegression(**{name: getattr(self, name) for name in names})
        if self.class_weight is not None and is_scaled(self):
            own = compute_sample_weight(self.class_weight, rows.y)
            given = 1.0 if rows.sample_weight is None else rows.sample_weight
            rows = replace(rows, sample_weight=own * given)
            solver.set_params(class_weight=None)
        source = InMemory(rows)
        problem = _Logistic.of(self, source, Subspace.nothing(rows.X.shape[1])).problem
        inside = problem.coordinates
        if is_scaled(self):
            solver.set_params(C=1 / (RIDGE * problem.total))
        few = inside.n_coordinates <= FEW_COORDINATES
        Z = inside.mapped(rows.X.astype(np.float64) if few else in_safe_precision(rows.X))
        if self.solver == "lbfgs":
            solver.set_params(tol=min(self.tol, SOLVED))
        solver.fit(Z, rows.y, rows.sample_weight)
        known = {k: v for k, v in self.__dict__.items() if k.endswith("_in_")}
        self.__dict__.update({k: v for k, v in vars(solver).items() if k.endswith("_")} | known)
        coef, bias = inside.unmapped(solver.coef_, solver.intercept_)
        self.coef_, self.intercept_ = coef.astype(rows.X.dtype), bias.astype(rows.X.dtype)
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


LOGISTIC: Final = (LogisticRegression, LogisticHead)


def is_scaled(head: Any) -> bool:
    """Whether the penalty of a `LogisticHead` is measured by how far apart the classes are."""
    if not isinstance(head, LogisticHead) or not isinstance(head.C, str):
        return False
    if head.C != SCALE:
        raise ValueError(
            f"The 'C' parameter of LogisticHead is {head.C!r:.50}: give a positive number or "
            f"{SCALE!r}."
        )
    return True


def is_solved_without_rows(head: Any, X: FloatArray) -> bool:
    """Whether a head is fitted from sums also where the rows are in memory.

    Others are given rows of their own, without the spurious part: by far the simplest for all but
    the largest.
    """
    large = X.nbytes >= MAPPED_BYTES
    needs_no_rows = type(head) is LogisticHead or (type(head) is LogisticRegression and large)
    return needs_no_rows and not _why_not_plain(head)


def needs_scatters(head: Any, n_features: int) -> bool:
    """Whether a head needs more than the means of the rows before its passes."""
    if type(head).__name__ in CLOSED_FORMS:
        return True
    return isinstance(head, LogisticHead) and n_features <= FEW_COORDINATES


def why_not(head: Any) -> str:
    """Return why a head cannot be fitted from sums over rows; "" if it can."""
    name = type(head).__name__
    if name in CLOSED_FORMS:
        return CLOSED_FORMS[name].why_not(head)
    if type(head) not in LOGISTIC:
        known = ", ".join(["LogisticHead", "LogisticRegression", *CLOSED_FORMS])
        return f"{name} needs all rows at once; heads that add up are {known}"
    return _why_not_plain(head)


def _why_not_plain(head: LogisticRegression) -> str:
    """Return which option of logistic regression needs scikit-learn's own solvers; "" if none."""
    if head.solver != "lbfgs":
        return f"solver={head.solver!r} needs all rows at once; 'lbfgs' does not"
    if head.penalty not in ("l2", "deprecated") or head.l1_ratio not in (None, 0, 0.0):
        return f"penalty={head.penalty!r}, l1_ratio={head.l1_ratio!r} is not the ridge penalty"
    if head.warm_start or head.class_weight is not None or head.dual:
        return "warm_start, class_weight and dual need all rows at once"
    return ""


@dataclass(frozen=True, eq=False)
class _Logistic:
    """Logistic regression of rows without their spurious part."""

    source: RowSource
    factors: GroupFactors
    pooled: Pooled
    problem: Problem

    @classmethod
    def of(
        cls,
        head: Any,
        source: RowSource,
        subspace: Subspace,
        moments: AllMoments | None = None,
        scheme: str | None = None,
    ) -> Self:
        """Return what a head is to be fitted on, given what was added up of the rows before."""
        scatters = needs_scatters(head, source.n_features)
        moments = source.total(AddMoments(scatters)) if moments is None else moments
        factors = group_factors(moments, scheme)
        pooled = Pooled.of(moments, factors, scatters=scatters)
        strength = RIDGE
        if not is_scaled(head):
            with np.errstate(divide="ignore"):
                strength = float(np.divide(1.0, head.C * pooled.total))
        k = len(factors.classes)
        coordinates = _coordinates(head, subspace, pooled)
        n_vectors, total = 1 if k == 2 else k, pooled.total
        problem = Problem(coordinates, n_vectors, strength, total, head.fit_intercept)
        return cls(source, factors, pooled, problem)

    def loss_at(self, coef: Float64Array, bias: Float64Array) -> Loss:
        """Return the loss of all rows: one pass."""
        return self.source.total(AddLoss(self.factors, coef, bias))

    def solved(self, tol: float, max_iter: int) -> Solution:
        """Return the optimum."""
        problem = self.problem
        how: dict[str, Any] = {"tol": tol, "max_iter": max_iter}
        if not isinstance(self.source, InMemory):
            return descend(problem, self.loss_at, **how, **self._near())
        rows = self.source.rows
        if rows.X.nbytes >= MAPPED_BYTES:
            return descend(problem, self.loss_at, **how)
        inside, labels = problem.coordinates, self.factors.labels_of(rows)
        X = in_safe_precision(rows.X)
        few = inside.n_coordinates <= FEW_COORDINATES
        Z = inside.mapped(inside.subspace.project(X.astype(np.float64) if few else X))
        if few and problem.n_vectors == 1:
            found = newton(Z, *labels(slice(None)), problem)
            if found is not None:
                return found
        flat = HeadCoordinates(Subspace.nothing(Z.shape[1]), np.zeros(Z.shape[1]))
        here = replace(problem, coordinates=flat)
        return descend(here, lambda coef, bias: loss_of(Z, labels, coef, bias), **how)

    def _near(self) -> dict[str, Any]:
        """Return where to begin and the curvature there, from a sample of the rows."""
        problem, inside = self.problem, self.problem.coordinates
        wanted = max(LEAST_SAMPLE, SAMPLE_ROWS * problem.shape[1])
        wanted = min(wanted, SAMPLE_BYTES // (8 * self.source.n_features))
        every = max(1, -(-self.pooled.n_rows // max(wanted, 2 * problem.shape[1])))
        sample: Sample = self.source.total(TakeSample(self.factors, every))
        X, codes, weights = sample.X, sample.codes, sample.weights
        Z = inside.mapped(inside.subspace.project(X))
        flat = np.full((len(Z), problem.n_vectors), 1 / max(2, problem.n_vectors))
        found = descend(
            replace(problem, total=float(weights.sum())),
            lambda coef, bias: loss_of(X, lambda own: (codes[own], weights[own]), coef, bias),
            tol=SAMPLE_SOLVED,
            max_iter=SAMPLE_STEPS if len(Z) >= SHORT * problem.shape[1] else SHORT_STEPS,
            curvature=sample_curvature(Z, flat, weights, problem.strength),
        )
        shares = shares_of(Z @ found.weight.T + found.bias)
        return {
            "start": np.column_stack([found.weight, found.bias]),
            "curvature": sample_curvature(Z, shares, weights, problem.strength),
        }


def fit_logistic(
    head: Any,
    source: RowSource,
    subspace: Subspace,
    moments: AllMoments | None = None,
    scheme: str | None = None,
) -> Any:
    """Fit a logistic head on rows without their spurious part; see `fit_from_sums`."""
    # C="scale" is a word of LogisticHead alone.
    (clone(head).set_params(C=1.0) if is_scaled(head) else head)._validate_params()
    logistic = _Logistic.of(head, source, subspace, moments, scheme)
    # Over chunks a good start makes a few passes enough for what many would be needed for.
    tol = head.tol if isinstance(source, InMemory) else min(head.tol, SOLVED)
    found = logistic.solved(tol, head.max_iter)
    reached = f"the gradient is {found.steepest:.1e}, wanted {tol:.1e}"
    if not found.steepest <= tol and found.n_iter >= head.max_iter:
        warn_user(
            f"the head is not solved after max_iter={head.max_iter} iterations: {reached}. Raise "
            "max_iter, or scale the features.",
            ConvergenceWarning,
        )
    elif not found.steepest <= max(FAR_FROM_SOLVED * tol, LEAST_WORTH_A_WORD):
        warn_user(
            f"the head is solved as far as rounding allows: {reached}. Centre and scale the "
            "features, or give them in double precision.",
            ConvergenceWarning,
        )
    inside = logistic.problem.coordinates
    head.coef_, head.intercept_ = inside.unmapped(found.weight, found.bias)
    if isinstance(source, InMemory):
        dtype = source.rows.X.dtype
        head.coef_, head.intercept_ = head.coef_.astype(dtype), head.intercept_.astype(dtype)
    head.n_features_in_, head.classes_ = source.n_features, logistic.factors.classes
    head.n_iter_ = np.array([found.n_iter], dtype=np.int32)
    return head


def fit_from_sums(
    head: Any,
    source: RowSource,
    subspace: Subspace,
    moments: AllMoments,
    scheme: str | None = None,
) -> Any:
    """Fit a head for which `why_not` says nothing, on rows without their spurious part.

    Parameters
    ----------
    head : classifier
        Not fitted.
    source : RowSource
        The rows.
    subspace : Subspace
        What is removed from them.
    moments : AllMoments
        Their moments, with scatters if the head `needs_scatters`.
    scheme : {"balanced", "matched", "class", None}, default=None
        What counts alike, as in `group_factors`.
    """
    name = type(head).__name__
    if name not in CLOSED_FORMS:
        return fit_logistic(head, source, subspace, moments, scheme)
    factors = group_factors(moments, scheme)
    pooled = Pooled.of(moments, factors, scatters=True).without(subspace)
    CLOSED_FORMS[name].fit(head, pooled, factors.classes)
    return head


def _coordinates(head: Any, subspace: Subspace, pooled: Pooled) -> HeadCoordinates:
    """Return the coordinates in which the penalty falls: of `LogisticHead`, or those of X."""
    d = subspace.n_features
    few = d <= FEW_COORDINATES and pooled.n_rows >= ROWS_PER_COORDINATE * d
    whiten = few and isinstance(head, LogisticHead) and not head.warm_start
    if not whiten and not is_scaled(head):
        return HeadCoordinates(subspace, np.zeros(d))
    inside = pooled.without(subspace)
    forward: Float64Array = np.ones(d)
    if whiten:
        forward = frame_of(inside.covariance(), inside.rounding, float(pooled.n_rows), 1).forward
        forward = forward if forward.shape[1] else np.zeros((d, 1))
    if is_scaled(head):
        forward = forward / separation(inside.weights, inside.means, forward, inside.rounding)
    centre = inside.mean() if head.fit_intercept else np.zeros(d)
    return HeadCoordinates(subspace, centre, forward)


def separation(
    totals: Float64Array, means: Float64Array, forward: Float64Array, rounding: Float64Array
) -> float:
    r"""Return how far apart classes are: :math:`\sqrt{\sum_c \pi_c \|\mu_c - \bar\mu\|^2}`.

    Coordinates in which classes differ by no more than rounding do not count. Where that are all,
    the penalty must not vanish with them: then it is the largest rounding error, or 1.

    Parameters
    ----------
    totals : ndarray of shape (k,)
        Weight of each class.
    means : ndarray of shape (k, d)
        Mean of each class.
    forward : ndarray of shape (d, q) or (d,)
        The map to the coordinates in which it is measured, or its diagonal.
    rounding : ndarray of shape (d,)
        Rounding error of each feature.

    Examples
    --------
    >>> import numpy as np
    >>> means = np.array([[0.0, 0.0], [6.0, 8.0]])
    >>> float(separation(np.array([50.0, 50.0]), means, np.ones(2), np.zeros(2)))
    5.0
    """
    shares = totals / totals.sum()
    away = times(means - shares @ means, forward)
    least = ROUNDED * times(rounding, np.abs(forward))
    away = np.where(np.abs(away) > least, away, 0.0)
    unit = np.abs(away).max(initial=0.0)  # no square overflows or vanishes
    if unit == 0:
        return float(least.max(initial=0.0)) or 1.0
    return float(unit * np.sqrt(shares @ np.sum((away / unit) ** 2, axis=1)))
