"""How a network is called: whatever the loader yields and whatever the network returns."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

from isrlearn.typing import IntArray


def to_device(inputs: Any, device: torch.device) -> Any:
    """Move tensors, also in mappings, tuples and lists, to a device."""
    if isinstance(inputs, torch.Tensor):
        return inputs.to(device)
    if isinstance(inputs, Mapping):
        return {name: to_device(value, device) for name, value in inputs.items()}
    if isinstance(inputs, tuple | list):
        return [to_device(value, device) for value in inputs]
    return inputs


def call(model: nn.Module, inputs: Any) -> Any:
    """Call a network: a mapping is passed by name, a tuple or list by position."""
    if isinstance(inputs, Mapping):
        return model(**inputs)
    if isinstance(inputs, tuple | list):
        return model(*inputs)
    return model(inputs)


def logits_of(output: Any) -> torch.Tensor:
    """Return the logits in what a network returned: a tensor, `.logits`, or the first of several.

    Parameters
    ----------
    output : Tensor, object with `logits`, or tuple
        What the network returned.

    Returns
    -------
    Tensor of shape (n, k) or (n,)
    """
    if isinstance(output, torch.Tensor):
        return output
    if isinstance(output, Mapping) and "logits" in output:
        return output["logits"]
    if hasattr(output, "logits"):
        return output.logits
    if isinstance(output, tuple | list) and output and isinstance(output[0], torch.Tensor):
        return output[0]
    raise TypeError(
        f"the network returned a {type(output).__name__}: it must return logits as a tensor, as "
        ".logits or as the first of a tuple."
    )


def fast_layout(inputs: Any) -> Any:
    """Put images channels last: convolutions on a CPU take half the time, and the same values."""
    if isinstance(inputs, torch.Tensor) and inputs.ndim == 4:
        return inputs.contiguous(memory_format=torch.channels_last)
    return inputs


def device_of(model: nn.Module) -> torch.device:
    """Return the device of the first parameter."""
    return next((p.device for p in model.parameters()), torch.device("cpu"))


def best_device(device: str | None = None) -> str:
    """Return the device that was asked for, or the GPU if there is one.

    Parameters
    ----------
    device : str, default=None
        Such as "cpu" or "cuda:1"; None looks for a GPU.

    Returns
    -------
    str

    Examples
    --------
    >>> best_device("cpu")
    'cpu'
    >>> best_device() in ("cpu", "cuda")
    True
    """
    if device is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(
            f"device {device!r} cannot be used here ({str(error).splitlines()[0]}): leave it out, "
            "or use cpu."
        ) from error
    return device


def unpack(batch: Any) -> tuple[Any, IntArray, IntArray]:
    """Return inputs, labels and environments (-1 where unknown) of a batch.

    Parameters
    ----------
    batch : tuple
        ``(inputs, labels, environments)``, or ``(inputs, labels)``.
    """
    if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
        raise TypeError(
            "the loader must yield (inputs, labels, environments), -1 for an unknown environment; "
            f"it yields {_what(batch)}."
        )
    inputs, labels, *rest = batch
    labels = as_codes(labels, "labels")
    environments = as_codes(rest[0], "environments") if rest else np.full_like(labels, -1)
    if len(environments) != len(labels):
        raise ValueError(
            f"a batch has {len(labels)} labels and {len(environments)} environments: one per row."
        )
    return inputs, labels, environments


def as_codes(values: Any, name: str) -> IntArray:
    """Return labels or environments of a batch as whole numbers."""
    array = values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else values
    array = np.asarray(array)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.dtype.kind not in "biuf" or np.any(array != np.round(array)):
        raise ValueError(
            f"{name} of a batch must be whole numbers, one per row; got {array.dtype} of shape "
            f"{array.shape}. Number the names first."
        )
    return array.astype(np.intp)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put every module into evaluation mode, and back into the mode that it had."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def _what(batch: Any) -> str:
    if isinstance(batch, tuple | list):
        return f"{len(batch)} things"
    return f"a {type(batch).__name__}"
