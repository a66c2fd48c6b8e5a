"""Passes that are not done twice: a fit that was stopped goes on where it was.

Every pass is a sum that depends on nothing but the rows and the pass itself. Finished sums are
kept in files; a fit that is started again asks for the same passes in the same order and gets them
from there, to the bit, until it comes to the one that was under way, which is begun anew.
"""

import hashlib
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from isrlearn._files import write_whole
from isrlearn._npz import read_arrays
from isrlearn.heads import Loss, Sample
from isrlearn.moments import AllMoments, CellMoments, UnitSums
from isrlearn.rows import Rows, RowSource, T

RESULTS: Final[Mapping[str, Any]] = {
    kind.__name__: kind for kind in (AllMoments, Sample, Loss, UnitSums, CellMoments)
}


class Resumed(RowSource):
    """Rows whose finished sums are kept in a folder: a fit that is stopped can go on.

    Run the same fit with the same folder to go on where it was: passes that were done are not done
    again, and the one that was under way is begun anew.

    Parameters
    ----------
    rows : ChunkedRows
        The rows.
    folder : path
        Where sums are kept; it is created. Remove it when the fit is done, or when the rows are
        others.
    made_of : str, default=""
        What the rows are: a folder that was begun for others is not used but begun anew.

    Examples
    --------
    >>> import tempfile
    >>> from isrlearn import ChunkedRows, ISRClassifier, ISRMean
    >>> from isrlearn.datasets import load_penguins
    >>> from isrlearn.io import Resumed
    >>> rows = ChunkedRows.from_chunks([load_penguins()])
    >>> folder = tempfile.mkdtemp()
    >>> first = ISRClassifier(ISRMean(1)).fit(Resumed(rows, folder))
    >>> again = ISRClassifier(ISRMean(1)).fit(Resumed(rows, folder))  # reads no row
    >>> bool((first.coef_ == again.coef_).all())
    True
    """

    def __init__(self, rows: RowSource, folder: str | Path, made_of: str = "") -> None:
        self.rows = rows
        self.folder = Path(folder)
        self.made_of = made_of
        self.n_features, self.n_rows = rows.n_features, rows.n_rows
        self.feature_names = rows.feature_names
        self.folder.mkdir(parents=True, exist_ok=True)

    def total(self, function: Callable[[Rows], T]) -> T:
        """Return the sum of a pass, from the folder if it is there."""
        key = digest((self.made_of, self.n_features, self.n_rows, function))
        done = self.folder / f"{key}.npz"
        result: T | None = _load(done)
        if result is None:
            result = self.rows.total(function)
            if type(result).__name__ in RESULTS:
                _save(done, result)
        return result


def digest(value: Any) -> str:
    """Return a hash of nested dataclasses, tuples, arrays and plain values.

    Examples
    --------
    >>> digest((1, "a")) == digest((1, "a")) != digest((1, "b"))
    True
    """
    found = hashlib.sha256()
    _feed(found, value)
    return found.hexdigest()[:32]


def _feed(found: Any, value: Any) -> None:
    if isinstance(value, np.ndarray):
        kept = value.astype(str) if value.dtype == object else value
        found.update(f"array{kept.dtype}{kept.shape}".encode())
        found.update(np.ascontiguousarray(kept).tobytes())
    elif isinstance(value, tuple):
        found.update(f"tuple{type(value).__name__}{len(value)}".encode())
        for item in value:
            _feed(found, item)
    elif is_dataclass(value):
        _feed(found, (type(value).__name__, *(getattr(value, f.name) for f in fields(value))))
    else:
        found.update(f"{value!r};".encode())


def _save(path: Path, result: Any) -> None:
    arrays = _flat(result, "result")
    arrays["check"] = np.array(_check(arrays, path.name))
    write_whole(path, lambda place: _write(place, arrays))


def _check(arrays: Mapping[str, Any], file: str) -> int:
    """Return a number that other names or values hardly have, nor the sum of another pass."""
    found = zlib.crc32(file.encode())
    for name, value in sorted(arrays.items()):
        found = zlib.crc32(f"{name}{value.dtype}{value.shape}".encode(), found)
        content: Any = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        found = zlib.crc32(content, found)
    return found


def _write(place: Path, arrays: Mapping[str, Any]) -> None:
    # As np.savez does, which before NumPy 2 leaves its archive open where the disk is full.
    with zipfile.ZipFile(place, "w") as archive:
        for name, value in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(value), allow_pickle=False)


def _load(path: Path) -> Any:
    """Return what a file holds; None if there is none that can be read."""
    if not path.exists():
        return None
    try:
        arrays = read_arrays(path)
        if int(arrays.pop("check")) != _check(arrays, path.name):
            return None
        return _built(arrays, "result")
    except Exception:  # whatever is wrong with it: the sum is taken again
        return None


def _flat(value: Any, name: str) -> dict[str, Any]:
    """Return a result as arrays by name: its type, and its fields one level down."""
    if type(value).__name__ not in RESULTS:
        return {} if value is None else {name: np.asarray(value)}
    parts = {f"{name}.type": np.array(type(value).__name__)}
    for field in fields(value):
        parts |= _flat(getattr(value, field.name), f"{name}.{field.name}")
    return parts


def _built(arrays: Mapping[str, Any], name: str) -> Any:
    if f"{name}.type" not in arrays:
        found = arrays.get(name)
        return found.item() if found is not None and found.ndim == 0 else found
    kind = RESULTS[str(arrays[f"{name}.type"])]
    return kind(**{f.name: _built(arrays, f"{name}.{f.name}") for f in fields(kind)})
