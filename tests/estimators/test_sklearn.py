"""scikit-learn's own checks, with nothing expected to fail."""

import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn_support import environments_of

from isrlearn import ISR, ISRClassifier, ISRCov, ISRMean, ISRRegressor, LogisticHead

pytestmark = [
    pytest.mark.filterwarnings("ignore::isrlearn.exceptions.SingleEnvironmentWarning"),
    pytest.mark.filterwarnings("ignore::isrlearn.exceptions.TinyCellWarning"),
    pytest.mark.filterwarnings("ignore::isrlearn.exceptions.EmptyCellWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

ESTIMATORS = [
    ISRMean(),
    ISRMean(0, condition_on=1, scale=0.5),
    ISRMean(reduced=True),
    ISRCov(),
    ISRCov(n_spurious=3, pairs="distinct"),
    ISR(),
    ISR(2, reduced=True),
    ISRClassifier(),
    ISRClassifier(ISRCov(2), RidgeClassifier(), group_weight="balanced"),
    ISRRegressor(),
    LogisticHead(),
]


class WithEnvironments:
    """The checks pass no environments; this fits with some, so that something is removed."""

    def fit(self, X, y, *, environments=None, sample_weight=None):
        if environments is None:
            environments = environments_of(X, y, sample_weight)
        return super().fit(X, y, environments=environments, sample_weight=sample_weight)


class ISRMeanE(WithEnvironments, ISRMean):
    pass


class ISRCovE(WithEnvironments, ISRCov):
    pass


class ISRE(WithEnvironments, ISR):
    pass


class ISRClassifierE(WithEnvironments, ISRClassifier):
    pass


# Scale 0.5: a direction found in noise may be the one that some check wants to learn from.
WITH_ENVIRONMENTS = [
    ISRMeanE(),
    ISRMeanE("auto"),
    ISRCovE(),
    ISRCovE("auto"),
    ISRE(),
    ISRE(1),
    ISRE(rank_test="moments"),
    ISRClassifierE(ISRMean(scale=0.5)),
    ISRClassifierE(ISR(scale=0.5)),
]


@parametrize_with_checks(
    [*ESTIMATORS, *WITH_ENVIRONMENTS], expected_failed_checks=lambda estimator: {}
)
def test_estimator_check(estimator, check):
    check(estimator)
