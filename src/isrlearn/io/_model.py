"""A linear model in one safetensors file: what predicting needs, and how it was made."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from scipy.special import expit, softmax

from isrlearn._limits import refuse_wide_names
from isrlearn.display import brief, is_one_of
from isrlearn.estimators import fold
from isrlearn.exceptions import ModelFileError
from isrlearn.io._frames import frame_features, is_frame
from isrlearn.io._schema import Column, Schema
from isrlearn.io._tensors import protocol_of, read_tensors, write_tensors
from isrlearn.rows import LONGEST
from isrlearn.typing import Float64Array, LabelArray

PROTOCOL: Final = 2
"""2: sealed. 1 is read as well."""
BALANCED: Final = "balanced"
TRAINING: Final = "training"
SHARES: Final = "class_shares"
ARRAYS: Final = ("weight", "bias", "fill")


def _labels(names: Any, path: Path) -> LabelArray:
    _refuse_long(names)
    longest = max((len(name) for name in names if isinstance(name, str)), default=0)
    refuse_wide_names(len(names), longest, path)
    return np.array(names)


def _refuse_long(names: Iterable[Any]) -> None:
    """Refuse texts as classes: an array of strings gives each the room of the longest."""
    if any(isinstance(name, str) and len(name) > LONGEST for name in names):
        raise ValueError(f"a class has a name of more than {LONGEST} characters: shorten it.")


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
        How the model was made, as plain values. "prior" is "balanced" where the head counted
        classes alike, and "training" where the model knows their shares, "class_shares", in the
        training rows.

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
        kind = self.classes.dtype.kind
        if self.classes.ndim != 1 or len(set(self.classes.tolist())) < 2 or kind not in "iuU":
            raise ValueError(
                f"classes are {self.classes.tolist()!r:.100}: at least two different integers or "
                "strings are needed."
            )
        _refuse_long(self.classes.tolist())
        n_rows = 1 if len(self.classes) == 2 else len(self.classes)
        n_features = self.schema.n_features
        shapes = {"weight": (n_rows, n_features), "bias": (n_rows,), "fill": (n_features,)}
        for name, shape in shapes.items():
            found = np.shape(getattr(self, name))
            if found != shape:
                raise ValueError(f"{name} has shape {found}, where the model needs {shape}.")
            if name != "fill" and not np.isfinite(getattr(self, name)).all():
                raise ValueError(f"{name} has values that are not finite: no model has those.")

    def decision_function(self, features: Any) -> Float64Array:
        """Return decision values, (n,) for two classes, else (n, k).

        Parameters
        ----------
        features : DataFrame or ndarray of shape (n, d)
            Of a DataFrame, columns are found by the names in the schema, in any order; text is
            encoded as it is in a file, and other columns are ignored. An array has the columns
            that `read_data` gives with the schema of the model, in their order.
        """
        values = self._filled(features) @ self.weight.T + self.bias
        return np.asarray(values[:, 0] if len(self.bias) == 1 else values)

    def predict(self, features: Any) -> LabelArray:
        """Return the predicted class of each row.

        Parameters
        ----------
        features : DataFrame or ndarray of shape (n, d)
            As in `decision_function`.
        """
        values = self.decision_function(features)
        codes = (values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)
        return np.asarray(self.classes[codes])

    def predict_proba(self, features: Any) -> Float64Array:
        """Return the probability of each class, (n, k).

        Parameters
        ----------
        features : DataFrame or ndarray of shape (n, d)
            As in `decision_function`.
        """
        values = self.decision_function(features)
        if values.ndim == 1:
            return np.stack([expit(-values), expit(values)], axis=1)
        return np.asarray(softmax(values, axis=1))

    def with_prior(self, prior: Any) -> Self:
        r"""Return the model that knows how frequent the classes are.

        A model whose head counted classes alike gives probabilities as if all were equally
        frequent. Shares :math:`p_c` add :math:`\log p_c` to the decision values of class c, and
        with two classes :math:`\log(p_1 / p_0)`. That is right where the model is logistic, and the
        decision values of equally frequent classes are log odds; those of other heads, such as
        ridge regression, are not.

        Parameters
        ----------
        prior : array-like of shape (k,), dict of label to float, or "training"
            Shares of the classes in the order of `classes`, or by label; they are divided by their
            sum. "training": those of the training rows, which models of ``isrlearn fit`` keep.

        Returns
        -------
        LinearModel

        Examples
        --------
        >>> import numpy as np
        >>> from isrlearn.io import LinearModel, Schema
        >>> schema = Schema.of_array(1, "labels", ("environments",))
        >>> classes = np.array(["ill", "well"])
        >>> model = LinearModel(np.ones((1, 1)), np.zeros(1), np.zeros(1), classes, schema)
        >>> model.with_prior({"ill": 0.1, "well": 0.9}).predict_proba([[0.0]]).round(3).tolist()
        [[0.1, 0.9]]
        """
        if self.made.get("prior", BALANCED) != BALANCED:
            raise ValueError(
                f"the model knows a prior already ({brief(self.made['prior'])}), and a second one "
                "would count twice: take the model that counts classes alike."
            )
        logs = np.log(self._shares(prior))
        shift = logs[1:] - logs[0] if len(self.bias) == 1 else logs
        what = TRAINING if is_one_of(prior, [TRAINING]) else "given"
        return replace(self, bias=self.bias + shift, made={**self.made, "prior": what})

    def _shares(self, prior: Any) -> Float64Array:
        """Return the shares of the classes that a user gave in one of the ways of `with_prior`."""
        classes = self.classes.tolist()
        if isinstance(prior, str):
            if prior != TRAINING or SHARES not in self.made:
                raise ValueError(
                    f"prior={brief(prior)} is not known to this model: give the share of each "
                    f"class, {brief(classes)}."
                )
            prior = self.made[SHARES]
        if isinstance(prior, Mapping):
            if {*prior} != {*classes}:
                raise ValueError(
                    f"prior has the labels {brief([*prior])}, but the model has the classes "
                    f"{brief(classes)}: give the share of each."
                )
            prior = [prior[name] for name in classes]
        shares = np.asarray(prior, dtype=np.float64)
        if shares.shape != (len(classes),) or not (np.isfinite(shares) & (shares > 0)).all():
            raise ValueError(
                f"prior={brief(prior)} must be {len(classes)} positive shares, one for each of the "
                f"classes {brief(classes)}."
            )
        return np.asarray(shares / shares.sum())

    def save(self, path: str | Path) -> None:
        """Write the model; what is there is replaced when the new file is whole.

        Parameters
        ----------
        path : path
            A ``.safetensors`` file.
        """
        card = {
            "protocol": PROTOCOL,
            "classes": self.classes.tolist(),
            "schema": self.schema.to_json(),
            "made": dict(self.made),
        }
        write_tensors(Path(path), {name: getattr(self, name) for name in ARRAYS}, card)

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
        card, arrays = read_tensors(path, "a model that isrlearn fit wrote")
        protocol_of(path, card, PROTOCOL)
        try:
            classes = _labels(card["classes"], path)
            schema = Schema.from_json(card["schema"])
            return cls(**arrays, classes=classes, schema=schema, made=dict(card["made"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(
                f"{path} is not a model that isrlearn fit wrote ({error})."
            ) from error

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Return what a fitted linear classifier or pipeline does, as one weight and bias.

        Parameters
        ----------
        estimator : fitted estimator
            What `isrlearn.fold` takes, with classes that are integers or strings.

        Examples
        --------
        >>> import numpy as np
        >>> from isrlearn import ISRClassifier, ISRMean
        >>> from isrlearn.datasets import load_penguins
        >>> from isrlearn.io import LinearModel
        >>> X, y, species = load_penguins()
        >>> fitted = ISRClassifier(ISRMean(1)).fit(X, y, environments=species)
        >>> bool(np.all(LinearModel.of(fitted).predict(X) == fitted.predict(X)))
        True
        """
        weight, bias = fold(estimator)
        if not hasattr(estimator, "classes_"):
            raise TypeError(
                f"{type(estimator).__name__} has no classes_, so it is no classifier: save it as "
                ".skops, or keep the weight and bias of isrlearn.fold(estimator)."
            )
        names = getattr(estimator, "feature_names_in_", None)
        n_features = weight.shape[-1]
        schema = Schema.of_array(n_features, "labels", ("environments",))
        if names is not None:
            columns = tuple(Column(str(name)) for name in names)
            schema = Schema(columns, "labels", ("environments",), "table")
        classes = np.asarray(estimator.classes_)
        classes = classes.astype(str) if classes.dtype == object else classes
        fill = np.full(n_features, np.nan)
        last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
        alike = getattr(last, "_counts_classes_alike", None)
        made = {} if alike is None else {"prior": BALANCED if alike else TRAINING}
        return cls(np.atleast_2d(weight), np.atleast_1d(bias), fill, classes, schema, made)

    def _filled(self, features: Any) -> Float64Array:
        if is_frame(features):
            features = frame_features(features, self.schema)
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


def with_class_sizes(
    model: LinearModel, sizes: Any, *, prior: str | None = None, alike: bool = True
) -> LinearModel:
    """Return a logistic model that keeps how frequent its classes were in training.

    Parameters
    ----------
    model : LinearModel
        As its head was fitted.
    sizes : array-like of shape (k,)
        Training rows of each class, in the order of `classes`.
    prior : {None, "train"}, default=None
        "train": probabilities are of classes as frequent as in training.
    alike : bool, default=True
        Whether the head counted classes alike; else it knows how frequent they are.
    """
    shares = np.asarray(sizes, dtype=np.float64) / np.sum(sizes)
    made = {**model.made, "prior": BALANCED if alike else TRAINING, SHARES: shares.tolist()}
    found = replace(model, made=made)
    return found.with_prior(TRAINING) if alike and prior is not None else found
