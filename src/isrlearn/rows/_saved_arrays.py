"""Arrays by name that were saved once and may be anyone's now: their types and shapes."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from isrlearn.rows._features import LARGEST
from isrlearn.typing import Float64Array, IntArray, LabelArray


def require_names(arrays: Mapping[str, Any], names: Iterable[str], what: str) -> None:
    """Raise `ValueError` unless all names are there."""
    absent = [name for name in names if name not in arrays]
    if absent:
        raise ValueError(f"the saved {what} lacks {', '.join(absent)}: save it again.")


def require_protocol(arrays: Mapping[str, Any], known: int, what: str) -> None:
    """Raise `ValueError` unless this version reads the arrays.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        With a whole number "protocol".
    known : int
        The protocol that is read.
    what : str
        What was saved.
    """
    require_names(arrays, ["protocol"], what)
    protocol = np.asarray(arrays["protocol"])
    if protocol.shape != () or protocol.dtype.kind not in "iu" or protocol != known:
        raise ValueError(
            f"the {what} was saved with protocol {str(protocol)[:40]}, and this version reads "
            f"protocol {known}: install the version of isrlearn that saved it."
        )


def saved_floats(value: Any, name: str, shape: tuple[int | None, ...]) -> Float64Array:
    """Return finite numbers of a shape, in which None stands for any length.

    Parameters
    ----------
    value : array-like
        What was saved.
    name : str
        Of the array, for the message.
    shape : tuple of int or None
        What is needed.
    """
    array = _of_shape(np.asarray(value), name, shape)
    if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        raise ValueError(f"{name} must hold finite numbers, and is of the type {array.dtype}.")
    found = np.array(array, dtype=np.float64)
    if not np.isfinite(found).all():
        raise ValueError(f"{name} holds numbers that are too large for float64.")
    return found


def saved_places(value: Any, name: str, length: int, below: int | None = None) -> IntArray:
    """Return whole numbers from 0, one for each of `length`, and below a number if it is given."""
    array = _of_shape(np.asarray(value), name, (length,))
    if array.dtype.kind not in "iu" or np.any(array < 0):
        raise ValueError(f"{name} must hold whole numbers from 0.")
    if np.any(array > np.iinfo(np.intp).max) or (below is not None and np.any(array >= below)):
        raise ValueError(f"{name} holds {array.max()}, which is too large.")
    return np.asarray(array, dtype=np.intp)


def saved_labels(value: Any, name: str) -> LabelArray:
    """Return distinct sorted labels."""
    array = _of_shape(np.asarray(value), name, (None,))
    if array.dtype.kind not in "biufUS" or not np.array_equal(np.unique(array), array):
        raise ValueError(f"{name} must hold distinct sorted labels, numbers or strings.")
    return np.asarray(array)


def _of_shape(array: Any, name: str, shape: tuple[int | None, ...]) -> Any:
    fits = len(array.shape) == len(shape) and all(
        wanted is None or n == wanted for n, wanted in zip(array.shape, shape, strict=True)
    )
    if not fits:
        needed = tuple("any" if n is None else n for n in shape)
        raise ValueError(f"{name} has shape {array.shape}, where {needed} is needed.")
    return array


def saved_moments(arrays: Mapping[str, Any], protocol: int) -> dict[str, Any]:
    """Return the fields of `CellMoments` out of saved arrays, when they fit together.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        What `CellMoments.to_arrays` returned.
    protocol : int
        The protocol that is read.
    """
    require_protocol(arrays, protocol, "moments")
    require_names(arrays, ("classes", "environments", "class_index", *_SUMS), "moments")
    labels = {name: saved_labels(arrays[name], name) for name in ("classes", "environments")}
    k, n_environments = len(labels["classes"]), len(labels["environments"])
    means = saved_floats(arrays["means"], "means", (None, None))
    m, d = means.shape
    places = {
        "class_index": saved_places(arrays["class_index"], "class_index", m, k),
        "environment_index": saved_places(
            arrays["environment_index"], "environment_index", m, n_environments
        ),
        "counts": saved_places(arrays["counts"], "counts", m),
    }
    cells = places["class_index"] * n_environments + places["environment_index"]
    if np.any(np.diff(cells) <= 0):
        raise ValueError("the cells of the saved moments are not in order, or one is there twice.")
    shapes: dict[str, tuple[int, ...]] = {"weights": (m,), "largest": (d,), "precision": ()}
    if arrays.get("scatters") is not None:
        shapes["scatters"] = (m, d, d)
    sums = {name: saved_floats(arrays[name], name, shape) for name, shape in shapes.items()}
    positive = np.all(sums["weights"] > 0) and np.all(sums["largest"] >= 0)
    sizes = [np.abs(a).max(initial=0.0) for a in (means, sums["weights"])]
    squares = np.abs(sums.get("scatters", means)).max(initial=0.0)
    if not positive or sums["precision"] < 0 or max(*sizes, np.sqrt(squares)) > LARGEST:
        raise ValueError(
            f"the saved moments have weights that are not positive, or means above {LARGEST:g}."
        )
    precision = float(sums.pop("precision"))
    return {**labels, **places, "means": means, "scatters": None, **sums, "precision": precision}


_SUMS = ("environment_index", "counts", "weights", "means", "largest", "precision")
