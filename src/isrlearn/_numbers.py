"""Numbers that a user gives."""

from numbers import Integral, Real
from typing import Any

import numpy as np


def check_number(
    name: str, value: Any, least: float, largest: float = np.inf, *, whole: bool = False
) -> None:
    """Raise `ValueError` unless `value` is a number from `least` to `largest`."""
    kind: Any = Integral if whole else Real
    is_number = isinstance(value, kind) and not isinstance(value, bool)
    if not is_number or not least <= value <= largest or value == np.inf:
        what = "a whole number" if whole else "a number"
        limits = f"of at least {least}" if largest == np.inf else f"from {least} to {largest}"
        raise ValueError(f"{name}={value!r} must be {what} {limits}.")
