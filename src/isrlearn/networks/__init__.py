"""Networks: read the features of a trained one, repair its last layer, or train one.

Needs torch (``pip install isrlearn[torch]``).
"""

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "isrlearn.networks needs torch: pip install 'isrlearn[torch]'"
    ) from error

from isrlearn.networks._collect import collect_features
from isrlearn.networks._repair import Repair, put_weights, repair
from isrlearn.networks._report import RepairReport

__all__ = ["Repair", "RepairReport", "collect_features", "put_weights", "repair"]
