"""Find the last linear layer of a network, and see what goes into it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from isrlearn.networks._calling import call, logits_of


def last_linear(model: nn.Module, inputs: Any, layer: str | None = None) -> tuple[str, nn.Linear]:
    """Return name and module of the last linear layer that a network runs.

    The layers are watched while the network runs on `inputs`: the order in which they are declared
    says nothing.

    Parameters
    ----------
    model : nn.Module
        The network.
    inputs : Tensor, mapping or tuple
        A batch of inputs.
    layer : str, default=None
        Name of the layer, as in ``model.named_modules()``; None finds it.

    Returns
    -------
    name : str
    module : nn.Linear
    """
    if layer is not None:
        return layer, named_linear(model, layer)
    linear = {m: name for name, m in model.named_modules() if isinstance(m, nn.Linear)}
    if not linear:
        raise ValueError(
            f"{type(model).__name__} has no nn.Linear: there is no last linear layer to repair."
        )
    order: list[nn.Module] = []
    with _watching(linear, lambda module, _: order.append(module)):
        call(model, inputs)
    if not order:
        raise ValueError(
            f"no nn.Linear of {type(model).__name__} ran on the first batch: name one with layer "
            f"({', '.join(list(linear.values())[-3:])})."
        )
    last = order[-1]
    if not isinstance(last, nn.Linear):
        raise TypeError("only nn.Linear layers were watched.")
    return linear[last], last


@contextmanager
def inputs_of(module: nn.Linear) -> Iterator[list[torch.Tensor]]:
    """Yield a list that gets what goes into a layer; the hook is removed whatever happens."""
    seen: list[torch.Tensor] = []
    with _watching([module], lambda _, arguments: seen.append(arguments[0].detach())):
        yield seen


def one_row_each(seen: list[torch.Tensor], n_rows: int, name: str) -> torch.Tensor:
    """Return the features of a batch, or say why a layer cannot be a classifier's last one."""
    if len(seen) != 1:
        raise ValueError(
            f"layer {name!r} ran {len(seen)} times on a batch; the last layer of a classifier runs "
            "once. Name another with layer."
        )
    features = seen[0]
    if features.ndim != 2 or len(features) != n_rows:
        raise ValueError(
            f"layer {name!r} got features of shape {tuple(features.shape)} for {n_rows} rows; "
            "needed is one row of features per example. Name another layer."
        )
    return features


def refuse_hidden(model: nn.Module, inputs: Any, name: str) -> None:
    """Raise `ValueError` unless what a network returns is the output of a layer.

    A softmax, log-softmax or sigmoid may follow: they do not change which class is largest.

    Parameters
    ----------
    model : nn.Module
        The network.
    inputs : Tensor, mapping or tuple
        A batch of inputs.
    name : str
        Name of the layer.
    """
    module = named_linear(model, name)
    with inputs_of(module) as seen:
        returned = logits_of(call(model, inputs)).detach().double()
    if len(seen) != 1:
        return  # said better when the features are collected
    _refuse_not_finite(seen[0], name)
    bias = None if module.bias is None else module.bias.detach().double()
    logits = functional.linear(seen[0].double(), module.weight.detach().double(), bias)
    allowed = [logits, logits.sigmoid()]
    if logits.ndim == 2:
        allowed += [logits.softmax(1), logits.log_softmax(1)]
    if not any(_alike(returned, candidate) for candidate in allowed):
        raise ValueError(
            f"what {type(model).__name__} returns is not the output of layer {name!r}, nor its "
            "softmax or sigmoid: repairing this layer would not repair the network. Name the layer "
            "whose output is returned with layer, or repair the part of the network that ends in "
            "it."
        )


def _refuse_not_finite(features: torch.Tensor, name: str) -> None:
    """Raise `ValueError` for features that are NaN or infinite: nothing equals them."""
    bad = ~torch.isfinite(features).flatten(1).all(1)
    if bool(bad.any()):
        raise ValueError(
            f"the features of layer {name!r} are NaN or infinite in {int(bad.sum())} of "
            f"{len(bad)} rows of a batch, first in row {int(bad.nonzero()[0])}: look at the inputs "
            "of these rows and at the network's weights."
        )


def _alike(returned: torch.Tensor, candidate: torch.Tensor) -> bool:
    if returned.numel() != candidate.numel():
        return False
    # As exact as half precision is; what is wrong differs by far more.
    scale = 1 + float(candidate.abs().max())
    difference = (returned.reshape(-1) - candidate.reshape(-1)).abs().max()
    return bool(difference <= 0.02 * scale)


def named_linear(model: nn.Module, layer: str) -> nn.Linear:
    """Return a linear layer by its name."""
    modules = dict(model.named_modules())
    if layer not in modules:
        linear = [name for name, m in modules.items() if isinstance(m, nn.Linear)]
        raise ValueError(
            f"layer={layer!r} is not in the network; its linear layers end with "
            f"{', '.join(linear[-3:]) or 'none'}."
        )
    module = modules[layer]
    if not isinstance(module, nn.Linear):
        raise TypeError(f"layer={layer!r} is a {type(module).__name__}, not an nn.Linear.")
    return module


@contextmanager
def _watching(modules: Any, see: Any) -> Iterator[None]:
    handles = [module.register_forward_pre_hook(see) for module in modules]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
