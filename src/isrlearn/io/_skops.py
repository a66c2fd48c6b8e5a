"""Whole estimators in skops files: sealed, never pickled, of types that are known."""

import copy
import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from sklearn.base import BaseEstimator

from isrlearn._files import write_whole
from isrlearn._json import parse_json
from isrlearn._seal import UNSEALED, is_whole, seal
from isrlearn.estimators import ISRTransformer
from isrlearn.exceptions import ModelFileError
from isrlearn.io._skops_parts import DEEPEST, SCHEMA, check_parts

PROTOCOL: Final = 1
LARGEST_SCATTERS: Final = 64 * 2**20
"""Bytes of scatters that are kept; larger ones are left out, and a diagnosis tells less."""
OURS: Final = {
    "baselines._alignment": ("CORAL",),
    "baselines._descending": ("ANDMask", "AdamERM", "IGA", "IRMv1", "VREx"),
    "baselines._erasure": ("INLP", "LEACE"),
    "baselines._exact": ("ERM", "Oracle"),
    "baselines._invariant_risk": ("LastLayerIRM", "LastLayerVREx"),
    "baselines._probes": ("DFR", "GroupSubsampling", "LinearProbe"),
    "baselines._worst_group": ("GroupDRO",),
    "diagnosis._uncertainty": ("Chance",),
    "estimators._predictors": ("ISRClassifier", "ISRRegressor"),
    "estimators._transformers": ("ISR", "ISRCov", "ISRMean"),
    "heads._logistic": ("LogisticHead",),
    "moments._cells": ("CellMoments",),
    "moments._evidence": ("Evidence", "Frame"),
    "subspace._joint": ("Workings",),
    "subspace._rank_test": ("RankChoice", "RankStep"),
    "subspace._recovery": ("Recovery",),
    "subspace._subspace": ("Subspace",),
}
TRUSTED: Final = (
    *(f"isrlearn.{module}.{name}" for module, names in OURS.items() for name in names),
    "numpy.dtype",
)
"""Types that a file may name, beside those that skops itself trusts."""
MOVED: Final = {
    "_frame": "moments._evidence",
    "_heads": "heads._logistic",
    "_nulls": "moments._evidence",
    "_predictors": "estimators._predictors",
    "_rank_test": "subspace._rank_test",
    "_regressor": "estimators._predictors",
    "_search": "subspace._recovery",
    "_transformers": "estimators._transformers",
    "_workings": "subspace._joint",
    "baselines._dro": "baselines._worst_group",
    "baselines._retraining": "baselines._probes",
    "baselines._rivals": "baselines._descending",
    "moments": "moments._cells",
    "subspace": "subspace._subspace",
}
"""Where modules that earlier files name are now."""
RENAMED: Final = {"Found": "Recovery"}


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
    from skops.io import get_untrusted_types, loads

    _check(path)
    allowed = {*TRUSTED, *trusted}
    try:
        check_parts(path, {*TRUSTED, *_names_before()}, trusted)
        data = _with_modules_of_now(path)
        unknown = sorted(set(get_untrusted_types(data=data)) - allowed)
        if unknown:
            raise ModelFileError(
                f"{path} names types that are not trusted: {', '.join(unknown)[:200]}. If you know "
                "and trust them, load it with trusted=[...]; else do not use it."
            )
        return loads(data, trusted=sorted(allowed))
    except ModelFileError:
        raise
    # Whatever skops, NumPy or an estimator says of a file that was made by hand.
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise ModelFileError(f"{path} cannot be read as a model ({reason}).") from error


def _names_before() -> list[str]:
    """Return the names that earlier files have for types that were moved since."""
    before = {now: name for name, now in RENAMED.items()}
    return [
        f"isrlearn.{module}.{before.get(name, name)}"
        for module, now in MOVED.items()
        for name in OURS.get(now, ())
    ]


def _with_modules_of_now(path: Path) -> bytes:
    """Return the bytes of a file in which each of our types is named where it is now."""
    written = io.BytesIO()
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(written, "w") as target:
        for member in source.infolist():
            content = source.read(member)
            if member.filename == SCHEMA:
                schema = parse_json(content.decode("utf-8"), DEEPEST)
                _rename_modules(schema)
                content = json.dumps(schema).encode()
            target.writestr(member, content)
    return written.getvalue()


def _rename_modules(value: Any) -> None:
    if isinstance(value, dict):
        module = str(value.get("__module__", ""))
        if module.startswith("isrlearn."):
            own = module.removeprefix("isrlearn.")
            value["__module__"] = f"isrlearn.{MOVED.get(own, own)}"
            value["__class__"] = RENAMED.get(str(value.get("__class__")), value.get("__class__"))
    for child in value.values() if isinstance(value, dict) else value:
        if isinstance(child, dict | list):
            _rename_modules(child)


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
