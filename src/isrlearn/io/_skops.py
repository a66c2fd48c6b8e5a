"""Whole estimators in skops files: sealed, never pickled, of types that are known."""

import copy
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from sklearn.base import BaseEstimator

from isrlearn._base import ISRTransformer
from isrlearn._files import write_whole
from isrlearn._json import parse_json
from isrlearn._seal import UNSEALED, is_whole, seal
from isrlearn.exceptions import ModelFileError
from isrlearn.io._skops_parts import check_parts

PROTOCOL: Final = 1
LARGEST_SCATTERS: Final = 64 * 2**20
"""Bytes of scatters that are kept; larger ones are left out, and a diagnosis tells less."""
TRUSTED: Final = tuple(
    f"isrlearn.{name}"
    for name in (
        "_frame.Frame",
        "_heads.LogisticHead",
        "_nulls.Evidence",
        "_predictors.ISRClassifier",
        "_rank_test.RankChoice",
        "_rank_test.RankStep",
        "_regressor.ISRRegressor",
        "_search.Found",
        "_transformers.ISR",
        "_transformers.ISRCov",
        "_transformers.ISRMean",
        "_workings.Workings",
        "baselines._alignment.CORAL",
        "baselines._dro.GroupDRO",
        "baselines._erasure.INLP",
        "baselines._erasure.LEACE",
        "baselines._exact.ERM",
        "baselines._exact.Oracle",
        "baselines._invariant_risk.LastLayerIRM",
        "baselines._invariant_risk.LastLayerVREx",
        "baselines._probes.GroupSubsampling",
        "baselines._probes.LinearProbe",
        "baselines._retraining.DFR",
        "baselines._rivals.ANDMask",
        "baselines._rivals.AdamERM",
        "baselines._rivals.IGA",
        "baselines._rivals.IRMv1",
        "baselines._rivals.VREx",
        "moments.CellMoments",
        "subspace.Subspace",
    )
) + ("numpy.dtype",)
"""Types that a file may name, beside those that skops itself trusts."""


def write_estimator(estimator: Any, path: Path) -> None:
    """Write a fitted estimator; what is there is replaced when the new file is whole.

    Parameters
    ----------
    estimator : estimator
        Of this library or of scikit-learn, or a Pipeline of them.
    path : Path
        A ``.skops`` file.
    """
    from skops.io import dump

    def write(place: Path) -> None:
        dump(_without_scatters(estimator), place)
        _refuse_unreadable(place)
        with zipfile.ZipFile(place, "a") as file:
            card = {"isrlearn": PROTOCOL, "seal": UNSEALED}
            file.comment = json.dumps(card, sort_keys=True).encode()
        seal(place)

    write_whole(path, write)


def _refuse_unreadable(place: Path) -> None:
    """Refuse now what could not be loaded later."""
    try:
        check_parts(place, TRUSTED, trusted=None)
    except ValueError as error:
        raise ValueError(
            f"{place.name} could not be read again ({error}): save the parts of it that predict."
        ) from error


def read_estimator(path: Path, trusted: Sequence[str] = ()) -> Any:
    """Read what `write_estimator` wrote; `ModelFileError` if it is something else.

    Parameters
    ----------
    path : Path
        The file.
    trusted : sequence of str, default=()
        Other types that it may name.
    """
    from skops.io import get_untrusted_types, load

    _check(path)
    allowed = {*TRUSTED, *trusted}
    try:
        check_parts(path, TRUSTED, trusted)
        unknown = sorted(set(get_untrusted_types(file=path)) - allowed)
        if unknown:
            raise ModelFileError(
                f"{path} names types that are not trusted: {', '.join(unknown)[:200]}. If you know "
                "and trust them, load it with trusted=[...]; else do not use it."
            )
        return load(path, trusted=sorted(allowed))
    except ModelFileError:
        raise
    # Whatever skops, NumPy or an estimator says of a file that was made by hand.
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise ModelFileError(f"{path} cannot be read as a model ({reason}).") from error


def _check(path: Path) -> None:
    """Refuse what is damaged, or was not written here."""
    if not path.is_file():
        raise ModelFileError(f"{path} is not there: name a model that isrlearn.save wrote.")
    try:
        with zipfile.ZipFile(path) as file:
            comment = file.comment
        card = parse_json((comment or b"{}").decode("utf-8"))
        protocol = card.get("isrlearn")
    # A version of zip that Python has not is not implemented.
    except (zipfile.BadZipFile, ValueError, AttributeError, OSError, NotImplementedError) as error:
        raise ModelFileError(f"{path} is no model of isrlearn ({str(error)[:100]}).") from error
    if protocol != PROTOCOL:
        raise ModelFileError(
            f"{path} has protocol {protocol!r:.40}; this version reads {PROTOCOL}: install a newer "
            "isrlearn, or write the file again. Only files that isrlearn.save wrote are read."
        )
    if not is_whole(path):
        raise ModelFileError(
            f"{path} is damaged: its content is not what was sealed. Copy or write it again."
        )


def _without_scatters(value: Any) -> Any:
    """Return a copy that keeps what predicting and diagnosing need."""
    if isinstance(value, dict):
        return {key: _without_scatters(part) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_without_scatters(part) for part in value)
    if not isinstance(value, BaseEstimator):
        return value
    light = copy.copy(value)
    light.__dict__ = {key: _without_scatters(part) for key, part in vars(value).items()}
    if isinstance(light, ISRTransformer) and hasattr(light, "moments_"):
        light._found = value._result()
        light._parts = None
        scatters = light.moments_.scatters
        if scatters is not None and scatters.nbytes > LARGEST_SCATTERS:
            light.moments_ = copy.copy(light.moments_)
            light.moments_.scatters = None
    return light
