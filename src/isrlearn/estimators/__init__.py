"""Thin scikit-learn shells: transformers, classifier, regressor; folding and repair."""

from isrlearn.estimators._folding import (
    fold,
    repair_head,
)
from isrlearn.estimators._predictors import (
    ISRClassifier,
    ISRPredictor as ISRPredictor,
    ISRRegressor,
    check_group_weight as check_group_weight,
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
