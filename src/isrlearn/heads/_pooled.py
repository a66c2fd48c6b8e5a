"""Weighted moments by class over all environments: what closed-form heads are made of."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from isrlearn.heads._row_weights import GroupFactors
from isrlearn.moments import AllMoments, CellMoments
from isrlearn.subspace import Subspace
from isrlearn.typing import Float64Array, IntArray


@dataclass(frozen=True, eq=False)
class Pooled:
    """Weight and mean of each class, and the scatter about these means.

    Parameters
    ----------
    weights : ndarray of shape (k,)
        Weight of each class.
    means : ndarray of shape (k, d)
        Their means.
    within : ndarray of shape (d, d) or None
        Scatter of all rows about the mean of their class; None where only means are known.
    rounding : ndarray of shape (d,)
        Rounding error of each feature.
    n_rows : int
        Number of rows.
    """

    weights: Float64Array
    means: Float64Array
    within: Float64Array | None
    rounding: Float64Array
    n_rows: int

    @classmethod
    def of(cls, moments: AllMoments, factors: GroupFactors, *, scatters: bool) -> Self:
        """Return the moments of all rows, weighted by factors of their groups.

        Parameters
        ----------
        moments : AllMoments
            Of all rows.
        factors : GroupFactors
            By class and environment.
        scatters : bool
            Whether more than means is needed.
        """
        parts = moments.known, moments.others
        index: list[IntArray] = [
            np.searchsorted(factors.classes, m.classes)[m.class_index] for m in parts
        ]
        weights = [
            m.weights * f for m, f in zip(parts, _factors(*parts, index, factors), strict=True)
        ]
        totals, means = _class_means(parts, index, weights, len(factors.classes))
        within = None
        if scatters:
            within = np.zeros((moments.known.n_features,) * 2)
            for part, codes, weight in zip(parts, index, weights, strict=True):
                for cell, w in enumerate(weight):
                    away = part.means[cell] - means[codes[cell]]
                    within += (w / part.weights[cell]) * part.known_scatters()[cell]
                    within += np.outer(w * away, away)
        rounding = np.max([m.precision * m.largest for m in parts], axis=0)
        return cls(totals, means, within, rounding, moments.n_rows)

    @property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.weights.sum())

    def mean(self) -> Float64Array:
        """Return the mean of all rows, (d,)."""
        return np.asarray(self.weights @ self.means / self.total)

    def covariance(self) -> Float64Array:
        """Return the covariance of all rows about their mean, (d, d)."""
        away = self.means - self.mean()
        between = (away * self.weights[:, None]).T @ away
        return np.asarray((self.known_within() + between) / self.total)

    def known_within(self) -> Float64Array:
        """Return the scatter within classes; moments without scatters are refused."""
        if self.within is None:
            raise ValueError("these moments hold means only, and scatters are needed.")
        return self.within

    def without(self, subspace: Subspace) -> "Pooled":
        r"""Return the moments of the rows without their spurious part.

        With :math:`P = I - U`, :math:`U = (1-s) D^T F` of low rank,
        :math:`PSP^T = S - US - (US)^T + U S U^T`: no product of two d x d matrices.

        Parameters
        ----------
        subspace : Subspace
            What is removed.
        """
        means = np.asarray(subspace.project(self.means), dtype=np.float64)
        if self.within is None or subspace.rank == 0:
            return replace(self, means=means)
        kept = 1 - subspace.scale
        amounts = subspace.functionals @ self.within
        removed = kept * (subspace.directions.T @ amounts)
        both = kept**2 * (amounts @ subspace.functionals.T)
        within = self.within - removed - removed.T
        within += subspace.directions.T @ both @ subspace.directions
        # What is left of a variance that was taken out whole is rounding of that variance.
        left = np.sqrt(np.finfo(np.float64).eps * np.diag(self.within).clip(0) / self.total)
        return replace(self, means=means, within=within, rounding=np.maximum(self.rounding, left))


def _factors(
    known: CellMoments,
    others: CellMoments,
    index: list[IntArray],
    factors: GroupFactors,
) -> list[Float64Array]:
    """Return the factor of each cell of both."""
    if factors.table is None:
        return [np.ones(len(known.weights)), np.ones(len(others.weights))]
    return [
        factors.table[index[0], known.environment_index],
        factors.table[index[1], -1],
    ]


def _class_means(
    parts: tuple[CellMoments, CellMoments],
    index: list[IntArray],
    weights: list[Float64Array],
    n_classes: int,
) -> tuple[Float64Array, Float64Array]:
    totals = np.zeros(n_classes)
    sums = np.zeros((n_classes, parts[0].n_features))
    for part, codes, weight in zip(parts, index, weights, strict=True):
        np.add.at(totals, codes, weight)
        np.add.at(sums, codes, weight[:, None] * part.means)
    return totals, sums / totals[:, None]
