"""``isrlearn compare``, ``fit``, ``predict`` and ``diagnose`` on a user's file."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from bad_inputs.stores import small_model
from report_support import Page
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss, roc_auc_score

import isrlearn
from isrlearn import ISR, ISRClassifier, Report
from isrlearn.cli import main
from isrlearn.exceptions import ModelFileError
from isrlearn.io import Column, LinearModel, Schema, read_data
from isrlearn.leaderboard import fit_data

COLUMNS = ["--label", "has disease", "--environment", "which hospital"]
SOME = ["--methods", "erm", "group-reweighted", "isr", "--seeds", "1", "--jobs", "1"]


def write_patients(path, random, n=240, *, hospitals=("north", "south", "east"), hostile=False):
    """A csv with spaces in names, string labels, missing environments and a free text."""
    sick = random.integers(0, 2, n)
    place = random.integers(0, len(hospitals), n)
    label = np.where(sick == 1, '<script>alert("yes")</script>' if hostile else "yes", "no")
    rows = {
        "body mass": 25 + 2 * sick + random.normal(size=n),
        "heart rate": 70 + 3 * place + 2 * (2 * sick - 1) * (place - 1) + random.normal(size=n),
        "blood, pressure": 120 + 5 * sick + 8 * random.normal(size=n),
        "smoker": random.choice(["never", "daily"], n),
        "remark of the nurse": [f"note {i}: was here" for i in range(n)],
        "which hospital": [hospitals[i] if random.random() > 0.1 else "" for i in place],
        "has disease": label,
    }
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(rows)
        writer.writerows(zip(*rows.values(), strict=True))
    return path


def run(*arguments):
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in arguments])
    return end.value.code


@pytest.fixture
def patients(tmp_path, random, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_patients(tmp_path / "my patients.csv", random)


@pytest.mark.parametrize("test", ["random", "leave-one-environment-out"])
def test_compare_writes_a_table_a_page_and_json(patients, tmp_path, capsys, test):
    assert run("compare", patients, *COLUMNS, *SOME, "--test", test, "--out", tmp_path / "o") == 0
    shown = capsys.readouterr()
    assert "remark of the nurse" in shown.err  # the column that is no feature is named
    with (tmp_path / "o" / "table.csv").open(encoding="utf-8", newline="") as file:
        records = list(csv.DictReader(file))
    assert {r["method"] for r in records} == {"erm", "group-reweighted", "isr", "isr-head"}
    found = json.loads((tmp_path / "o" / "result.json").read_text(encoding="utf-8"))
    assert found["test"] == test
    assert found["verdict"] in re.sub(r"\s+", " ", shown.out)
    groups = [name for name in records[0] if name.startswith("accuracy ")]
    assert len(groups) == 6
    for record in records:
        assert float(record["worst_group"]) == min(float(record[name]) for name in groups)
        low, high = float(record["worst_group_low"]), float(record["worst_group_high"])
        assert low <= high
        assert "labels" in record["uses"]
    page = (tmp_path / "o" / "report.html").read_text(encoding="utf-8")
    assert "://" not in page
    for part in ("verdict", "groups", "spectrum", "diagnosis", "made"):
        assert f'<h2 id="{part}">' in page
    isr = next(method for method in found["methods"] if method["method"] == "isr")
    for part in ("plane", "removed"):  # of the first fit, if it removes anything
        assert (f'<h2 id="{part}">' in page) == (isr["n_spurious"][0] > 0)
    assert "ISR without removal" in page
    assert found["recommendation"]["title"] in page
    assert Report.load(tmp_path / "o").html == page


def test_compare_prints_json_alone_for_machines(patients, tmp_path, capsys):
    assert run("compare", patients, *COLUMNS, *SOME, "--json", "--out", tmp_path / "o") == 0
    found = json.loads(capsys.readouterr().out)
    assert [m["method"] for m in found["methods"]]
    assert found["methods"][0]["adjusted_average"] is not None


def test_names_of_the_data_stay_text_in_the_page(tmp_path, random, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hospitals = ("<img src=x onerror=alert(1)>", "שלום", "x" * 300)
    file = write_patients(tmp_path / "a.csv", random, hospitals=hospitals, hostile=True)
    assert run("compare", file, *COLUMNS, *SOME) == 0
    page = (tmp_path / "isrlearn-compare" / "report.html").read_text(encoding="utf-8")
    Page(page).check_safe()
    assert "<img" not in page
    assert "&lt;img src=x" in page


def test_a_model_predicts_a_new_file_as_it_was_fitted(patients, tmp_path, random, capsys):
    model = tmp_path / "model.safetensors"
    assert run("fit", patients, *COLUMNS, "--out", model) == 0
    assert "Fitted: ISR" in capsys.readouterr().out
    new = write_patients(tmp_path / "new.csv", random, n=40, hospitals=("elsewhere",))
    assert run("predict", model, new, "--out", tmp_path / "p.csv") == 0
    assert re.search(r"^Accuracy \d+\.\d % \(40 rows\)$", capsys.readouterr().out, re.MULTILINE)
    with (tmp_path / "p.csv").open(encoding="utf-8", newline="") as file:
        predicted = list(csv.DictReader(file))
    assert len(predicted) == 40
    loaded = LinearModel.load(model)
    rows = read_data(new, schema=loaded.schema)
    assert [p["prediction"] for p in predicted] == loaded.predict(rows.features).tolist()
    shares = [[float(p[f"probability {c}"]) for c in ("no", "yes")] for p in predicted]
    np.testing.assert_allclose(np.sum(shares, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(shares, loaded.predict_proba(rows.features), atol=1e-5)


def test_a_model_of_a_file_predicts_a_dataframe_as_the_command_does(patients, tmp_path, random):
    """Columns in another order were taken by position, and text was refused."""
    pandas = pytest.importorskip("pandas")
    model, new = tmp_path / "m.safetensors", write_patients(tmp_path / "new.csv", random, n=40)
    assert run("fit", patients, *COLUMNS, "--out", model) == 0
    assert run("predict", model, new, "--out", tmp_path / "p.csv") == 0
    predicted = pandas.read_csv(tmp_path / "p.csv")
    table = pandas.read_csv(new)
    turned = table[list(reversed(table.columns))]
    for rows in (table, turned, turned.drop(columns=["has disease", "which hospital"])):
        found = isrlearn.load(model)
        assert found.predict(rows).tolist() == predicted["prediction"].tolist()
        shares = found.predict_proba(rows)[:, 1]
        np.testing.assert_allclose(shares, predicted["probability yes"], rtol=1e-5)


# --- scores of a new file


def model_of(classes, environment=("site",), label="kind", made=None):
    """A model whose decision values are the columns of the file."""
    n_rows = 1 if len(classes) == 2 else len(classes)
    names = [Column(f"v{j}") for j in range(n_rows)]
    schema = Schema(tuple(names), label, environment, "table")
    values = np.eye(n_rows), np.zeros(n_rows), np.full(n_rows, np.nan)
    return LinearModel(*values, np.array(classes), schema, made or {})


def predicted(tmp_path, capsys, model, columns, *options):
    """Predict columns in a csv, and return what was printed, the notes, and the predictions."""
    file, place, out = tmp_path / "new.csv", tmp_path / "m.safetensors", tmp_path / "p.csv"
    with file.open("w", encoding="utf-8", newline="") as text:
        csv.writer(text).writerows([columns, *zip(*columns.values(), strict=True)])
    model.save(place)
    code = run("predict", place, file, "--out", out, "--force", *options)
    shown = capsys.readouterr()
    if code:
        return code, shown.err, None
    with out.open(encoding="utf-8", newline="") as text:
        return shown.out, shown.err, list(csv.DictReader(text))


@pytest.mark.parametrize("k", [2, 3])
def test_a_new_file_with_labels_is_scored(k, tmp_path, random, capsys):
    n, names = 200, ["ash", "birch", "cedar"][:k]
    y, e = random.integers(0, k, n), random.choice(["hill", "moor"], n)
    values = random.normal(size=(n, 1 if k == 2 else k)) + (2 * y[:, None] - 1 if k == 2 else 0)
    columns = {f"v{j}": column for j, column in enumerate(values.T)}
    columns |= {"kind": np.array(names)[y], "site": np.where(random.random(n) < 0.1, "", e)}
    shown, _, rows = predicted(tmp_path, capsys, model_of(names), columns, "--json")
    found = json.loads(shown)
    guess = [row["prediction"] for row in rows]
    shares = np.array([[float(row[f"probability {name}"]) for name in names] for row in rows])
    shares /= shares.sum(axis=1, keepdims=True)  # six digits of each
    assert found["rows"] == found["rows_scored"] == n
    assert found["accuracy"] == pytest.approx(accuracy_score(columns["kind"], guess))
    balanced = balanced_accuracy_score(columns["kind"], guess)
    assert found["balanced_accuracy"] == pytest.approx(balanced)
    assert found["log_loss"] == pytest.approx(log_loss(columns["kind"], shares), abs=1e-4)
    scores = shares[:, 1] if k == 2 else shares
    auc = roc_auc_score(columns["kind"], scores, multi_class="ovr")
    assert found["auc"] == pytest.approx(auc, abs=1e-3)
    expected = {}
    for name, site, one in zip(columns["kind"], columns["site"], guess, strict=True):
        if site:
            expected.setdefault((name, site), []).append(one == name)
    groups = {(g["label"], g["environment"]): (g["rows"], g["accuracy"]) for g in found["groups"]}
    assert groups == {
        group: (len(right), pytest.approx(np.mean(right))) for group, right in expected.items()
    }
    assert found["worst_group"] == min(g["accuracy"] for g in found["groups"])
    worst = found["worst"]["label"], found["worst"]["environment"]
    assert groups[worst][1] == found["worst_group"]


def test_scores_are_a_small_table(tmp_path, capsys):
    long = "a very long name of a hospital that goes on and on"
    columns = {
        "v0": [-1, -1, 1, 1, 1, -1],
        "kind": ["no", "no", "no", "yes", "yes", "yes"],
        "site": ["a", "a", "a", "a", "a", long],
    }
    shown, _, _ = predicted(tmp_path, capsys, model_of(["no", "yes"]), columns)
    lines = shown.splitlines()
    assert lines[:5] == [
        "Accuracy 66.7 % (6 rows)",
        "Balanced accuracy 66.7 %",
        "Log loss 0.647",
        "AUC 0.667",
        "Worst group 0.0 % (1 row)",
    ]
    assert lines[5].split() == ["kind", "site", "rows", "accuracy"]
    assert lines[6].startswith("  yes   a very long name of a h") and lines[6].endswith("0.0 %")
    assert [line.split() for line in lines[7:9]] == [
        ["no", "a", "3", "66.7", "%"],
        ["yes", "a", "2", "100.0", "%"],
    ]
    assert max(map(len, lines[:9])) < 80
    assert lines[9].startswith("Predictions:")


def test_many_groups_are_left_to_machines(tmp_path, capsys):
    columns = {"v0": [1] * 30, "kind": ["yes"] * 30, "site": range(30)}
    shown, _, _ = predicted(tmp_path, capsys, model_of(["no", "yes"]), columns)
    assert shown.count("100.0 %") == 3 + 12
    assert "... and 18 more groups, with --json." in shown
    shown, _, _ = predicted(tmp_path, capsys, model_of(["no", "yes"]), columns, "--json")
    assert len(json.loads(shown)["groups"]) == 30


def test_what_is_not_defined_is_left_out(tmp_path, capsys):
    model = model_of(["no", "yes"], environment=("site", "day"))
    columns = {"v0": [1, -1], "kind": ["yes", "yes"], "site": ["a", "b"]}
    shown, _, _ = predicted(tmp_path, capsys, model, columns)  # one class, and half a crossing
    assert "Accuracy 50.0 % (2 rows)" in shown
    assert "AUC" not in shown and "group" not in shown
    shown, _, _ = predicted(tmp_path, capsys, model, columns | {"day": ["x", "x"]})
    assert "a × x" in shown and "site × day" in shown
    shown, _, _ = predicted(tmp_path, capsys, model, columns | {"day": ["", ""]}, "--json")
    assert json.loads(shown)["groups"] == []
    del columns["kind"]
    shown, _, _ = predicted(tmp_path, capsys, model, columns)
    assert shown.startswith("Predictions:")


def test_labels_that_the_model_does_not_know_are_named_and_not_scored(tmp_path, capsys):
    """They were counted as wrong: "Right: 0.000 of 200 rows.", without a note."""
    model = model_of(["benign", "malignant"])
    columns = {"v0": [-1, 1, 1, 1], "kind": ["benign", "Malignant", "malignant", "unclear"]}
    shown, notes, _ = predicted(tmp_path, capsys, model, columns)
    assert "Accuracy 100.0 % (2 rows)" in shown
    assert "does not know the labels 'Malignant', 'unclear': 2 of 4 rows are not scored" in notes
    assert "knows 'benign', 'malignant'; did you mean 'malignant' for 'Malignant'?" in notes
    columns["kind"] = ["Benign"] * 4
    shown, notes, _ = predicted(tmp_path, capsys, model, columns)
    assert shown.startswith("Predictions:")
    assert "'Benign': 4 of 4 rows" in notes and "'benign' for 'Benign'" in notes
    shown, _, _ = predicted(tmp_path, capsys, model, columns, "--json")
    found = json.loads(shown)
    assert (found["accuracy"], found["rows_scored"], found["log_loss"]) == (None, 0, None)
    assert found["unknown_labels"] == {"Benign": 4}
    shown, notes, _ = predicted(
        tmp_path, capsys, model_of([0, 1]), columns | {"kind": [0, 1, 1, 10]}
    )
    assert "Accuracy 100.0 % (3 rows)" in shown
    assert "'10': 1 of 4 rows are not scored. It knows '0', '1'." in notes


@pytest.mark.parametrize("classes", [[0, 1], ["0", "1"], ["0.0", "1.0"]])
@pytest.mark.parametrize("labels", [["0", "1"], ["0.0", "1.0"], ["0", "1.0"], ["0.0", "1", "?"]])
def test_numbers_are_the_same_label_however_they_are_written(classes, labels, tmp_path, capsys):
    columns = {"v0": [-1, 1, 1], "kind": [*labels, "other"][:3]}
    shown, _, _ = predicted(tmp_path, capsys, model_of(classes), columns)
    assert "Accuracy 100.0 % (2 rows)" in shown  # what a file has for missing is no label


def test_rows_without_a_label_are_predicted_and_not_scored(tmp_path, capsys):
    columns = {"v0": [-1, 1, 1], "kind": ["no", "", "no"]}
    shown, notes, rows = predicted(tmp_path, capsys, model_of(["no", "yes"]), columns)
    assert "Accuracy 50.0 % (2 rows)" in shown
    assert "1 of 3 rows have no label, and are not scored." in notes
    assert [row["prediction"] for row in rows] == ["no", "yes", "yes"]


def test_a_column_is_not_kept_under_a_name_that_the_predictions_have(tmp_path, capsys):
    columns = {"v0": [-1, 1], "prediction": ["a", "b"], "kind": ["no", "yes"]}
    model = model_of(["no", "yes"])
    code, message, _ = predicted(tmp_path, capsys, model, columns, "--keep", "prediction")
    assert code == 2
    assert "--keep prediction: the predictions have a column of that name already" in message


def test_columns_are_kept_beside_the_predictions(tmp_path, capsys):
    columns = {"v0": [-1, 1], "id": ["007", "=1+2"], "site": ["north", ""], "kind": ["no", "yes"]}
    model = model_of(["no", "yes"])
    _, _, rows = predicted(tmp_path, capsys, model, columns, "--keep", "id", "--keep", "site")
    assert list(rows[0])[:4] == ["row", "id", "site", "prediction"]
    assert [(row["id"], row["site"]) for row in rows] == [("007", "north"), ("'=1+2", "")]
    code, message, _ = predicted(tmp_path, capsys, model, columns, "--keep", "sit")
    assert code == 2
    assert "has no column 'sit' (named as keep): did you mean 'site'?" in message


def test_arrays_are_kept_if_they_have_one_value_per_row(tmp_path, capsys):
    rows, model = tmp_path / "rows.npz", tmp_path / "m.safetensors"
    small_model().save(model)
    n_features = len(small_model().fill)
    names = {"scan": np.array([f"scan {i}" for i in range(3)]), "short": np.zeros(2)}
    np.savez(rows, features=np.zeros((3, n_features)), **names)
    assert run("predict", model, rows, "--out", tmp_path / "p.csv", "--keep", "scan") == 0
    assert "2,scan 2," in (tmp_path / "p.csv").read_text(encoding="utf-8")
    for name, says in {
        "id": "no array 'id' (named as keep): name one that is there. The arrays are 'features'",
        "short": "short has 2 values for 3 rows",
        "features": "one value per row is needed",
    }.items():
        capsys.readouterr()
        call = ["predict", model, rows, "--out", tmp_path / "q.csv", "--keep", name]
        assert run(*call) == 2
        assert says in capsys.readouterr().err
        assert not (tmp_path / "q.csv").exists()


def test_probabilities_of_classes_counted_alike_say_so(tmp_path, capsys):
    columns = {"v0": [-1, 1]}
    for made, says in {None: False, "balanced": True, "training": False}.items():
        model = model_of(["no", "yes"], made={} if made is None else {"prior": made})
        shown, _, _ = predicted(tmp_path, capsys, model, columns)
        assert ("equally frequent; isrlearn fit --prior train" in shown) == says


# --- fitting


@pytest.mark.parametrize("n_features", [3, 30])
def test_the_model_is_the_chosen_pipeline_folded_into_one_map(tmp_path, random, n_features):
    n, k = 400, 3
    y, e = random.integers(0, k, n), random.integers(0, 2, n)
    X = random.normal(size=(n, n_features)) * random.uniform(0.1, 50, n_features) + 1000
    X[:, 0] += 20 * e * (y + 1)
    split = random.permutation(np.repeat([0, 1, 2], [200, 100, 100]))
    file = tmp_path / "a.npz"
    np.savez(file, features=X, labels=y, environments=e, split=split)
    data = read_data(file)
    done = fit_data(data, pca=20)
    from isrlearn.leaderboard._preparation import prepare

    names = data.schema.feature_names
    prepared = prepare(X[split == 0], names, pca=20).apply(X)
    assert done.title == "ISR"
    train = split == 0
    model = ISRClassifier(ISR(random_state=0)).fit(prepared[train], y[train], environments=e[train])
    values = model.decision_function(prepared)
    np.testing.assert_allclose(done.model.decision_function(X), values, atol=1e-8)
    expected = np.mean(done.model.predict(X[split == 2]) == y[split == 2])
    assert done.test.average == pytest.approx(expected)
    done.model.save(tmp_path / "m.safetensors")
    again = LinearModel.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.decision_function(X), done.model.decision_function(X))
    assert again.made == done.model.made
    assert again.schema == done.model.schema


def test_missing_values_are_filled_by_the_training_median_or_refused(tmp_path, random, capsys):
    file = write_patients(tmp_path / "a.csv", random)
    text = file.read_text(encoding="utf-8").splitlines()
    fields = text[5].split(",")
    text[5] = ",".join(["", *fields[1:]])
    file.write_text("\n".join(text), encoding="utf-8")
    out = tmp_path / "m.safetensors"
    assert run("fit", file, *COLUMNS, "--out", out) == 2
    assert "body mass" in capsys.readouterr().err
    assert not out.exists()
    assert run("fit", file, *COLUMNS, "--impute", "median", "--out", out) == 0
    assert run("predict", out, file, "--out", tmp_path / "p.csv") == 0


def test_diagnose_names_features_and_writes_a_page(patients, tmp_path, capsys):
    assert run("diagnose", patients, *COLUMNS, "--html", tmp_path / "d.html") == 0
    shown = capsys.readouterr().out
    assert "heart rate" in shown
    assert "environments" in shown
    assert "heart rate" in (tmp_path / "d.html").read_text(encoding="utf-8")


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
@pytest.mark.parametrize("ending", ["npz", "safetensors", "parquet", "csv"])
def test_rows_in_a_pipe_are_refused(tmp_path, capsys, ending):
    pytest.importorskip("pyarrow")
    file, out = tmp_path / f"rows.{ending}", tmp_path / "m.safetensors"
    os.mkfifo(file)
    for words in (["diagnose", file], ["fit", file, "--out", out], ["compare", file]):
        assert run(*words, *COLUMNS) == 2
        assert f"{file} cannot be read (it is no regular file" in capsys.readouterr().err
    assert run("fit", file, "--stream", *COLUMNS, "--out", out) == 2
    assert "no regular file" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interrupted_comparison_leaves_nothing(patients, tmp_path):
    command = [sys.executable, "-m", "isrlearn", "compare", str(patients), *COLUMNS]
    process = subprocess.Popen(
        [*command, "--seeds", "50", "--jobs", "1", "--out", "o"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    begun = process.stderr.readline()
    while "Comparing" not in begun:
        begun = process.stderr.readline()
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in message
    assert not (tmp_path / "o").exists()


def test_damaged_models_are_refused(tmp_path, random):
    path = tmp_path / "m.safetensors"
    small_model().save(path)
    data = path.read_bytes()
    for broken in (b"", data[: len(data) // 2], b"\x80\x04pickle", data[:8] + b"x" + data[9:]):
        path.write_bytes(broken)
        with pytest.raises(ModelFileError, match=re.escape(str(path))):
            LinearModel.load(path)
    other = data.replace(b'\\"c\\"', b'\\"d\\"')
    assert other != data
    path.write_bytes(other)
    with pytest.raises(ModelFileError, match="not what was sealed"):
        LinearModel.load(path)


def test_a_model_names_what_it_cannot_predict():
    model = LinearModel(
        np.eye(2)[:1],
        np.zeros(1),
        np.array([np.nan, 0.0]),
        np.array([0, 1]),
        Schema.of_array(2, "labels", ("environments",)),
    )
    with pytest.raises(ValueError, match="x0"):
        model.predict(np.array([[np.nan, 1.0]]))
    np.testing.assert_array_equal(model.predict(np.array([[1.0, np.nan]])), [1])
    with pytest.raises(ValueError, match="2 features"):
        model.predict(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="weight has shape"):
        LinearModel(np.eye(2), np.zeros(1), np.zeros(2), np.array([0, 1]), model.schema)
