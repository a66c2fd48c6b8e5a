"""What a training run leaves behind."""

from dataclasses import dataclass
from typing import Any

from isrlearn.networks._settings import TrainingSettings


@dataclass(frozen=True)
class Epoch:
    """What an epoch came to.

    Parameters
    ----------
    epoch : int
        Its number, from 1.
    loss : float
        Mean loss over the training rows.
    average, worst_group : float
        Accuracies on the validation rows.
    group_weights : list of float, default=None
        Of GroupDRO, at the end of the epoch.

    Examples
    --------
    >>> Epoch(1, loss=0.4, average=0.9, worst_group=0.6).worst_group
    0.6
    """

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

    Examples
    --------
    >>> from isrlearn.networks import Epoch, Training, TrainingSettings
    >>> epochs = [Epoch(1, 0.6, 0.80, 0.55), Epoch(2, 0.4, 0.85, 0.62)]
    >>> training = Training(TrainingSettings(epochs=2), best_epoch=2, epochs=epochs)
    >>> training.epochs[training.best_epoch - 1].worst_group
    0.62
    """

    settings: TrainingSettings
    best_epoch: int
    epochs: list[Epoch]


def training_of(settings: TrainingSettings, epochs: list[dict[str, Any]]) -> Training:
    """Return a finished run by the records of its epochs."""
    done = epochs_of(epochs)
    best = max(done, key=lambda e: e.worst_group)
    return Training(settings, best.epoch, done)


def epochs_of(records: list[dict[str, Any]]) -> list[Epoch]:
    """Return epochs by their records; `ValueError` or `TypeError` for what are none."""
    done = [Epoch(**record) for record in records]
    for epoch in done:
        numbers = (epoch.epoch, epoch.loss, epoch.average, epoch.worst_group)
        if any(isinstance(n, bool) or not isinstance(n, int | float) for n in numbers):
            raise ValueError("an epoch has a field that is no number")
    return done
