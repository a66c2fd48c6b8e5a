"""Score a network per group."""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from isrlearn.metrics import GroupScores, group_scores
from isrlearn.networks._calling import (
    call,
    device_of,
    evaluating,
    fast_layout,
    logits_of,
    to_device,
    unpack,
)
from isrlearn.networks._rows import NetworkRows


def evaluate(
    model: nn.Module,
    rows: NetworkRows,
    batch_size: int = 128,
    *,
    workers: int = 0,
    after_batch: Callable[[], None] = lambda: None,
) -> GroupScores:
    """Score a network per group.

    Parameters
    ----------
    model : nn.Module
        The network; run in evaluation mode, and left in the mode it had.
    rows : NetworkRows
        Rows to score; those of unknown environment are left out.
    batch_size : int, default=128
        Rows in a batch.
    workers : int, default=0
        Processes that read ahead.
    after_batch : callable
        Called after each batch; what it raises stops the scoring.

    Returns
    -------
    GroupScores

    Examples
    --------
    >>> import torch
    >>> from isrlearn.networks import NetworkRows, evaluate, put_weights
    >>> network = torch.nn.Sequential(torch.nn.Linear(1, 1))
    >>> put_weights(network, "0", [[1.0]], [0.0])
    >>> rows = NetworkRows(torch.tensor([[-1.0], [1.0], [-2.0]]), [0, 1, 1], [0, 0, 1])
    >>> evaluate(network, rows).worst_group
    (1, 1)
    """
    device, chosen = device_of(model), []
    with evaluating(model):
        for batch in rows.loader(batch_size, workers=workers):
            inputs = fast_layout(to_device(unpack(batch)[0], device))
            logits = logits_of(call(model, inputs))
            flat = logits.ndim == 1 or logits.shape[1] == 1
            chosen.append((logits.reshape(-1) > 0) if flat else logits.argmax(dim=1))
            after_batch()
    predicted = torch.cat(chosen).cpu().numpy().astype(np.intp)
    known = rows.environments >= 0
    if not known.any():
        raise ValueError("no row to score has a known environment: there are no groups.")
    return group_scores(rows.labels[known], predicted[known], environments=rows.environments[known])
