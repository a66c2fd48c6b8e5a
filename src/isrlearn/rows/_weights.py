"""Weights of rows, checked."""

from typing import Any

import numpy as np
from sklearn.utils import check_array

from isrlearn.rows._arrays import as_numbers
from isrlearn.rows._columns import naming_columns
from isrlearn.typing import Float64Array

HEAVIEST, FAINTEST = 1e200, 1e-300  # weights that can be summed, and inverted
LIGHTEST = 1e-100  # relative to the heaviest of the rows


def check_weights(
    sample_weight: Any, n_rows: int, *, may_be_zero: bool = False
) -> Float64Array | None:
    """Return the weights as float64, or None; refuse negative and all-zero ones."""
    if sample_weight is None:
        return None
    if np.ma.isMaskedArray(sample_weight):
        raise ValueError("sample_weight is a masked array: fill it, with 0 where a row is absent.")
    given = np.asarray(as_numbers(sample_weight, "sample_weight"))
    with naming_columns(given, "sample_weight"):
        weights: Float64Array = check_array(
            np.atleast_1d(given),
            ensure_2d=False,
            dtype=np.float64,
            ensure_all_finite=False,
            input_name="sample_weight",
        )
    if given.ndim == 0 or weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {given.shape}, expected ({n_rows},): give one weight per row."
        )
    if not np.isfinite(weights).all():
        raise ValueError(
            f"sample_weight contains NaN or infinity in {np.sum(~np.isfinite(weights))} of "
            f"{n_rows} rows: weights must be finite, and 0 where a row is absent."
        )
    if weights.min() < 0:
        raise ValueError(
            f"sample_weight has a negative value ({weights.min():g}): weights must be >= 0."
        )
    if not weights.any() and not may_be_zero:
        raise ValueError("sample_weight is zero for every row: at least one must be positive.")
    most = float(weights.max())
    least = float(weights.min(where=weights > 0, initial=most))
    if most > HEAVIEST or 0 < least < max(most * LIGHTEST, FAINTEST):
        raise ValueError(
            f"sample_weight goes from {least:g} to {most:g}: those that are not 0 must be within a "
            f"factor of {1 / LIGHTEST:g}, and from {FAINTEST:g} to {HEAVIEST:g}: scale them."
        )
    return weights
