"""A linear model in one safetensors file: what predicting needs, and how it was made."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from scipy.special import expit, softmax

from isrlearn._files import write_whole
from isrlearn._typing import Float64Array, FloatArray, LabelArray
from isrlearn.exceptions import ModelFileError
from isrlearn.io._schema import Schema

PROTOCOL: Final = 1
CARD: Final = "isrlearn"
ARRAYS: Final = ("weight", "bias", "fill")


@dataclass(frozen=True, eq=False)
class LinearModel:
    r"""Decision values :math:`Wx + b` of features, after missing values are filled.

    Parameters
    ----------
    weight : ndarray of shape (1, d) or (k, d)
        W; one row for two classes.
    bias : ndarray of shape (1,) or (k,)
        b.
    fill : ndarray of shape (d,)
        What takes the place of a missing value; NaN where none may be missing.
    classes : ndarray of shape (k,)
        Labels, integers or strings.
    schema : Schema
        How the columns of a file become features.
    made : dict
        How the model was made, as plain values.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.io import LinearModel, Schema
    >>> schema = Schema.of_array(2, "labels", ("environments",))
    >>> model = LinearModel(np.eye(2)[:1], np.zeros(1), np.zeros(2), np.array([0, 1]), schema)
    >>> model.predict(np.array([[1.0, 5.0], [-1.0, 5.0]]))
    array([1, 0])
    """

    weight: Float64Array
    bias: Float64Array
    fill: Float64Array
    classes: LabelArray
    schema: Schema
    made: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n_rows = 1 if len(self.classes) == 2 else len(self.classes)
        n_features = len(self.schema.feature_names)
        shapes = {"weight": (n_rows, n_features), "bias": (n_rows,), "fill": (n_features,)}
        for name, shape in shapes.items():
            found = np.shape(getattr(self, name))
            if found != shape:
                raise ValueError(f"{name} has shape {found}, where the model needs {shape}.")

    def decision_function(self, features: FloatArray) -> Float64Array:
        """Return decision values, (n,) for two classes, else (n, k).

        Parameters
        ----------
        features : ndarray of shape (n, d)
            Rows as `read_data` gives them with the schema of the model.
        """
        values = self._filled(features) @ self.weight.T + self.bias
        return np.asarray(values[:, 0] if len(self.bias) == 1 else values)

    def predict(self, features: FloatArray) -> LabelArray:
        """Return the predicted class of each row.

        Parameters
        ----------
        features : ndarray of shape (n, d)
            As in `decision_function`.
        """
        values = self.decision_function(features)
        codes = (values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)
        return np.asarray(self.classes[codes])

    def predict_proba(self, features: FloatArray) -> Float64Array:
        """Return the probability of each class, (n, k).

        Parameters
        ----------
        features : ndarray of shape (n, d)
            As in `decision_function`.
        """
        values = self.decision_function(features)
        if values.ndim == 1:
            return np.stack([expit(-values), expit(values)], axis=1)
        return np.asarray(softmax(values, axis=1))

    def save(self, path: str | Path) -> None:
        """Write the model; what is there is replaced when the new file is whole.

        Parameters
        ----------
        path : path
            A ``.safetensors`` file.
        """
        from safetensors.numpy import save

        card = {
            "protocol": PROTOCOL,
            "classes": self.classes.tolist(),
            "schema": self.schema.to_json(),
            "made": dict(self.made),
        }
        tensors = {name: np.ascontiguousarray(getattr(self, name)) for name in ARRAYS}
        data = save(tensors, metadata={CARD: json.dumps(card, sort_keys=True)})
        write_whole(Path(path), lambda place: place.write_bytes(data))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model without trusting it.

        Parameters
        ----------
        path : path
            What `save` wrote.

        Returns
        -------
        LinearModel
        """
        path = Path(path)
        card, arrays = _read(path)
        try:
            if card["protocol"] != PROTOCOL:
                raise ModelFileError(
                    f"{path} is a model of protocol {card['protocol']!r}; this version reads "
                    f"{PROTOCOL}."
                )
            classes = np.array(card["classes"])
            if classes.ndim != 1 or len(classes) < 2 or classes.dtype.kind not in "iU":
                raise ModelFileError(f"{path} is damaged: its classes are {card['classes']!r}.")
            schema = Schema.from_json(card["schema"])
            return cls(**arrays, classes=classes, schema=schema, made=dict(card["made"]))
        except ModelFileError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"{path} is not a model of isrlearn ({error}).") from error

    def _filled(self, features: FloatArray) -> Float64Array:
        X = np.asarray(features, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != len(self.fill):
            raise ValueError(
                f"features have shape {X.shape}, but the model has {len(self.fill)} features."
            )
        X = np.where(np.isnan(X), self.fill, X)
        missing = np.isnan(X).any(axis=0)
        if missing.any():
            names = [self.schema.feature_names[j] for j in np.flatnonzero(missing)[:5]]
            raise ValueError(
                f"values are missing in {', '.join(names)}, and the model was fitted without "
                "missing values: fill them, or fit again with --impute median."
            )
        return X


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise ModelFileError(f"{path} is not there: name a model that isrlearn fit wrote.")
    try:
        with safe_open(path, framework="np") as file:
            card = json.loads((file.metadata() or {})[CARD])
            arrays = {name: file.get_tensor(name).astype(np.float64) for name in ARRAYS}
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise ModelFileError(
            f"{path} is not a model that isrlearn fit wrote ({type(error).__name__}: {error})."
        ) from error
    if not isinstance(card, dict) or not all(np.isfinite(arrays[n]).all() for n in ARRAYS[:2]):
        raise ModelFileError(f"{path} is damaged: its card or its weights are not usable.")
    return card, arrays
