"""Rows to look at: a sample of those that were scored, with what was removed from them."""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from isrlearn.diagnosis import Diagnosis, chance_of
from isrlearn.subspace import Subspace
from isrlearn.typing import Float64Array, FloatArray, IntArray, LabelArray

MOST_ROWS: Final = 1200
EXTREMES: Final = 4  # rows shown at each end of a direction
DIRECTIONS: Final = 3  # whose ends are shown
UNNUMBERED: Final = -1  # place of a row that is not known
SAMPLE: Final = 20_000  # rows that tests for a page are made on


class Head(NamedTuple):
    """A linear head on the coordinates of the rows."""

    weight: Float64Array
    """(k, d), or (1, d) for two classes."""
    bias: Float64Array
    """(k,) or (1,)"""


class SpectrumBand(NamedTuple):
    """Eigenvalues of what differs, and where those of chance alone lie."""

    values: Float64Array
    """(q,), descending."""
    low: Float64Array | None
    """(q,), 2.5 % of chance are below; None where no test was made."""
    high: Float64Array | None
    """(q,), 2.5 % of chance are above."""
    rank: int | None
    """Directions that tests find; None where no test was made."""


@dataclass(frozen=True, eq=False)
class Shown:
    """Some scored rows, what was removed from them, and the heads before and after.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        Rows in the coordinates of the heads.
    y, environments : ndarray of shape (m,)
        Labels; environments, None where unknown.
    rows : ndarray of shape (m,)
        Where each was among the rows that the user gave.
    n_rows : int
        How many were scored.
    features : ndarray of shape (m, p)
        The rows as the user knows them.
    feature_names : tuple of str
        Their columns.
    subspace : Subspace
        What was removed.
    before, after : Head or None
        Heads without and with the removal.
    spectrum : SpectrumBand or None
        How much differs in each direction.
    diagnosis : Diagnosis or None
        What the tests say.
    decides : bool, default=True
        Whether the heads decide for a class, at zero with two; not those of a regression.
    """

    X: FloatArray
    y: LabelArray
    environments: LabelArray
    rows: IntArray
    n_rows: int
    features: FloatArray
    feature_names: tuple[str, ...]
    subspace: Subspace
    before: Head | None
    after: Head | None
    spectrum: SpectrumBand | None
    diagnosis: Diagnosis | None
    decides: bool = True


def rows_to_show(
    amounts: Float64Array,
    y: LabelArray,
    environments: LabelArray,
    *,
    most: int = MOST_ROWS,
    random_state: int = 0,
) -> IntArray:
    """Choose rows of every group, and those at both ends of each direction.

    Groups get equal shares as far as they have rows, so that small ones are seen too.

    Parameters
    ----------
    amounts : ndarray of shape (n, r)
        How much of each removed direction a row has.
    y, environments : ndarray of shape (n,)
        Labels and environments.
    most : int, default=1200
        How many rows, not counting the ends.
    random_state : int, default=0
        Seed of the draw.

    Returns
    -------
    ndarray of int
        Positions, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0] * 90 + [1] * 10)
    >>> kept = rows_to_show(np.empty((100, 0)), y, np.array(["a"] * 100), most=30)
    >>> np.bincount(y[kept]).tolist()
    [20, 10]
    """
    groups = _group_codes(y, environments)
    order = np.random.default_rng(random_state).permutation(len(y))
    by_group = order[np.argsort(groups[order], kind="stable")]
    first = np.searchsorted(groups[by_group], groups[by_group])
    turn = np.empty(len(y), dtype=np.intp)  # the place of a row within its own group
    turn[by_group] = np.arange(len(y)) - first
    sample = order[np.argsort(turn[order], kind="stable")][:most]
    return np.union1d(sample, _ends(amounts))


def _ends(amounts: Float64Array) -> IntArray:
    if amounts.shape[1] == 0:
        return np.empty(0, dtype=np.intp)
    sorted_rows = np.argsort(amounts[:, :DIRECTIONS], axis=0, kind="stable")
    return np.unique(np.concatenate([sorted_rows[:EXTREMES], sorted_rows[-EXTREMES:]]))


def _group_codes(y: LabelArray, environments: LabelArray) -> IntArray:
    labels = np.unique(np.asarray(y).astype(str), return_inverse=True)[1]
    places = np.unique(np.asarray(environments).astype(str), return_inverse=True)[1]
    return np.asarray(labels * (places.max(initial=0) + 1) + places)


def amounts_of(subspace: Subspace, X: FloatArray) -> Float64Array:
    """Return how much of each removed direction rows have, (n, r)."""
    if subspace.rank == 0:
        return np.empty((len(X), 0))
    shift = subspace.functionals @ subspace.centre
    return np.asarray(np.asarray(X, dtype=np.float64) @ subspace.functionals.T - shift)


def feature_shares(features: FloatArray, amount: Float64Array, classes: IntArray) -> Float64Array:
    """Return the squared correlation of each feature with an amount, given the class, (p,).

    Parameters
    ----------
    features : ndarray of shape (n, p)
        Features as the user knows them.
    amount : ndarray of shape (n,)
        Of a removed direction.
    classes : ndarray of shape (n,)
        Codes of the classes.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([0.0, 1.0, 2.0, 3.0])
    >>> feature_shares(np.stack([-x, np.ones(4)], axis=1), x, np.zeros(4, dtype=int)).round(2)
    array([1., 0.])
    """
    inside_features, inside_amount = (
        within_classes(features, classes),
        within_classes(amount[:, None], classes),
    )
    crossed = inside_features.T @ inside_amount[:, 0]
    size = (inside_features**2).sum(axis=0) * (inside_amount**2).sum()
    least = np.finfo(np.float64).tiny + 1e-12 * (np.asarray(features) ** 2).sum(axis=0)
    return np.divide(crossed**2, size, out=np.zeros(len(crossed)), where=size > least)


def within_classes(values: FloatArray, codes: IntArray) -> Float64Array:
    """Return values about the mean of their class."""
    counts = np.maximum(np.bincount(codes), 1)
    sums = np.zeros((len(counts), values.shape[1]))
    np.add.at(sums, codes, values)
    return np.asarray(values - (sums / counts[:, None])[codes])


def shares_removed(features: FloatArray, amounts: Float64Array, y: LabelArray) -> Float64Array:
    """Return the share of the variance of each feature given the class that is removed, (p,).

    Parameters
    ----------
    features : ndarray of shape (n, p)
        Features as the user knows them.
    amounts : ndarray of shape (n, r)
        How much of each removed direction a row has.
    y : ndarray of shape (n,)
        Labels.
    """
    classes = np.unique(y, return_inverse=True)[1]
    # Uncorrelated amounts: the squared correlations with them add up.
    basis = np.linalg.svd(within_classes(amounts, classes), full_matrices=False)[0]
    return np.asarray(sum(feature_shares(features, part, classes) for part in basis.T))


def show_rows(
    X: FloatArray,
    y: LabelArray,
    environments: LabelArray,
    *,
    subspace: Subspace,
    before: Head | None,
    after: Head | None,
    features: FloatArray | None = None,
    feature_names: Any = None,
    tested: Any = None,
    decides: bool = True,
    places: IntArray | None = None,
) -> Shown:
    """Choose rows to show.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Scored rows in the coordinates of the heads.
    y, environments : ndarray of shape (n,)
        Labels and environments.
    subspace : Subspace
        What was removed.
    before, after : Head or None
        Heads without and with the removal.
    features : ndarray of shape (n, p), default=None
        The rows as the user knows them; None takes X.
    feature_names : sequence of str, default=None
        Their columns; None numbers them.
    tested : fitted transformer, default=None
        One whose tests and spectrum are shown.
    decides : bool, default=True
        Whether the heads decide for a class.
    places : ndarray of shape (n,), default=None
        Where each row is in the data of the user; None numbers them.

    Returns
    -------
    Shown
    """
    features = X if features is None else features
    names = [f"x{j}" for j in range(features.shape[1])] if feature_names is None else feature_names
    rows = rows_to_show(amounts_of(subspace, X), y, environments)
    return Shown(
        X=X[rows],
        y=np.asarray(y)[rows],
        environments=np.asarray(environments)[rows],
        rows=rows if places is None else np.asarray(places)[rows],
        n_rows=len(X),
        features=np.asarray(features[rows], dtype=np.float64),
        feature_names=tuple(map(str, names)),
        subspace=subspace,
        before=before,
        after=after,
        spectrum=None if tested is None else spectrum_band(tested),
        diagnosis=None if tested is None else tested.diagnose(),
        decides=decides,
    )


def spectrum_band(fitted: Any) -> SpectrumBand:
    """Return the spectrum of a fitted transformer, with the band of chance where it has tested.

    Parameters
    ----------
    fitted : ISR, ISRMean or ISRCov
        Fitted; with ``n_spurious="auto"`` it has tests.

    Returns
    -------
    SpectrumBand
        With tests, in units of noise; else the eigenvalues of the method itself.
    """
    found = fitted._result()
    chance = chance_of(found)
    if chance is None or found.choice is None:
        return SpectrumBand(np.abs(found.subspace.spectrum), None, None, None)
    values, low, high = chance.spectrum
    return SpectrumBand(values, low, high, found.choice.rank)
