"""From a fit to its diagnosis."""

from typing import Any, NamedTuple

import numpy as np

from isrlearn.diagnosis._diagnosis import Diagnosis
from isrlearn.diagnosis._findings import Seen, judge
from isrlearn.diagnosis._removed import (
    EXACT,
    share_of_target,
    shares_of_features,
    stability_of_target,
)
from isrlearn.diagnosis._uncertainty import angle_draws, found_by
from isrlearn.moments import (
    CellMoments,
    class_positions,
    given_classes,
    given_response,
    rounding_errors,
)
from isrlearn.subspace import Found
from isrlearn.typing import Float64Array


class Fit(NamedTuple):
    """A fit, as far as its diagnosis needs to know it."""

    method: str
    """Name of the estimator."""
    orders: str
    """What it looks at: "both", "means" or "covariances"."""
    condition_on: Any
    """Classes that it compares; None for all."""
    found: Found
    moments: CellMoments
    feature_names: tuple[str, ...]
    """One for each feature."""

    @property
    def is_response(self) -> bool:
        """Whether the target is continuous: then it is one more column of the moments."""
        return self.moments.n_features > len(self.feature_names)


def diagnose(fit: Fit) -> Diagnosis:
    """Return the diagnosis of a fit.

    Parameters
    ----------
    fit : Fit
        What was found, and from what.
    """
    (subspace, choice, workings), moments = fit.found, fit.moments
    n_features = len(fit.feature_names)
    means = covariances = angle = None
    if workings is not None and choice is not None:
        means = found_by(workings, "means", choice.alpha)
        covariances = found_by(workings, "covariances", choice.alpha)
        if subspace.rank:
            draws = angle_draws(workings, subspace.rank)
            low, middle, high = np.quantile(draws, [0.025, 0.5, 0.975])
            angle = float(low), float(middle), float(high)
    share, shares = _removed(fit)
    is_compared_response = fit.is_response and len(moments.means) > 0
    seen = Seen(
        n_features=n_features,
        n_spurious=subspace.rank,
        n_environments=len(moments.environments),
        most_by_means=_most_by_means(fit),
        counts=moments.counts_table(),
        tests=choice,
        means=means,
        covariances=covariances,
        angle=angle,
        share=share,
        spreads=_spreads(moments) if is_compared_response else np.empty((0, 2)),
        stability=stability_of_target(moments) if is_compared_response else None,
        orders=fit.orders,
        scale=subspace.scale,
    )
    verdict, findings = judge(seen)
    return Diagnosis(
        method=fit.method,
        verdict=verdict,
        findings=findings,
        classes=moments.classes,
        environments=moments.environments,
        counts=seen.counts,
        n_features=n_features,
        n_spurious=subspace.rank,
        most_by_means=seen.most_by_means,
        tests=choice,
        means=means,
        covariances=covariances,
        angle=angle,
        target_share_removed=share,
        feature_names=fit.feature_names,
        feature_shares_removed=shares,
    )


def _most_by_means(fit: Fit) -> int:
    counts = fit.moments.counts_table()
    if counts.size == 0:
        return 0
    if fit.found.choice is None and fit.found.subspace.rank == 0:  # nothing was compared
        compared = counts
    else:
        compared = counts[class_positions(fit.moments, fit.condition_on)]
    slopes = 2 if fit.is_response else 1
    per_class = np.maximum((compared > 0).sum(axis=1) - 1, 0)
    return int(min(slopes * per_class.sum(), len(fit.feature_names) - 1))


def _removed(fit: Fit) -> tuple[float | None, Float64Array | None]:
    """Return what is removed of the target and of each feature, None where it is not known."""
    moments, subspace = fit.moments, fit.found.subspace
    if moments.scatters is None or len(moments.means) == 0 or subspace.rank == 0:
        return None, None
    cond = given_response(moments) if fit.is_response else given_classes(moments)
    rounding = rounding_errors(moments)[: len(fit.feature_names)]
    return share_of_target(cond, rounding, subspace), shares_of_features(cond, subspace)


def _spreads(moments: CellMoments) -> Float64Array:
    """Return the variance of a continuous target and of x given it, per environment, (E, 2)."""
    joint = moments.covariances()
    varies = joint[:, -1, -1] > EXACT * joint[:, -1, -1].max()
    target = np.where(varies, joint[:, -1, -1], 1.0)
    residual = np.diagonal(joint, axis1=1, axis2=2)[:, :-1] - np.where(
        varies[:, None], joint[:, -1, :-1] ** 2 / target[:, None], 0.0
    )
    mean = residual.mean(axis=0)
    relative = np.divide(residual, mean, out=np.zeros_like(residual), where=mean > 0)
    return np.stack([joint[:, -1, -1], relative.mean(axis=1)], axis=1)
