"""How many directions to remove, and how many the data identify at most."""

import math
from numbers import Integral
from typing import Any, Final

import numpy as np

from isrlearn.display import brief
from isrlearn.moments import CellMoments
from isrlearn.rows import WIDE, is_between
from isrlearn.typing import Float64Array

AUTO: Final = "auto"
MOST_PERMUTATIONS: Final = 100_000
RANK_TESTS: Final = ("permutation", "moments")
FLOAT64_ROUNDING: Final = 64 * float(np.finfo(np.float64).eps)


def n_identified(values: Float64Array, rounding: Float64Array) -> int:
    """Count the leading values that are larger than their rounding errors.

    Parameters
    ----------
    values : ndarray of shape (d,)
        By descending absolute value.
    rounding : ndarray of shape (m,)
        Rounding error of the first m; the others are zero by construction.
    """
    size = np.abs(values[: len(rounding)])
    if len(size) == 0:
        return 0
    beyond = size > np.maximum(rounding, FLOAT64_ROUNDING * size[0])
    return int(np.argmin(beyond)) if not beyond.all() else len(beyond)


def rounding_unit(cells: CellMoments) -> float:
    """Return the relative rounding error of sums: beyond 256 features that of the rows."""
    wide = cells.n_features > WIDE
    return max(cells.precision if wide else 0.0, float(np.finfo(np.float64).eps))


def norms(rows: Float64Array) -> Float64Array:
    """Return the length of each row, (..., d): also where the square of a number overflows."""
    exponent = int(np.frexp(np.abs(rows).max(initial=0.0))[1])
    lengths = np.linalg.norm(np.ldexp(rows, -exponent), axis=-1)
    return np.asarray(np.ldexp(lengths, exponent))


def mean_rounding(
    vectors: Float64Array, largest: Float64Array, precision: float, n_rows: int
) -> Float64Array:
    r"""Return the rounding error of differences of means along each vector.

    A value of column j is off by :math:`\epsilon\,|x_j|`, the mean of n of them by
    :math:`\sqrt n` less; sums add their own, which beyond 256 features are those of the rows'
    precision.

    Parameters
    ----------
    vectors : ndarray of shape (m, d)
        Directions.
    largest : ndarray of shape (d,)
        Largest absolute value of each column.
    precision : float
        Relative rounding error of the rows.
    n_rows : int
        Rows of the smallest cell.
    """
    sizes = norms(vectors * largest)
    summed = 4 * precision if len(largest) > WIDE else FLOAT64_ROUNDING
    return np.asarray(sizes * (precision / np.sqrt(n_rows) + max(summed, FLOAT64_ROUNDING)))


def covariance_rounding(
    vectors: Float64Array,
    largest: Float64Array,
    spreads: Float64Array,
    precision: float,
    n_rows: int,
) -> Float64Array:
    r"""Return the rounding error of differences of covariances along each vector.

    Errors q of the values enter as 2 q s + q^2, less by the root of n; the products of rows are
    off by a few :math:`\epsilon s^2`.

    Parameters
    ----------
    vectors, largest, precision, n_rows
        As in `mean_rounding`.
    spreads : ndarray of shape (d,)
        Largest standard deviation of each column.
    """
    q = precision * np.linalg.norm(vectors * largest, axis=1)
    s = np.linalg.norm(vectors * spreads, axis=1)
    products = (4 * precision + FLOAT64_ROUNDING) * s**2
    return np.asarray((2 * q * s + q**2) / np.sqrt(n_rows) + products)


def check_n_spurious(n_spurious: Any) -> None:
    """Raise an error unless `n_spurious` is an integer >= 0 or "auto"."""
    if isinstance(n_spurious, str) and n_spurious == AUTO:
        return
    if isinstance(n_spurious, bool) or not isinstance(n_spurious, Integral) or n_spurious < 0:
        raise ValueError(f"n_spurious={brief(n_spurious)} must be an integer >= 0 or 'auto'.")


def check_search(alpha: Any, rank_test: Any, n_permutations: Any) -> None:
    """Raise an error unless the parameters of the rank test make sense together."""
    if not is_between(alpha, 0, 1) or alpha in (0, 1):
        raise ValueError(f"alpha={brief(alpha)} must be a number between 0 and 1, such as 0.01.")
    if not isinstance(rank_test, str) or rank_test not in RANK_TESTS:
        raise ValueError(f"rank_test={brief(rank_test)} must be one of {RANK_TESTS}.")
    if float(alpha) * (MOST_PERMUTATIONS + 1) < 1:
        raise ValueError(
            f"alpha={float(alpha):g} is too small to be tested by permutations: it must be at "
            f"least {1 / MOST_PERMUTATIONS:g}."
        )
    least = math.ceil(1 / float(alpha)) - 1
    whole = isinstance(n_permutations, Integral) and not isinstance(n_permutations, bool)
    if not whole or n_permutations > MOST_PERMUTATIONS:
        raise ValueError(
            f"n_permutations={brief(n_permutations)} must be an integer from {least} to "
            f"{MOST_PERMUTATIONS}."
        )
    if n_permutations < least:
        raise ValueError(
            f"n_permutations={n_permutations} cannot give a p-value of alpha={float(alpha):g}: use "
            f"at least {least}, or a larger alpha."
        )


def check_rank(n_spurious: int, identified: int, n_features: int, where: str) -> None:
    """Raise an error unless the data identify `n_spurious` directions and one more stays.

    Parameters
    ----------
    n_spurious : int
        Directions asked for.
    identified : int
        Directions that the data identify.
    n_features : int
        Number of features d.
    where : str
        What `identified` was counted in, for the message.
    """
    most = min(identified, n_features - 1)
    if n_spurious <= most:
        return
    if identified == 0:
        raise ValueError(
            f"n_spurious={brief(n_spurious)}, but no direction is identified: {where} do not "
            "differ given the class by more than rounding errors. Use n_spurious=0, or an "
            "environment that makes a difference; if features are large against their differences, "
            "centre and scale them."
        )
    if identified < n_features:
        raise ValueError(
            f"n_spurious={brief(n_spurious)} is more than the data identify: at most {identified}, "
            f"the directions in which {where} differ given the class. Lower n_spurious to "
            f"{identified} or less, or add environments."
        )
    raise ValueError(
        f"n_spurious={brief(n_spurious)} would leave nothing of {n_features} feature(s): at most "
        f"{most} can be removed."
    )
