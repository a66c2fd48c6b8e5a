"""The house keeps its rules: a package imports what stands before it, and only what that offers."""

import ast
import re
import sys
from pathlib import Path

import pytest

import isrlearn

SOURCE = Path(isrlearn.__file__).parent
ORDER = [
    ["typing", "display", "exceptions"],
    ["rows"],
    ["moments"],
    ["subspace"],
    ["diagnosis", "heads"],
    ["estimators", "metrics"],
    ["baselines"],
    ["selection"],
]
PACKAGES = {name: level for level, names in enumerate(ORDER) for name in names}
STILL_PRIVATE_AT_THE_TOP = {
    "_cli_app",
    "_cli_bench",
    "_cli_bench_show",
    "_cli_compare",
    "_cli_data",
    "_cli_demo",
    "_cli_export",
    "_cli_fit",
    "_cli_networks",
    "_cli_options",
    "_cli_pages",
    "_cli_predict",
    "_cli_progress",
    "_cli_report",
    "_cli_reproduce",
    "_cli_signals",
    "_cli_support",
    "_csv",
    "_files",
    "_json",
    "_limits",
    "_npz",
    "_plugins",
    "_prediction_scores",
    "_resume",
    "_seal",
    "_shown",
    "_workers",
}
"""They move with the outer half of the house."""
STILL_FOREIGN = {
    ("_cli_data.py", "io._open"),
    ("_cli_data.py", "io._roles"),
    ("_cli_data.py", "leaderboard._fit"),
    ("_cli_networks.py", "networks._backbones"),
    ("_cli_networks.py", "networks._checkpoints"),
    ("_cli_predict.py", "io._data"),
    ("_cli_predict.py", "io._roles"),
    ("_cli_predict.py", "io._values"),
    ("demo.py", "reporting._content"),
    ("demo.py", "reporting._sources"),
    ("distributed/_files.py", "io._open"),
    ("distributed/_files.py", "io._roles"),
    ("distributed/_rows.py", "io._open"),
    ("distributed/_rows.py", "io._roles"),
    ("distributed/_rows.py", "io._rows"),
    ("leaderboard/_fit.py", "io._model"),
    ("leaderboard/_fit_chunks.py", "io._data"),
    ("leaderboard/_fit_chunks.py", "io._open"),
    ("reporting/_scores.py", "leaderboard._bootstrap"),
    ("reproduce/frozen.py", "io._features"),
    ("reproduce/heads.py", "networks._repair"),
    ("reproduce/plans.py", "networks._objectives"),
    ("reproduce/runs.py", "networks._backbones"),
    ("reproduce/runs.py", "networks._repair"),
}
"""Files, and what they reach into: the outer half of the house is put in order after the inner."""
FILES = sorted(path for path in SOURCE.rglob("*.py") if path.name != "__main__.py")


def home(path):
    """The package that a file belongs to; of a module at the top its own name."""
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imports(path):
    """Dotted names within isrlearn that a file imports, wherever it does so."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "isrlearn":
            yield from (f"{node.module}.{alias.name}".split(".")[1:] for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (a.name.split(".")[1:] for a in node.names if a.name.startswith("isrlearn."))


def test_no_private_module_stands_at_the_top():
    private = {path.stem for path in SOURCE.glob("_*.py")} - {"__init__", "__main__"}
    assert private <= STILL_PRIVATE_AT_THE_TOP
    assert private == STILL_PRIVATE_AT_THE_TOP, "shorten the list of exceptions"


def foreign_modules(path):
    """Private modules of other packages that a file reaches into."""
    for first, *rest in imports(path):
        if first != home(path) and rest and rest[0].startswith("_") and (SOURCE / first).is_dir():
            yield f"{first}.{rest[0]}"


def test_no_file_reaches_into_another_package():
    found = {
        (str(path.relative_to(SOURCE)), module)
        for path in FILES
        for module in foreign_modules(path)
    }
    assert found <= STILL_FOREIGN
    assert found == STILL_FOREIGN, "shorten the list of exceptions"


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_imports_only_what_stands_before_it(name):
    files = [path for path in FILES if home(path) == name]
    assert files
    imported = {first for path in files for first, *_ in imports(path)} - {name}
    late = {other for other in imported if PACKAGES.get(other, 99) >= PACKAGES[name]}
    assert not late, f"{name} must not import {late}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_mistake_of_a_user_is_answered_by_assert(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not any(isinstance(node, ast.Assert) for node in ast.walk(tree))


INNER = [name for name in PACKAGES if (SOURCE / name).is_dir()]
KERNELS = ["moments", "subspace", "heads/_loss.py"]
LIBRARIES = {"numpy", "scipy", "sklearn", "threadpoolctl", "array_api_compat"}
NOT_A_NAME = re.compile("_?(given|shown|made|found|removed|seen|asked|checked|kept|begun)")


def inner_files():
    return [path for path in FILES if home(path) in INNER]


def definitions(path):
    """Functions and classes at the top of a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]


def functions(path):
    """All functions and methods of a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def libraries(path):
    """Packages of others that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]
        elif isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)


@pytest.mark.parametrize("path", inner_files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_kernel_imports_numpy_and_scipy_and_no_room_an_optional_library(path):
    used = set(libraries(path)) - {"isrlearn"} - sys.stdlib_module_names
    kernel = any(str(path.relative_to(SOURCE)).startswith(name) for name in KERNELS)
    assert used <= (LIBRARIES - {"sklearn", "threadpoolctl"} if kernel else LIBRARIES)


@pytest.mark.parametrize("name", ["subspace", "diagnosis"])
def test_nothing_is_estimated_from_rows_behind_the_moments(name):
    """Applying a finished subspace to rows is what it is for."""
    for path in (path for path in FILES if home(path) == name):
        imported = {dotted[-1] for dotted in imports(path)}
        assert not imported & {"Rows", "RowSource", "InMemory", "check_rows"}
        if path.stem != "_subspace":
            for function in functions(path):
                arguments = function.args
                named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
                assert not {a.arg for a in named} & {"X", "y", "environments", "sample_weight"}


def test_an_idea_has_one_home():
    """No public function or class is defined twice, and no function is written twice."""
    names, bodies = {}, {}
    for path in inner_files():
        for node in definitions(path):
            if not node.name.startswith("_"):
                names.setdefault(node.name, []).append(path.name)
        for node in functions(path):
            body = [part for part in node.body if not isinstance(part, ast.Expr)]
            text = "\n".join(ast.unparse(part) for part in body)
            if len(text) > 150 and node.name != "__init__":
                bodies.setdefault(text, []).append(f"{path.name}:{node.name}")
    assert not {name: files for name, files in names.items() if len(files) > 1}
    assert not [where for where in bodies.values() if len(where) > 1]


@pytest.mark.parametrize("name", INNER)
def test_a_package_offers_no_name_that_two_of_its_modules_define(name):
    """Else which of them is offered would be chance."""
    offered = {names[-1] for names in imports(SOURCE / name / "__init__.py")}
    defined = []
    for path in (SOURCE / name).glob("_*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if path.name != "__init__.py":
            assigned = [n for n in tree.body if isinstance(n, ast.Assign | ast.AnnAssign)]
            left = [part for n in assigned for part in getattr(n, "targets", None) or [n.target]]
            targets = {t.id for part in left for t in ast.walk(part) if isinstance(t, ast.Name)}
            defined += targets | {node.name for node in definitions(path)}
    assert not {own for own in offered if defined.count(own) > 1}


def test_the_logistic_loss_has_one_home():
    """Probabilities of a fitted model are no loss."""
    allowed = {SOURCE / "heads" / "_loss.py", SOURCE / "baselines" / "_rival.py"}
    for path in inner_files():
        text = path.read_text(encoding="utf-8")
        assert path in allowed or not re.search(r"\b(expit|logaddexp|log_loss|log1p)\b", text)


def test_modules_and_classes_are_named_once_and_by_nouns():
    stems = [path.stem.strip("_") for path in inner_files() if path.stem != "__init__"]
    assert len(stems) == len(set(stems))
    classes = [n.name for p in inner_files() for n in definitions(p) if isinstance(n, ast.ClassDef)]
    for name in [*stems, *(name.lower() for name in classes)]:
        assert not NOT_A_NAME.fullmatch(name), name


def test_what_contributors_look_for_is_where_they_are_told():
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    answers = re.findall(r"^\| [^|]*\? \| `([\w/]+\.py)` \| `(\w+)` \|$", text, re.MULTILINE)
    assert len(answers) >= 4
    for file, name in answers:
        assert name in {node.name for node in definitions(SOURCE / file)}, (file, name)
