"""Targets that are refused, by name."""

from typing import Any, Final

import numpy as np

from isrlearn.display import brief
from isrlearn.rows._arrays import of_tensor, shape_of
from isrlearn.rows._labels import as_labels
from isrlearn.typing import Float64Array

MISSING_LABELS: Final = "y has missing labels (None, NaN or NA): drop those rows before fitting."
MISSING_VALUES: Final = "y has missing values (None, NaN or NA): drop those rows before fitting."


def as_target(y: Any) -> Any:
    """Refuse what is not one value per row: several columns, one value, a bag of values."""
    if y is None:
        raise ValueError(
            "fit requires y to be passed, but the target y is None: give one label, or one number, "
            "per row."
        )
    y = of_tensor(y, "y") if hasattr(y, "detach") else y
    shape = shape_of(y)
    if len(shape) > 1 and shape[1] != 1:
        raise ValueError(
            f"y should be a 1d array, got an array of shape {shape} instead: fit one model for "
            "each target, or join them to one label."
        )
    return as_labels(y, "y") if len(shape) == 0 else y


def refuse_text(y: Any) -> None:
    if isinstance(y, str):
        return
    values = np.asarray(y)
    if values.dtype.kind not in "biufc":
        text = next((value for value in values.ravel().tolist() if isinstance(value, str)), None)
        if text is not None:
            raise ValueError(
                f"y holds text, such as {brief(text)}, but a regressor needs numbers: convert it, "
                "or use ISRClassifier for class labels."
            )


def refuse_target_not_finite(error: ValueError, missing: str) -> None:
    """Say what to do where scikit-learn found y not finite."""
    if str(error).startswith("Input y contains NaN"):
        raise ValueError(missing) from None
    if str(error).startswith("Input y contains infinity"):
        raise ValueError("y contains infinity: drop those rows, or replace the values.") from None


def refuse_large(y: Float64Array) -> None:
    with np.errstate(over="ignore"):
        if not np.isfinite(np.abs(y).sum()):
            raise ValueError(
                f"y is so large (up to {np.abs(y).max():.3g}) that its sum overflows: scale it "
                "first."
            )
