"""Arrays of an npz file, a safetensors file or a folder of features."""

import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from isrlearn._limits import refuse_bytes, refuse_irregular, refuse_rows
from isrlearn._npz import ObjectArrayError, array_names, read_arrays
from isrlearn.exceptions import DataError, FeatureFileError
from isrlearn.io._features import MANIFEST, FeatureFile
from isrlearn.io._values import Texts, known_text, nearest, number_text
from isrlearn.typing import FloatArray

FEATURES: Final = "features"
UNKNOWN: Final = "-1"
DAMAGE: Final = (
    ValueError,
    OSError,
    EOFError,
    RuntimeError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True, eq=False)
class Archive:
    """Named arrays, read one by one.

    Parameters
    ----------
    path : Path
        Where they are.
    names : sequence of str
        Names of the arrays.
    load : callable
        Returns the array of a name.
    """

    path: Path
    names: Sequence[str]
    load: Callable[[str], Any]
    part = "array"
    notes: tuple[str, ...] = ()

    def place(self, row: int) -> str:
        """Return where a row is, in the words of the user."""
        return f"row {row + 1}"

    @property
    def n_rows(self) -> int:
        """Number of rows of the features."""
        return len(self.features)

    @cached_property
    def features(self) -> FloatArray:
        """The features, (n, d), float32 or float64; NaN where a value is missing."""
        if FEATURES not in self.names:
            hint = nearest(FEATURES, self.names, self.part) if self.names else "it is empty."
            raise DataError(
                f"{self.path} has no array 'features', which must have that name: {hint}"
            )
        features = self._numbers(np.asarray(self.load(FEATURES)))
        self._refuse_infinite(features)
        return features

    def texts(self, name: str) -> Texts:
        """Return an array of one value per row as text; None where the value is missing."""
        values = np.asarray(self.load(name))
        if values.ndim != 1:
            raise DataError(
                f"{self.path}: {name} has shape {values.shape}, but one value per row is needed: "
                "save it with one dimension."
            )
        self._refuse_claims(values)
        if values.dtype.kind == "S":
            values = np.char.decode(values, "utf-8", "replace")
        if values.dtype.kind in "biuf":
            return [number_text(value) for value in values.tolist()]
        if values.dtype.kind not in "UT":
            raise DataError(
                f"{self.path}: {name} has the type {values.dtype}: save numbers or strings."
            )
        return [known_text(value) for value in values.tolist()]

    def _numbers(self, features: Any) -> FloatArray:
        if features.dtype.kind not in "biuf":
            raise DataError(
                f"{self.path}: features has the type {features.dtype}, but numbers are needed: "
                "encode text before saving, or give a table as csv."
            )
        if features.ndim != 2 or 0 in features.shape:
            raise DataError(
                f"{self.path}: features has shape {features.shape}, expected (rows, features) "
                "with at least one of each: save it with two dimensions."
            )
        self._refuse_claims(features)
        if features.dtype in (np.float32, np.float64):
            return np.asarray(features)
        return np.asarray(features, np.float32 if features.dtype == np.float16 else np.float64)

    def _refuse_claims(self, values: Any) -> None:
        """Refuse rows that took no bytes in the file."""
        if self.path.is_file():
            try:
                refuse_rows(len(values), self.path)
                refuse_bytes(8 * values.size, self.path)
            except ValueError as error:
                raise DataError(damaged(self.path, error)) from error

    def _refuse_infinite(self, features: FloatArray) -> None:
        places = np.argwhere(np.isinf(features))
        if len(places):
            row, j = places[0].tolist()
            raise DataError(
                f"{self.path}, {self.place(row)}: feature x{j} is infinite: replace the value, or "
                "write NaN if it is missing."
            )


def require_rows(path: Path) -> None:
    """Raise `DataError` unless there is a file or a folder, before anything opens it.

    A pipe or a device may have no end, and opening it may wait for ever.

    Parameters
    ----------
    path : Path
        What the user named.
    """
    if not path.exists():
        raise DataError(f"{path} does not exist: check the path.")
    if path.is_dir():
        return
    try:
        refuse_irregular(path)
    except ValueError as error:
        raise DataError(
            f"{path} cannot be read ({error}, but a pipe or a device): save the rows as a file."
        ) from error


def open_npz(path: Path) -> Archive:
    """Open what ``numpy.savez`` wrote; nothing in it is unpickled."""
    if not zipfile.is_zipfile(path):
        raise DataError(
            f"{path} is no npz file, or is cut short: save it again with numpy.savez(file, "
            "features=..., labels=..., environments=...)."
        )
    try:
        names = array_names(path)
    except ValueError as error:
        raise DataError(damaged(path, error)) from error
    return Archive(path, names, lambda name: _from_npz(path, name))


def open_safetensors(path: Path) -> Archive:
    """Open a single safetensors file. Needs safetensors."""
    require_safetensors(path)
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        arrays = load_file(path)
    except KeyError as error:
        raise DataError(
            f"{path} holds numbers of the type {error}, which NumPy has not: save them as F16 or "
            "F32."
        ) from error
    except (SafetensorError, *DAMAGE) as error:
        raise DataError(damaged(path, error)) from error
    return Archive(path, list(arrays), arrays.__getitem__)


def open_folder(folder: Path) -> Archive:
    """Open a folder that `FeatureWriter` wrote. Needs safetensors."""
    if not (folder / MANIFEST).exists():
        raise DataError(
            f"{folder} is a folder without {MANIFEST}, so no features were written there: name "
            "a file inside it, or a folder of features."
        )
    require_safetensors(folder)
    try:
        arrays = FeatureFile.open(folder).read().arrays()
    except FeatureFileError:
        raise
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise DataError(
            f"{folder} has shards that do not fit together ({error}): write it again."
        ) from error
    return Archive(folder, list(arrays), arrays.__getitem__)


def _from_npz(path: Path, name: str) -> Any:
    try:
        return read_arrays(path, [name])[name]
    except ObjectArrayError as error:
        raise DataError(f"{path}: {error}.") from error
    except ValueError as error:
        raise DataError(damaged(path, error)) from error


def damaged(path: Path, error: BaseException) -> str:
    """Return the message about a file that cannot be read to its end."""
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return f"{path} is damaged ({reason}): copy or write the file again."


def require_safetensors(path: Path) -> None:
    """Raise `DataError` unless safetensors is installed."""
    try:
        import safetensors  # noqa: F401
    except ImportError as error:
        raise DataError(
            f"{path}: safetensors needs the extra 'io': pip install 'isrlearn[io]', or save npz."
        ) from error
