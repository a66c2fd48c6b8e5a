"""How a network is trained: a frozen set of numbers that decides the result."""

from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn

from isrlearn.networks._objectives import OBJECTIVES
from isrlearn.rows import check_number

OPTIMIZERS: Final = ("sgd", "adamw")
SCHEDULES: Final = ("constant", "linear")


@dataclass(frozen=True)
class TrainingSettings:
    """How a network is trained.

    Parameters
    ----------
    objective : {"erm", "reweighting", "groupdro"}, default="erm"
        The mean loss; the mean loss over rows drawn so that all groups are alike; or the weighted
        loss of the groups, with weights that grow where the loss is large. GroupDRO draws groups
        alike too, as published.
    epochs : int, default=5
        Passes over as many rows as there are.
    batch_size : int, default=32
        Rows in a step.
    optimizer : {"sgd", "adamw"}, default="sgd"
        SGD has momentum 0.9.
    learning_rate, weight_decay : float
        Of the optimizer.
    schedule : {"constant", "linear"}, default="constant"
        "linear": the rate rises to its value in the first share `warmup` of the steps, and falls
        to zero in the others.
    warmup : float, default=0.0
        Share of the steps in which a linear schedule rises.
    clip : float, default=None
        Largest norm of the gradient of all parameters together; None does not clip.
    step_size : float, default=0.01
        Of the group weights of GroupDRO.
    adjustment : float, default=0.0
        GroupDRO's group adjustment C: C / sqrt(rows of the group) is added to its loss.
    patience : int, default=None
        Stop after so many epochs without a better worst group in validation; None goes to the end.
    seed : int, default=0
        Decides the new layer, the order of the rows and dropout.

    Examples
    --------
    >>> TrainingSettings(objective="groupdro", epochs=3).adjustment
    0.0
    """

    objective: str = "erm"
    epochs: int = 5
    batch_size: int = 32
    optimizer: str = "sgd"
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    schedule: str = "constant"
    warmup: float = 0.0
    clip: float | None = None
    step_size: float = 0.01
    adjustment: float = 0.0
    patience: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name, allowed in (
            ("objective", OBJECTIVES),
            ("optimizer", OPTIMIZERS),
            ("schedule", SCHEDULES),
        ):
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} must be one of {', '.join(allowed)}."
                )
        check_number("epochs", self.epochs, 1, whole=True)
        check_number("batch_size", self.batch_size, 2, whole=True)
        check_number("seed", self.seed, 0, 2**31 - 1, whole=True)
        check_number("warmup", self.warmup, 0, 1)
        for name in ("learning_rate", "weight_decay", "step_size", "adjustment"):
            check_number(name, getattr(self, name), 0)
        if self.patience is not None:
            check_number("patience", self.patience, 1, whole=True)
        if self.clip is not None:
            check_number("clip", self.clip, 0)

    @property
    def draws_groups_alike(self) -> bool:
        """Whether rows are drawn so that all groups come alike."""
        return self.objective != "erm"

    def make_optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """Return the optimizer of the parameters that are trained."""
        parameters: Any = [p for p in model.parameters() if p.requires_grad]
        rate, decay = self.learning_rate, self.weight_decay
        if self.optimizer == "sgd":
            return torch.optim.SGD(parameters, lr=rate, momentum=0.9, weight_decay=decay)
        return torch.optim.AdamW(parameters, lr=rate, weight_decay=decay)

    def rate_at(self, step: int, n_steps: int) -> float:
        """Return the learning rate of a step, from 0.

        Parameters
        ----------
        step, n_steps : int
            Which step of how many.

        Returns
        -------
        float
        """
        if self.schedule == "constant":
            return self.learning_rate
        rising = round(self.warmup * n_steps)
        falling = max(1, n_steps - rising)
        share = (step + 1) / rising if step < rising else (n_steps - step) / falling
        return self.learning_rate * min(1.0, share)
