"""Group scores against a plain loop."""

import numpy as np
import pandas as pd
import pytest
from conftest import seeds
from hypothesis import given, strategies as st
from sklearn.dummy import DummyClassifier

from isrlearn.metrics import (
    GroupScorer,
    adjusted_average_accuracy,
    average_accuracy,
    environment_accuracies,
    group_scores,
    overlapping_group_scores,
    worst_group_accuracy,
)


@given(seed=seeds, n=st.integers(1, 60), k=st.integers(1, 4), E=st.integers(1, 4))
def test_scores_agree_with_a_loop(seed, n, k, E):
    random = np.random.default_rng(seed)
    y, predicted, e = (random.integers(0, m, n) for m in (k, k, E))
    weights = random.uniform(0.1, 2, n)
    scores = group_scores(y, predicted, environments=e, sample_weight=weights)
    accuracies = {}
    for c in np.unique(y):
        for v in np.unique(e):
            rows = (y == c) & (e == v)
            if rows.any():
                accuracies[c, v] = np.average(predicted[rows] == c, weights=weights[rows])
    filled = scores.accuracies[scores.sizes > 0]
    np.testing.assert_allclose(filled, list(accuracies.values()))
    assert scores.worst == pytest.approx(min(accuracies.values()))
    assert accuracies[scores.worst_group] == pytest.approx(scores.worst)
    average = np.average(y == predicted, weights=weights)
    assert scores.average == pytest.approx(average)
    assert average_accuracy(y, predicted, sample_weight=weights) == pytest.approx(average)
    for v, value in environment_accuracies(y, predicted, environments=e).items():
        assert value == pytest.approx(np.mean(y[e == v] == predicted[e == v]))


@given(seed=seeds)
def test_the_adjusted_average_of_the_training_rows_is_the_plain_one(seed):
    random = np.random.default_rng(seed)
    y, predicted, e = (random.integers(0, 3, 50) for _ in range(3))
    adjusted = adjusted_average_accuracy(
        y, predicted, environments=e, y_train=y, environments_train=e
    )
    assert adjusted == pytest.approx(average_accuracy(y, predicted))


def test_the_two_averages_differ_when_the_groups_do():
    """One group of four rows, all right; one of a single row, wrong. Training was half and half."""
    y, predicted, e = [0] * 5, [0, 0, 0, 0, 1], ["a"] * 4 + ["b"]
    assert average_accuracy(y, predicted) == 0.8
    adjusted = adjusted_average_accuracy(
        y, predicted, environments=e, y_train=[0, 0], environments_train=["a", "b"]
    )
    assert adjusted == 0.5


def test_a_training_group_without_scored_rows_is_named():
    with pytest.raises(ValueError, match=r"class .*1.*environment .*b.* has no scored rows"):
        adjusted_average_accuracy(
            [0, 1], [0, 1], environments=["a", "a"], y_train=[0, 1], environments_train=["a", "b"]
        )


def test_rows_of_unknown_environment_belong_to_no_group():
    scores = group_scores(["u", "u", "v"], ["u", "v", "v"], environments=["a", None, "a"])
    assert scores.worst == scores.average == 1
    with pytest.raises(ValueError, match="nothing to score"):
        group_scores([0, 1], [0, 1], environments=[None, None])


def test_empty_groups_do_not_count():
    assert worst_group_accuracy([0, 1], [0, 1], environments=["a", "b"]) == 1
    scores = group_scores([0, 1], [0, 0], environments=["a", "b"])
    assert np.isnan(scores.accuracies).sum() == 2
    assert scores.worst_group == (1, "b")


def test_bad_arguments():
    with pytest.raises(ValueError, match="y_pred"):
        group_scores([0, 1], [0], environments=["a", "b"])
    with pytest.raises(ValueError, match="environments has 1 values for 2 rows"):
        group_scores([0, 1], [0, 1], environments=["a"])
    with pytest.raises(ValueError, match="score='best' must be one of"):
        GroupScorer("best")
    with pytest.raises(TypeError, match="needs a pandas Series"):
        GroupScorer(environments=np.zeros(3))
    with pytest.raises(TypeError, match="same type"):
        group_scores([0, 1], ["0", "1"], environments=["a", "b"])
    with pytest.raises(TypeError, match="same type"):
        average_accuracy(["0", "1"], [0, 1])


def test_scorer_names_an_index_that_does_not_match():
    model = DummyClassifier().fit([[0], [0]], [0, 1])
    X = pd.DataFrame({"x": [1.0, 2.0]}, index=[5, 6])
    for index in ([5, 7], [5, 5]):
        with pytest.raises(ValueError, match="same unique index"):
            GroupScorer(environments=pd.Series(["a", "b"], index=index))(model, X, [0, 1])


def test_what_each_scorer_returns():
    model = DummyClassifier(strategy="constant", constant=0).fit([[0], [0]], [0, 1])
    y, e = [0, 0, 0, 1, 0], ["a", "a", "a", "a", "b"]
    found = {
        name: GroupScorer(name)(model, np.zeros((5, 1)), y, environments=e)
        for name in ("worst_group", "worst_environment", "average")
    }
    assert found == {"worst_group": 0.0, "worst_environment": 0.75, "average": 0.8}


def test_rows_of_weight_zero_are_not_scored():
    scores = group_scores(
        [0, 1, 1], [0, 1, 0], environments=["a", "a", "b"], sample_weight=[1, 1, 0]
    )
    assert scores.environments.tolist() == ["a"]
    assert scores.worst == 1
    with pytest.raises(ValueError, match="y_true has missing labels"):
        group_scores([0, None], [0, 1], environments=["a", "b"])


def test_a_continuous_target_has_no_groups(random):
    y = random.normal(size=20)
    with pytest.raises(ValueError, match="y_true is continuous.*errors in each environment"):
        group_scores(y, y, environments=np.repeat([0, 1], 10))


def test_attributes_may_overlap_and_be_unknown_apart(random):
    n = 300
    y, predicted = random.integers(0, 3, n), random.integers(0, 3, n)
    attributes = {
        "sex": random.choice(["f", "m"], n).astype(object),
        "site": random.integers(0, 4, n).astype(object),
    }
    for values in attributes.values():
        values[random.random(n) < 0.2] = None
    scores = overlapping_group_scores(y, predicted, environments=attributes)
    expected = []
    for name, values in attributes.items():
        cells = {(c, v) for c, v in zip(y, values, strict=True) if v is not None}
        by_hand = [np.mean(predicted[(y == c) & (values == v)] == c) for c, v in cells]
        assert scores[name].worst == pytest.approx(min(by_hand))
        expected += by_hand
    found = worst_group_accuracy(y, predicted, environments=attributes)
    assert found == pytest.approx(min(expected))


def test_attributes_need_names():
    for wrong in ({}, [["a", "b"]], "ab"):
        with pytest.raises(TypeError, match="mapping of names"):
            overlapping_group_scores([0, 1], [0, 1], environments=wrong)
