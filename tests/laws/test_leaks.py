"""No test row is looked at before the end: models stay the same to the last bit without them."""

import numpy as np
import pytest
from leaderboard_support import RULES, assert_same_models, differ, draw

from isrlearn import ISR, ISRMean, compare
from isrlearn.baselines import DFR
from isrlearn.leaderboard import _compare, _methods, known_methods
from isrlearn.leaderboard._preparation import prepare
from isrlearn.leaderboard._splits import rounds
from isrlearn.metrics import group_scores
from isrlearn.selection._rules import stratified_part

ALL = {*known_methods(), "isr-head", "isr-chosen-head"}
NAMES = tuple("abcd")


def outcomes(X, y, e, split, **options):
    found = compare(X, y, environments=e, split=split, n_draws=10, **options)
    assert not found.failures
    return found.outcomes


def permuted(values, rows, random):
    """Permute some of the values."""
    changed = values.copy()
    changed[rows] = random.permutation(values[rows])
    assert not np.array_equal(changed, values)
    return changed


def with_noise(X, rows, random):
    changed = X.copy()
    changed[rows] = 50 * random.normal(size=(np.sum(rows), X.shape[1]))
    return changed


@pytest.mark.parametrize("how", ["split", "leave-one-group-out"])
@pytest.mark.parametrize("rule", RULES)
def test_no_method_looks_at_test_rows(random, rule, how):
    X, y, e, split = draw(random)
    test = split == 2
    options = {"rule": rule, "test": how, "n_seeds": 2}
    if how != "split":
        options["groups"] = ["1, 2"]
    before = outcomes(X, y, e, split, **options)
    assert {o.key for o in before} == ALL
    assert len(before) == 2 * len(ALL)
    may_be_zero = {"inlp", "dfr"}  # INLP may erase everything, and an L1 penalty may
    assert {o.key for o in before if o.weight.any()} >= ALL - may_be_zero
    relabelled = outcomes(X, permuted(y, test, random), e, split, **options)
    assert_same_models(before, relabelled)
    for a, b in zip(before, relabelled, strict=True):
        np.testing.assert_array_equal(a.predicted, b.predicted)
    assert_same_models(before, outcomes(with_noise(X, test, random), y, e, split, **options))


@pytest.mark.parametrize("rule", RULES)
def test_no_method_looks_at_test_rows_of_three_classes(random, monkeypatch, rule):
    monkeypatch.setattr(_methods, "isr_grid", fewer_settings)
    X, y, e, split = draw(random, k=3)
    test = split == 2
    options = {"rule": rule, "test": "split", "n_seeds": 2}
    before = outcomes(X, y, e, split, **options)
    assert {o.key for o in before} == ALL
    strange = with_noise(X, test, random), permuted(y, test, random)
    assert_same_models(before, outcomes(*strange, e, split, **options))


def test_classes_and_environments_of_test_rows_alone_change_no_model(random, monkeypatch):
    monkeypatch.setattr(_methods, "isr_grid", fewer_settings)
    X, y, e, split = draw(random)
    options = {"test": "split", "n_seeds": 1}
    before = outcomes(X, y, e, split, **options)
    test = split == 2
    strange = outcomes(X, np.where(test, 7, y), np.where(test, -9, e), split, **options)
    assert_same_models(before, strange)


def test_the_comparison_of_models_can_fail(random, monkeypatch):
    """Noise in training labels reaches all but DFR; noise in validation labels reaches DFR."""
    monkeypatch.setattr(_methods, "isr_grid", fewer_settings)
    X, y, e, split = draw(random)
    options = {"test": "split", "n_seeds": 1}
    before = outcomes(X, y, e, split, **options)
    trained = outcomes(X, permuted(y, split == 0, random), e, split, **options)
    changed = differ(before, trained)
    assert "dfr" not in changed
    assert changed >= ALL - {"dfr", "inlp"}  # INLP may erase everything both times
    held_out = outcomes(X, permuted(y, split == 1, random), e, split, **options)
    assert "dfr" in differ(before, held_out)
    with pytest.raises(AssertionError):
        assert_same_models(before, trained)


@pytest.mark.parametrize(
    ("rule", "E", "methods"),
    [
        ("worst-group", 3, None),
        ("leave-one-environment-out", 4, ["erm", "subsampled", "dfr", "isr"]),
    ],
)
def test_no_method_looks_at_the_environment_left_out(random, monkeypatch, rule, E, methods):
    monkeypatch.setattr(_methods, "isr_grid", fewer_settings)
    X, y, e, _ = draw(random, E=E, n=40 * E)
    left_out = int(random.integers(E))
    options = {"test": "leave-one-environment-out", "rule": rule, "methods": methods, "n_seeds": 1}
    before = outcomes(X, y, e, None, **options)
    after = outcomes(X, permuted(y, e == left_out, random), e, None, **options)

    def of_round(found, name):
        return [o for o in found if o.name == str(name)]

    assert_same_models(*(of_round(found, left_out) for found in (before, after)))
    other = (left_out + 1) % E
    assert differ(of_round(before, other), of_round(after, other)) >= {"erm", "isr", "isr-head"}


def test_no_method_looks_at_the_group_left_out(random, monkeypatch):
    monkeypatch.setattr(_methods, "isr_grid", fewer_settings)
    X, y, e, split = draw(random)
    gone = (y == 1) & (e == 2) & (split < 2)
    options = {"test": "leave-one-group-out", "groups": ["1, 2", "0, 1"], "n_seeds": 1}
    before = outcomes(X, y, e, split, **options)
    after = outcomes(with_noise(X, gone, random), y, e, split, **options)
    for name, same in (("1, 2", True), ("0, 1", False)):
        a, b = ([o for o in found if o.name == name] for found in (before, after))
        if same:
            assert_same_models(a, b)
        else:
            assert differ(a, b) >= {"erm", "isr", "isr-head", "isr-chosen", "group-dro", "dfr"}


def fewer_settings(labels, n_features):
    removals = [ISRMean(1), ISR(random_state=0), ISR(0)]
    return {"isr": removals, "group_weight": ["balanced", None], "head__C": [0.01, 0.1]}


@pytest.mark.parametrize("rule", RULES[:2])
def test_dfr_is_chosen_on_halves_and_fitted_on_all_validation_rows(random, rule):
    X, y, e, split = draw(random, k=int(random.integers(2, 4)), n=360, balanced=True)
    options = {"rule": rule, "methods": ["dfr"], "n_seeds": 2}
    found = outcomes(X, y, e, split, **options)
    rows = np.flatnonzero(split == 1)
    Z, labels, environments = prepare(X[split == 0], NAMES).apply(X[rows]), y[rows], e[rows]
    for outcome in found:
        chosen = chosen_on_halves(Z, labels, environments, rule, outcome.seed)
        assert outcome.score == chosen[1]
        if outcome.score > 0:  # else no setting gets a row of the worst group right: all are alike
            assert outcome.setting["C"] == chosen[0]
        model = DFR(C=outcome.setting["C"], random_state=outcome.seed)
        model.fit(Z, labels, environments=environments)
        np.testing.assert_array_equal(outcome.weight, model.coef_)
        np.testing.assert_array_equal(outcome.bias, model.intercept_)
    assert_same_models(found, outcomes(X, permuted(y, split == 0, random), e, split, **options))


def chosen_on_halves(Z, y, e, rule, seed):
    """Return the first C within one row (and a tenth) of the best, and its score, by a loop."""
    half = stratified_part(y, e, 0.5, np.random.default_rng(seed))
    rest = np.setdiff1d(np.arange(len(y)), half)
    scores, one_row = [], []
    for C in (0.1, 0.3, 1.0):
        model = DFR(C=C, random_state=seed).fit(Z[half], y[half], environments=e[half])
        found = group_scores(y[rest], model.predict(Z[rest]), environments=e[rest])
        assert found.sizes.min() == found.sizes.max()  # so that no group is left out as too small
        scores.append(found.worst if rule == "worst-group" else found.average)
        one_row.append(1 / (found.sizes.min() if rule == "worst-group" else found.sizes.sum()))
    enough = max(scores) - min(one_row[0], 0.1) - 1e-9
    place = next(i for i, score in enumerate(scores) if score >= enough)
    return (0.1, 0.3, 1.0)[place], pytest.approx(scores[place])


@pytest.mark.parametrize("test", ["split", "random", "leave-one-environment-out"])
def test_features_are_prepared_from_training_rows_alone(random, monkeypatch, test):
    X, y, e, split = draw(random)
    given = []

    def record(rows, *arguments, **options):
        given.append(rows)
        return prepare(rows, *arguments, **options)

    monkeypatch.setattr(_compare, "prepare", record)
    outcomes(X, y, e, split, test=test, methods=["erm"], n_seeds=2)
    parts = rounds(y, e, split, test, 2, "worst-group")
    distinct = {part.rows: part for part in parts}.values()
    assert len(given) == len(distinct)
    for rows, part in zip(given, distinct, strict=True):
        np.testing.assert_array_equal(rows, X[part.training])


def test_seeds_change_what_is_drawn_and_nothing_else(random):
    X, y, e, split = draw(random)
    keys = ["erm", "subsampled", "dfr", "isr"]
    first, second = (
        [o for o in outcomes(X, y, e, split, methods=keys, n_seeds=2) if o.seed == seed]
        for seed in range(2)
    )
    assert differ(first, second) == {"subsampled", "dfr"}
