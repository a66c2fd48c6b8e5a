"""Heads fitted from sums over rows: nothing but a `RowSource` and its moments is needed."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from isrlearn.exceptions import warn_user
from isrlearn.heads._closed_forms import CLOSED_FORMS
from isrlearn.heads._coordinates import HeadCoordinates
from isrlearn.heads._head_passes import AddSlopes, Sample, TakeSample
from isrlearn.heads._logistic import RIDGE, SOLVED, is_scaled, separation
from isrlearn.heads._logistic_head import LogisticHead
from isrlearn.heads._pooled import Pooled
from isrlearn.heads._row_weights import GroupFactors
from isrlearn.heads._slopes import Slope, slope_of
from isrlearn.heads._solver import Problem, Solution, sample_curvature, solve
from isrlearn.moments import FEW_COORDINATES, ROWS_PER_COORDINATE, frame_of
from isrlearn.rows import InMemory, RowSource
from isrlearn.subspace import Subspace
from isrlearn.typing import Float64Array

LOGISTIC: Final = (LogisticRegression, LogisticHead)
SAMPLE_ROWS: Final = 50  # of each weight, for the start and the curvature
LEAST_SAMPLE: Final = 20_000
SAMPLE_BYTES: Final = 2**28
SAMPLE_SOLVED: Final = 1e-4
SAMPLE_STEPS: Final = 200
FAR_FROM_SOLVED: Final = 10.0
LEAST_WORTH_A_WORD: Final = 1e-5  # of a gradient: predictions do not change
SHORT: Final = 20  # rows of each weight below which a sample is not solved: it would be overfitted
SHORT_STEPS: Final = 2


def needs_scatters(head: Any, n_features: int) -> bool:
    """Whether a head needs more than the means of the rows before its passes.

    Parameters
    ----------
    head : classifier
        Not fitted.
    n_features : int
        Number of features.
    """
    if type(head).__name__ in CLOSED_FORMS:
        return True
    return isinstance(head, LogisticHead) and n_features <= FEW_COORDINATES


def solved_by_slopes(head: Any, n_features: int) -> bool:
    """Whether slopes of the loss are all that a head needs of the rows.

    Parameters
    ----------
    head : classifier
        Not fitted.
    n_features : int
        Number of features.
    """
    return type(head) in LOGISTIC and not needs_scatters(head, n_features) and not why_not(head)


def why_not(head: Any) -> str:
    """Return why a head cannot be fitted from sums over rows; "" if it can.

    Parameters
    ----------
    head : classifier
        Not fitted.
    """
    name = type(head).__name__
    if type(head).__name__ in CLOSED_FORMS:
        return CLOSED_FORMS[name].why_not(head)
    if type(head) not in LOGISTIC:
        known = ", ".join(["LogisticHead", "LogisticRegression", *CLOSED_FORMS])
        return f"{name} needs all rows at once; heads that add up are {known}"
    if head.solver != "lbfgs":
        return f"solver={head.solver!r} needs all rows at once; 'lbfgs' does not"
    if head.penalty not in ("l2", "deprecated") or head.l1_ratio not in (None, 0, 0.0):
        return f"penalty={head.penalty!r}, l1_ratio={head.l1_ratio!r} is not the ridge penalty"
    if head.warm_start or head.class_weight is not None:
        return "warm_start and class_weight need all rows at once"
    return ""


@dataclass(frozen=True, eq=False)
class Removed:
    """Rows without their spurious part, as sums.

    Parameters
    ----------
    rows : RowSource
        The rows as they are.
    subspace : Subspace
        What is removed.
    factors : GroupFactors
        Classes, and weights of the rows.
    pooled : Pooled
        Weighted moments of the rows as they are, over all environments.
    """

    rows: RowSource
    subspace: Subspace
    factors: GroupFactors
    pooled: Pooled

    def slope_at(self, coef: Float64Array, bias: Float64Array) -> Slope:
        """Return the slope of all rows: one pass."""
        return self.rows.total(AddSlopes(self.factors, coef, bias))


def fit_from_sums(head: Any, removed: Removed) -> Any:
    """Fit a head for which `why_not` says nothing.

    Parameters
    ----------
    head : classifier
        Not fitted; it is changed.
    removed : Removed
        Rows without their spurious part.

    Returns
    -------
    head
    """
    classes = removed.factors.classes
    if type(head).__name__ in CLOSED_FORMS:
        inside = removed.pooled.without(removed.subspace)
        CLOSED_FORMS[type(head).__name__].fit(head, inside, classes)
        return head
    # C="scale" is a word of LogisticHead alone.
    (clone(head).set_params(C=1.0) if _is_scaled(head) else head)._validate_params()
    head.n_features_in_, head.classes_ = removed.rows.n_features, classes
    problem = _problem(head, removed)
    near = _near(problem, removed)
    # Over chunks a good start makes a few passes enough for what many would be needed for.
    tol = head.tol if isinstance(removed.rows, InMemory) else min(head.tol, SOLVED)
    found = solve(problem, removed.slope_at, tol=tol, max_iter=head.max_iter, **near)
    _warn_of_no_end(head, found, tol)
    head.coef_, head.intercept_ = problem.coordinates.unmapped(found.weight, found.bias)
    head.n_iter_ = np.array([found.n_iter], dtype=np.int32)
    return head


def _problem(head: Any, removed: Removed) -> Problem:
    n_classes = len(removed.factors.classes)
    total = removed.pooled.total
    if _is_scaled(head):
        strength = RIDGE
    else:
        with np.errstate(divide="ignore"):
            strength = float(np.divide(1.0, head.C * total))
    return Problem(
        _coordinates(head, removed),
        1 if n_classes == 2 else n_classes,
        strength,
        total,
        head.fit_intercept,
    )


def _is_scaled(head: Any) -> bool:
    return isinstance(head, LogisticHead) and is_scaled(head)


def _coordinates(head: Any, removed: Removed) -> HeadCoordinates:
    """Return the coordinates in which the penalty falls: those of `LogisticHead`, or those of X."""
    n_rows, d = removed.pooled.n_rows, removed.rows.n_features
    few = d <= FEW_COORDINATES and n_rows >= ROWS_PER_COORDINATE * d
    whiten = few and isinstance(head, LogisticHead)
    if not whiten and not _is_scaled(head):
        return HeadCoordinates(removed.subspace, np.zeros(d))
    inside = removed.pooled.without(removed.subspace)
    forward: Float64Array = np.ones(d)
    if whiten:
        forward = frame_of(inside.covariance(), inside.rounding, float(n_rows), 1).forward
        forward = forward if forward.shape[1] else np.zeros((d, 1))
    if _is_scaled(head):
        forward = forward / separation(inside.weights, inside.means, forward, inside.rounding)
    centre = inside.mean() if head.fit_intercept else np.zeros(d)
    return HeadCoordinates(removed.subspace, centre, forward)


def _near(problem: Problem, removed: Removed) -> dict[str, Float64Array]:
    """Return where to begin and the curvature there, from a sample; nothing for rows in memory."""
    if isinstance(removed.rows, InMemory):
        return {}
    sample = _sample(problem, removed)
    inside = problem.coordinates
    Z = inside.mapped(removed.subspace.project(sample.X))
    flat = np.full((len(Z), problem.n_vectors), 1 / max(2, problem.n_vectors))
    curvature = sample_curvature(Z, flat, sample.weights, problem.strength)
    part = Problem(
        inside, problem.n_vectors, problem.strength, sample.weights.sum(), problem.fit_intercept
    )
    found = solve(
        part,
        lambda coef, bias: slope_of(sample.X, sample.codes, sample.weights, coef, bias),
        tol=SAMPLE_SOLVED,
        max_iter=SAMPLE_STEPS if len(Z) >= SHORT * problem.shape[1] else SHORT_STEPS,
        curvature=curvature,
    )
    scores = Z @ found.weight.T + found.bias
    shares = expit(scores) if problem.n_vectors == 1 else softmax(scores, axis=1)
    return {
        "start": np.column_stack([found.weight, found.bias]),
        "curvature": sample_curvature(Z, shares, sample.weights, problem.strength),
    }


def _sample(problem: Problem, removed: Removed) -> Sample:
    wanted = max(LEAST_SAMPLE, SAMPLE_ROWS * problem.shape[1])
    wanted = min(wanted, SAMPLE_BYTES // (8 * removed.rows.n_features))
    every = max(1, -(-removed.pooled.n_rows // max(wanted, 2 * problem.shape[1])))
    return removed.rows.total(TakeSample(removed.factors, every))


def _warn_of_no_end(head: Any, found: Solution, tol: float) -> None:
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
