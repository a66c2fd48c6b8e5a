"""Networks: read the features of a trained one, repair its last layer, or train one.

Needs torch (``pip install isrlearn[torch]``).
"""

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError("isrlearn.networks needs torch: pip install 'isrlearn[torch]'") from error

from isrlearn.networks._backbones import Backbone, load_backbone
from isrlearn.networks._calling import best_device
from isrlearn.networks._collect import collect_features
from isrlearn.networks._evaluation import evaluate
from isrlearn.networks._extract import extract_features
from isrlearn.networks._inputs import ImageInputs, TextInputs, rows_of
from isrlearn.networks._objectives import GroupWeights
from isrlearn.networks._records import Epoch, Training
from isrlearn.networks._repair import Repair, put_weights, repair
from isrlearn.networks._report import RepairReport
from isrlearn.networks._rows import NetworkRows
from isrlearn.networks._saved import NetworkCard, load_network
from isrlearn.networks._settings import TrainingSettings
from isrlearn.networks._training import train

__all__ = [
    "Backbone",
    "Epoch",
    "GroupWeights",
    "ImageInputs",
    "NetworkCard",
    "NetworkRows",
    "Repair",
    "RepairReport",
    "TextInputs",
    "Training",
    "TrainingSettings",
    "best_device",
    "collect_features",
    "evaluate",
    "extract_features",
    "load_backbone",
    "load_network",
    "put_weights",
    "repair",
    "rows_of",
    "train",
]
