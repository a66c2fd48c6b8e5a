"""The house has one way through: a module imports only what stands before it."""

import ast
from pathlib import Path

import pytest

import isrlearn

SOURCE = Path(isrlearn.__file__).parent
LAYERS = [
    ["_text"],
    [
        "exceptions",
        "_typing",
        "_warnings",
        "_files",
        "_numbers",
        "_plugins",
        "_workers",
        "_slices",
        "_threads",
        "_html",
        "_csv",
        "_limits",
    ],
    ["_iterators", "_json", "_npz", "_arrays", "_saved_arrays"],
    ["_seal"],
    ["_labels", "_blocks", "_device", "_columns", "_given"],
    ["_targets", "_weights"],
    ["_validation"],
    ["moments"],
    ["_comparison", "_spectra", "_rank", "_conditioning", "_parts", "_chunks", "_slopes"],
    ["subspace", "_pairs", "_frame"],
    ["_coordinates"],
    ["_joint", "_nulls", "_logistic", "_rank_statistics"],
    ["_rank_test", "_resampling", "_heads", "_solver", "_precision"],
    ["_passes"],
    ["_pooled", "_group_weights", "_resume"],
    ["_closed_forms"],
    ["_sum_heads"],
    ["_workings", "_removed", "diagnosis"],
    ["_search", "_findings"],
    ["_diagnose", "_shown"],
    ["_recovery"],
    ["_base"],
    ["_transformers"],
    ["_folding"],
    ["_predictor_base"],
    ["_predictors", "_regressor", "_group_scores"],
    ["metrics", "datasets", "baselines", "io"],
    ["_rules", "_grid", "distributed", "_prediction_scores"],
    ["_select"],
    ["plots", "leaderboard"],
    ["benchmark", "networks"],
    ["reproduce", "reporting"],
    ["demo", "_cli_signals"],
    ["_cli_support"],
    ["_cli_options", "_cli_progress", "_cli_pages"],
    ["_cli_demo", "_cli_bench", "_cli_data", "_cli_predict", "_cli_export"],
    ["_cli_bench_show", "_cli_compare", "_cli_fit"],
    ["_cli_networks", "_cli_report"],
    ["_cli_reproduce"],
    ["_cli_app"],
    ["cli"],
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
FILES = sorted(p for p in SOURCE.rglob("*.py") if p.name not in ("__init__.py", "__main__.py"))


def stage(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imported_stages(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "isrlearn":
            yield from (a.name for a in node.names if a.name != "__version__")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("isrlearn."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (a.name.split(".")[1] for a in node.names if a.name.startswith("isrlearn."))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_module_imports_only_earlier_stages(path):
    here = stage(path)
    late = {s for s in imported_stages(path) if s != here and LEVEL[s] >= LEVEL[here]}
    assert not late, f"{here} must not import {late}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_no_mistake_of_a_user_is_answered_by_assert(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not any(isinstance(node, ast.Assert) for node in ast.walk(tree))


def test_kernels_import_neither_scikit_learn_nor_estimators():
    for name in (
        "_blocks",
        "_device",
        "_spectra",
        "_rank",
        "_conditioning",
        "_frame",
        "_joint",
        "_nulls",
        "_rank_statistics",
        "_rank_test",
    ):
        text = (SOURCE / f"{name}.py").read_text(encoding="utf-8")
        assert "sklearn" not in text
