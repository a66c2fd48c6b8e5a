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
    from isrlearn.diagnosis import Diagnosis
    from isrlearn.estimators import (
        ISR,
        ISRClassifier,
        ISRCov,
        ISRMean,
        ISRRegressor,
        fold,
        repair_head,
    )
    from isrlearn.heads import LogisticHead
    from isrlearn.io import load, save
    from isrlearn.leaderboard import Comparison, compare
    from isrlearn.moments import CellMoments
    from isrlearn.reporting import Report, report
    from isrlearn.rows import ChunkedRows
    from isrlearn.selection import Selection, select
    from isrlearn.subspace import RankChoice, RankStep, Subspace

__version__ = "0.1.0.dev0"

_HOMES = {
    "CellMoments": "isrlearn.moments",
    "ChunkedRows": "isrlearn.rows",
    "Comparison": "isrlearn.leaderboard",
    "Diagnosis": "isrlearn.diagnosis",
    "ISR": "isrlearn.estimators",
    "ISRClassifier": "isrlearn.estimators",
    "ISRCov": "isrlearn.estimators",
    "ISRMean": "isrlearn.estimators",
    "ISRRegressor": "isrlearn.estimators",
    "LogisticHead": "isrlearn.heads",
    "RankChoice": "isrlearn.subspace",
    "RankStep": "isrlearn.subspace",
    "Report": "isrlearn.reporting",
    "Selection": "isrlearn.selection",
    "Subspace": "isrlearn.subspace",
    "compare": "isrlearn.leaderboard",
    "fold": "isrlearn.estimators",
    "load": "isrlearn.io",
    "repair_head": "isrlearn.estimators",
    "report": "isrlearn.reporting",
    "save": "isrlearn.io",
    "select": "isrlearn.selection",
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
