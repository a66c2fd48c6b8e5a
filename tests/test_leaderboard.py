"""The table of methods: its figures by hand, who joins, what is written."""

import csv
import json
import math
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from leaderboard_support import draw
from sklearn.linear_model import RidgeClassifier, RidgeClassifierCV

from isrlearn import ISR, compare
from isrlearn.leaderboard import Interval, _methods, known_methods
from isrlearn.leaderboard._recommendation import recommend
from isrlearn.leaderboard._splits import rounds
from isrlearn.metrics import average_accuracy, group_scores

QUICK = {"methods": ["erm", "group-reweighted", "dfr"], "n_draws": 20}


def scores_by_seed(found, key, y, e):
    """Return, for each seed, test rows and scores of a method; rounds of one seed are pooled."""
    result = []
    for seed in range(found.n_seeds):
        own = [o for o in found.outcomes if (o.key, o.seed) == (key, seed)]
        rows = np.concatenate([o.test for o in own])
        predicted = np.concatenate([o.predicted for o in own])
        result.append((rows, predicted, group_scores(y[rows], predicted, environments=e[rows])))
    return result


@pytest.mark.parametrize("test", ["split", "random", "leave-one-environment-out"])
def test_figures_are_means_over_seeds_of_the_scores_of_predictions(random, test):
    X, y, e, split = draw(random, n=300, k=int(random.integers(2, 4)))
    e = e.astype(object)
    e[random.permutation(len(y))[:15]] = None
    found = compare(X, y, environments=e, split=split, test=test, **QUICK)
    training = {part.seed: part.training for part in rounds(y, e, split, test, 3, found.rule)}
    for entry in found.entries:
        parts = scores_by_seed(found, entry.key, y, e)
        scores = [part[2] for part in parts]
        by_hand = np.mean([s.accuracies for s in scores], axis=0)
        np.testing.assert_allclose(entry.groups, by_hand.ravel())
        assert entry.worst_group.value == pytest.approx(np.mean([s.worst for s in scores]))
        averages = [average_accuracy(y[rows], predicted) for rows, predicted, _ in parts]
        assert entry.average == pytest.approx(np.mean(averages))
        if test == "leave-one-environment-out":
            assert math.isnan(entry.adjusted_average)
            continue
        adjusted = [
            s.adjusted_average(y[training[seed]], e[training[seed]])
            for seed, s in enumerate(scores)
        ]
        assert entry.adjusted_average == pytest.approx(np.mean(adjusted))
    worst = [entry.worst_group.value for entry in found.entries]
    assert worst == sorted(worst, reverse=True)


def test_groups_are_named_in_the_order_of_their_accuracies(random):
    X, y, e, split = draw(random)
    names, places = np.array(["no", "yes"])[y], np.array(["a", "b", "c"])[e]
    found = compare(X, names, environments=places, split=split, **QUICK)
    wanted = [(label, v) for label in ("no", "yes") for v in "abc"]
    assert [(g.label, g.environment) for g in found.groups] == wanted
    test = split == 2
    assert [g.size for g in found.groups] == [
        np.sum(test & (names == label) & (places == v)) for label, v in wanted
    ]
    for entry in found.entries:
        place = int(np.argmin(entry.groups))
        assert entry.worst == f"{wanted[place][0]}, {wanted[place][1]}"


def test_identical_methods_differ_by_nothing(random, monkeypatch):
    def nothing_removed(labels, n_features):
        return {"isr": [ISR(0)]}

    monkeypatch.setattr(_methods, "default_grid", nothing_removed)
    X, y, e, split = draw(random)
    found = compare(X, y, environments=e, split=split, methods=["isr", "erm"], n_draws=50)
    assert found["isr-head"].against_isr == (0.0, 0.0, 0.0)
    assert found["isr"].against_isr is None
    difference = found["isr"].worst_group.value - found["erm"].worst_group.value
    assert found["erm"].against_isr.value == pytest.approx(difference)
    assert found.verdict.endswith("Removal itself changed nothing in the worst group.")


OWN = """
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier


class Mine(LogisticRegression):
    def fit(self, X, y, *, environments):
        return super().fit(X, y)


class Picky(Mine):
    def fit(self, X, y, *, environments):
        if 2 not in set(environments):
            raise ValueError("environment 2 is not there")
        return super().fit(X, y, environments=environments)


class Neighbours(ClassifierMixin, BaseEstimator):
    def fit(self, X, y, *, environments):
        self.model_ = KNeighborsClassifier(3).fit(X, y)
        return self

    def predict(self, X):
        return self.model_.predict(X)


class Private(Neighbours):
    def fit(self, X, y, *, environments):
        self._model = KNeighborsClassifier(3).fit(X, y)
        return self

    def predict(self, X):
        return self._model.predict(X)
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The name of a module of the user's in the current folder."""
    name = f"own_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield name
    sys.modules.pop(name, None)


def test_an_estimator_of_the_users_joins(random, own):
    X, y, e, split = draw(random)
    keys = [f"{own}:Mine", f"{own}:Neighbours", "erm"]
    found = compare(X, y, environments=e, split=split, methods=keys, n_seeds=1, n_draws=20)
    assert {entry.key for entry in found.entries} == set(keys)
    assert found[f"{own}:Mine"].title == "Mine"
    weights = {o.key: o.weight for o in found.outcomes}
    assert weights[f"{own}:Mine"].shape == (1, X.shape[1])
    assert weights[f"{own}:Neighbours"] is None
    with pytest.raises(KeyError, match="isr"):
        found["isr"]
    assert found.recommendation.title == found.entries[0].title
    assert "Removal" not in found.verdict


def test_an_estimator_of_the_users_may_keep_what_it_learns_to_itself(random, own):
    X, y, e, split = draw(random)
    keys = [f"{own}:Private", "erm"]
    found = compare(X, y, environments=e, split=split, methods=keys, n_seeds=1, n_draws=20)
    assert not found.failures


def test_a_method_that_fails_in_a_round_is_no_entry(random, own):
    X, y, e, _ = draw(random)
    key = f"{own}:Picky"
    options = {"test": "leave-one-environment-out", "n_seeds": 1, "n_draws": 20}
    found = compare(X, y, environments=e, methods=[key, "erm"], **options)
    assert [(f.key, f.name) for f in found.failures] == [(key, "2")]
    assert "environment 2 is not there" in found.failures[0].reason
    assert [entry.key for entry in found.entries] == ["erm"]
    assert {o.name for o in found.outcomes if o.key == key} == {"0", "1"}
    with pytest.raises(ValueError, match=r"no method can be fitted: .*environment 2"):
        compare(X, y, environments=np.where(e == 2, 3, e), methods=[key], **options)


def test_a_comparison_in_which_every_method_fails_once_says_so(random):
    """All rows of one class come from one environment: without it nothing can be fitted."""
    X, y, e, _ = draw(random)
    y = np.where(e == 0, y, 0)
    try:
        found = compare(X, y, environments=e, test="leave-one-environment-out", **QUICK)
    except ValueError:
        return
    assert found.verdict


def test_a_method_that_is_not_known_is_answered_by_those_that_are():
    with pytest.raises(ValueError, match="'ebm' is not known") as error:
        compare(np.eye(4), [0, 1, 0, 1], environments=[0, 0, 1, 1], methods=["ebm"])
    assert all(key in str(error.value) for key in known_methods())
    with pytest.raises(ValueError, match="no_such_module:Mine' cannot be loaded"):
        compare(np.eye(4), [0, 1, 0, 1], environments=[0] * 4, methods=["no_such_module:Mine"])


def without_times(found):
    return [replace(entry, seconds=0.0, fit_seconds=0.0) for entry in found.entries]


def test_processes_change_nothing_but_times(random, own):
    X, y, e, split = draw(random)
    keys = ["erm", "dfr", "subsampled", f"{own}:Mine"]
    options = {"methods": keys, "n_seeds": 2, "n_draws": 20}
    one, two = (
        compare(X, y, environments=e, split=split, n_jobs=jobs, **options) for jobs in (1, 2)
    )
    assert str(without_times(one)) == str(without_times(two))
    for a, b in zip(one.outcomes, two.outcomes, strict=True):
        assert (a.key, a.seed) == (b.key, b.seed)
        np.testing.assert_array_equal(a.weight, b.weight)


def no_constant(name):
    raise ValueError(f"{name} is not json")


@pytest.mark.parametrize("test", ["split", "leave-one-environment-out"])
def test_files_hold_what_the_table_says(random, tmp_path, test):
    X, y, e, split = draw(random)
    found = compare(X, y, environments=e, split=split, test=test, **QUICK)
    path = tmp_path / "table.csv"
    found.to_csv(path)
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    for line, entry in zip(lines, found.entries, strict=True):
        assert line["method"] == entry.key
        assert float(line["average"]) == entry.average
        figures = [float(line[f"worst_group{end}"]) for end in ("", "_low", "_high")]
        assert figures == list(entry.worst_group)
        assert [float(line[f"accuracy {g.name}"]) for g in found.groups] == list(entry.groups)
        adjusted = float(line["adjusted_average"])
        assert adjusted == entry.adjusted_average or math.isnan(adjusted + entry.adjusted_average)
    text = json.dumps(found.to_dict(), allow_nan=False)
    again = json.loads(text, parse_constant=no_constant)
    assert [m["method"] for m in again["methods"]] == [entry.key for entry in found.entries]
    assert [m["adjusted_average"] is None for m in again["methods"]] == [
        math.isnan(entry.adjusted_average) for entry in found.entries
    ]


def test_the_verdict_gives_the_number_of_directions_removed(random):
    X, y, e, split = draw(random)
    options = {"n_seeds": 1, "n_draws": 20, "methods": ["isr", "erm"]}
    found = compare(X, y, environments=e, split=split, **options)
    (outcome,) = (o for o in found.outcomes if o.key == "isr")
    assert found["isr"].n_spurious == (outcome.n_spurious,)


@pytest.mark.parametrize(
    ("test", "question"),
    [
        ("split", "environments like these"),
        ("leave-one-environment-out", "a new environment"),
        ("leave-one-group-out", "a group without training rows"),
    ],
)
def test_the_recommendation_answers_the_question_that_was_asked(random, test, question):
    X, y, e, split = draw(random, n=400)
    options = {"n_seeds": 1, "n_draws": 50, "methods": ["isr", "erm", "isr-chosen"]}
    found = compare(X, y, environments=e, split=split, test=test, **options)
    recommended = found.recommendation
    assert recommended.question == question
    assert recommended.headline.startswith(f"For {question}, ")
    first = next(e for e in found.entries if e.key != "isr-chosen-head")  # which cannot be shipped
    assert recommended.worst_group == first.worst_group
    assert f"{100 * first.worst_group.value:.1f} %" in recommended.reason
    assert str(recommended) == found.verdict == found.to_dict()["verdict"]
    assert found.to_dict()["recommendation"]["key"] == first.key


def test_a_split_that_keeps_an_environment_for_the_test_asks_for_a_new_one(random):
    X, y, e, _ = draw(random, n=400)
    split = np.where(e == 2, 2, np.arange(len(y)) % 5 == 0)
    options = {"n_seeds": 1, "n_draws": 20, "methods": ["isr", "erm"]}
    found = compare(X, y, environments=e, split=split, **options)
    assert found.recommendation.question == "a new environment"


def test_options_of_fit_repeat_the_choice(random):
    X, y, e, split = draw(random)
    options = {"n_seeds": 1, "n_draws": 20, "methods": ["erm"], "rule": "average"}
    found = compare(X, y, environments=e, split=split, **options)
    assert found.recommendation.fit_options == "--method erm --rule average"


def interval_of(value, low=None, high=None):
    return Interval(value, value if low is None else low, value if high is None else high)


def recommended(leads, best="isr", large=None, above=0.0):
    """A recommendation among both of ISR, a twin and two rivals, by their leads over the best."""
    titles = {
        "isr": "ISR",
        "isr-chosen": "ISR chosen",
        "group-dro": "GroupDRO",
        "erm": "ERM",
        "isr-head": "ISR without removal",
    }
    order = [best, *(key for key in titles if key != best)]
    entries = [
        SimpleNamespace(
            key=key,
            title=titles[key],
            worst_group=interval_of(0.8 - 0.1 * i),
            worst="1, a",
            groups=(0.8 - 0.1 * i + above, 0.9),
        )
        for i, key in enumerate(order)
    ]
    question = "environments like these"
    gains = [lambda a, b, of=of: of.get((a, b)) for of in (leads, large) if of is not None]
    return recommend(entries, gains, question, "worst-group")


CLEAR = interval_of(0.1, 0.05, 0.15)
OTHERS = ("isr-chosen", "group-dro", "erm", "isr-head")


def leads_of_isr(**others):
    return {("isr", key.replace("_", "-")): lead for key, lead in others.items()} | {
        ("isr", key): CLEAR for key in OTHERS if key.replace("-", "_") not in others
    }


def test_a_lead_beyond_chance_is_said_as_one():
    found = recommended(leads_of_isr())
    assert found.headline == "For environments like these, ship ISR"
    assert found.tied == ()
    assert "worst group (1, a) has an accuracy of 80.0 %" in found.reason
    assert "a difference of 10.0 points [5.0, 15.0]." in found.reason
    assert "ISR chosen is" not in found.reason
    assert found.removal.endswith("over the same head without it.")
    assert found.fit_options == "--method isr"


def test_the_worst_group_is_named_only_where_it_is_the_same_in_all_rounds():
    assert "Its worst group (1, a) has" in recommended(leads_of_isr()).reason
    # The mean of the smallest in each round is below the smallest mean: they are of several groups.
    assert "Its worst group has" in recommended(leads_of_isr(), above=0.05).reason


def test_a_difference_within_chance_is_a_tie():
    chance = interval_of(0.1, -0.05, 0.2)
    found = recommended(leads_of_isr(group_dro=chance))
    assert found.headline == "For environments like these, a tie: ISR, GroupDRO"
    assert "may be chance" in found.reason
    assert "gained" in found.removal
    found = recommended(leads_of_isr(isr_head=chance))
    assert found.headline == "For environments like these, a tie: ISR, ISR without removal"
    assert "may be chance" in found.removal


def test_the_default_and_what_was_chosen_are_one_method_unless_another_is_level():
    chance = interval_of(0.0, -0.02, 0.02)
    found = recommended(leads_of_isr(isr_chosen=chance))
    assert found.headline == "For environments like these, ship ISR"
    assert "ISR chosen is level with it: 0.0 points [-2.0, 2.0]." in found.reason
    found = recommended(leads_of_isr(isr_chosen=chance, erm=chance))
    assert found.tied == ("ISR chosen", "ERM")
    assert ", ERM 50.0 %" in found.reason


def test_all_that_share_the_first_place_are_named():
    chance = interval_of(0.0, -0.02, 0.02)
    found = recommended(leads_of_isr(**dict.fromkeys(("group_dro", "erm", "isr_head"), chance)))
    assert found.headline.endswith("a tie: ISR, GroupDRO, ERM and 1 more")
    assert "Also level with it: ISR without removal." in found.reason


def test_a_rival_that_wins_is_recommended():
    leads = {("group-dro", key): CLEAR for key in ("isr", "isr-chosen", "erm", "isr-head")}
    leads["isr", "isr-head"] = interval_of(-0.1, -0.2, -0.05)
    found = recommended(leads, best="group-dro")
    assert found.headline == "For environments like these, ship GroupDRO"
    assert found.fit_options == "--method group-dro"
    assert "removal itself cost 10.0 points [5.0, 20.0] " in found.removal


def test_a_rival_no_better_than_our_head_shares_the_first_place():
    leads = {("group-dro", key): CLEAR for key in ("isr", "isr-chosen", "erm")}
    leads["group-dro", "isr-head"] = interval_of(0.0, -0.02, 0.02)
    assert recommended(leads, best="group-dro").tied == ("ISR without removal",)


def test_a_lead_that_rests_on_very_small_groups_alone_decides_nothing():
    leads = leads_of_isr()
    large = leads | {("isr", "erm"): interval_of(0.0, -0.02, 0.02)}
    found = recommended(leads, large=large)
    assert found.tied == ("ERM",)
    assert "rests on too few test rows" in found.reason
    nothing = recommended(leads, large={})
    assert nothing.tied == ("ISR chosen", "GroupDRO", "ERM", "ISR without removal")


def test_one_test_row_of_a_rare_group_decides_nothing():
    random = np.random.default_rng(5)
    y, e = random.integers(0, 2, (2, 500))
    rare = np.flatnonzero((y == 1) & (e == 1))
    kept = np.setdiff1d(np.arange(500), rare[6:])  # about one test row in each draw
    y, e = y[kept], e[kept]
    X = random.normal(size=(len(y), 4))
    X[:, 0] += 1.2 * y
    found = compare(X, y, environments=e, methods=["erm", "isr", "group-dro"], n_draws=500)
    best = found.recommendation
    others = (found[key] for key in ("isr", "group-dro") if key != best.key)
    assert {entry.title for entry in others} <= {*best.tied}


def test_intervals_of_very_few_rows_are_numbers(random):
    """Each of three draws tests four of 16 rows, and a resample may hold none of them."""
    y, e = np.repeat([0, 1], 8), np.tile([0, 1], 8)
    X = random.normal(size=(16, 2))
    found = compare(X, y, environments=e, methods=["erm", "isr"], n_draws=2000)
    for entry in found.entries:
        assert np.isfinite([*entry.worst_group, *(entry.against_isr or ())]).all()
    assert found.recommendation.tied


def test_a_group_left_out_without_test_rows_is_named(random):
    X, y, e, split = draw(random, n=400)
    lonely = (y == 1) & (e == 2) & (split == 2)
    options = {"test": "leave-one-group-out", "groups": ["1, 2", "0, 1"], **QUICK}
    left = compare(X[~lonely], y[~lonely], environments=e[~lonely], split=split[~lonely], **options)
    assert "no test rows, so not scored: 1, 2." in left.notes
    for entry in left.entries:
        assert list(entry.left_out) == ["0, 1"]
        assert entry.worst_group.value == entry.left_out["0, 1"]
    lonely = (split == 2) & ~((y == 0) & (e == 0))
    few = np.flatnonzero(~lonely)
    said = refused(
        X[few], y[few], environments=e[few], split=split[few], **options | {"groups": ["1, 1"]}
    )
    assert "no group of the training rows has test rows" in said
    whole = compare(X, y, environments=e, split=split, **options)
    assert not any("without test rows" in note for note in whole.notes)


def test_groups_left_out_are_scored_one_by_one_with_the_others(random):
    X, y, e, split = draw(random, n=400)
    names = [f"{c}, {v}" for c in (0, 1) for v in range(3)]
    found = compare(X, y, environments=e, split=split, test="leave-one-group-out", **QUICK)
    for entry in found.entries:
        worst = {name: [] for name in names}
        for outcome in (o for o in found.outcomes if o.key == entry.key):
            rows = outcome.test
            np.testing.assert_array_equal(rows, np.flatnonzero(split == 2))
            scores = group_scores(y[rows], outcome.predicted, environments=e[rows])
            worst[outcome.name].append(scores.worst)
        assert entry.left_out == pytest.approx({name: np.mean(worst[name]) for name in names})
        for name, accuracy in entry.unseen.items():
            c, v = map(int, name.split(", "))
            own = [o for o in found.outcomes if o.key == entry.key and o.name == name]
            at = [(y[o.test] == c) & (e[o.test] == v) for o in own]
            right = [np.mean(o.predicted[t] == c) for o, t in zip(own, at, strict=True)]
            assert accuracy == pytest.approx(np.mean(right))
        assert list(entry.unseen) == names
        assert entry.worst_group.value == pytest.approx(np.mean(list(entry.left_out.values())))
    assert "worst without 1, 2" in found.records()[0]


def test_notes_on_small_groups_hold_for_a_draw(random):
    """Eight test rows of a group in each of three draws are not twenty-four."""
    y, e = np.repeat([0, 0, 1, 1], 120), np.tile([0, 1], 240)
    kept = np.flatnonzero((y == 0) | (e == 0) | (np.arange(480) < 320))  # 40 rows of group 1, 1
    y, e = y[kept], e[kept]
    assert np.sum((y == 1) & (e == 1)) == 40
    X = random.normal(size=(len(y), 3))
    found = compare(X, y, environments=e, methods=["erm"], n_draws=10)
    assert found.notes == ("fewer than 10 test rows in a draw, so little is known: 1, 1 (8).",)


def test_the_watcher_sees_every_task(random):
    X, y, e, split = draw(random)
    seen = []
    options = {"methods": ["erm", "dfr"], "n_seeds": 2, "n_draws": 20}
    compare(X, y, environments=e, split=split, watch=lambda *n: seen.append(n), **options)
    assert seen == [("Comparing", done, 3) for done in (0, 1, 2, 3)]


def refused(X, y, **options):
    with pytest.raises(ValueError) as error:
        compare(X, y, **{"methods": ["erm"], "n_draws": 20, "n_seeds": 1, **options})
    return str(error.value)


def test_errors_say_what_is_wrong(random):
    X, y, e, split = draw(random)
    assert "rule='best'" in refused(X, y, environments=e, rule="best")
    assert "test='all'" in refused(X, y, environments=e, test="all")
    assert "there is no split" in refused(X, y, environments=e, test="split")
    assert "0 test rows" in refused(X, y, environments=e, split=split * 0)
    assert "one label per row" in refused(X, y[1:], environments=e)
    assert "infinity" in refused(np.where(X > 1, np.inf, X), y, environments=e)
    assert "n_seeds=0" in refused(X, y, environments=e, n_seeds=0)
    two = {"environments": e % 2, "test": "leave-one-environment-out"}
    assert "one of 2 environments" in refused(X, y, **two)
    alone = {"environments": np.where(y == 1, 9, e), "test": "leave-one-environment-out"}
    assert "cannot leave out 9" in refused(X, y, **alone)


def test_labels_may_be_strings_in_an_array_of_objects(random):
    X, y, e, split = draw(random)
    names = np.array(["no", "yes"])[y]
    ours, theirs = (
        compare(X, labels, environments=e, split=split, **QUICK)
        for labels in (names.astype(object), names)
    )
    assert ours.groups == theirs.groups


def test_a_split_of_another_length_is_refused(random):
    X, y, e, split = draw(random)
    assert "split" in refused(X, y, environments=e, split=split[:-20])


def test_missing_labels_of_test_rows_are_refused(random):
    X, y, e, split = draw(random)
    y = np.where(np.arange(len(y)) == np.flatnonzero(split == 2)[0], np.nan, y)
    assert "y" in refused(X, y, environments=e, split=split)


def test_test_rows_without_environments_are_refused_in_words(random):
    X, y, e, split = draw(random)
    e = np.where(split == 2, None, e.astype(object))
    assert "environment" in refused(X, y, environments=e, split=split)


def test_an_empty_list_of_methods_is_refused(random):
    X, y, e, split = draw(random)
    assert "method" in refused(X, y, environments=e, split=split, methods=[])


def test_missing_values_of_test_rows_and_names_are_named(random):
    X, y, e, split = draw(random)
    names = np.array([f"column {j}" for j in range(X.shape[1])])
    X = X.copy()
    X[np.flatnonzero(split == 2)[0], 1] = np.nan
    message = refused(X, y, environments=e, split=split, feature_names=names)
    assert "missing in column 1:" in message
    assert "impute='median'" in message
    assert "names for" in refused(X, y, environments=e, split=split, feature_names=names[1:])


def test_methods_of_ones_own_may_be_classes_and_fail_alone(random):
    X, y, e, split = draw(random)

    class Clumsy(RidgeClassifier):
        def fit(self, X, y):
            raise RuntimeError("no")

    keys = ["erm", RidgeClassifier, RidgeClassifierCV(), Clumsy]
    found = compare(X, y, environments=e, split=split, methods=keys, n_seeds=2, n_draws=20)
    assert {entry.key for entry in found.entries} == {"erm", "RidgeClassifier", "RidgeClassifierCV"}
    assert found.failed() == {"Clumsy": "RuntimeError: no"}
    assert len(repr(found)) < 100
    assert "RidgeClassifierCV" in str(found)
    alone = compare(X, y, environments=e, split=split, methods="erm", n_seeds=1, n_draws=20)
    assert [entry.key for entry in alone.entries] == ["erm"]


def test_one_environment_is_refused(random):
    X, y, e, split = draw(random)
    assert "fewer than two" in refused(X, y, environments=np.full(len(y), "a"), split=split)
    two = e[e < 2]
    message = refused(
        X[e < 2],
        y[e < 2],
        environments=two,
        split=split[e < 2],
        rule="leave-one-environment-out",
    )
    assert "needs three" in message
