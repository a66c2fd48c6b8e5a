"""Kernels for rows that live on an accelerator: only sums come to the host.

Rows may be of any library with the functions of the array API (torch, CuPy, JAX). They are read in
blocks where they are; products keep the precision of the rows (in torch, that which is set by
`torch.set_float32_matmul_precision`), sums over blocks are taken in double precision on the host.
Neither torch nor array-api-compat is loaded for rows of NumPy.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from isrlearn.typing import BoolArray, Float64Array, IntArray

BLOCK_BYTES: Final = 2**27  # of a block: few transfers of d x d sums, little memory beside the rows
MOST_ROWS: Final = 2**16  # of a block, so that sums in single precision keep their digits
LIBRARIES: Final = {"torch", "cupy"}  # whose arrays do not say that they have the array API


def on_device(X: Any) -> bool:
    """Whether X is an array that NumPy cannot read where it is; it reads CPU tensors of torch."""
    libraries = {base.__module__.partition(".")[0] for base in type(X).__mro__}
    has_functions = hasattr(type(X), "__array_namespace__") or libraries & LIBRARIES
    if isinstance(X, np.ndarray) or not has_functions:
        return False  # before X.device, which may be a column of a table
    device = getattr(X, "device", None)
    return device is not None and not _is_host(device)


def _is_host(device: Any) -> bool:
    return "cpu" in str(getattr(device, "type", device)).lower()


def to_host(values: Any) -> Any:
    """Return an array that is on a device as one of NumPy; anything else as it is."""
    if not on_device(values):
        return values
    if hasattr(values, "detach"):  # torch
        return values.detach().cpu().numpy()
    if hasattr(values, "get"):  # CuPy
        return values.get()
    devices = namespace(values).__array_namespace_info__().devices()
    host = next((device for device in devices if _is_host(device)), None)
    return np.asarray(values if host is None else values.to_device(host))


def to_device(values: Float64Array, X: Any) -> Any:
    """Return a small array of the host on the device of X, in its precision."""
    own = np.array(values, dtype=float_type(X), order="C")  # a copy: torch warns of read-only ones
    return namespace(X).asarray(own, device=X.device)


def float_type(X: Any) -> np.dtype[Any]:
    """Return the type of the numbers of X as one of NumPy; on a device float32 or float64."""
    if isinstance(X, np.ndarray):
        return np.dtype(X.dtype)
    name = str(X.dtype).rpartition(".")[2]  # torch.float32
    if name not in ("float32", "float64"):
        raise TypeError(
            f"X is {name} on device {X.device}, where only float32 and float64 are added up: "
            "convert it, in torch with X.float()."
        )
    return np.dtype(name)


def namespace(X: Any) -> Any:
    """Return the functions of the array API for the library of X."""
    try:
        from array_api_compat import array_namespace
    except ImportError as error:
        raise ValueError(
            f"X is on device {X.device}, and sums there need array-api-compat: "
            "`pip install array-api-compat`, or bring X to the host, in torch with X.cpu()."
        ) from error
    return array_namespace(X)


def blocks(X: Any) -> Iterator[Any]:
    """Yield X in blocks of rows, on its device."""
    n_rows, step = X.shape[0], block_rows_on_device(X)
    for start in range(0, max(n_rows, 1), step):
        yield X[start : min(start + step, n_rows), :]


def take_rows(X: Any, mask: BoolArray) -> Any:
    """Return the rows where a mask of NumPy, (n,), is true, wherever they are."""
    return taken(X, np.flatnonzero(mask)) if on_device(X) else X[mask]


def not_finite(X: Any, what: str) -> tuple[BoolArray, int]:
    """Return the columns, (d,), and the number of rows that hold "NaN" or "infinity"."""
    X = X.detach() if hasattr(X, "detach") else X
    xp, columns, n_rows = namespace(X), np.zeros(X.shape[1], dtype=bool), 0
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(summed(xp.sum(X))):  # then all of X is
            return columns, 0
    for block in blocks(X):
        bad = xp.isnan(block) if what == "NaN" else xp.isinf(block)
        columns |= np.asarray(to_host(xp.any(bad, axis=0)))
        n_rows += int(summed(xp.sum(xp.astype(xp.any(bad, axis=1), xp.int32))))
    return columns, n_rows


def block_rows_on_device(X: Any) -> int:
    return int(max(1, min(MOST_ROWS, BLOCK_BYTES // (X.shape[1] * float_type(X).itemsize))))


def taken(X: Any, rows: IntArray) -> Any:
    # Not every device has integers of 64 bits.
    index, xp = rows.astype(np.int32 if X.shape[0] < 2**31 else np.int64), namespace(X)
    return xp.take(X, xp.asarray(index, device=X.device), axis=0)


def summed(values: Any) -> Float64Array:
    return np.asarray(to_host(values), dtype=np.float64)
