"""Checkpoints of a training run: safetensors, replaced whole, never pickle."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn

from isrlearn._files import write_whole
from isrlearn._json import parse_json
from isrlearn._limits import refuse_irregular
from isrlearn._seal import MARK, UNSEALED, is_whole, seal
from isrlearn.exceptions import TrainingError

SEALED: Final = re.compile(MARK + "|[0-9a-f]{24}")
"""What is left of a seal that is damaged itself: its mark, or many of its digits."""
Tensors = dict[str, torch.Tensor]


def save_tensors(path: Path, tensors: Mapping[str, torch.Tensor], notes: Mapping[str, Any]) -> None:
    """Write tensors and notes into one safetensors file.

    Parameters
    ----------
    path : Path
        Replaced when the new file is whole.
    tensors : mapping of str to Tensor
        What to keep; tensors that share memory are written each.
    notes : mapping
        What json can hold.
    """
    # Cloned: safetensors refuses tensors that share memory, such as tied weights.
    own = {name: t.detach().to("cpu").contiguous().clone() for name, t in tensors.items()}
    # One text only: safetensors writes several in an order of chance.
    texts = {"isrlearn": json.dumps({**notes, "seal": UNSEALED}, sort_keys=True)}

    def write(place: Path) -> None:
        try:
            save_file(own, place, metadata=texts)
        except SafetensorError as error:  # of a full disk, too
            raise OSError(None, str(error)) from error
        seal(place)

    write_whole(path, write)


def load_tensors(path: Path) -> tuple[Tensors, dict[str, Any]]:
    """Read what `save_tensors` wrote.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    tensors : dict of str to Tensor
    notes : dict
    """
    try:
        refuse_irregular(path)
        with safe_open(path, framework="pt") as file:
            texts = file.metadata() or {}
            notes = parse_json(texts.get("isrlearn", "{}"))
            if not isinstance(notes, dict):
                raise ValueError("its notes are no object of json")
            sealed = notes.pop("seal", None) or SEALED.search(str(texts))
            if sealed and not is_whole(path):  # weights of others have no seal
                raise ValueError("its content is not what was sealed")
            return {name: file.get_tensor(name) for name in file.keys()}, notes  # noqa: SIM118
    except FileNotFoundError as error:
        raise TrainingError(f"{path} is not there.") from error
    except (SafetensorError, ValueError, OSError) as error:
        raise TrainingError(f"{path} is damaged ({error}): remove it to begin anew.") from error


def model_tensors(model: nn.Module, prefix: str = "") -> Tensors:
    """Return parameters and buffers by name."""
    return {f"{prefix}{name}": tensor for name, tensor in model.state_dict().items()}


def network_digest(model: nn.Module) -> str:
    """Return a hash of the modules of a network and of all that it holds.

    Parameters
    ----------
    model : nn.Module
        The network.

    Returns
    -------
    str
    """
    summary = hashlib.sha256(repr(model).encode())
    for name, tensor in model.state_dict().items():
        summary.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        summary.update(bytes_of(tensor))
    return summary.hexdigest()[:16]


def bytes_of(tensor: torch.Tensor) -> bytes:
    """Return what a tensor holds, of any type and on any device."""
    flat = tensor.detach().to("cpu").contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> Tensors:
    """Return the state of an optimizer as tensors, by ``optimizer.<parameter>.<name>``."""
    state = optimizer.state_dict()["state"]
    return {
        f"optimizer.{place}.{name}": torch.as_tensor(value)
        for place, values in state.items()
        for name, value in values.items()
        if value is not None
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Tensors) -> None:
    """Put the state of `optimizer_tensors` back."""
    state: dict[int, dict[str, torch.Tensor]] = {}
    for key, tensor in tensors.items():
        if key.startswith("optimizer."):
            _, place, name = key.split(".", 2)
            state.setdefault(int(place), {})[name] = tensor
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def without_prefix(tensors: Tensors, prefix: str) -> Tensors:
    """Return the tensors of one prefix, without it."""
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
