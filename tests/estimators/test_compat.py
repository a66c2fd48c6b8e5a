"""The estimators inside scikit-learn's machinery, with metadata routing off and on."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from conftest import draw_rows
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    LeaveOneGroupOut,
    StratifiedKFold,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from isrlearn import ISRClassifier, ISRCov, ISRMean
from isrlearn.metrics import GroupScorer

SHUFFLED = StratifiedKFold(3, shuffle=True)
TRANSFORMERS = [ISRMean(1), ISRCov(1)]
every_transformer = pytest.mark.parametrize("isr", TRANSFORMERS, ids=str)


@pytest.fixture
def rows(random):
    """Three classes, four environments, labels and environments as strings."""
    X, y, e = draw_rows(random.integers(2**31), n_classes=3, n_environments=4, per_cell=60)
    return X, np.array(["low", "mid", "top"])[y], np.array(["a", "b", "c", "d"])[e]


@pytest.fixture(params=[False, True], ids=["routing off", "routing on"])
def routing(request):
    with sklearn.config_context(enable_metadata_routing=request.param):
        yield request.param


def pipeline(isr):
    return make_pipeline(StandardScaler(), isr, LogisticRegression(max_iter=5000))


def fit_arguments(isr, environments, routing):
    name = "environments" if routing else f"{type(isr).__name__.lower()}__environments"
    return {name: environments}


@every_transformer
def test_pipeline(isr, rows, routing):
    X, y, e = rows
    pipe = pipeline(clone(isr)).fit(X, y, **fit_arguments(isr, e, routing))
    assert pipe[1].n_spurious_ == 1
    Z = StandardScaler().fit_transform(X)
    projected = clone(isr).fit(Z, y, environments=e).transform(Z)
    np.testing.assert_allclose(pipe[:-1].transform(X), projected)


@every_transformer
def test_cross_validate_leaving_one_environment_out(isr, rows, routing):
    X, y, e = rows
    arguments = fit_arguments(isr, e, routing)
    groups = (
        {"params": {**arguments, "groups": e}} if routing else {"params": arguments, "groups": e}
    )
    result = cross_validate(
        pipeline(clone(isr)), X, y, cv=LeaveOneGroupOut(), return_estimator=True, **groups
    )
    assert len(result["estimator"]) == 4
    assert all(len(p[1].environments_) == 3 for p in result["estimator"])


@every_transformer
def test_grid_search(isr, rows, routing):
    X, y, e = rows
    name = type(isr).__name__.lower()
    search = GridSearchCV(
        pipeline(clone(isr)), {f"{name}__n_spurious": [0, 1, 2]}, cv=LeaveOneGroupOut()
    )
    search.fit(X, y, groups=e, **fit_arguments(isr, e, routing))
    assert search.best_estimator_[1].n_spurious_ == search.best_params_[f"{name}__n_spurious"]


def test_classifier_in_cross_validate_and_grid_search(rows, routing):
    X, y, e = rows
    clf = ISRClassifier(ISRMean(1), LogisticRegression(max_iter=5000))
    arguments = {"params": {"environments": e, "groups": e}} if routing else {}
    if not routing:
        arguments = {"params": {"environments": e}, "groups": e}
    scores = cross_validate(clf, X, y, cv=LeaveOneGroupOut(), **arguments)["test_score"]
    assert scores.shape == (4,)
    search = GridSearchCV(clf, {"isr__n_spurious": [0, 1]}, cv=LeaveOneGroupOut())
    search.fit(X, y, groups=e, environments=e)
    assert search.best_estimator_.environments_.tolist() == ["a", "b", "c", "d"]


def test_group_scorer_with_routing(rows):
    X, y, e = rows
    clf = ISRClassifier(ISRMean(1), LogisticRegression(max_iter=5000))
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(clf, {"isr__n_spurious": [0, 1]}, scoring=GroupScorer(), cv=SHUFFLED)
        search.fit(X, y, environments=e)
    assert 0 <= search.best_score_ <= 1


def test_group_scorer_without_routing_by_index(rows):
    X, y, e = rows
    index = np.arange(len(X)) * 3 + 7
    frame, environments = pd.DataFrame(X, index=index), pd.Series(e, index=index)
    scorer = GroupScorer("worst_environment", environments=environments)
    clf = ISRClassifier(ISRMean(1), LogisticRegression(max_iter=5000))
    result = cross_validate(
        clf, frame, y, scoring=scorer, cv=SHUFFLED, params={"environments": environments}
    )
    assert np.isfinite(result["test_score"]).all()


def test_group_scorer_without_environments_says_what_to_do(rows):
    X, y, e = rows
    clf = ISRClassifier(ISRMean(1), LogisticRegression(max_iter=5000)).fit(X, y, environments=e)
    with pytest.raises(ValueError, match="turn on metadata routing"):
        GroupScorer()(clf, X, y)


@every_transformer
def test_clone_forgets_the_fit(isr, rows):
    X, y, e = rows
    again = clone(clone(isr).fit(X, y, environments=e))
    assert not hasattr(again, "subspace_")
    assert not hasattr(again, "classes_")
    assert again.get_params() == isr.get_params()


@every_transformer
@pytest.mark.parametrize("reduced", [False, True])
def test_pandas_in_and_out(isr, reduced, rows):
    X, y, e = rows
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(5)], index=np.arange(len(X)) + 3)
    isr = clone(isr).set_params(reduced=reduced).set_output(transform="pandas")
    out = isr.fit_transform(frame, pd.Series(y), environments=pd.Series(e))
    assert out.index.equals(frame.index)
    prefix = type(isr).__name__.lower()
    expected = [f"{prefix}{i}" for i in range(4)] if reduced else list(frame.columns)
    assert list(out.columns) == expected == isr.get_feature_names_out().tolist()
    plain = clone(isr).set_output(transform="default").fit(X, y, environments=e)
    np.testing.assert_allclose(out.to_numpy(), plain.transform(X))


def test_pandas_labels_with_missing_values(rows):
    X, y, e = rows
    known = np.arange(len(X)) % 3 > 0
    expected = ISRMean(2).fit(X[known], y[known], environments=e[known])
    for environments in (
        pd.Series(e).where(known),
        pd.Series(e).where(known).astype("string"),
        pd.Series(e).where(known).astype("category"),
        np.array([label if k else np.nan for label, k in zip(e, known, strict=True)]),
        np.where(known, e.astype(object), None),
        [label if k else None for label, k in zip(e, known, strict=True)],
        [label if k else float("nan") for label, k in zip(e, known, strict=True)],
        [label if k else pd.NA for label, k in zip(e, known, strict=True)],
    ):
        isr = ISRMean(2).fit(X, y, environments=environments)
        assert isr.environments_.tolist() == ["a", "b", "c", "d"]
        np.testing.assert_allclose(isr.transform(X), expected.transform(X))
    codes = pd.Series(np.unique(e, return_inverse=True)[1]).where(known)
    for environments in (codes, codes.astype("Int64"), codes.to_numpy()):
        isr = ISRMean(2).fit(X, y, environments=environments)
        assert isr.environments_.tolist() == [0, 1, 2, 3]
        np.testing.assert_allclose(isr.transform(X), expected.transform(X))


def test_environments_are_requested_by_every_way_of_fitting():
    with sklearn.config_context(enable_metadata_routing=True):
        for isr in TRANSFORMERS:
            requests = isr.get_metadata_routing()
            assert requests.fit.requests["environments"] is True
            assert requests.partial_fit.requests["environments"] is True
        assert ISRClassifier().get_metadata_routing().fit.requests["environments"] is True


def test_tags_are_those_of_the_head():
    class BinaryOnly(LogisticRegression):
        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.classifier_tags.multi_class = False
            return tags

    assert get_tags(ISRClassifier()).classifier_tags.multi_class
    assert not get_tags(ISRClassifier(ISRMean(), head=BinaryOnly())).classifier_tags.multi_class
