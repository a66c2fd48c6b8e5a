"""What ``isrlearn fit`` ships: the default, what validation chose, or a rival; and what it says."""

import csv
import json
import shlex

import numpy as np
import pytest

from isrlearn.baselines import GroupDRO, LinearProbe
from isrlearn.cli import main
from isrlearn.io import LinearModel, read_data
from isrlearn.leaderboard import fit_data, known_methods
from isrlearn.leaderboard._preparation import prepare

COLUMNS = ("--label", "sick", "--environment", "site")
SITES = {"north": (400, 2.2), "east": (350, 1.5), "south": (300, 1.9)}


def write(path, sites, seed=0, marker=2.0, severity=0.0):
    """A cue that is stronger in some sites than in others, and a marker that is the same anywhere.

    With `severity` the marker is stronger in some sites, and there is no cue.
    """
    random = np.random.default_rng(seed)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "marker", "brightness", "site", "sick"])
        for place, (name, (n, cue)) in enumerate(sites.items()):
            sick = random.random(n) < 0.4
            strength = marker + severity * (place - 1)
            columns = (
                random.normal(50 + 3 * sick, 10).round(1),
                random.normal(strength * sick, 1).round(3),
                random.normal(cue * (2 * sick - 1) * (severity == 0), 1).round(3),
            )
            labels = np.where(sick, "yes", "no")
            writer.writerows((*row, name, y) for *row, y in zip(*columns, labels, strict=True))
    return path


@pytest.fixture
def misleading(tmp_path):
    return write(tmp_path / "misleading.csv", SITES)


@pytest.fixture
def harmless(tmp_path):
    return write(tmp_path / "harmless.csv", SITES, marker=3.0, severity=0.8)


def fitted(capsys, data, *options):
    out = data.with_suffix(".safetensors")
    with pytest.raises(SystemExit) as end:
        main(["fit", str(data), *COLUMNS, "--out", str(out), "--force", "--json", *options])
    shown = capsys.readouterr()
    assert end.value.code == 0, shown.err
    return LinearModel.load(out), json.loads(shown.out)


def right(model, path):
    rows = read_data(path, schema=model.schema)
    return float(np.mean(model.predict(rows.features) == rows.labels))


def test_the_default_is_shipped_where_environments_mislead(misleading, tmp_path, capsys):
    """In the training sites the cue helps, so validation rows want to keep it."""
    new = write(tmp_path / "new.csv", {"new": (300, -1.8)}, seed=1)
    model, figures = fitted(capsys, misleading)
    assert figures["method"] == "ISR"
    assert figures["removed"].startswith("1 direction (brightness ")
    assert right(model, new) > 0.8
    sentence = figures["disagreement"]
    other, chosen = fitted(capsys, misleading, "--rule", "worst-group")
    assert (chosen["method"], chosen["n_spurious"]) == ("ISR chosen", 0)
    assert right(other, new) < 0.4
    assert chosen["disagreement"] is None
    what_differs = figures["removed"], "removes nothing", f"{100 * chosen['score']:.1f} %"
    for words in (*what_differs, "--rule worst-group"):
        assert words in sentence


def test_validation_can_be_right_and_its_choice_shipped(harmless, tmp_path, capsys):
    """The marker differs between sites and is the only thing that tells the sick."""
    model, figures = fitted(capsys, harmless)
    assert "(marker " in figures["removed"]
    assert "removes nothing" in figures["disagreement"]
    other, chosen = fitted(capsys, harmless, "--rule", "worst-group")
    assert chosen["n_spurious"] == 0
    assert right(other, harmless) > right(model, harmless) + 0.1


def test_where_nothing_is_found_validation_decides_and_nothing_disagrees(tmp_path, capsys):
    alike = write(tmp_path / "alike.csv", {name: (n, 1.0) for name, (n, _) in SITES.items()})
    _, figures = fitted(capsys, alike)
    assert (figures["method"], figures["removed"]) == ("ISR chosen", "nothing")
    assert figures["disagreement"] is None
    assert figures["validation"]["agree"]


def test_a_removal_that_only_validation_likes_is_not_shipped(tmp_path, capsys):
    """Of many settings that remove what does not differ, one is best by chance."""
    seen = 0
    for seed in range(4):
        alike = dict.fromkeys(SITES, (60, 1.0))
        _, figures = fitted(capsys, write(tmp_path / f"{seed}.csv", alike, seed=seed))
        assert figures["n_spurious"] == 0
        chosen = figures["validation"]["removed"]
        if chosen != "nothing" and not figures["validation"]["agree"]:
            seen += 1
            assert figures["method"] == "ISR"
            assert f"removes {chosen}" in figures["disagreement"]
            assert "--rule worst-group" in figures["disagreement"]
    assert seen


def rewritten(path, change):
    """Write the rows of a file again, each changed in place; `change` gets names and cells."""
    names, *rows = csv.reader(path.read_text(encoding="utf-8").splitlines())
    for number, row in enumerate(rows):
        change(number, row)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([[*names, "part"][: len(rows[0])], *rows])
    return path


def test_without_environments_to_choose_by_the_default_is_shipped(misleading, capsys):
    def split(number, row):
        row.append("validation" if number % 2 else "train")
        row[3] = "" if number % 2 else row[3]

    _, figures = fitted(capsys, rewritten(misleading, split), "--split", "part")
    assert (figures["method"], figures["n_spurious"]) == ("ISR", 1)
    assert "needs environments of the validation rows" in figures["disagreement"]


def test_where_no_class_has_two_environments_the_choice_is_shipped(misleading, capsys):
    def apart(_, row):
        row[3] = {"yes": "north", "no": "south"}[row[4]]

    _, figures = fitted(capsys, rewritten(misleading, apart))
    assert (figures["method"], figures["n_spurious"]) == ("ISR chosen", 0)
    assert "The default cannot be fitted" in figures["disagreement"]


@pytest.mark.parametrize("n_spurious", [0, 1, 2])
def test_the_number_of_directions_can_be_given(misleading, capsys, n_spurious):
    for options in ((), ("--rule", "average"), ("--method", "isr-chosen")):
        _, figures = fitted(capsys, misleading, "--n-spurious", str(n_spurious), *options)
        assert figures["n_spurious"] == n_spurious
        assert (figures["rule"] is None) == (options == ())


@pytest.mark.parametrize("key", sorted(known_methods()))
def test_every_method_can_be_shipped(misleading, capsys, key):
    model, figures = fitted(capsys, misleading, "--method", key)
    assert figures["method"] == known_methods()[key].title
    assert right(model, misleading) > 0.5
    assert (figures["rule"] is None) == (key == "isr")


@pytest.mark.parametrize(("key", "kind"), [("group-dro", GroupDRO), ("erm", LinearProbe)])
def test_a_rival_is_its_estimator_on_prepared_rows(misleading, capsys, key, kind):
    model, figures = fitted(capsys, misleading, "--method", key, "--rule", "average")
    data = read_data(misleading, label="sick", environment=["site"])
    Z = prepare(data.features, data.schema.feature_names, with_units=True).apply(data.features)
    C = float(figures["setting"].removeprefix("C="))
    expected = kind(C).fit(Z, data.labels, environments=data.environments).decision_function(Z)
    np.testing.assert_allclose(model.decision_function(data.features), expected, atol=1e-6)


def test_the_prior_of_the_training_rows_is_given_back(misleading, capsys):
    model, figures = fitted(capsys, misleading)
    shifted, _ = fitted(capsys, misleading, "--prior", "train")
    shares = np.array(figures["class_shares"])
    np.testing.assert_array_equal(shifted.weight, model.weight)
    np.testing.assert_allclose(shifted.bias - model.bias, np.log(shares[1] / shares[0]))
    assert fitted(capsys, misleading, "--method", "erm")[1]["prior"] == "training"
    assert "prior" not in fitted(capsys, misleading, "--method", "group-dro")[1]


OWN = """
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def Pipe():
    return make_pipeline(StandardScaler(), LogisticRegression())


class Broken(LogisticRegression):
    def fit(self, X, y):
        raise RuntimeError("out of order")
"""


def test_a_method_of_ones_own_may_be_a_pipeline_or_broken(
    misleading, tmp_path, capsys, monkeypatch
):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_shipped.py").write_text(OWN, encoding="utf-8")
    model, _ = fitted(capsys, misleading, "--method", "my_shipped:Pipe")
    assert right(model, misleading) > 0.8
    data = read_data(misleading, label="sick", environment=["site"])
    with pytest.raises(
        ValueError, match="my_shipped:Broken cannot be fitted: RuntimeError: out of"
    ):
        fit_data(data, method="my_shipped:Broken")


def test_mistakes_are_named(misleading):
    data = read_data(misleading, label="sick", environment=["site"])
    for options, message in (
        ({"method": "magic"}, "method 'magic' is not known: choose from erm"),
        ({"method": "erm", "n_spurious": 1}, "n_spurious=1 is a setting of ISR"),
        ({"method": "isr", "rule": "average"}, "use method='isr-chosen'"),
        (
            {"method": "group-dro", "prior": "train"},
            "not defined for GroupDRO, which weighs classes in its own way",
        ),
        ({"method": "sklearn.neighbors:KNeighborsClassifier"}, "is not linear"),
        ({"n_spurious": 9}, "n_spurious=9"),
        ({"prior": "training"}, "prior='training' must be 'train', or None"),
    ):
        with pytest.raises(ValueError, match=message):
            fit_data(data, **options)


def rows_of(path):
    return list(csv.reader(path.read_text(encoding="utf-8").splitlines()))


def as_json(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        main([*arguments, "--json"])
    shown = capsys.readouterr()
    assert end.value.code == 0, shown.err
    return json.loads(shown.out)


def test_printed_commands_run_as_printed(tmp_path, capsys, monkeypatch):
    """Whatever a column is called, and though the folder of the first comparison is there."""
    monkeypatch.chdir(tmp_path)
    text = write(tmp_path / "sites.csv", SITES).read_text(encoding="utf-8")
    file = tmp_path / "some sites.csv"
    file.write_text(text.replace("site,sick", "the site,-sick", 1), encoding="utf-8")
    command = ["compare", file.name, "--label=-sick", "--environment", "the site"]
    found = as_json(capsys, *command, "--methods", "erm", "isr", "--seeds", "1")
    asked = []
    for step in found["steps"]:
        words = shlex.split(step.partition(": isrlearn ")[2])
        done = as_json(capsys, *words)
        if words[0] == "compare":
            asked.append(done["recommendation"]["question"])
            assert {entry["method"] for entry in done["methods"]} >= {"erm", "isr"}
            assert done["n_seeds"] == 1
    assert asked == ["a new environment"]


def test_the_other_question_is_not_asked_by_a_split_that_asks_the_same(tmp_path, capsys):
    rows = rows_of(write(tmp_path / "sites.csv", SITES))
    with (tmp_path / "new-site.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*rows[0], "split"])
        writer.writerows([*row, "test" if row[3] == "south" else "train"] for row in rows[1:])
    options = ["--methods", "isr", "--seeds", "1", "--out", str(tmp_path / "out")]
    found = as_json(capsys, "compare", str(tmp_path / "new-site.csv"), *COLUMNS, *options)
    assert found["recommendation"]["question"] == "a new environment"
    assert " --test random " in found["steps"][1]


def test_a_group_without_rows_is_named_and_asked_about(misleading, capsys):
    rows = rows_of(misleading)
    with misleading.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(row for row in rows if row[3:] != ["south", "yes"])
    options = ["--methods", "isr", "--seeds", "1", "--out", str(misleading.with_name("out"))]
    found = as_json(capsys, "compare", str(misleading), *COLUMNS, *options)
    assert any("no training rows in the group (yes, south)" in note for note in found["notes"])
    assert " --test leave-one-group-out " in found["steps"][1]
    _, figures = fitted(capsys, misleading)
    assert figures["untrained"] == "no training rows in the group (yes, south)"


def test_fit_says_how_far_a_prior_moves_predictions(misleading, capsys):
    out = misleading.with_suffix(".safetensors")
    with pytest.raises(SystemExit):
        main(["fit", str(misleading), *COLUMNS, "--prior", "train", "--out", str(out)])
    model = LinearModel.load(out)
    rows = read_data(misleading, schema=model.schema)
    predicted, there = (np.mean(of == "no") for of in (model.predict(rows.features), rows.labels))
    assert predicted > there
    assert f"predicts yes for {100 - 100 * predicted:.1f} % of them" in capsys.readouterr().out
    np.testing.assert_allclose(model.made["predicted_shares"], [predicted, 1 - predicted])


def test_a_misprint_in_a_split_is_no_feature(tmp_path, capsys):
    rows = rows_of(write(tmp_path / "sites.csv", SITES))
    file = tmp_path / "split.csv"
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow([*rows[0], "split"])
        parts = ["train", "test", "validation"] * len(rows)
        writer.writerows([*row, parts[i]] for i, row in enumerate(rows[1:-1]))
        writer.writerow([*rows[-1], "holdout"])
    with pytest.raises(SystemExit) as end:
        main(["fit", str(file), *COLUMNS, "--out", str(tmp_path / "m.safetensors")])
    assert end.value.code == 2
    assert "column 'split' is 'holdout' in line 1051" in capsys.readouterr().err
