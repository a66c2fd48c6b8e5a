"""Some rows of something that is like an array."""

import mmap
from typing import Any

import numpy as np


def part_of(column: Any, start: int, stop: int) -> Any:
    """Return some rows of a column; of a memory map a copy, and the pages are given back."""
    if not isinstance(column, np.memmap):
        return view_of(column, start, stop)
    part = np.array(column[start:stop])
    release(column)
    return part


def view_of(column: Any, start: int, stop: int) -> Any:
    """Return some rows of a column, where they are if that can be."""
    if column is None:
        return None
    return column.iloc[start:stop] if hasattr(column, "iloc") else column[start:stop]


def release(mapped: Any) -> None:
    """Give the pages of a memory map back: they stay in the cache of the system, not in ours."""
    pages, advice = getattr(mapped, "_mmap", None), getattr(mmap, "MADV_DONTNEED", None)
    # With "c" changes live in the pages alone and would be lost.
    if pages is not None and advice is not None and mapped.mode in ("r", "r+"):
        pages.madvise(advice)


def dtype_of(X: Any) -> str:
    """Return the name of the type of the numbers of X; float64 for what is no float."""
    name = str(getattr(X, "dtype", "float64")).rpartition(".")[2]  # torch.float32
    return name if name in ("float16", "float32") else "float64"
