"""Numbers that a user gives."""

import sys
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from isrlearn.display import brief


def seeded(random_state: Any) -> np.random.RandomState:
    """Return the source of random numbers that a user named.

    Parameters
    ----------
    random_state : int, RandomState or None
        A seed, a source, or None for another one each time.
    """
    try:
        source: np.random.RandomState = check_random_state(random_state)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(
            f"random_state={brief(random_state)} must be a whole number from 0 to {2**32 - 1}, a "
            "numpy.random.RandomState, or None for another one each time."
        ) from None
    return source


def check_number(
    name: str, value: Any, least: float, largest: float = np.inf, *, whole: bool = False
) -> None:
    """Raise `ValueError` unless `value` is a number from `least` to `largest`."""
    kind: Any = Integral if whole else Real
    is_number = isinstance(value, kind) and not isinstance(value, bool)
    if not is_number or not least <= value <= largest or value > sys.float_info.max:
        what = "a whole number" if whole else "a number"
        limits = f"of at least {least}" if largest == np.inf else f"from {least} to {largest}"
        raise ValueError(f"{name}={brief(value)} must be {what} {limits}.")


def is_between(value: Any, least: float, most: float) -> bool:
    """Whether a value is a number from `least` to `most`: without a conversion that may fail."""
    kind: Any = Real
    return isinstance(value, kind) and bool(least <= value <= most)


def check_scale(scale: Any) -> float:
    """Return `scale` as a float in [0, 1]."""
    if isinstance(scale, bool) or not is_between(scale, 0, 1):
        raise ValueError(
            f"scale={brief(scale)} is not a number in [0, 1]: 0 removes the spurious directions, "
            "1 leaves them as they are."
        )
    return float(scale)


def check_removal(scale: Any, reduced: Any) -> None:
    """Raise an error unless directions are shrunk to `scale`, or dropped altogether."""
    if not isinstance(reduced, bool | np.bool_):
        raise ValueError(f"reduced={brief(reduced)} must be True or False.")
    if check_scale(scale) != 0 and reduced:
        raise ValueError(
            f"reduced=True drops the spurious directions, so scale={brief(scale)} has no meaning: "
            "use scale=0, or reduced=False to shrink them."
        )
