"""scikit-learn's own checks, with nothing expected to fail."""

import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from isrlearn import ISRClassifier, ISRCov, ISRMean

pytestmark = [
    pytest.mark.filterwarnings("ignore::isrlearn.exceptions.SingleEnvironmentWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

ESTIMATORS = [
    ISRMean(),
    ISRMean(0, condition_on=1, scale=0.5),
    ISRMean(reduced=True),
    ISRCov(),
    ISRCov(n_spurious=3, pairs="distinct"),
    ISRClassifier(),
    ISRClassifier(ISRCov(2), RidgeClassifier(), group_weight="balanced"),
]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda estimator: {})
def test_estimator_check(estimator, check):
    check(estimator)
