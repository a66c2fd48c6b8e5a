r"""Which cells can be compared, and what differs between them, in coordinates of comparable noise.

Let :math:`\varphi(y)` be a vector of s functions of the target. In each cell X is regressed on it:
coefficients C (s, d), Gram matrix :math:`G = \sum \varphi\varphi^T` and the covariance S of the
rest. A class is :math:`\varphi = 1` within the rows of that class, so that C is the mean;
regression is :math:`\varphi = (1, y)`. Leading axes are allowed everywhere: one call serves the
data and all permutations of it.

An eigenvalue of the raw scatter says which feature has large units; in the coordinates of a `Frame`
it says by how many standard errors the environments differ.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, Self

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq

from isrlearn.display import brief
from isrlearn.exceptions import EmptyCellWarning, TinyCellWarning, warn_user
from isrlearn.moments._cells import SMALLEST, CellMoments
from isrlearn.rows import LIGHTEST, Rows
from isrlearn.typing import BoolArray, Float64Array, IntArray, LabelArray

TINY_CELL_ROWS: Final = 5
_NAMED: Final = 5  # cells named in a message before it says "and more"


def comparable(
    moments: CellMoments, condition_on: Any = None, *, needs_spread: bool = False
) -> CellMoments:
    """Return the cells of the classes that are seen in at least two environments.

    Parameters
    ----------
    moments : CellMoments
        All cells.
    condition_on : label or sequence of labels, default=None
        Use these classes only; None uses all.
    needs_spread : bool, default=False
        Whether a cell is of use only if its rows differ, as covariances need.

    Returns
    -------
    CellMoments

    Warns
    -----
    EmptyCellWarning
        If a class has no rows in some environment, or none that are of use.
    TinyCellWarning
        If a cell in use has fewer than five rows.
    """
    n_environments = len(moments.environments)
    if n_environments < 2:
        raise ValueError(
            f"environments has {n_environments} distinct value(s) "
            f"({brief(moments.environments.tolist())}), but differences between environments need "
            "at least 2. Give a label that varies, or leave environments out to remove nothing."
        )
    refuse_underflow(moments.largest)
    weights = moments.weights
    if weights.max() * LIGHTEST**1.5 > weights.min():  # as no rows of one call may: from chunks
        raise ValueError(
            f"the weights of cells go from {weights.min():g} to {weights.max():g}, too far apart "
            "to be compared: scale sample_weight in the same way in all chunks."
        )
    classes = class_positions(moments, condition_on)
    chosen = np.isin(moments.class_index, classes)
    usable = chosen & moments.variances().any(axis=1) if needs_spread else chosen
    cells_of_class = np.bincount(moments.class_index[usable], minlength=len(moments.classes))
    kept = usable & (cells_of_class[moments.class_index] >= 2)
    if not kept.any():
        raise ValueError(_no_class_to_compare(moments, classes, usable, chosen & ~usable))
    if usable.sum() < len(classes) * n_environments:
        _warn_of_empty_cells(moments, classes, chosen & ~usable)
    few = kept & (moments.counts < TINY_CELL_ROWS)
    if few.any():
        named = zip(_names(moments, few), moments.counts[few], strict=True)
        warn_user(
            f"cells with fewer than {TINY_CELL_ROWS} rows: "
            f"{_some([f'{name} has {n}' for name, n in named])}. Their moments are mostly noise; "
            "merge environments or add rows.",
            TinyCellWarning,
        )
    return moments if kept.all() else moments.take(kept)


class CellTable(NamedTuple):
    """Which cells there are, without their sums."""

    classes: LabelArray
    environments: LabelArray
    class_index: IntArray
    """(m,)"""
    environment_index: IntArray
    """(m,)"""

    @classmethod
    def of(cls, cells: CellMoments) -> Self:
        """Return the table of some moments."""
        return cls(cells.classes, cells.environments, cells.class_index, cells.environment_index)

    def codes(
        self,
        classes: LabelArray,
        class_codes: IntArray,
        environments: LabelArray,
        environment_codes: IntArray,
    ) -> IntArray:
        """Return the cell of each pair of codes, (n,); -1 where it is in none of them."""
        # Labels that the pairs lack may be in the table, and the other way round.
        table = np.full((len(self.classes) + 1, len(self.environments) + 1), -1, dtype=np.intp)
        table[self.class_index, self.environment_index] = np.arange(len(self.class_index))
        own = _places(classes, self.classes)[class_codes]
        # The last is for an unknown environment, -1.
        others = np.append(_places(environments, self.environments), -1)[environment_codes]
        return np.asarray(table[own, others])

    def codes_of(self, rows: Rows) -> IntArray:
        """Return the cell of each row, (n,); -1 where it is in none of them."""
        return self.codes(rows.classes, rows.class_codes, rows.environments, rows.environment_codes)


def _places(labels: LabelArray, known: LabelArray) -> IntArray:
    """Return the place of each label among sorted known ones, -1 where it is none of them."""
    place = np.minimum(np.searchsorted(known, labels), len(known) - 1)
    return np.asarray(np.where(known[place] == labels, place, -1), dtype=np.intp)


def class_positions(moments: CellMoments, condition_on: Any) -> IntArray:
    """Return the positions of the classes that `condition_on` names; of all if it is None."""
    if condition_on is None:
        return np.arange(len(moments.classes))
    wanted = np.atleast_1d(np.asarray(condition_on, dtype=object)).tolist()
    known = moments.classes.tolist()
    strangers = [label for label in wanted if label not in known]
    if strangers or not wanted:
        raise ValueError(
            f"condition_on={brief(condition_on)} names "
            f"{brief(strangers) if strangers else 'no class'}, but the classes are {brief(known)}: "
            "name one of these or several, or None for all."
        )
    return np.unique([known.index(label) for label in wanted])


def refuse_underflow(largest_values: Float64Array) -> None:
    """Raise a ValueError if squares of all features vanish.

    Parameters
    ----------
    largest_values : ndarray of shape (d,)
        Largest absolute value of each feature.
    """
    largest = largest_values.max(initial=0.0)
    if 0 < largest < SMALLEST:
        raise ValueError(
            f"X is so small (values up to {largest:.3g}, at least {SMALLEST:g} are needed) that "
            "squares of it vanish: scale the features first, for example with StandardScaler."
        )


def _no_class_to_compare(
    moments: CellMoments, classes: IntArray, usable: BoolArray, flat: BoolArray
) -> str:
    labels = moments.classes[classes].tolist()
    what = f"no class out of {brief(labels)}" if len(moments.classes) > 1 else "nothing"
    if flat.any():
        why = f"single or identical rows in {_some(_names(moments, flat))}"
        way_out = "add rows or merge environments"
    elif usable.any():
        why = f"each is seen in one environment only ({_some(_names(moments, usable))})"
        way_out = "use environments that share classes"
    else:
        why, way_out = "no row of these has a known environment", "give the environments of some"
    return f"{what} can be compared between two environments: {why}. To go on, {way_out}."


def _warn_of_empty_cells(moments: CellMoments, classes: IntArray, flat: BoolArray) -> None:
    table = moments.counts_table()
    empty = [_name(moments, c, e) for c in classes for e in np.flatnonzero(table[c] == 0)]
    notes = [f"no rows of {_some(empty)}"] if empty else []
    notes += [f"single or identical rows in {_some(_names(moments, flat))}"] if flat.any() else []
    warn_user(
        f"{'; '.join(notes)}. These cells are left out, and so is a class that is left with "
        "fewer than two environments.",
        EmptyCellWarning,
    )


def _names(moments: CellMoments, cells: BoolArray) -> list[str]:
    places = zip(moments.class_index[cells], moments.environment_index[cells], strict=True)
    return [_name(moments, c, e) for c, e in places]


def _name(moments: CellMoments, c: np.intp, e: np.intp) -> str:
    label, environment = moments.classes[c].item(), moments.environments[e].item()
    if len(moments.classes) == 1:  # a continuous target
        return f"environment {brief(environment)}"
    return f"class {brief(label)} in environment {brief(environment)}"


def _some(items: list[str]) -> str:
    more = f", and {len(items) - _NAMED} more" if len(items) > _NAMED else ""
    return ", ".join(items[:_NAMED]) + more


LARGEST_WEIGHT: Final = 1e6
LEAST_ROWS: Final = 10  # of a cell whose covariance is compared


class Conditioned(NamedTuple):
    """Moments of X given the target in each of m cells."""

    group: IntArray
    """(m,) cells of one group share the relation of X to the target: the class of each cell."""
    environment: IntArray
    """(m,) environment of each cell."""
    grams: Float64Array
    """(..., m, s, s); the first entry is the weight of the cell."""
    coefs: Float64Array
    """(..., m, s, d)"""
    scatters: Float64Array
    """(..., m, p, p) of the residuals; as they are in `CellMoments`, so that none is copied."""
    freedom: Float64Array
    """(..., m) what a scatter is divided by to be a covariance: less by what the coefficients use
    up than the weight."""
    before: Float64Array | float = 0.0
    """(d,) spreads before the target was regressed out: their rounding errors stay."""


def given_classes(cells: CellMoments) -> Conditioned:
    """Return means and covariances of cells as moments given the class."""
    unit = unit_of_weight(cells)
    weights = cells.weights * unit
    return Conditioned(
        group=cells.class_index,
        environment=cells.environment_index,
        grams=weights[:, None, None],
        coefs=cells.means[:, None, :],
        scatters=cells.known_scatters(),
        freedom=degrees_of_freedom(weights, 1) / unit,
    )


def given_response(cells: CellMoments) -> Conditioned:
    r"""Return moments of X given a continuous target, :math:`\varphi(y) = (1, y)`.

    Parameters
    ----------
    cells : CellMoments
        Of rows (x, y) with d + 1 columns, one cell per environment. The regression in each cell
        needs nothing but their joint means and scatters.
    """
    weights, d = cells.weights * unit_of_weight(cells), cells.n_features - 1
    means, joint = cells.means, cells.covariances()
    variance, rounding = joint[:, d, d], rounding_errors(cells)[d]
    # Where y is constant there is no slope to compare; then phi(y) has one function too many.
    varies = (variance > rounding**2) & (variance > 0)
    slopes = np.divide(
        joint[:, d, :d], variance[:, None], out=np.zeros((len(weights), d)), where=varies[:, None]
    )
    intercepts = means[:, :d] - slopes * means[:, d:]
    residual = joint[:, :d, :d] - slopes[:, :, None] * joint[:, d, None, :d]
    first = np.stack([np.ones(len(weights)), means[:, d]], axis=-1)
    second = np.stack([means[:, d], variance + means[:, d] ** 2], axis=-1)
    grams = weights[:, None, None] * np.stack([first, second], axis=1)
    return Conditioned(
        group=np.zeros(len(weights), dtype=np.intp),
        environment=cells.environment_index,
        grams=grams,
        coefs=np.stack([intercepts, slopes], axis=1),
        scatters=weights[:, None, None] * residual,
        freedom=degrees_of_freedom(weights, 2),
        before=np.sqrt(np.diagonal(joint, axis1=1, axis2=2)[:, :d].max(axis=0)),
    )


def unit_of_weight(cells: CellMoments) -> float:
    """Return the factor that makes weights count as rows.

    A weight of 2 is the row twice. A mean weight below one, or far above, cannot be a number of
    rows: then the weights are scaled to mean one.
    """
    mean = float(cells.weights.sum() / cells.counts.sum())
    return 1.0 if 1 <= mean <= LARGEST_WEIGHT else 1 / mean


def rounding_errors(cells: CellMoments) -> Float64Array:
    """Return the rounding error of each column."""
    return np.asarray(cells.precision * cells.largest)


def degrees_of_freedom(weights: Float64Array, n_used: int) -> Float64Array:
    """Return weight - n_used, but never less than half the weight: weights count as rows."""
    return np.asarray(np.maximum(weights - n_used, weights / 2))


def within_scatter(cond: Conditioned) -> Float64Array:
    """Return the scatter of all cells about their own relation to the target, (p, p)."""
    weights = cond.grams[:, 0, 0]
    ratio = degrees_of_freedom(weights, cond.grams.shape[-1]) / cond.freedom
    return np.asarray(np.tensordot(ratio, cond.scatters, axes=1))


def common_coefs(cond: Conditioned) -> Float64Array:
    r"""Return the coefficients common to the cells of a group, (..., m, s, d).

    :math:`\bar C = (\sum_e G_e)^{-1} \sum_e G_e C_e`, repeated for each cell of the group.
    """
    result = np.empty_like(cond.coefs)
    for g in np.unique(cond.group):
        own = cond.group == g
        grams = cond.grams[..., own, :, :]
        products = (grams @ cond.coefs[..., own, :, :]).sum(axis=-3)
        inverse = np.linalg.pinv(grams.sum(axis=-3), hermitian=True)
        result[..., own, :, :] = (inverse @ products)[..., None, :, :]
    return result


def mean_evidence(cond: Conditioned) -> Float64Array:
    r"""Return rows :math:`G_e^{1/2}(C_e - \bar C)`, (..., m s, d): what differs in the first order.

    For classes these are :math:`\sqrt{n_{ce}}\,(m_{ce} - m_c)`. The sum of squares of a column is
    the likelihood ratio of equal means when the noise has unit variance.
    """
    values, vectors = np.linalg.eigh(cond.grams)
    scaled = vectors * np.sqrt(np.maximum(values, 0))[..., None, :]
    root = scaled @ np.swapaxes(vectors, -1, -2)
    rows = root @ (cond.coefs - common_coefs(cond))
    return np.asarray(rows.reshape(*rows.shape[:-3], -1, rows.shape[-1]))


def covariance_evidence(cond: Conditioned) -> Float64Array:
    r"""Return :math:`D_e = \sum_c n_{ce}(S_{ce} - S_c) / \sqrt{2 n_e}`, (..., E, p, p).

    The classes are pooled within each environment. With white Gaussian noise an entry on the
    diagonal has variance about one, and the sum of the squares of all of them is the likelihood
    ratio of equal covariances. Cells of fewer than ten rows are left out: a covariance of so few
    rows is far from normal, and the test would take that for a difference.
    """
    weights = cond.grams[..., 0, 0]
    weights = np.where(weights < LEAST_ROWS, 0.0, weights)
    ratio = np.divide(weights, cond.freedom, out=np.zeros_like(weights), where=weights > 0)
    scaled = ratio[..., None, None] * cond.scatters
    for g in np.unique(cond.group):
        own = cond.group == g
        share = weights[..., own] / np.maximum(weights[..., own].sum(axis=-1, keepdims=True), 1.0)
        scaled[..., own, :, :] -= share[..., None, None] * scaled[..., own, :, :].sum(
            axis=-3, keepdims=True
        )
    pooled = []
    for e in np.unique(cond.environment):
        own = cond.environment == e
        total = np.maximum(weights[..., own].sum(axis=-1), 1.0)[..., None, None]
        pooled.append(scaled[..., own, :, :].sum(axis=-3) / np.sqrt(2 * total))
    return np.stack(pooled, axis=-3)


FEW_COORDINATES: Final = 20
MOST_COORDINATES: Final = 50
ROWS_PER_COORDINATE: Final = 10
MOST_ENTRIES: Final = 125_000  # of the covariances of all cells together
SINGULAR: Final = 1e-13  # of the largest eigenvalue; below, a few digits would be left of one
ROUNDING: Final = 8.0  # multiples of the rounding error that are no variation


class Frame(NamedTuple):
    """A linear map x -> z = x @ forward, with x = z @ backward on the span of the rows."""

    forward: Float64Array
    """(d, q)"""
    backward: Float64Array
    """(q, d)"""
    n_leading: int
    """p: the first p coordinates are those in which covariances are compared."""
    weakest: float = 1.0
    """The least variance of a coordinate before it was whitened, over the largest."""


def noise_frame(cond: Conditioned, rounding: Float64Array) -> Frame:
    r"""Return coordinates z in which the total covariance given the target is nearly white.

    With :math:`T = Q\Lambda Q^T` that covariance on the correlation scale,
    :math:`z = (\Lambda + \tau)^{-1/2} Q^T x`. Permuting environments within a class leaves T as it
    is: a permutation test in these coordinates is exact.

    With up to 20 features :math:`\tau = 0`, and whatever invertible map was applied to X makes no
    difference. With many, full whitening would raise the noise of hundreds of weak directions to
    the level of the strong ones. Then :math:`\tau` is such that the effective dimension
    :math:`\sum_j \lambda_j/(\lambda_j + \tau)` is at most 50, and at most a tenth
    of the number of rows: directions stronger than :math:`\tau` are whitened, weaker ones keep
    their scale. Columns without variance and exact linear combinations of others are dropped.

    Parameters
    ----------
    cond : Conditioned
        Moments with covariances of all d features.
    rounding : ndarray of shape (d,)
        Rounding error of each feature: one that varies no more than that is constant.
    """
    n_rows = float(cond.grams[:, 0, 0].sum())
    return frame_of(total_covariance(cond), rounding, n_rows, len(cond.group))


def frame_of(total: Float64Array, rounding: Float64Array, n_rows: float, n_cells: int) -> Frame:
    """Return the coordinates of `noise_frame` for a covariance.

    Parameters
    ----------
    total : ndarray of shape (d, d)
        The covariance to make white; it is overwritten.
    rounding : ndarray of shape (d,)
        As in `noise_frame`.
    n_rows : float
        Rows that it was estimated from.
    n_cells : int
        How many covariances are to be compared in the leading coordinates.
    """
    values, vectors, scale = principal_axes(total, rounding, overwrite=True)
    by_memory = int(np.sqrt(MOST_ENTRIES / n_cells))
    by_rows = max(FEW_COORDINATES, int(n_rows / ROWS_PER_COORDINATE))
    most = max(2, min(MOST_COORDINATES, by_memory, by_rows))
    root = np.sqrt(values + ridge(values, most))
    weakest = float((root[-1] / root[0]) ** 2) if len(root) else 1.0
    forward = vectors / scale[:, None]
    forward /= root
    vectors *= scale[:, None]  # in place: with thousands of features every matrix counts
    vectors *= root
    return Frame(forward, vectors.T, n_leading=min(len(values), most), weakest=weakest)


def principal_axes(
    covariance: Float64Array, rounding: Float64Array, *, overwrite: bool = False
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return eigenvalues (q,), eigenvectors (d, q) and scales (d,) of a covariance.

    On the correlation scale, so that units do not matter; without constant columns and exact
    linear combinations.

    Parameters
    ----------
    covariance : ndarray of shape (d, d)
        The covariance.
    rounding : ndarray of shape (d,)
        Rounding error of each feature.
    overwrite : bool, default=False
        Whether the covariance may be lost.
    """
    scale, constant = feature_scales(np.diag(covariance), rounding)
    correlation = np.divide(covariance, scale, out=covariance if overwrite else None)
    correlation /= scale[:, None]
    correlation[constant] = correlation[:, constant] = 0.0
    values, vectors = eigen_system(correlation)
    values, vectors = values[::-1], vectors[:, ::-1]
    noise = np.linalg.norm(vectors * (ROUNDING * rounding / scale)[:, None], axis=0) ** 2
    used = values > np.maximum(noise, SINGULAR * max(values[0], SINGULAR))
    return values[used], vectors[:, used], scale


def feature_scales(
    variances: Float64Array, rounding: Float64Array
) -> tuple[Float64Array, BoolArray]:
    """Return standard deviations (d,), one for a constant feature, and which are constant (d,).

    So are those whose squares have lost digits.

    Parameters
    ----------
    variances : ndarray of shape (d,)
        Of each feature.
    rounding : ndarray of shape (d,)
        Rounding error of each feature: one that varies no more than that is constant.
    """
    scale = np.sqrt(np.maximum(variances, 0.0))  # rounding may go below
    constant = scale <= np.maximum(ROUNDING * rounding, SMALLEST)
    return np.where(constant, 1.0, scale), constant


def whitening(covariance: Float64Array, rounding: Float64Array) -> Float64Array:
    """Return the map (d, q) to coordinates in which a covariance is the identity.

    Parameters
    ----------
    covariance, rounding
        As in `principal_axes`.
    """
    values, vectors, scale = principal_axes(covariance, rounding)
    return np.asarray(vectors / scale[:, None] / np.sqrt(values))


def ridge(values: Float64Array, most: int) -> float:
    r"""Return the least :math:`\tau \ge 0` with :math:`\sum_j \lambda_j/(\lambda_j+\tau) \le` most.

    Examples
    --------
    >>> import numpy as np
    >>> ridge(np.ones(3), 5)
    0.0
    >>> round(ridge(np.ones(10), 5), 6)
    1.0
    """
    if len(values) <= most:
        return 0.0

    def excess(tau: float) -> float:
        return float(np.sum(values / (values + tau))) - most

    return float(brentq(excess, 0.0, float(values.sum()), xtol=1e-12 * float(values[0])))


def total_covariance(cond: Conditioned) -> Float64Array:
    """Return the covariance about the common relation to the target, all environments together."""
    contrasts = mean_evidence(cond)
    # Scatters, not covariances: their sum with that of the means is the same for all permutations.
    total = within_scatter(cond)
    total += contrasts.T @ contrasts
    total /= cond.grams[:, 0, 0].sum()
    return total


def eigen_system(symmetric: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return all eigenvalues, ascending, and eigenvectors, (d, d), of a matrix that may be lost.

    Parameters
    ----------
    symmetric : ndarray of shape (d, d)
        Overwritten.
    """
    driver = "evd" if len(symmetric) > 1 else "ev"  # evd of one number fails before SciPy 1.14
    values, vectors = eigh(symmetric, overwrite_a=True, driver=driver)
    return values, vectors


class Evidence(NamedTuple):
    """Differences of means and of covariances in a frame; a first axis runs over permutations."""

    means: Float64Array
    """(..., m, q)"""
    covariances: Float64Array
    """(..., E, p, p)"""


def evidence_in(cond: Conditioned, frame: Frame) -> Evidence:
    """Return what differs, in the coordinates of a frame."""
    leading = frame.forward[:, : frame.n_leading]
    inside = leading.T @ cond.scatters @ leading
    return Evidence(
        mean_evidence(cond) @ frame.forward,
        covariance_evidence(cond._replace(scatters=inside)),
    )


class CellEvidence(NamedTuple):
    """Cells that are compared, what differs between them, and the coordinates of both."""

    cells: CellMoments
    cond: Conditioned
    frame: Frame
    observed: Evidence
    n_rows: float
    """Weight of all rows, in units of rows."""
    pairs: Any = None
    """Pairs of environments that are compared; None where all are at once."""

    @classmethod
    def of(cls, cells: CellMoments, cond: Conditioned) -> "CellEvidence":
        """Return the evidence of cells, with their moments given the target."""
        frame = noise_frame(cond, rounding_errors(cells)[: cond.coefs.shape[-1]])
        n_rows = float(cond.grams[:, 0, 0].sum())
        return cls(cells, cond, frame, evidence_in(cond, frame), n_rows)


def joined(parts: Iterable[Evidence], n_draws: int) -> Evidence:
    """Return the evidence of all draws, from parts that are made one after the other.

    Parameters
    ----------
    parts : iterable of Evidence
        One at least.
    n_draws : int
        How many draws they have together.
    """
    found, start = None, 0
    for part in parts:
        if found is None:  # written to where they stay: joined at the end they would be there twice
            found = Evidence(*(np.empty((n_draws, *array.shape[1:])) for array in part))
        own = slice(start, start + len(part.means))
        found.means[own], found.covariances[own] = part
        start = own.stop
    if found is None:
        raise ValueError("there are no parts to join.")
    return found


def symmetric(upper: Float64Array, size: int) -> Float64Array:
    """Return symmetric matrices from their upper triangles."""
    matrix = np.empty((*upper.shape[:-1], size, size))
    i, j = np.triu_indices(size)
    matrix[..., i, j] = upper
    matrix[..., j, i] = upper
    return matrix


def evidence_given_classes(
    moments: CellMoments, condition_on: Any = None, *, needs_spread: bool = False
) -> CellEvidence:
    """Return the evidence of the cells that can be compared, given the class."""
    cells = comparable(moments, condition_on, needs_spread=needs_spread)
    return CellEvidence.of(cells, given_classes(cells))


def evidence_given_response(moments: CellMoments) -> CellEvidence:
    """Return the same given a continuous target, the last column of the moments."""
    cells = comparable(moments, needs_spread=True)
    return CellEvidence.of(cells, given_response(cells))
