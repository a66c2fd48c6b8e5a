"""One way to save and to load what was fitted; the ending of the file says how."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from sklearn.base import BaseEstimator

from isrlearn.exceptions import ModelFileError
from isrlearn.io._model import LinearModel
from isrlearn.io._skops import read_estimator, write_estimator
from isrlearn.io._tensors import protocol_of, read_tensors, write_tensors
from isrlearn.subspace import Subspace

PROTOCOL: Final = 2
KIND: Final = "subspace"


def save(fitted: Any, path: str | Path) -> None:
    """Write what was fitted into one file, without pickle.

    Parameters
    ----------
    fitted : estimator, LinearModel or Subspace
        What to keep.
    path : path
        What is there is replaced when the new file is whole. The ending says what is written:

        ``.safetensors``
            A `Subspace`, a `LinearModel`, or what a linear classifier or pipeline comes to: its
            weight and bias. It is read anywhere.
        ``.skops``
            The estimator or pipeline itself, with what predicting and diagnosing need. It is read
            by the versions of isrlearn and scikit-learn that wrote it.
        ``.onnx``
            What a linear classifier, regressor or pipeline predicts, for a runtime of ONNX.

    Examples
    --------
    >>> import tempfile, isrlearn
    >>> from isrlearn import ISRClassifier, ISRMean
    >>> from isrlearn.datasets import load_penguins
    >>> X, y, species = load_penguins()
    >>> fitted = ISRClassifier(ISRMean(1)).fit(X, y, environments=species)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     isrlearn.save(fitted.subspace_, f"{folder}/removed.safetensors")
    ...     print(isrlearn.load(f"{folder}/removed.safetensors"))
    Subspace(rank=1, features=4, scale=0.0)
    """
    path = Path(path)
    if not isinstance(fitted, BaseEstimator | LinearModel | Subspace):
        raise TypeError(
            f"a {type(fitted).__name__} cannot be saved: give a fitted estimator or pipeline of "
            "scikit-learn's kind, a LinearModel or a Subspace."
        )
    if path.suffix == ".skops" and not isinstance(fitted, Subspace | LinearModel):
        _needs("skops", path)
        write_estimator(fitted, path)
    elif path.suffix == ".safetensors":
        _needs("safetensors", path)
        _write_tensors(fitted, path)
    elif path.suffix == ".onnx" and not isinstance(fitted, Subspace):
        _needs("onnx", path)
        from isrlearn.io._onnx import write_onnx

        write_onnx(fitted, path)
    else:
        raise ValueError(
            f"{path} ends in {path.suffix!r}: a {type(fitted).__name__} is saved as "
            f"{_endings(fitted)}."
        )


def load(path: str | Path, *, trusted: Sequence[str] = ()) -> Any:
    """Read what `save` wrote, without trusting it.

    No code comes out of a file: a ``.skops`` file may name types of isrlearn, scikit-learn, NumPy
    and SciPy only. A file that was damaged is refused.

    Parameters
    ----------
    path : path
        A ``.safetensors`` or ``.skops`` file.
    trusted : sequence of str, default=()
        Other types that a ``.skops`` file may name, such as "my_module.MyScaler".

    Returns
    -------
    estimator, LinearModel or Subspace

    Raises
    ------
    ModelFileError
        If the file is something else, damaged, or names a type that is not trusted.

    Examples
    --------
    >>> import tempfile, isrlearn, numpy as np
    >>> from isrlearn import ISRClassifier, ISRMean
    >>> from isrlearn.datasets import load_penguins
    >>> X, y, species = load_penguins()
    >>> fitted = ISRClassifier(ISRMean(1)).fit(X, y, environments=species)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     isrlearn.save(fitted, f"{folder}/model.safetensors")
    ...     again = isrlearn.load(f"{folder}/model.safetensors")
    >>> bool(np.all(again.predict(X) == fitted.predict(X)))
    True
    """
    path = Path(path)
    if path.suffix == ".skops":
        _needs("skops", path)
        return read_estimator(path, trusted)
    if path.suffix == ".safetensors":
        _needs("safetensors", path)
        return _read_tensors(path)
    raise ModelFileError(
        f"{path} ends in {path.suffix!r}: models are read from .safetensors and .skops files."
    )


def _write_tensors(fitted: Any, path: Path) -> None:
    if isinstance(fitted, Subspace):
        arrays = {name: a for name, a in fitted.to_arrays().items() if name != "protocol"}
        write_tensors(path, arrays, {"protocol": PROTOCOL, "kind": KIND})
    else:
        (fitted if isinstance(fitted, LinearModel) else LinearModel.of(fitted)).save(path)


def _read_tensors(path: Path) -> Any:
    card, arrays = read_tensors(path, "a file that isrlearn.save or isrlearn fit wrote")
    if card.get("kind") != KIND:
        return LinearModel.load(path)
    protocol_of(path, card, PROTOCOL)
    try:
        return Subspace.from_arrays({"protocol": np.array(1), **arrays})
    except (KeyError, ValueError, TypeError) as error:
        raise ModelFileError(f"{path} is no subspace ({error}).") from error


def _endings(fitted: Any) -> str:
    if isinstance(fitted, Subspace):
        return ".safetensors"
    skops = "" if isinstance(fitted, LinearModel) else ".skops, "
    return f"{skops}.safetensors or .onnx"


def _needs(module: str, path: Path) -> None:
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise ModelFileError(f"{path}: {module} needs the extra 'io': pip install 'isrlearn[io]'.")
