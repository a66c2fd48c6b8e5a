"""Thin scikit-learn shells: transformers, classifier, regressor; folding and repair."""

from isrlearn.estimators._classifier import (
    ISRClassifier,
    check_group_weight as check_group_weight,
)
from isrlearn.estimators._folding import (
    fold,
    repair_head,
)
from isrlearn.estimators._predictor_base import (
    ISRPredictor as ISRPredictor,
    fit_head as fit_head,
    labelled_environments as labelled_environments,
    takes_environments as takes_environments,
)
from isrlearn.estimators._regressor import (
    ISRRegressor,
)
from isrlearn.estimators._transformers import (
    ISR,
    ISRCov,
    ISRMean,
    ISRTransformer as ISRTransformer,
    default_isr as default_isr,
    names_of_features as names_of_features,
)

__all__ = ["ISR", "ISRClassifier", "ISRCov", "ISRMean", "ISRRegressor", "fold", "repair_head"]
