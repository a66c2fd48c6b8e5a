"""Group scores against fairlearn's MetricFrame: another team's table of the same numbers."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score

from isrlearn.metrics import (
    average_accuracy,
    environment_accuracies,
    group_scores,
    worst_group_accuracy,
)

fairlearn = pytest.importorskip("fairlearn.metrics")


def draw(random, n=300, k=2, E=4):
    """Labels, predictions that are right more often in some environments, and environments."""
    y, e = random.integers(0, k, n), random.integers(0, E, n)
    right = random.random(n) < random.uniform(0.2, 1.0, size=E)[e]
    return y, np.where(right, y, (y + 1) % k), e


def frame(y, predicted, features, weights=None):
    parameters = None if weights is None else {"sample_weight": weights}
    return fairlearn.MetricFrame(
        metrics=accuracy_score,
        y_true=y,
        y_pred=predicted,
        sensitive_features=features,
        sample_params=parameters,
    )


def assert_same_groups(scores, theirs):
    """Groups without rows are NaN in both; pandas sorts classes and environments as we do."""
    table = theirs.by_group.unstack().to_numpy(dtype=float)
    np.testing.assert_allclose(scores.accuracies, table, rtol=1e-12)
    assert scores.worst == pytest.approx(theirs.group_min(), rel=1e-12)


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("E", [2, 5])
def test_groups_and_environments(random, k, E):
    y, predicted, e = draw(random, k=k, E=E)
    scores = group_scores(y, predicted, environments=e)
    theirs = frame(y, predicted, {"class": y, "environment": e})
    assert_same_groups(scores, theirs)
    assert scores.average == pytest.approx(theirs.overall)
    assert average_accuracy(y, predicted) == pytest.approx(theirs.overall)
    worst = theirs.by_group.unstack().stack()  # without groups that have no rows
    assert worst[scores.worst_group] == pytest.approx(worst.min())
    alone = frame(y, predicted, {"environment": e})
    found = environment_accuracies(y, predicted, environments=e)
    assert found == pytest.approx(alone.by_group.to_dict())
    assert scores.per_environment.min() == pytest.approx(alone.group_min())


def test_a_class_that_is_absent_from_an_environment(random):
    y, predicted, e = draw(random, k=3)
    kept = ~((y == 1) & (e == 2)) & ~((y == 0) & (e == 0))
    y, predicted, e = y[kept], predicted[kept], e[kept]
    scores = group_scores(y, predicted, environments=e)
    assert np.argwhere(np.isnan(scores.accuracies)).tolist() == [[0, 0], [1, 2]]
    assert_same_groups(scores, frame(y, predicted, {"class": y, "environment": e}))


def test_several_attributes_of_the_same_rows_one_by_one_and_crossed(random):
    y, predicted, first = draw(random, n=600)
    second = np.array(["new", "old", "rare"])[random.integers(0, 3, len(y))]
    for column in (first, second):
        theirs = frame(y, predicted, {"class": y, "environment": column})
        assert_same_groups(group_scores(y, predicted, environments=column), theirs)
    crossed = [f"{a}, {b}" for a, b in zip(first, second, strict=True)]
    scores = group_scores(y, predicted, environments=crossed)
    theirs = frame(y, predicted, {"class": y, "first": first, "second": second})
    table = theirs.by_group.unstack([1, 2]).sort_index(axis=1)
    np.testing.assert_allclose(scores.accuracies, table.to_numpy(dtype=float))
    assert scores.worst == pytest.approx(theirs.group_min())
    coarse = [worst_group_accuracy(y, predicted, environments=c) for c in (first, second)]
    assert scores.worst <= min(coarse) + 1e-12  # a group is never worse than the worst of its parts


@pytest.mark.parametrize("missing", [None, np.nan])
def test_rows_of_unknown_environment_are_left_out(random, missing):
    y, predicted, e = draw(random)
    unknown = random.random(len(y)) < 0.2
    scores = group_scores(y, predicted, environments=np.where(unknown, missing, e.astype(object)))
    known = ~unknown
    theirs = frame(y[known], predicted[known], {"class": y[known], "environment": e[known]})
    assert_same_groups(scores, theirs)
    assert scores.average == pytest.approx(theirs.overall)


def test_sample_weights(random):
    y, predicted, e = draw(random, k=3)
    weights = random.uniform(0.1, 3, len(y))
    scores = group_scores(y, predicted, environments=e, sample_weight=weights)
    theirs = frame(y, predicted, {"class": y, "environment": e}, weights)
    assert_same_groups(scores, theirs)
    assert scores.average == pytest.approx(theirs.overall)


def test_names_of_classes_and_environments(random):
    y, predicted, e = draw(random, k=3, E=3)
    names, places = np.array(["ant", "bee", "cow"]), np.array(["hill", "lake", "moor"])
    ours = group_scores(names[y], names[predicted], environments=places[e])
    theirs = frame(names[y], names[predicted], {"class": names[y], "environment": places[e]})
    assert_same_groups(ours, theirs)
    by_name = theirs.by_group.to_dict()
    assert by_name[ours.worst_group] == pytest.approx(theirs.group_min())
