"""What a training run leaves behind."""

from dataclasses import dataclass
from typing import Any

from isrlearn.networks._settings import TrainingSettings


@dataclass(frozen=True)
class Epoch:
    """What an epoch came to."""

    epoch: int
    loss: float
    average: float
    worst_group: float
    group_weights: list[float] | None = None


@dataclass(frozen=True)
class Training:
    """A finished training run.

    Parameters
    ----------
    settings : TrainingSettings
        How it was trained.
    best_epoch : int
        The epoch of the weights, from 1: the first with the best worst group in validation.
    epochs : list of Epoch
        Loss, and average and worst-group accuracy in validation, of each epoch.
    """

    settings: TrainingSettings
    best_epoch: int
    epochs: list[Epoch]


def training_of(settings: TrainingSettings, epochs: list[dict[str, Any]]) -> Training:
    """Return a finished run by the records of its epochs."""
    done = [Epoch(**epoch) for epoch in epochs]
    best = max(done, key=lambda e: e.worst_group)
    return Training(settings, best.epoch, done)
