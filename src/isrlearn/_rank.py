"""How many directions to remove, and how many the data identify at most."""

from numbers import Integral
from typing import Any

import numpy as np

from isrlearn._typing import Float64Array, IntArray


def mean_limit(class_index: IntArray) -> int:
    r"""Return the most directions that cell means identify.

    E environments of a class give E - 1 contrasts: :math:`\sum_c (E_c - 1)` over the classes.
    """
    return len(class_index) - len(np.unique(class_index))


def n_identified(values: Float64Array, rounding: float) -> int:
    """Count the values, of descending size, that are larger than rounding errors."""
    return int(np.sum(np.abs(values) > rounding))


def check_n_spurious(n_spurious: Any) -> int:
    """Return `n_spurious` as an int >= 0."""
    if isinstance(n_spurious, bool) or not isinstance(n_spurious, Integral) or n_spurious < 0:
        raise ValueError(f"n_spurious={n_spurious!r} must be an integer >= 0.")
    return int(n_spurious)


def check_rank(n_spurious: int, identified: int, n_features: int, where: str) -> int:
    """Return `n_spurious` if the data identify as many directions and one stays.

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
        return n_spurious
    if identified == 0:
        raise ValueError(
            f"n_spurious={n_spurious}, but no direction is identified: {where} do not differ given "
            "the class. Use n_spurious=0, or an environment that makes a difference."
        )
    if identified < n_features:
        raise ValueError(
            f"n_spurious={n_spurious} is more than the data identify: at most {identified}, the "
            f"directions in which {where} differ given the class. Lower n_spurious to {identified} "
            "or less, or add environments."
        )
    raise ValueError(
        f"n_spurious={n_spurious} would leave nothing of {n_features} feature(s): at most {most} "
        "can be removed."
    )
