"""How many directions to remove, and how many the data identify at most."""

from numbers import Integral
from typing import Any, Final

import numpy as np

from isrlearn._typing import Float64Array, IntArray

ROUNDING: Final = 64 * float(np.finfo(np.float64).eps)


def mean_limit(class_index: IntArray) -> int:
    r"""Return the most directions that cell means identify.

    E environments of a class give E - 1 contrasts: :math:`\sum_c (E_c - 1)` over the classes.
    """
    return len(class_index) - len(np.unique(class_index))


def n_identified(values: Float64Array, size: float) -> int:
    """Count the eigenvalues that are not zero up to rounding.

    Parameters
    ----------
    values : ndarray of shape (d,)
        Eigenvalues by descending absolute value.
    size : float
        Magnitude of the numbers whose differences they were computed from, in the same units.
    """
    return int(np.sum(np.abs(values) > ROUNDING * np.sqrt(len(values)) * size))


def check_n_spurious(n_spurious: Any) -> int:
    """Return `n_spurious` as an int >= 0."""
    if isinstance(n_spurious, bool) or not isinstance(n_spurious, Integral) or n_spurious < 0:
        raise ValueError(f"n_spurious={n_spurious!r} must be an integer >= 0.")
    return int(n_spurious)


def check_rank(n_spurious: int, identified: int, n_features: int, why: str) -> int:
    """Return `n_spurious` if the data identify as many directions.

    Parameters
    ----------
    n_spurious : int
        Directions asked for.
    identified : int
        Directions that the data identify.
    n_features : int
        Number of features d; at least one direction must stay.
    why : str
        Where `identified` comes from, for the message.
    """
    if n_spurious > identified:
        raise ValueError(
            f"n_spurious={n_spurious} is more than the data identify: at most {identified} "
            f"({why}). Lower n_spurious to {identified} or fewer, or add environments."
        )
    if n_spurious > 0 and n_spurious >= n_features:
        raise ValueError(
            f"n_spurious={n_spurious} would remove all {n_features} feature dimension(s): "
            f"use at most {n_features - 1}."
        )
    return n_spurious
