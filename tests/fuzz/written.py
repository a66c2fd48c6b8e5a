"""What the commands and `isrlearn.save` wrote."""

import io
import json
import sqlite3
import zipfile

from fuzz import fitting, seeds
from fuzz.mutation import as_json, mutated, mutated_tree, safetensors_bytes, sealed_again
from fuzz.rows import npz_bytes

STATEMENTS = (
    "CREATE TRIGGER t AFTER INSERT ON results BEGIN DELETE FROM results; END",
    "CREATE VIEW v AS SELECT * FROM results",
    "ALTER TABLE results RENAME TO old",
    "ALTER TABLE results ADD COLUMN more TEXT",
    "ALTER TABLE results DROP COLUMN seconds",
    "DROP TABLE results",
    "CREATE TABLE other (x)",
    "CREATE VIEW results AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c) "
    "SELECT n AS job, n AS example FROM c",
    "UPDATE results SET seed = x'00ff', error_test = 'much'",
    "UPDATE results SET example = NULL, n_environments = 1e300",
    "UPDATE results SET hyperparameters = zeroblob(3000000)",
    "UPDATE results SET method = CAST(x'ff' AS TEXT)",
    "DELETE FROM results",
    "CREATE INDEX i ON results (abs(error_test))",
    "PRAGMA user_version = 99",
    "PRAGMA application_id = 0",
    "PRAGMA journal_mode = WAL",
    "PRAGMA encoding = 'UTF-16'",
    "CREATE VIRTUAL TABLE f USING fts5(x)",
)


def with_card(header, card, body, source):
    """Return a safetensors file with a card in it, changed and sealed again."""
    kind = source.below(4)
    if kind == 0:
        return source.rest()
    text = as_json(mutated_tree(card, source)).decode("utf-8", "surrogatepass")
    if kind == 3:
        text = mutated(text.encode(errors="replace"), source, most=2).decode(errors="replace")
        header = mutated_tree(header, source)
    whole = {"__metadata__": {"isrlearn": text}, **header} if isinstance(header, dict) else {}
    body = mutated(body, source, most=1)
    changed = mutated(safetensors_bytes(as_json(whole), body, source), source, most=1)
    return sealed_again(changed, source)


def model_file(source, folder):
    from isrlearn.io import LinearModel

    path = folder / "model.safetensors"
    path.write_bytes(with_card(*seeds.model(), source))
    model = LinearModel.load(path)
    model.predict(seeds.FEATURES[:, :1] * [[1.0] * len(model.fill)])


def subspace_file(source, folder):
    import isrlearn

    path = folder / "removed.safetensors"
    path.write_bytes(with_card(*seeds.subspace_file(), source))
    isrlearn.load(path)


NAMES = (
    ("CachedNode", "dict", "builtins"),
    ("ConstructorFromReduceNode", "Subspace", "isrlearn.subspace"),
    ("DTypeNode", "dtype", "numpy"),
    ("DictNode", "OrderedDict", "collections"),
    ("FunctionNode", "exp", "numpy"),
    ("FunctionNode", "system", "os"),
    ("JsonNode", "str", "builtins"),
    ("LossNode", "dtype", "numpy"),
    ("MaskedArrayNode", "MaskedArray", "numpy.ma"),
    ("MethodNode", "Pipeline", "sklearn.pipeline"),
    ("NdArrayNode", "float64", "numpy"),
    ("NdArrayNode", "ndarray", "numpy"),
    ("ObjectNode", "CellMoments", "isrlearn.moments"),
    ("ObjectNode", "LogisticRegression", "sklearn.linear_model._logistic"),
    ("OperatorFuncNode", "call", "operator"),
    ("RandomStateNode", "RandomState", "numpy.random.mtrand"),
    ("SetNode", "set", "builtins"),
    ("SparseMatrixNode", "spmatrix", "scipy.sparse._matrix"),
    ("TreeNode", "Tree", "sklearn.tree._tree"),
    ("TupleNode", "Frame", "isrlearn.moments._evidence"),
    ("TypeNode", "int", "builtins"),
)


def estimator_file(source, folder):
    import isrlearn

    path = folder / "model.skops"
    path.write_bytes(estimator_bytes(source))
    isrlearn.load(path)


def estimator_bytes(source):
    whole = source.one_of(seeds.estimators())
    kind = source.below(4)
    if kind == 0:
        return source.rest()
    if kind == 1:
        return sealed_again(mutated(whole, source), source)
    members, comment = seeds.split_zip(whole)
    schema = renamed_parts(json.loads(members["schema.json"]), source)
    members["schema.json"] = as_json(mutated_tree(schema, source, deepest=20))
    name = source.one_of(sorted(members))
    members[name] = mutated(members[name], source, most=2)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        archive.comment = comment
    changed = mutated(file.getvalue(), source, most=1) if kind == 3 else file.getvalue()
    return sealed_again(changed, source)


def renamed_parts(schema, source):
    """Give some parts another loader and type, or the number of another part."""
    parts = list(parts_of(schema))
    for _ in range(source.below(4)):
        part = source.one_of(parts)
        if source.below(3) == 2:
            part["__id__"] = source.one_of(parts).get("__id__")
        else:
            names = source.one_of(NAMES)
            part |= dict(zip(("__loader__", "__class__", "__module__"), names, strict=True))
    return schema


def parts_of(value):
    if isinstance(value, dict) and "__loader__" in value:
        yield value
    if isinstance(value, dict | list):
        for child in value.values() if isinstance(value, dict) else value:
            yield from parts_of(child)


def store_file(source, folder):
    from isrlearn.benchmark import Store

    path = folder / "store.sqlite"
    kind = source.below(4)
    if kind == 0:
        path.write_bytes(source.rest())
    else:
        path.write_bytes(seeds.store())
    if kind >= 2:
        with sqlite3.connect(path) as connection:
            for _ in range(1 + source.below(3)):
                try:
                    connection.execute(source.one_of(STATEMENTS))
                except sqlite3.Error:
                    break
        connection.close()
    if kind in (1, 3):
        path.write_bytes(mutated(path.read_bytes(), source, most=3))
    from isrlearn.benchmark.summary import frame_of, mean_errors

    store = Store(path).check()
    store.records()
    store.finished()
    if source.below(8) == 0:
        mean_errors(frame_of(store))


def report_file(source, folder):
    from isrlearn.reporting import Report

    (folder / "result.json").write_bytes(json_bytes(seeds.report(), source))
    report = Report.load(folder)
    return report.html if source.below(16) == 0 else report  # a page takes half a second


def json_bytes(tree, source):
    kind = source.below(4)
    if kind == 0:
        return source.rest()
    if kind == 1:
        return mutated(as_json(tree), source)
    changed = as_json(mutated_tree(tree, source))
    return mutated(changed, source, most=1) if kind == 3 else changed


def schema(source, folder):
    from isrlearn.io import Schema

    _, card, _ = seeds.model()
    found = Schema.from_json(mutated_tree(card["schema"], source))
    assert Schema.from_json(found.to_json()) == found


def network_card(source, folder):
    from isrlearn.networks._saved import read_card

    (folder / "network.json").write_bytes(json_bytes(seeds.CARD, source))
    card = read_card(folder)
    card.save(folder, replacing=True)
    assert read_card(folder) == card


def training_summary(source, folder):
    from isrlearn.networks._records import training_of
    from isrlearn.networks._settings import TrainingSettings
    from isrlearn.networks._training import _differences, _read_summary

    (folder / "training.json").write_bytes(json_bytes(seeds.SUMMARY, source))
    notes = _read_summary(folder / "training.json")
    _differences(notes["run"], seeds.SUMMARY["run"])
    training_of(TrainingSettings(), notes["epochs"])


def checkpoint(source, folder):
    from isrlearn.networks._checkpoints import load_tensors

    header, body = seeds.checkpoint()
    path = folder / "checkpoint.safetensors"
    if source.below(4) == 0:
        path.write_bytes(source.rest())
    else:
        notes = json_bytes(json.loads(header["__metadata__"]["isrlearn"]), source)
        text = notes.decode("utf-8", "replace")
        changed = mutated_tree({**header, "__metadata__": {"isrlearn": text}}, source)
        body = mutated(body, source, most=1)
        data = safetensors_bytes(as_json(changed), body, source)
        path.write_bytes(sealed_again(data, source))
    load_tensors(path)


def plan(source, folder):
    from isrlearn.reproduce.plans import read_plan

    raw = source.below(4) == 0
    (folder / "own.toml").write_bytes(source.rest() if raw else mutated(seeds.PLAN, source))
    read_plan(folder / "own.toml").digest()


def kept_result(source, folder):
    from isrlearn.reproduce.results import kept

    (folder / "r.json").write_bytes(json_bytes({"identity": {"seed": 1}, "outcomes": []}, source))
    assert kept(folder / "r.json", {"seed": 1}, dict)["identity"] == {"seed": 1}


def resumed_file(source, folder):
    from isrlearn._resume import _load

    kind = source.below(3)
    path = folder / "sum.npz"
    if kind == 0:
        path.write_bytes(npz_bytes(source))
    elif kind == 1:
        path.write_bytes(mutated(seeds.resumed(), source))
    else:
        path.write_bytes(_with_check(source))
    _load(path)


def _with_check(source):
    """Arrays of a sum, some changed, with the right check over them."""
    import numpy as np

    from isrlearn._resume import _check

    with np.load(io.BytesIO(seeds.resumed())) as found:
        arrays = fitting.changed_arrays(dict(found), source)
    arrays.pop("check", None)
    arrays = {name: value for name, value in arrays.items() if value.dtype != object}
    file = io.BytesIO()
    np.savez(file, check=np.array(_check(arrays, "sum.npz")), **arrays)
    return file.getvalue()
