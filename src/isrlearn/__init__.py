"""Invariant-feature Subspace Recovery (ISR).

Rows come with features, a label and an *environment* (hospital, camera, background, ...).
ISR finds the directions of feature space in which the environments differ given the class,
removes them, and fits or repairs a linear predictor on the rest.

Importing this package loads nothing: every name is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isrlearn import (
        baselines,
        benchmark,
        datasets,
        diagnosis,
        exceptions,
        io,
        leaderboard,
        metrics,
        moments,
        networks,
        plots,
        reporting,
        reproduce,
        subspace,
    )
    from isrlearn._chunks import ChunkedRows
    from isrlearn._folding import fold, repair_head
    from isrlearn._heads import LogisticHead
    from isrlearn._predictors import ISRClassifier
    from isrlearn._rank_test import RankChoice, RankStep
    from isrlearn._regressor import ISRRegressor
    from isrlearn._select import Selection, select
    from isrlearn._transformers import ISR, ISRCov, ISRMean
    from isrlearn.diagnosis import Diagnosis
    from isrlearn.io import load, save
    from isrlearn.leaderboard import Comparison, compare
    from isrlearn.moments import CellMoments
    from isrlearn.reporting import Report, report
    from isrlearn.subspace import Subspace

__version__ = "0.1.0.dev0"

_HOMES = {
    "CellMoments": "isrlearn.moments",
    "ChunkedRows": "isrlearn._chunks",
    "Comparison": "isrlearn.leaderboard",
    "Diagnosis": "isrlearn.diagnosis",
    "ISR": "isrlearn._transformers",
    "ISRClassifier": "isrlearn._predictors",
    "ISRCov": "isrlearn._transformers",
    "ISRMean": "isrlearn._transformers",
    "ISRRegressor": "isrlearn._regressor",
    "LogisticHead": "isrlearn._heads",
    "RankChoice": "isrlearn._rank_test",
    "RankStep": "isrlearn._rank_test",
    "Report": "isrlearn.reporting",
    "Selection": "isrlearn._select",
    "Subspace": "isrlearn.subspace",
    "compare": "isrlearn.leaderboard",
    "fold": "isrlearn._folding",
    "load": "isrlearn.io",
    "repair_head": "isrlearn._folding",
    "report": "isrlearn.reporting",
    "save": "isrlearn.io",
    "select": "isrlearn._select",
    "baselines": "isrlearn.baselines",
    "benchmark": "isrlearn.benchmark",
    "datasets": "isrlearn.datasets",
    "diagnosis": "isrlearn.diagnosis",
    "exceptions": "isrlearn.exceptions",
    "io": "isrlearn.io",
    "leaderboard": "isrlearn.leaderboard",
    "metrics": "isrlearn.metrics",
    "moments": "isrlearn.moments",
    "networks": "isrlearn.networks",
    "plots": "isrlearn.plots",
    "reporting": "isrlearn.reporting",
    "reproduce": "isrlearn.reproduce",
    "subspace": "isrlearn.subspace",
}
_SUBMODULES = {
    "baselines",
    "benchmark",
    "datasets",
    "diagnosis",
    "exceptions",
    "io",
    "leaderboard",
    "metrics",
    "moments",
    "networks",
    "plots",
    "reporting",
    "reproduce",
    "subspace",
}

__all__ = [
    "CellMoments",
    "ChunkedRows",
    "Comparison",
    "Diagnosis",
    "ISR",
    "ISRClassifier",
    "ISRCov",
    "ISRMean",
    "ISRRegressor",
    "LogisticHead",
    "RankChoice",
    "RankStep",
    "Report",
    "Selection",
    "Subspace",
    "__version__",
    "baselines",
    "benchmark",
    "compare",
    "datasets",
    "diagnosis",
    "exceptions",
    "fold",
    "io",
    "leaderboard",
    "load",
    "metrics",
    "moments",
    "networks",
    "plots",
    "repair_head",
    "report",
    "reporting",
    "reproduce",
    "save",
    "select",
    "subspace",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'isrlearn' has no attribute {name!r}")
    module = import_module(_HOMES[name])
    value = module if name in _SUBMODULES else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
