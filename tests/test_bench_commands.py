"""``isrlearn bench`` as processes: stopped, killed, twice at once, and used wrongly."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from isrlearn.benchmark import Store, grid, run
from isrlearn.benchmark.summary import frame_of

METHODS = ("oracle", "isr-mean", "irmv1")
GRID = (METHODS, ("2s", "3"), (2,), range(5))
OPTIONS = [
    *("--methods", *METHODS),
    *("--examples", "2s", "3"),
    *("--n-environments", "2"),
    *("--trials", "3", "--steps", "40"),
    *("--seeds", "5"),
]
pytestmark = pytest.mark.skipif(os.name == "nt", reason="process groups and signals of POSIX")


def start(folder, *arguments, output=subprocess.PIPE):
    """Start ``isrlearn bench`` in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "isrlearn", "bench", *arguments],
        cwd=folder,
        text=True,
        stdout=output,
        stderr=output,
        start_new_session=True,
        # A shell lets what it starts in the background ignore Ctrl-C, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def bench(folder, *arguments):
    process = start(folder, *arguments)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def rows_of(path):
    return frame_of(Store(path).check()).drop(columns=["seconds"])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("whole") / "store.sqlite").create()
    run(grid(*GRID, trials=3, steps=40), store)
    return rows_of(store.path)


def test_killed_at_random_moments_nothing_is_lost_and_nothing_twice(tmp_path, random, undisturbed):
    path, finished = tmp_path / "store.sqlite", 0
    for kill in range(6):
        # No pipes: workers that outlive a killed parent for a moment would hold them open.
        command = ("run", *OPTIONS, "--store", str(path), "--jobs", "2")
        process = start(tmp_path, *command, output=subprocess.DEVNULL)
        try:
            process.wait(timeout=random.uniform(0.2, 7) if kill else 1.0)
        except subprocess.TimeoutExpired:
            whom = os.killpg if random.uniform() < 0.5 else os.kill  # with its workers, or alone
            whom(process.pid, signal.SIGKILL)
            process.wait()
        else:
            assert kill, "it must be killed at least once"
            break
        if path.exists():
            known = len(rows_of(path))
            assert known >= finished
            finished = known
    code, out, err = bench(tmp_path, "run", *OPTIONS, "--store", str(path))
    assert code == 0, err
    pd.testing.assert_frame_equal(rows_of(path), undisturbed, check_exact=True)
    n_jobs = len(undisturbed[["example", "method", "seed"]].drop_duplicates())
    assert re.search(rf"\b{n_jobs} jobs, \d+ of them", out)
    leftovers = [p.name for p in tmp_path.iterdir() if "journal" in p.name]
    assert leftovers == []


def test_two_runners_share_a_store(tmp_path, undisturbed):
    path = tmp_path / "store.sqlite"
    both = [start(tmp_path, "run", *OPTIONS, "--store", str(path), "--jobs", "1") for _ in range(2)]
    for process in both:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
    pd.testing.assert_frame_equal(rows_of(path), undisturbed, check_exact=True)


def test_ctrl_c_says_what_is_saved(tmp_path, undisturbed):
    path = tmp_path / "store.sqlite"
    many = [*OPTIONS[:-1], "300"]
    process = start(tmp_path, "run", *many, "--store", str(path), "--jobs", "2")
    deadline = time.monotonic() + 120
    while not (path.exists() and len(rows_of(path))) and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    *_, last = err.splitlines()
    assert "are saved in" in last and "goes on with the other" in last and "Traceback" not in err
    saved = rows_of(path)
    n_jobs = len(saved[saved["trial"] == 0])
    assert re.search(rf" {n_jobs} jobs were finished", err)
    known = undisturbed.merge(
        saved, on=["example", "method", "seed", "trial"], suffixes=("", "_saved")
    )
    np.testing.assert_array_equal(known["error_test"], known["error_test_saved"])


def test_a_table_a_figure_and_an_export_come_out_of_a_store(tmp_path):
    path = tmp_path / "isrlearn-bench.sqlite"
    exact = ("oracle", "isr-mean", "erm-whitened")
    run(grid(exact, ("2", "3s"), (2, 3), range(2)), Store(path).create())
    code, out, _ = bench(tmp_path, "status")
    assert code == 0 and "profile exact" in out and "of 16200 jobs" in out
    code, out, _ = bench(tmp_path, "table")
    assert code == 0 and "Example 3s: mean test error, 2 seeds" in out and "ISR-Mean" in out
    code, out, _ = bench(tmp_path, "table", "--published", "--markdown")
    assert code == 0 and out.count("| Oracle |") == 4 and "Oracle: at most 0.00" in out
    code, out, _ = bench(tmp_path, "plot", "--out", "deep/figure.svg")
    assert code == 0 and str(tmp_path / "deep" / "figure.svg") in out
    assert "<svg" in (tmp_path / "deep" / "figure.svg").read_text(encoding="utf-8")
    code, _, err = bench(tmp_path, "plot", "--out", "deep/figure.svg")
    assert code == 2 and "--force" in err
    pytest.importorskip("pyarrow", exc_type=ImportError)
    code, out, _ = bench(tmp_path, "export", "--csv", "a.csv", "--parquet", "a.parquet")
    assert code == 0
    texts = {"example": str, "hyperparameters": str}
    csv = pd.read_csv(tmp_path / "a.csv", dtype=texts)
    assert csv.columns[:4].tolist() == ["example", "method", "n_environments", "seed"]
    whole = frame_of(Store(path))
    pd.testing.assert_frame_equal(csv, whole, check_dtype=False)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "a.parquet"), whole, check_dtype=False)


MINE = """
from sklearn.linear_model import LogisticRegression
class Mine(LogisticRegression):
    def fit(self, X, y, *, environments):
        assert len(environments) == len(y)
        return super().fit(X, y)
class Broken(Mine):
    def predict(self, X):
        raise RuntimeError("no idea")
"""


def test_a_class_in_the_current_folder_joins_the_run(tmp_path):
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    small = ["--examples", "3", "--n-environments", "2", "--seeds", "1", "--jobs", "2"]
    code, _, err = bench(tmp_path, "run", *small, "--methods", "mine:Mine", "oracle")
    assert code == 0, err
    rows = rows_of(tmp_path / "isrlearn-bench.sqlite")
    assert set(rows["method"]) == {"mine:Mine", "oracle"}
    code, _, err = bench(tmp_path, "run", *small, "--methods", "mine:Broken")
    assert code == 2 and err.count("\n") == 1
    assert "mine:Broken failed on Example 3" in err and "no idea" in err and "mine.py" in err


def test_the_page_for_your_own_method_is_right(tmp_path):
    page = Path(__file__).parents[1] / "docs" / "your-method.md"
    own, script = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    assert len(own.strip().splitlines()) <= 21
    (tmp_path / "my_module.py").write_text(own, encoding="utf-8")
    few = ["--n-environments", "2", "--seeds", "1", "--examples", "3", "2s", "--jobs", "1"]
    code, _, err = bench(tmp_path, "run", "--methods", "my_module:Stable", *few)
    assert code == 0, err
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "Oracle" in done.stdout and done.stdout.count("\n") == 5, done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--methods", "nothing"], "must be one of oracle"),
        (["run", "--methods", "nowhere:Mine"], "cannot be loaded"),
        (["run", "--examples", "1"], "must be one of 2, 2s"),
        (["run", "--n-environments", "1"], "at least 2"),
        (["run", "--seeds", "0"], "--seeds 0"),
        (["run", "--seeds", "1.5"], "--seeds 1.5 must be a whole number"),
        (["run", "--n-environments", "3", "2.5"], "--n-environments 2.5 must be a whole number"),
        (["run", "--methods", "broken:Mine"], "SyntaxError"),
        (["run", "--store", "."], "is a folder"),
        (["run", "--jobs", "-1"], "--jobs -1"),
        (["run", "--rule", "best"], "training-domain"),
        (["run", "--profile", "slow"], "slow"),
        (["run", "--store", "foreign"], "not a database"),
        (["status", "--store", "nowhere.sqlite"], "no store"),
        (["table", "--store", "empty.sqlite"], "no results"),
        (["plot", "--store", "empty.sqlite"], "no results"),
        (["plot", "--out", "figure.bmp"], ".png, .svg or .pdf"),
        (["export"], "--csv FILE or --parquet FILE"),
        (["export", "--store", "empty.sqlite", "--csv", "empty.sqlite", "--force"], "store itself"),
        (["export", "--csv", "a", "--parquet", "./a"], "both a: name two files"),
        (["run", "--methods"], "--methods is followed by nothing"),
        (["run", "--n-environments", "--seeds", "1"], "--n-environments is followed by nothing"),
        (["complexity", "--out", "figure.txt"], ".png, .svg or .pdf"),
        (["complexity", "--d-s", "0"], "--d-s 0"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(tmp_path, arguments, words):
    (tmp_path / "foreign").write_text("mine\n", encoding="utf-8")
    (tmp_path / "broken.py").write_text("class Mine(:", encoding="utf-8")
    Store(tmp_path / "empty.sqlite").create()
    code, _, err = bench(tmp_path, *arguments)
    assert code == 2
    assert err.count("\n") == 1 and words in err and "Traceback" not in err
    assert (tmp_path / "foreign").read_text(encoding="utf-8") == "mine\n"


def test_help_teaches_without_loading_anything_heavy(tmp_path):
    for command in ("run", "status", "table", "plot", "export", "complexity"):
        code, out, _ = bench(tmp_path, command, "--help")
        assert code == 0 and "Example: isrlearn bench" in " ".join(out.split())
    check = (
        "import sys; from isrlearn.cli import app\n"
        "try: app(['bench', 'run', '--help'])\n"
        "except SystemExit: pass\n"
        "sys.exit(bool({'sklearn', 'pandas', 'numpy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
