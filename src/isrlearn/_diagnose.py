"""From a fit to its diagnosis."""

import numpy as np

from isrlearn._findings import Seen, judge
from isrlearn._search import Found
from isrlearn._typing import Float64Array
from isrlearn._workings import angle_draws, found_by, share_removed
from isrlearn.diagnosis import Diagnosis
from isrlearn.moments import CellMoments


def diagnose(method: str, found: Found, moments: CellMoments, n_features: int) -> Diagnosis:
    """Return the diagnosis of a fit.

    Parameters
    ----------
    method : str
        Name of the estimator.
    found : Found
        What it found.
    moments : CellMoments
        What it was found from.
    n_features : int
        Number of features d; the moments of a continuous target have one column more.
    """
    subspace, choice, workings = found
    counts = moments.counts_table()
    means = covariances = angle = share = None
    if workings is not None and choice is not None:
        means = found_by(workings, "means", choice.alpha)
        covariances = found_by(workings, "covariances", choice.alpha)
        share = share_removed(workings, subspace)
        if subspace.rank:
            low, middle, high = np.quantile(
                angle_draws(workings, subspace.rank), [0.025, 0.5, 0.975]
            )
            angle = float(low), float(middle), float(high)
    per_class = np.maximum((counts > 0).sum(axis=1) - 1, 0).sum() if counts.size else 0
    slopes = 1 + (moments.n_features > n_features)
    seen = Seen(
        n_features=n_features,
        n_spurious=subspace.rank,
        n_environments=len(moments.environments),
        most_by_means=int(min(slopes * per_class, n_features - 1)),
        counts=counts,
        tests=choice,
        means=means,
        covariances=covariances,
        angle=angle,
        share=share,
        spreads=_spreads(moments, n_features),
        orders="both" if workings is None else workings.orders,
    )
    verdict, findings = judge(seen)
    return Diagnosis(
        method=method,
        verdict=verdict,
        findings=findings,
        classes=moments.classes,
        environments=moments.environments,
        counts=counts,
        n_features=n_features,
        n_spurious=subspace.rank,
        most_by_means=seen.most_by_means,
        tests=choice,
        means=means,
        covariances=covariances,
        angle=angle,
        target_share_removed=share,
    )


def _spreads(moments: CellMoments, n_features: int) -> Float64Array:
    """Return the variance of a continuous target and of x given it, per environment, (E, 2)."""
    if moments.n_features == n_features or len(moments.weights) == 0:
        return np.empty((0, 2))
    joint = moments.covariances()
    target = np.maximum(joint[:, -1, -1], np.finfo(np.float64).tiny)
    residual = (
        np.diagonal(joint, axis1=1, axis2=2)[:, :-1] - joint[:, -1, :-1] ** 2 / target[:, None]
    )
    relative = residual / np.maximum(residual.mean(axis=0), np.finfo(np.float64).tiny)
    return np.stack([target, relative.mean(axis=1)], axis=1)
