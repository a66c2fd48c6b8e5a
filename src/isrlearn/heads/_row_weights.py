"""Weights of rows in heads: what counts alike, and the moments of rows with these weights."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np

from isrlearn.moments import SMALLEST, AllMoments
from isrlearn.rows import Rows
from isrlearn.subspace import Subspace
from isrlearn.typing import Float64Array, IntArray, LabelArray

# Mean weights beyond which a penalty is lost in rounding errors, or is all that counts.
LEAST_MEAN, MOST_MEAN = 1e-16, 1e8
LITTLE: Final = 0.03  # share of a class below which it should not stand for all of the class


@dataclass(frozen=True, eq=False)
class GroupFactors:
    """Factors of the weights of rows, by class and environment.

    Parameters
    ----------
    classes : ndarray of shape (k,)
        Sorted labels.
    environments : ndarray of shape (E,)
        Sorted environments.
    table : ndarray of shape (k, E + 1) or None
        The factor of each; the last column is for rows of unknown environment. None: all are one.
    """

    classes: LabelArray
    environments: LabelArray
    table: Float64Array | None

    def labels_of(self, rows: Rows) -> Callable[[Any], tuple[IntArray, Float64Array | None]]:
        """Return the function that looks up classes and weights of some rows, None for ones."""
        classes = np.searchsorted(self.classes, rows.classes)
        environments = np.append(np.searchsorted(self.environments, rows.environments), -1)

        def look_up(own: Any) -> tuple[IntArray, Float64Array | None]:
            codes = classes[rows.class_codes[own]]
            weights = None if rows.sample_weight is None else rows.sample_weight[own]
            if self.table is None:
                return codes, weights
            factors = self.table[codes, environments[rows.environment_codes[own]]]
            return codes, factors if weights is None else factors * weights

        return look_up


def bearable(total: float, n_rows: int) -> float:
    """Return the factor that brings a mean weight between 1e-16 and 1e8, where heads work."""
    mean = total / n_rows
    return float(np.clip(mean, LEAST_MEAN, MOST_MEAN) / mean)


def bearable_weights(weights: Float64Array | None) -> Float64Array | None:
    """Return weights of rows, or None, in the range of `bearable`."""
    if weights is None:
        return None
    factor = bearable(float(weights.sum()), len(weights))
    return weights if factor == 1 else weights * factor


def cell_factors(known: Float64Array, others: Float64Array, scheme: str) -> Float64Array:
    r"""Return the factors by which the weights of rows are multiplied, (k, E + 1).

    The last column is for rows of unknown environment. With :math:`n_{ce}` the weight of class c in
    environment e, :math:`n_c` that of the class with its unknown rows, :math:`\kappa_c` the known
    share of it and :math:`E_c` the number of environments in which it has rows:

    * "balanced": :math:`\kappa_c / (E_c n_{ce})`, unknown :math:`1 / n_c`. Classes count alike,
      and within a class the environments that it has.
    * "matched": as "balanced", but within a class an environment counts by the share of the other
      classes that have rows in it: those of an environment with a single class tell the environment
      and not the class. If this keeps a share s of a class's rows below 0.03, the weights go only
      the part s / 0.03 of the way from "balanced": a class should not rest on very few of its rows.
      Where a class would lose more than half of its environments, as where they are
      patients who are mostly of one class: "balanced".
    * "class": :math:`1 / n_c`. Classes count alike; no environment is read.
    * "group": :math:`1 / n_{ce}`, unknown the mean of the class. Groups count alike, so that a
      class whose second group is missing counts half. The published group reweighting.

    The sum of the weights stays.

    Parameters
    ----------
    known : ndarray of shape (k, E)
        Weight of each class in each environment.
    others : ndarray of shape (k,)
        Weight of each class in rows of unknown environment.
    scheme : {"balanced", "matched", "class", "group"}
        What counts alike.

    Examples
    --------
    >>> import numpy as np
    >>> complete, missing = np.array([[3.0, 1.0], [1.0, 3.0]]), np.array([[3.0, 1.0], [4.0, 0.0]])
    >>> cell_factors(complete, np.zeros(2), "balanced").round(2)
    array([[0.67, 2.  , 1.  ],
           [2.  , 0.67, 1.  ]])
    >>> cell_factors(missing, np.zeros(2), "balanced").round(2)
    array([[0.67, 2.  , 1.  ],
           [1.  , 0.  , 1.  ]])
    >>> cell_factors(missing, np.zeros(2), "matched").round(2)
    array([[1.33, 0.  , 1.  ],
           [1.  , 0.  , 1.  ]])
    """
    of_class, n_groups = known.sum(axis=1), np.sum(known > 0, axis=1)
    totals = of_class + others
    each = np.ones_like(known)  # what a group counts
    unknown = 1 / totals
    if scheme in ("balanced", "matched"):
        each = _in_class(known, matched=scheme == "matched") * (of_class / totals)[:, None]
    elif scheme == "group":
        overall = n_groups.sum() / of_class.sum() if of_class.any() else np.nan
        found = np.divide(n_groups, of_class, out=np.full_like(totals, overall), where=of_class > 0)
        unknown = found if of_class.any() else unknown
    factors = np.zeros((len(known), known.shape[1] + 1))
    if scheme == "class":
        factors[:, :-1] = unknown[:, None]
    else:
        np.divide(each, known, out=factors[:, :-1], where=known > 0)
    factors[:, -1] = unknown
    every = np.column_stack([known, others])
    return np.asarray(factors * (every.sum() / np.sum(every * factors)))


def _in_class(known: Float64Array, *, matched: bool) -> Float64Array:
    """Return what each environment counts within a class, (k, E); each row sums to one, or is zero.

    Parameters
    ----------
    known : ndarray of shape (k, E)
        Weight of each class in each environment.
    matched : bool
        As "matched" in `cell_factors`; else all environments that a class has count alike.
    """
    there = (known > 0).astype(np.float64)
    alike = _shares(there)
    if not matched:
        return alike
    n_others = there * (there.sum(axis=0) - 1)
    most = max(np.count_nonzero(there.any(axis=1)) - 1, 1)
    if np.any(2 * n_others.sum(axis=1) < most * there.sum(axis=1)):
        return alike
    kept = np.sum(_shares(known) * n_others, axis=1) / most
    pull = np.minimum(kept / LITTLE, 1.0)
    return np.asarray(alike + pull[:, None] * (_shares(n_others) - alike))


def _shares(values: Float64Array) -> Float64Array:
    """Divide each row by its sum; rows of zeros stay."""
    return np.asarray(values / np.maximum(values.sum(axis=1, keepdims=True), SMALLEST))


def group_factors(moments: AllMoments, scheme: str | None) -> GroupFactors:
    """Return the factors for all rows that some moments are of.

    Parameters
    ----------
    moments : AllMoments
        Of all rows.
    scheme : {"balanced", "matched", "class", None}
        As in `cell_factors`; None: rows count alike.
    """
    known, others = moments.known, moments.others
    classes = np.union1d(known.classes, others.classes) if len(others.classes) else known.classes
    scale = bearable(float(known.weights.sum() + others.weights.sum()), moments.n_rows)
    if scheme is None:
        every = np.full((len(classes), len(known.environments) + 1), scale)
        return GroupFactors(classes, known.environments, None if scale == 1 else every)
    table = np.zeros((len(classes), len(known.environments)))
    places = np.searchsorted(classes, known.classes)
    table[places[known.class_index], known.environment_index] = known.weights
    unknown = np.zeros(len(classes))
    unknown[np.searchsorted(classes, others.classes)[others.class_index]] = others.weights
    factors = scale * cell_factors(table, unknown, scheme)
    return GroupFactors(classes, known.environments, factors)


def scheme_weights(rows: Rows, scheme: str) -> Float64Array:
    """Return weights by a scheme of `cell_factors`, (n,); the rows' own are multiplied in."""
    own = np.ones(len(rows.X)) if rows.sample_weight is None else rows.sample_weight
    shape = len(rows.classes), len(rows.environments) + 1
    group = rows.class_codes * shape[1] + rows.columns
    table = np.bincount(group, own, shape[0] * shape[1]).reshape(shape).astype(np.float64)
    factors = cell_factors(table[:, :-1], table[:, -1], scheme)
    return np.asarray(own * factors[rows.class_codes, rows.columns])


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
        parts, k = (moments.known, moments.others), len(factors.classes)
        index = [np.searchsorted(factors.classes, m.classes)[m.class_index] for m in parts]
        columns = moments.known.environment_index, np.full(len(moments.others.weights), -1)
        totals, sums, weights = np.zeros(k), np.zeros((k, moments.known.n_features)), []
        for part, codes, column in zip(parts, index, columns, strict=True):
            own = 1.0 if factors.table is None else factors.table[codes, column]
            weights.append(part.weights * own)
            np.add.at(totals, codes, weights[-1])
            np.add.at(sums, codes, weights[-1][:, None] * part.means)
        means = sums / totals[:, None]
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
