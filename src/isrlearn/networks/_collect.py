"""Collect what goes into the last layer of a network."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from isrlearn.io import FeatureFile, Features, FeatureWriter
from isrlearn.networks._calling import (
    as_codes,
    call,
    device_of,
    evaluating,
    fast_layout,
    to_device,
    unpack,
)
from isrlearn.networks._checkpoints import network_digest
from isrlearn.networks._layers import inputs_of, last_linear, one_row_each, refuse_hidden
from isrlearn.networks._progress import Progress, showing
from isrlearn.typing import FloatArray


def collect_features(
    model: nn.Module,
    loader: Iterable[Any],
    *,
    layer: str | None = None,
    out: str | Path | None = None,
    made_of: Mapping[str, Any] | None = None,
    split: Any = None,
    names: tuple[Sequence[str], Sequence[str]] = ((), ()),
    progress: Progress = None,
) -> Features:
    """Return what goes into the last linear layer, with labels and environments.

    The network runs in evaluation mode on its own device and is left as it was.

    Parameters
    ----------
    model : nn.Module
        Any network with an ``nn.Linear`` at its end.
    loader : iterable of (inputs, labels, environments)
        Batches. Inputs are a tensor, or a mapping or tuple of tensors; -1 is an unknown
        environment; environments may be left out.
    layer : str, default=None
        Name of the layer; None finds the last one that runs.
    out : path, default=None
        Folder for a feature file, written while the network runs. A file that was begun with the
        same `made_of` is finished: batches whose rows it has are skipped.
    made_of : mapping, default=None
        What determines the features beside the network, such as a hash of the data; kept in the
        file.
    split : array-like of shape (n,), default=None
        Split of each row in the order of the loader (0 train, 1 validation, 2 test), to be kept
        with the features.
    names : (sequence of str, sequence of str), default=((), ())
        Names of the classes and of the environments by their numbers, to be kept in the file.
    progress : bool or callable, default=None
        True shows a bar (needs rich); a callable gets the number of rows of each batch.

    Returns
    -------
    Features

    Examples
    --------
    >>> import torch
    >>> from isrlearn.networks import collect_features
    >>> network = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    >>> batch = torch.ones(5, 4), torch.tensor([0, 1, 0, 1, 0]), torch.tensor([0, 0, 1, 1, -1])
    >>> collect_features(network, [batch]).features.shape
    (5, 3)
    """
    return collect(model, loader, layer, out, made_of, split, progress, names=names)[1]


def collect(
    model: nn.Module,
    loader: Iterable[Any],
    layer: str | None = None,
    out: str | Path | None = None,
    made_of: Mapping[str, Any] | None = None,
    split: Any = None,
    progress: Progress = None,
    *,
    names: tuple[Sequence[str], Sequence[str]] = ((), ()),
    ends_in: bool = False,
) -> tuple[str, Features]:
    """Return the name of the last layer, and what `collect_features` returns.

    With `ends_in`, what the network returns must be the output of that layer.
    """
    model = getattr(model, "_orig_mod", model)  # torch.compile runs code that no hook sees
    batches = iter(loader)
    first = next(batches, None)
    if first is None:
        raise ValueError("the loader yields no batch.")
    with evaluating(model):
        inputs = to_device(unpack(first)[0], device_of(model))
        name, module = last_linear(model, inputs, layer)
        if ends_in:
            refuse_hidden(model, inputs, name)
        rows: Iterable[Any] = chain([first], batches)
        with showing(progress) as advance:
            if out is None:
                return name, _joined(
                    list(_with_split(split, _chunks(model, rows, name, module, advance)))
                )
            known = {"layer": name, "network": network_digest(model), **(made_of or {})}
            classes, environments = names
            with FeatureWriter(out, known, classes=classes, environments=environments) as writer:
                rows = iter(()) if writer.whole else rows
                begin = writer.n_written
                chunks = _chunks(model, rows, name, module, advance, begin)
                for chunk in _with_split(split, chunks, begin):
                    writer.add(chunk)
    return name, FeatureFile.open(out).read()


def _chunks(
    model: nn.Module,
    batches: Iterable[Any],
    name: str,
    module: nn.Linear,
    advance: Callable[[int], None],
    n_written: int = 0,
) -> Iterator[Features]:
    device = device_of(model)
    n_rows = 0
    for batch in batches:
        inputs, labels, environments = unpack(batch)
        n_rows += len(labels)
        advance(len(labels))
        if n_rows <= n_written:
            continue
        with inputs_of(module) as seen:
            call(model, fast_layout(to_device(inputs, device)))
        features = as_array(one_row_each(seen, len(labels), name))
        fresh = slice(max(0, n_written - n_rows + len(labels)), None)
        yield Features(features[fresh], labels[fresh], environments[fresh])


def _with_split(split: Any, chunks: Iterable[Features], begin: int = 0) -> Iterator[Features]:
    codes = None if split is None else as_codes(split, "split")
    for chunk in chunks:
        end = begin + len(chunk)
        if codes is None:
            yield chunk
        elif end > len(codes):
            raise ValueError(f"split has {len(codes)} rows, and the loader more.")
        else:
            yield replace(chunk, split=codes[begin:end])
        begin = end
    if codes is not None and begin < len(codes):
        raise ValueError(f"split has {len(codes)} rows, and the loader {begin}.")


def as_array(tensor: torch.Tensor) -> FloatArray:
    """Return a copy as float32, or float64 where the network computes in it."""
    kept = tensor.dtype in (torch.float32, torch.float64)
    return tensor.to("cpu", tensor.dtype if kept else torch.float32).numpy().copy()


def _joined(chunks: list[Features]) -> Features:
    columns = [chunk.arrays() for chunk in chunks]
    return Features(**{name: np.concatenate([c[name] for c in columns]) for name in columns[0]})
