"""What a linear model predicts, as an ONNX graph."""

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
from sklearn.base import is_regressor

from isrlearn._files import write_whole
from isrlearn._seal import UNSEALED, seal
from isrlearn.estimators import fold
from isrlearn.io._model import LinearModel
from isrlearn.typing import Float64Array, LabelArray

OPSET: Final = 17
IR_VERSION: Final = 8  # what runtimes of 2022 read
N_PROBES: Final = 16


def write_onnx(fitted: Any, path: Path) -> None:
    r"""Write a graph: features in, predictions out, all in float64.

    The input ``features`` is (n, d). A classifier has the outputs ``label`` (n,), ``scores``, its
    decision values (n, 1) or (n, k), and ``probabilities`` (n, k) if it has them and they are the
    logistic function of the scores. A regressor has ``prediction`` (n,) or (n, k). Missing values
    are filled as the model fills them; where it does not, they make scores NaN.

    Parameters
    ----------
    fitted : LinearModel, or fitted linear classifier, regressor or pipeline
        What `isrlearn.fold` takes.
    path : Path
        What is there is replaced when the new file is whole.
    """
    from onnx import checker

    is_number = not isinstance(fitted, LinearModel) and is_regressor(fitted)
    graph = _regression(fitted) if is_number else _classification(fitted)
    checker.check_model(graph, full_check=True)
    data = graph.SerializeToString(deterministic=True)

    def write(place: Path) -> None:
        place.write_bytes(data)
        seal(place)

    write_whole(path, write)


def _regression(fitted: Any) -> Any:
    weight, bias = fold(fitted)
    names = getattr(fitted, "feature_names_in_", None)
    build = _Builder(weight.shape[-1])
    values = build.affine("features", np.atleast_2d(weight), np.atleast_1d(bias), "values")
    if weight.ndim == 1:
        build.node("Squeeze", [values, build.constant(np.array([1]), "last")], "prediction")
    else:
        build.node("Identity", [values], "prediction")
    return build.model(
        {"prediction": (np.float64, weight.ndim)}, None if names is None else list(names)
    )


def _classification(fitted: Any) -> Any:
    model = fitted if isinstance(fitted, LinearModel) else LinearModel.of(fitted)
    build = _Builder(len(model.fill))
    features = build.filled("features", model.fill)
    build.affine(features, model.weight, model.bias, "scores")
    outputs: dict[str, tuple[Any, int]] = {"scores": (np.float64, 2)}
    build.label("scores", model.classes, two=len(model.bias) == 1)
    outputs["label"] = (np.str_ if model.classes.dtype.kind == "U" else np.int64, 1)
    if _is_logistic(fitted, model):
        build.probabilities("scores", two=len(model.bias) == 1)
        outputs["probabilities"] = (np.float64, 2)
    return build.model(outputs, list(model.schema.feature_names), model.classes.tolist())


def _is_logistic(fitted: Any, model: LinearModel) -> bool:
    """Return whether the probabilities of a classifier are the logistic function of its scores."""
    if isinstance(fitted, LinearModel):
        return True
    if not hasattr(fitted, "predict_proba"):
        return False
    probes = np.random.default_rng(0).normal(size=(N_PROBES, len(model.fill)))
    plain = fitted.predict_proba(_as_named(fitted, probes))
    return bool(np.allclose(plain, model.predict_proba(probes)))


def _as_named(fitted: Any, rows: Float64Array) -> Any:
    names = getattr(fitted, "feature_names_in_", None)
    if names is None:
        return rows
    from pandas import DataFrame  # the names came with one, or with another kind of frame

    return DataFrame(rows, columns=list(names))


class _Builder:
    """Nodes and constants of a graph, in the order in which they are added."""

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Any, name: str) -> str:
        from onnx import TensorProto, helper, numpy_helper

        if values.dtype.kind == "U":
            texts = [text.encode() for text in values.tolist()]
            tensor = helper.make_tensor(name, TensorProto.STRING, [len(texts)], texts)
        else:
            tensor = numpy_helper.from_array(np.ascontiguousarray(values), name)
        self.constants.append(tensor)
        return name

    def node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        from onnx import helper

        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def filled(self, features: str, fill: Float64Array) -> str:
        if np.isnan(fill).all():
            return features
        missing = self.node("IsNaN", [features], "missing")
        return self.node("Where", [missing, self.constant(fill, "fill"), features], "filled")

    def affine(self, features: str, weight: Float64Array, bias: Float64Array, name: str) -> str:
        product = self.node("MatMul", [features, self.constant(weight.T, "weight")], "product")
        return self.node("Add", [product, self.constant(bias, "bias")], name)

    def label(self, scores: str, classes: LabelArray, *, two: bool) -> None:
        if two:
            above = self.node("Greater", [scores, self.constant(np.zeros(1), "zero")], "above")
            place = self.node("Cast", [above], "places", to=7)
            last = self.constant(np.array([1]), "last")
            place = self.node("Squeeze", [place, last], "place")
        else:
            place = self.node("ArgMax", [scores], "place", axis=1, keepdims=0)
        kept = classes if classes.dtype.kind == "U" else classes.astype(np.int64)
        self.node("Gather", [self.constant(kept, "classes"), place], "label")

    def probabilities(self, scores: str, *, two: bool) -> None:
        if two:
            negative = self.node("Neg", [scores], "negative")
            parts = [self.node("Sigmoid", [negative], "first")]
            parts.append(self.node("Sigmoid", [scores], "second"))
            self.node("Concat", parts, "probabilities", axis=1)
        else:
            self.node("Softmax", [scores], "probabilities", axis=1)

    def model(
        self,
        outputs: dict[str, tuple[Any, int]],
        feature_names: list[str] | None,
        classes: list[Any] | None = None,
    ) -> Any:
        from onnx import helper

        rows = [_value("features", np.float64, ["n", self.n_features])]
        found = [_value(name, kind, _axes(n)) for name, (kind, n) in outputs.items()]
        graph = helper.make_graph(self.nodes, "isrlearn", rows, found, self.constants)
        opset = helper.make_opsetid("", OPSET)
        model = helper.make_model(graph, opset_imports=[opset], producer_name="isrlearn")
        model.ir_version = IR_VERSION
        card = {"feature_names": feature_names, "classes": classes}
        helper.set_model_props(model, {"isrlearn": json.dumps(card), "seal": UNSEALED})
        return model


def _axes(n_axes: int) -> list[Any]:
    return ["n"] if n_axes == 1 else ["n", None]


def _value(name: str, kind: Any, shape: list[Any]) -> Any:
    from onnx import TensorProto, helper

    kinds = {
        np.float64: TensorProto.DOUBLE,
        np.int64: TensorProto.INT64,
        np.str_: TensorProto.STRING,
    }
    return helper.make_tensor_value_info(name, kinds[kind], shape)
