"""Arrays and a card of plain values in one sealed safetensors file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from isrlearn._files import write_whole
from isrlearn._json import parse_json
from isrlearn._seal import UNSEALED, is_whole, seal
from isrlearn.exceptions import ModelFileError
from isrlearn.typing import Float64Array

CARD: Final = "isrlearn"
SEAL: Final = "seal"


def write_tensors(path: Path, arrays: Mapping[str, Any], card: Mapping[str, Any]) -> None:
    """Write arrays and a card; what is there is replaced when the new file is whole.

    Parameters
    ----------
    path : Path
        A ``.safetensors`` file.
    arrays : mapping of str to ndarray
        Numbers.
    card : mapping
        What json can hold, with the number of the protocol.
    """
    from safetensors.numpy import save

    # One text only: safetensors writes several in an order of chance.
    texts = {CARD: json.dumps({**card, SEAL: UNSEALED}, sort_keys=True)}
    data = save({n: np.asarray(a, order="C") for n, a in arrays.items()}, metadata=texts)

    def write(place: Path) -> None:
        place.write_bytes(data)
        seal(place)

    write_whole(path, write)


def read_tensors(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, Float64Array]]:
    """Read what `write_tensors` wrote, in float64; `ModelFileError` if it is something else.

    A file takes as much memory as its arrays in float64, at most eight times its size on disk.

    Parameters
    ----------
    path : Path
        The file.
    kind : str
        What it should be, for messages, such as "a model that isrlearn fit wrote".
    """
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise ModelFileError(f"{path} is not there: name {kind}.")
    try:
        with safe_open(path, framework="np") as file:
            texts = file.metadata() or {}
            card = parse_json(texts[CARD])
            _require_seal(path, texts, card)
            arrays = {name: file.get_tensor(name).astype(np.float64) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, KeyError, ValueError, TypeError, OSError) as error:
        if isinstance(error, ModelFileError):
            raise
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise ModelFileError(f"{path} is not {kind} ({reason}).") from error
    return card, arrays


def protocol_of(path: Path, card: Mapping[str, Any], newest: int) -> int:
    """Return the protocol of a file; `ModelFileError` if this version does not read it.

    Parameters
    ----------
    path : Path
        The file.
    card : mapping
        Its card.
    newest : int
        The last one that this version knows; it reads all before.
    """
    protocol = card.get("protocol")
    if type(protocol) is not int or not 1 <= protocol <= newest:
        raise ModelFileError(
            f"{path} has protocol {protocol!r:.40}; this version reads 1 to {newest}: install a "
            "newer isrlearn, or write the file again."
        )
    return protocol


def _require_seal(path: Path, texts: Mapping[str, str], card: Any) -> None:
    """Refuse a file that is damaged. Protocol 1 had no seal."""
    if not isinstance(card, dict):
        raise ModelFileError(f"{path} is damaged: its card is no object.")
    unsealed = SEAL not in {*texts, *card} and card.get("protocol") == 1
    if not unsealed and not is_whole(path):
        raise ModelFileError(
            f"{path} is damaged: its content is not what was sealed. Copy or write it again."
        )
