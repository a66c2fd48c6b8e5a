"""Rows for training: inputs with labels and environments, in an order that only seeds decide."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from isrlearn.networks._calling import as_codes
from isrlearn.networks._checkpoints import bytes_of
from isrlearn.typing import Float64Array, IntArray

SORTED_TOGETHER = 16


class NetworkRows(Dataset[Any]):
    """Inputs with their labels and environments.

    Parameters
    ----------
    inputs : sequence or Tensor
        Anything that ``inputs[i]`` gives one input of.
    labels : array-like of shape (n,)
        Classes from 0.
    environments : array-like of shape (n,)
        Environments from 0; -1 where unknown.
    collate : callable, default=None
        Makes the inputs of a batch from a list of single ones; None stacks tensors.
    lengths : array-like of shape (n,), default=None
        Lengths of texts: training puts rows of like length together, so that less is padding.
    digest : str, default=None
        A hash of the inputs, so that a run is not resumed on others.

    Examples
    --------
    >>> import torch
    >>> rows = NetworkRows(torch.zeros(4, 2), [0, 1, 0, 1], [0, 0, 1, -1])
    >>> [tuple(batch[0].shape) for batch in rows.loader(3)]
    [(3, 2), (1, 2)]
    """

    def __init__(
        self,
        inputs: Any,
        labels: Any,
        environments: Any,
        *,
        collate: Callable[[list[Any]], Any] | None = None,
        lengths: Any = None,
        digest: str | None = None,
    ) -> None:
        self.inputs = torch.as_tensor(inputs) if isinstance(inputs, np.ndarray) else inputs
        self.labels = as_codes(labels, "labels")
        self.environments = as_codes(environments, "environments")
        self.collate = torch.stack if collate is None else collate
        self.lengths = None if lengths is None else np.asarray(lengths)
        self._digest = digest
        sizes = {"inputs": len(inputs), "labels": len(labels), "environments": len(environments)}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"one label and environment per input are needed; got {sizes}.")

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, row: int) -> tuple[Any, int, int]:
        return self.inputs[row], int(self.labels[row]), int(self.environments[row])

    def digest(self) -> str:
        """Return a hash of the rows."""
        summary = hashlib.sha256((self._digest or "").encode())
        for codes in (self.labels, self.environments):
            summary.update(np.ascontiguousarray(codes, dtype=np.int64).tobytes())
        if self._digest is None and isinstance(self.inputs, torch.Tensor):
            summary.update(str(self.inputs.dtype).encode())
            summary.update(bytes_of(self.inputs))
        return summary.hexdigest()[:16]

    def loader(
        self, batch_size: int, *, batches: Sequence[Any] | None = None, workers: int = 0
    ) -> DataLoader[Any]:
        """Return a loader of (inputs, labels, environments).

        Parameters
        ----------
        batch_size : int
            Rows in a batch.
        batches : sequence of int sequences, default=None
            Rows of each batch; None takes all rows in order.
        workers : int, default=0
            Processes that read ahead.

        Returns
        -------
        DataLoader
        """
        if batches is None:
            every = np.arange(len(self))
            batches = [every[i : i + batch_size] for i in range(0, len(self), batch_size)]
        return DataLoader(
            self,
            batch_sampler=[batch.tolist() for batch in batches],
            collate_fn=self._collated,
            num_workers=workers,
        )

    def _collated(self, items: list[tuple[Any, int, int]]) -> tuple[Any, Any, Any]:
        inputs, labels, environments = zip(*items, strict=True)
        return self.collate(list(inputs)), torch.tensor(labels), torch.tensor(environments)


def epoch_batches(
    n_rows: int,
    batch_size: int,
    seed: int,
    epoch: int,
    *,
    probabilities: Float64Array | None = None,
    lengths: IntArray | None = None,
) -> list[IntArray]:
    """Return the rows of each batch of an epoch: a function of the seed and the epoch alone.

    Parameters
    ----------
    n_rows, batch_size : int
        Sizes. The last batch may be smaller, but is never one row alone, which batch
        normalisation cannot take: such a row joins the batch before.
    seed, epoch : int
        What decides the order.
    probabilities : ndarray of shape (n_rows,), default=None
        Draw with replacement by these; None takes every row once.
    lengths : ndarray of shape (n_rows,), default=None
        Sort rows by length within some batches' worth, and shuffle the batches.

    Returns
    -------
    list of ndarray
    """
    random = np.random.default_rng([seed, epoch])
    if probabilities is None:
        order = random.permutation(n_rows)
    else:
        order = random.choice(n_rows, n_rows, p=probabilities)
    if lengths is not None:
        order = np.concatenate(list(_sorted_blocks(order, lengths, batch_size * SORTED_TOGETHER)))
    batches = [order[i : i + batch_size] for i in range(0, n_rows, batch_size)]
    if len(batches) > 1 and len(batches[-1]) == 1:
        last = batches.pop()
        batches[-1] = np.concatenate([batches[-1], last])
    if lengths is not None:
        batches = [batches[i] for i in random.permutation(len(batches))]
    return batches


def _sorted_blocks(order: IntArray, lengths: IntArray, size: int) -> Iterator[IntArray]:
    for i in range(0, len(order), size):
        block = order[i : i + size]
        yield block[np.argsort(lengths[block], kind="stable")]
