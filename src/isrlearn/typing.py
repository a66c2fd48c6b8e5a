"""Names of the array types that the signatures use."""

from typing import Any, Final, TypeAlias

import numpy as np

# Not numpy.typing.NDArray: that module would be loaded for these names alone.
FloatArray: TypeAlias = np.ndarray[Any, np.dtype[np.floating[Any]]]
Float64Array: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
IntArray: TypeAlias = np.ndarray[Any, np.dtype[np.intp]]
BoolArray: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
LabelArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]

FLOATS: Final = (np.float64, np.float32)  # what features may be; others become the first
