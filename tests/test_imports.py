"""What importing costs, looked at from a fresh interpreter."""

import json
import subprocess
import sys

import isrlearn


def modules_after(code):
    script = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    # -I: no site customisation of the caller, no working directory on the path.
    out = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    return set(json.loads(out.stdout.splitlines()[-1]))


def strangers(code):
    """Modules that `code` loads and `import sklearn.linear_model` does not."""
    loaded = modules_after(code) - modules_after("import sklearn.linear_model")
    return {m for m in loaded if m.partition(".")[0] != "isrlearn"}


def test_import_loads_nothing_beyond_linear_model():
    assert strangers("import isrlearn") == set()


def test_estimators_load_nothing_beyond_linear_model():
    names = "ISRMean, ISRCov, ISRClassifier, fold, repair_head, CellMoments, Subspace"
    assert strangers(f"from isrlearn import {names}, metrics, datasets, exceptions") == set()


def test_help_does_not_import_scikit_learn():
    code = "import isrlearn.cli as c\ntry: c.app(['--help'])\nexcept SystemExit: pass"
    loaded = modules_after(code)
    assert not {"sklearn", "numpy", "scipy", "matplotlib", "pandas"} & loaded
    assert "cyclopts" in loaded


def test_every_public_name_is_there_or_says_what_it_needs():
    for name in isrlearn.__all__:
        try:
            assert getattr(isrlearn, name) is not None
        except ImportError as error:
            assert "pip install 'isrlearn[" in str(error)
    assert dir(isrlearn) == sorted(isrlearn.__all__)


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(isrlearn, "no_such_name")
