"""From a fit to its diagnosis."""

from typing import Any

import numpy as np

from isrlearn.diagnosis._diagnosis import Diagnosis
from isrlearn.diagnosis._findings import Observations, judge
from isrlearn.diagnosis._shares import (
    EXACT,
    share_of_target,
    shares_of_features,
    stability_of_target,
)
from isrlearn.diagnosis._uncertainty import chance_of
from isrlearn.moments import (
    CellMoments,
    class_positions,
    given_classes,
    given_response,
    rounding_errors,
)
from isrlearn.subspace import Recovery
from isrlearn.typing import Float64Array


def diagnose(
    found: Recovery,
    moments: CellMoments,
    *,
    method: str,
    orders: str,
    condition_on: Any,
    names: tuple[str, ...],
) -> Diagnosis:
    """Return the diagnosis of a fit.

    Parameters
    ----------
    found : Recovery
        What was found.
    moments : CellMoments
        From what; of a continuous target with one more column.
    method : str
        Name of the estimator.
    orders : str
        What it looks at: "both", "means" or "covariances".
    condition_on : label, sequence of labels or None
        Classes that it compares; None for all.
    names : tuple of str
        Of the features.
    """
    subspace, choice, _ = found
    d, counts = len(names), moments.counts_table()
    is_response = moments.n_features > d
    share = shares = None
    if moments.scatters is not None and len(moments.means) and subspace.rank:
        cond = given_response(moments) if is_response else given_classes(moments)
        share = share_of_target(cond, rounding_errors(moments)[:d], subspace)
        shares = shares_of_features(cond, subspace)
    compared = counts
    if counts.size and (choice is not None or subspace.rank):
        compared = counts[class_positions(moments, condition_on)]
    per_class = np.maximum((compared > 0).sum(axis=1) - 1, 0)
    chance = chance_of(found)
    seen = Observations(
        n_features=d,
        n_spurious=subspace.rank,
        n_environments=len(moments.environments),
        most_by_means=int(min((1 + is_response) * per_class.sum(), d - 1)) if counts.size else 0,
        counts=counts,
        tests=choice,
        means=None if chance is None else chance.means,
        covariances=None if chance is None else chance.covariances,
        angle=None if chance is None else chance.angle,
        share=share,
        spreads=np.empty((0, 2)),
        stability=None,
        orders=orders,
        scale=subspace.scale,
    )
    if is_response and len(moments.means):
        seen = seen._replace(spreads=_spreads(moments), stability=stability_of_target(moments))
    verdict, findings = judge(seen)
    return Diagnosis(
        method=method,
        verdict=verdict,
        findings=findings,
        classes=moments.classes,
        environments=moments.environments,
        counts=counts,
        n_features=d,
        n_spurious=subspace.rank,
        most_by_means=seen.most_by_means,
        tests=choice,
        means=seen.means,
        covariances=seen.covariances,
        angle=seen.angle,
        target_share_removed=share,
        feature_names=names,
        feature_shares_removed=shares,
    )


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
