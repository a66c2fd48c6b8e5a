"""What people see: pictures, the command line, the README."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from isrlearn import plots
from isrlearn.metrics import group_scores

ROOT = Path(__file__).parents[1]


def isrlearn(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "isrlearn", *arguments], capture_output=True, text=True, cwd=cwd
    )


def worst_groups(table):
    """Read the third figure of each row of the printed table."""
    pattern = r"│ (.*?) │.*?│.*?│\s+([\d.]+) │"
    return {m[1].strip(): float(m[2]) for m in re.finditer(pattern, table)}


def test_demo_prints_the_table_and_writes_the_report(tmp_path):
    run = isrlearn("demo", "--out", "new/folder", "--seed", "3", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    rows = worst_groups(run.stdout)
    assert min(rows["ISR-Mean"], rows["ISR"]) > rows["ERM"] + 0.1
    report = tmp_path / "new/folder/report.html"
    assert report.read_text(encoding="utf-8").lower().startswith("<!doctype html>")
    assert f"Report: {report}" in run.stdout
    assert {p.name for p in report.parent.iterdir()} == {"report.html", "result.json"}


def test_the_rivals_in_the_readme_are_those_of_the_demo(tmp_path):
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    claim = re.search(
        r"worst group of ([\d.]+), removal alone ([\d.]+), both ([\d.]+) "
        r".*?nothing given: ([\d.]+) and ([\d.]+)\)",
        text,
    )
    run = isrlearn("demo", "--out", "demo", cwd=tmp_path)
    rows = worst_groups(run.stdout)
    names = ("ERM, reweighted", "ISR-Mean", "ISR-Mean, reweighted", "ISR", "ISR, reweighted")
    assert [float(figure) for figure in claim.groups()] == [rows[name] for name in names]
    other = worst_groups(isrlearn("demo", "--out", "other", "--seed", "2", cwd=tmp_path).stdout)
    assert (rows["ISR-Mean"] < rows["ERM, reweighted"]) != (
        other["ISR-Mean"] < other["ERM, reweighted"]
    )


def test_nothing_is_overwritten_without_force(tmp_path):
    report = tmp_path / "report.html"
    report.write_text("mine")
    run = isrlearn("demo", "--out", str(tmp_path), cwd=tmp_path)
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert "--force" in run.stderr
    assert report.read_text() == "mine"


@pytest.mark.parametrize(
    "arguments",
    [["demo", "--no-such"], ["no-such"], ["demo", "--seed", "x"], ["demo", "--seed", "-1"]],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments, tmp_path):
    run = isrlearn(*arguments, cwd=tmp_path)
    assert run.returncode == 2
    assert run.stderr.startswith("isrlearn: ")
    assert run.stderr.count("\n") == 1
    assert not run.stdout


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "--help"], ["--version"], []])
def test_help_and_version(arguments, tmp_path):
    run = isrlearn(*arguments, cwd=tmp_path)
    assert run.returncode == 0
    assert run.stdout


def test_the_readme_examples_run_and_print_what_they_say():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = r"((?:(?!```).)*)```"
    pairs = re.findall(rf"```python\n{block}\n\nIt prints\n\n```text\n{block}", text, re.S)
    assert len(pairs) == text.count("It prints")
    assert len(pairs[0][0].strip().splitlines()) <= 12
    for code, expected in pairs:
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert run.stdout == expected, run.stderr


def test_the_example_of_the_method_page_runs():
    text = (ROOT / "docs" / "method.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", text, re.S)[1]
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "directions removed" in run.stdout, run.stderr


def test_every_code_of_a_finding_is_on_the_method_page():
    text = (ROOT / "docs" / "method.md").read_text(encoding="utf-8")
    source = (ROOT / "src" / "isrlearn" / "diagnosis" / "_findings.py").read_text(encoding="utf-8")
    for code in re.findall(r'Finding\(\s+"(\w+)"', source):
        assert f"`{code}`" in text


def test_plots_take_and_return_axes(random):
    axes = Figure().subplots(1, 2)
    y, e = random.integers(0, 2, 50), np.array(["a", "b", "c"])[random.integers(0, 3, 50)]
    assert (
        plots.plot_reliance(axes[0], random.normal(size=50), random.normal(size=50), y, e)
        is axes[0]
    )
    scores = group_scores(y, random.integers(0, 2, 50), environments=e)
    assert plots.plot_group_accuracies(axes[1], {"before": scores, "after": scores}) is axes[1]
    assert len(axes[1].patches) == 2 * scores.sizes.size
