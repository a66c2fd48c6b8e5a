"""Rivals: what a user would otherwise pick, as scikit-learn estimators with environments."""

from isrlearn.baselines._alignment import CORAL
from isrlearn.baselines._descending import (
    IGA,
    AdamERM,
    ANDMask,
    IRMv1,
    VREx,
)
from isrlearn.baselines._erasure import INLP, LEACE
from isrlearn.baselines._exact import ERM, Oracle
from isrlearn.baselines._invariant_risk import LastLayerIRM, LastLayerVREx
from isrlearn.baselines._probes import DFR, GroupSubsampling, LinearProbe
from isrlearn.baselines._rival import LastLayerRival as LastLayerRival
from isrlearn.baselines._trials import (
    PUBLISHED_STEPS as PUBLISHED_STEPS,
    PUBLISHED_TRIALS as PUBLISHED_TRIALS,
    Trial,
    fit_trials,
    published_trials,
)
from isrlearn.baselines._worst_group import GroupDRO

__all__ = [
    "ANDMask",
    "AdamERM",
    "CORAL",
    "DFR",
    "ERM",
    "GroupDRO",
    "GroupSubsampling",
    "IGA",
    "INLP",
    "IRMv1",
    "LEACE",
    "LastLayerIRM",
    "LastLayerVREx",
    "LinearProbe",
    "Oracle",
    "Trial",
    "VREx",
    "fit_trials",
    "published_trials",
]
