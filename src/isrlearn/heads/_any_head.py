"""Any head of scikit-learn's, or of the user's own, on rows in memory."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn import config_context
from sklearn.utils.validation import has_fit_parameter

from isrlearn.exceptions import PrecisionWarning, warn_user
from isrlearn.heads._row_weights import bearable_weights
from isrlearn.rows import UNKNOWN, Rows
from isrlearn.typing import Float64Array, FloatArray, IntArray, LabelArray


@contextmanager
def _telling_of_scales(head: Any) -> Iterator[None]:
    """Say what to do where a head warns that its system is nearly singular."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    of_scales = [_is_of_scales(warning) for warning in caught]
    for warning, told in zip(caught, of_scales, strict=True):
        if not told:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    if any(of_scales):
        warn_user(
            f"head={head!r} solves a system that is singular up to rounding errors: features "
            "differ in scale by more than about 1e8, or nearly add up to others. Scale them "
            "first, for example head=make_pipeline(StandardScaler(), Ridge()).",
            PrecisionWarning,
        )


def _is_of_scales(warning: warnings.WarningMessage) -> bool:
    """Whether a library warns of a singular system; Ridge's dual has no class for that."""
    singular = str(warning.message).startswith("Singular matrix")
    return singular or issubclass(warning.category, LinAlgWarning)


def fit_head(head: Any, X: FloatArray, rows: Rows, weights: Float64Array | None) -> Any:
    """Fit a head on rows without their spurious part.

    Parameters
    ----------
    head : estimator
        Not fitted. One whose ``fit`` takes ``environments`` gets them.
    X : ndarray of shape (n, d)
        The rows without their spurious part.
    rows : Rows
        Labels and environments.
    weights : ndarray of shape (n,) or None
        Weights of the rows.

    Returns
    -------
    head
    """
    arguments: dict[str, Any] = {}
    if takes_environments(head):
        arguments["environments"] = labelled_environments(rows.environments, rows.environment_codes)
    if weights is not None:
        arguments[_weight_argument(head)] = bearable_weights(weights)
    # These are ours, not metadata that the user sent: they go by name whatever is requested.
    with config_context(enable_metadata_routing=False), _telling_of_scales(head):
        head.fit(X, rows.y, **arguments)
    return head  # not what fit returns: it may be None in a head of the user's own


def labelled_environments(labels: LabelArray, codes: IntArray) -> LabelArray | None:
    """Return the environment of each row as an object, None where unknown; None if all are."""
    if len(labels) == 0:
        return None
    column = np.full(len(codes), None, dtype=object)
    known = codes != UNKNOWN
    column[known] = labels[codes[known]]
    return column


def takes_environments(head: Any) -> bool:
    """Whether a head weighs groups in its own way, such as `GroupDRO`."""
    return not hasattr(head, "steps") and has_fit_parameter(head, "environments")


def _weight_argument(head: Any) -> str:
    """Return the name under which the `fit` of a head takes weights without metadata routing."""
    if hasattr(head, "steps"):
        name, last = head.steps[-1]
        return f"{name}__{_weight_argument(last)}"
    if hasattr(head, "param_grid") or hasattr(head, "param_distributions"):
        return _weight_argument(head.estimator)
    if has_fit_parameter(head, "sample_weight"):
        return "sample_weight"
    raise ValueError(
        f"{type(head).__name__}.fit takes no sample_weight, which group_weight and "
        "sample_weight need: choose another head, or group_weight=None and no sample_weight."
    )
