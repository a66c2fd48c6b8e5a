"""The rivals inside scikit-learn: its own checks, with nothing expected to fail, and a search."""

import numpy as np
import pytest
import sklearn
from conftest import draw_rows
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn_support import environments_of

from isrlearn.baselines import ERM, IGA, AdamERM, ANDMask, IRMv1, Oracle, VREx

FAST = {"learning_rate": 0.1, "n_steps": 200}
ESTIMATORS = [
    ERM(),
    ERM("standardised"),
    ERM("whitened"),
    Oracle(),
    AdamERM(**FAST),
    IRMv1(0.5, **FAST),
    IGA(1.0, **FAST),
    VREx(1.0, **FAST),
    ANDMask(0.5, **FAST),
]


class WithEnvironments:
    """The checks pass no environments; this fits with some, so that they are compared."""

    def fit(self, X, y, *, environments=None):
        if environments is None:
            environments = environments_of(X, y, None)
        return super().fit(X, y, environments=environments)


class IRMv1E(WithEnvironments, IRMv1):
    pass


class IGAE(WithEnvironments, IGA):
    pass


class VRExE(WithEnvironments, VREx):
    pass


class ANDMaskE(WithEnvironments, ANDMask):
    pass


WITH_ENVIRONMENTS = [
    IRMv1E(0.5, **FAST),
    IGAE(1.0, **FAST),
    VRExE(1.0, **FAST),
    ANDMaskE(0.5, **FAST),
]


@pytest.mark.filterwarnings("ignore::isrlearn.exceptions.SingleEnvironmentWarning")
@parametrize_with_checks(
    [*ESTIMATORS, *WITH_ENVIRONMENTS], expected_failed_checks=lambda estimator: {}
)
def test_estimator_check(estimator, check):
    check(estimator)


def test_clone_keeps_parameters_and_forgets_the_fit(random):
    X, y, e = draw_rows(random.integers(2**31))
    model = IRMv1(0.3, n_steps=7, random_state=2).fit(X, y, environments=e)
    given = {"penalty": 0.3, "n_steps": 7, "random_state": 2}
    again = clone(model)
    assert again.get_params() == {**given, "learning_rate": 1e-3, "weight_decay": 0.0}
    assert hasattr(model, "coef_") and not hasattr(again, "coef_")


@pytest.mark.parametrize("routing", [False, True], ids=["routing off", "routing on"])
def test_grid_search_hands_environments_to_every_fit(random, routing):
    X, y, e = draw_rows(random.integers(2**31))
    names = np.array(["a", "b", "c"])[e]
    model = IRMv1(learning_rate=0.05, n_steps=50, random_state=0)
    with sklearn.config_context(enable_metadata_routing=routing):
        assert model.get_metadata_routing().fit.requests["environments"] is True
        search = GridSearchCV(model, {"penalty": [0.1, 0.9]}, cv=LeaveOneGroupOut())
        search.fit(X, y, groups=names, environments=names)
    best = clone(model).set_params(**search.best_params_).fit(X, y, environments=names)
    assert search.best_estimator_.environments_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(search.best_estimator_.coef_, best.coef_)
