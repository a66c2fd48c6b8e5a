"""Rivals: what a user would otherwise pick, as scikit-learn estimators with environments."""

from isrlearn.baselines._exact import ERM, Oracle
from isrlearn.baselines._rivals import IGA, AdamERM, ANDMask, IRMv1, VREx
from isrlearn.baselines._trials import Trial, fit_trials, published_trials

__all__ = [
    "ANDMask",
    "AdamERM",
    "ERM",
    "IGA",
    "IRMv1",
    "Oracle",
    "Trial",
    "VREx",
    "fit_trials",
    "published_trials",
]
