"""The rivals on frozen features inside scikit-learn: its own checks, and a search."""

import numpy as np
import pytest
import sklearn
from conftest import draw_rows
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_baselines_sklearn import WithEnvironments

from isrlearn.baselines import (
    CORAL,
    DFR,
    INLP,
    LEACE,
    GroupDRO,
    GroupSubsampling,
    LastLayerIRM,
    LastLayerVREx,
    LinearProbe,
)

ESTIMATORS = [
    LinearProbe(),
    LinearProbe(weight="class"),
    LinearProbe(weight="group"),
    GroupSubsampling(),
    GroupDRO(),
    DFR(n_refits=2),
    LEACE(),
    LEACE(given_class=True, weight="group"),
    INLP(n_iterations=2),
    LastLayerVREx(),
    LastLayerIRM(),
    CORAL(),
]


class LinearProbeE(WithEnvironments, LinearProbe):
    pass


class GroupSubsamplingE(WithEnvironments, GroupSubsampling):
    pass


class GroupDROE(WithEnvironments, GroupDRO):
    pass


class DFRE(WithEnvironments, DFR):
    pass


class LastLayerVRExE(WithEnvironments, LastLayerVREx):
    pass


class CORALE(WithEnvironments, CORAL):
    pass


# The checks give few features, and erasing one of two may take what some check wants to learn.
WITH_ENVIRONMENTS = [
    LinearProbeE(weight="group"),
    GroupSubsamplingE(),
    GroupDROE(),
    DFRE(n_refits=2),
    LastLayerVRExE(),
    CORALE(),
]


@pytest.mark.filterwarnings("ignore::isrlearn.exceptions.SingleEnvironmentWarning")
@parametrize_with_checks(
    [*ESTIMATORS, *WITH_ENVIRONMENTS], expected_failed_checks=lambda estimator: {}
)
def test_estimator_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("routing", [False, True], ids=["routing off", "routing on"])
def test_grid_search_hands_environments_to_every_fit(random, routing):
    X, y, e = draw_rows(random.integers(2**31), n_classes=3)
    names = np.array(["a", "b", "c"])[e]
    for model in ESTIMATORS:
        with sklearn.config_context(enable_metadata_routing=routing):
            search = GridSearchCV(model, {"C": [0.01, 0.1]}, cv=2)
            search.fit(X, y, environments=names)
        assert search.best_estimator_.environments_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("model", ESTIMATORS, ids=str)
def test_clone_keeps_parameters_and_forgets_the_fit(random, model):
    X, y, e = draw_rows(random.integers(2**31))
    fitted = clone(model).set_params(C=0.25).fit(X, y, environments=e)
    again = clone(fitted)
    assert again.get_params() == {**model.get_params(), "C": 0.25}
    assert hasattr(fitted, "coef_") and not hasattr(again, "coef_")
