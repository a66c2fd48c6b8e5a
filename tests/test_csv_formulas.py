"""No cell that is written as csv is run by a spreadsheet; formulas that are read are refused."""

import ast
import csv
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bench_support import result_of
from command_support import run
from hypothesis import given, strategies as st

import isrlearn
from isrlearn import compare
from isrlearn._csv import inert
from isrlearn.benchmark import Job, Problem
from isrlearn.exceptions import DataError
from isrlearn.io import LinearModel, Schema, open_rows, read_data

SOURCE = Path(isrlearn.__file__).parent
HOSTILE = ["=cmd|' /C calc'!A0", "@SUM(A1)", "+1+2", "-1-2", "\t=1+1", "\r=1+1", " =1+1", "＝1+1"]
HIDDEN = ["ok;=1+2", "t\t=1+3", "a,b, @SUM(A1)", "|-2-3", "a\n+1+2;x", 'q;"=1+2;x', "n;;＝1;-2"]
SPLIT = re.compile("[;,|\t\r\n]")


def is_number(text):
    try:
        float(text.strip())
    except ValueError:
        return False
    return True


def would_run(cell):
    """Tell what a spreadsheet may run: written apart from the code that is tested."""
    if len(cell) < 2 or is_number(cell):
        return False
    if cell.lstrip(" ")[:1] in tuple("=+-@\t\r\n＝＋－＠"):
        return True
    return any(runs_alone(field) for field in SPLIT.split(cell)[1:])


def runs_alone(field):
    """Tell what runs where a cell was split, and has lost the quotes around it."""
    field = field.strip(' "')
    return len(field) > 1 and field[0] in "=+-@＝＋－＠" and not is_number(field)


def cells_of(path):
    with Path(path).open(encoding="utf-8", newline="") as file:
        return [cell for row in csv.reader(file) for cell in row]


def assert_inert(path, *hostile):
    """Assert that nothing in a file would run, and that all hostile texts are there as text."""
    cells = cells_of(path)
    assert [cell for cell in cells if would_run(cell)] == []
    for text in hostile:
        wanted = text.strip().replace("'", "")
        assert any(wanted in cell.replace("'", "") for cell in cells), text


@given(st.text() | st.sampled_from(HOSTILE) | st.from_regex(r"\A[=+\-@\t\r\n ].*\Z"))
def test_text_that_would_run_becomes_text(text):
    written = inert(text)
    assert not would_run(written)
    assert written.replace("'", "") == text.replace("'", "")
    assert inert(written) == written
    if not SPLIT.search(text):
        assert written in (text, f"'{text}")
        if text[:1].isalnum():
            assert written == text


@given(st.sampled_from(HIDDEN) | st.text('=-@a1;,|\t\n " ', max_size=12))
def test_text_that_would_run_when_it_is_split_becomes_text(text):
    written = inert(text)
    assert not would_run(written)
    assert written.replace("'", "") == text
    assert inert(written) == written
    assert (written == text) == (not would_run(text))


@pytest.mark.parametrize("text", ["a, -1.5", "1;-2", "a|-", "x;- ", "a-b;c=d", "e@f,g+h", "a;'=1"])
def test_what_would_not_run_when_it_is_split_stays(text):
    assert inert(text) is text


@given(st.floats() | st.integers() | st.booleans() | st.none())
def test_numbers_stay_as_they_are(value):
    assert inert(value) is value
    if isinstance(value, float):
        assert inert(np.float64(value)) == value or math.isnan(value)
        assert inert(f"{value:.6g}") == f"{value:.6g}"
        assert inert(f"{value:+.3e}") == f"{value:+.3e}"


def draw(random, labels, environments, n=240):
    y, e = random.integers(0, 2, n), random.integers(0, 2, n)
    X = random.normal(size=(n, 3)) + np.stack([2 * y, 2 * e, y * e], axis=1)
    return X, np.array(labels)[y], np.array(environments)[e]


def test_predictions_run_nothing(tmp_path):
    names = [*HOSTILE, *HIDDEN]
    schema = Schema.of_array(len(names), "labels", ("environments",))
    zeros = np.zeros(len(names))
    model = LinearModel(np.eye(len(names)), zeros, zeros, np.array(names), schema)
    model.save(tmp_path / "m.safetensors")
    np.savez(tmp_path / "rows.npz", features=np.eye(len(names)))  # each class once
    out = tmp_path / "p.csv"
    assert run("predict", tmp_path / "m.safetensors", tmp_path / "rows.npz", "--out", out) == 0
    assert_inert(out, *names)


def test_tables_of_a_comparison_run_nothing(tmp_path, random):
    X, y, e = draw(random, HOSTILE[:2], [HOSTILE[2], HIDDEN[0]])
    found = compare(X, y, environments=e, methods=["erm"], n_seeds=1, n_draws=10)
    entries = tuple(replace(entry, key="=key", title="@title") for entry in found.entries)
    replace(found, entries=entries).to_csv(tmp_path / "table.csv")
    assert_inert(tmp_path / "table.csv", "=key", "@title", HIDDEN[0])


def test_an_export_of_the_benchmark_runs_nothing(store, tmp_path):
    pytest.importorskip("pandas")
    store.add([result_of(Job(Problem("3", 2, 0), "=my:Method"), 0.25, 3)])
    store.add([result_of(Job(Problem("3", 2, 2), "my:Method;=1+2"), 0.25, 3)])
    store.add([result_of(Job(Problem("3", 2, 1), "isr"), -0.5, 3)])
    assert run("bench", "export", "--store", store.path, "--csv", tmp_path / "a.csv") == 0
    assert_inert(tmp_path / "a.csv", "=my:Method", "my:Method;=1+2")
    assert "-0.5" in cells_of(tmp_path / "a.csv")  # a number has no apostrophe


def test_tables_of_the_paper_run_nothing(tmp_path):
    from isrlearn.reproduce.tables import write_csv

    rows = [{"plan": text, "worst": -0.5} for text in [*HOSTILE, *HIDDEN]] + [{"=new": "\n=1"}]
    write_csv(tmp_path / "t.csv", rows)
    assert_inert(tmp_path / "t.csv", "=new", *HOSTILE, *HIDDEN)
    assert "-0.5" in cells_of(tmp_path / "t.csv")


def test_there_are_no_other_writers():
    """A new one must make its cells inert too, and get a test above."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = node.attr if isinstance(node, ast.Attribute) else ""
            if named in ("writer", "DictWriter", "to_csv", "to_clipboard", "to_excel", "savetxt"):
                found.add((str(path.relative_to(SOURCE)), named))
    assert found == {
        ("_csv.py", "writer"),
        ("benchmark/summary.py", "to_csv"),  # of pandas, after inert
        ("_cli_compare.py", "to_csv"),  # of Comparison
    }


def write_table(path, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["size", "remark", "site", "kind"], *rows])
    return path


def birds(n=30, **changes):
    rows = [[i % 7, f"note {i}", "ns"[i % 2], "gt"[i // 2 % 2]] for i in range(n)]
    for column, value in changes.items():
        rows[4][["size", "remark", "site", "kind"].index(column)] = value
    return rows


NAMES = {"label": "kind", "environment": "site"}


@pytest.mark.parametrize("column", ["size", "site", "kind"])
def test_a_formula_in_a_column_that_is_used_is_refused(column, tmp_path):
    path = write_table(tmp_path / "a.csv", birds(**{column: "=1+1"}))
    with pytest.raises(DataError, match=re.escape(f"line 6: column '{column}' is the formula")):
        read_data(path, **NAMES)
    read_data(write_table(tmp_path / "b.csv", birds(**{column: ""})), **NAMES)


def test_text_that_is_no_formula_or_not_used_is_read(tmp_path):
    rows = read_data(write_table(tmp_path / "a.csv", birds(remark="=1+1")), **NAMES)
    assert any("remark" in note for note in rows.notes)  # left out, as every value is another
    signs = read_data(write_table(tmp_path / "b.csv", birds(kind="=")), **NAMES)
    assert "=" in signs.labels
    minus = read_data(write_table(tmp_path / "c.csv", birds(site="-north")), **NAMES)
    assert "-north" in minus.environments


def test_a_new_file_with_a_formula_is_not_predicted(tmp_path):
    schema = read_data(write_table(tmp_path / "a.csv", birds()), **NAMES).schema
    new = write_table(tmp_path / "b.csv", birds(size="=A1"))
    with pytest.raises(DataError, match="line 6: column 'size' is the formula '=A1'"):
        read_data(new, schema=schema)


@pytest.mark.parametrize("read", [read_data, open_rows])
@pytest.mark.parametrize("column", ["site", "kind"])
def test_formulas_in_parquet_are_refused(read, column, tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = dict(zip(["size", "remark", "site", "kind"], zip(*birds(), strict=True), strict=True))
    columns[column] = [*columns[column][:-1], "=1+1"]
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="formula '=1[+]1': save values"):
        read(tmp_path / "a.parquet", **NAMES)
