"""Train a network by ERM, Reweighting or GroupDRO; stopped at any moment, it goes on.

Every random choice is a function of the seed and the number of the step, and a checkpoint holds the
optimizer and all that a state dict holds. So a run that was killed ends with the same weights as
one that was not.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import nn

from isrlearn._files import only_user, sweep
from isrlearn._seal import read_sealed, write_sealed
from isrlearn.exceptions import TrainingError
from isrlearn.networks._calling import (
    call,
    device_of,
    fast_layout,
    logits_of,
    to_device,
    unpack,
)
from isrlearn.networks._checkpoints import (
    Tensors,
    load_tensors,
    model_tensors,
    network_digest,
    optimizer_tensors,
    restore_optimizer,
    save_tensors,
    without_prefix,
)
from isrlearn.networks._evaluation import evaluate
from isrlearn.networks._interrupts import stops_between_steps
from isrlearn.networks._objectives import (
    GroupWeights,
    balanced_probabilities,
    losses_of,
    refuse_labels,
)
from isrlearn.networks._records import Epoch, Training, epochs_of, training_of
from isrlearn.networks._rows import NetworkRows, epoch_batches
from isrlearn.networks._settings import TrainingSettings
from isrlearn.typing import IntArray

PROTOCOL: Final = 1
CHECKPOINT: Final = "checkpoint.safetensors"
WEIGHTS: Final = "model.safetensors"
SUMMARY: Final = "training.json"
SECONDS_BETWEEN_CHECKPOINTS: Final = 60.0


@dataclass
class _State:
    """All that a run needs to go on."""

    step: int = 0
    """Steps that are done."""
    loss: float = 0.0
    """Sum of the losses of this epoch's rows."""
    epochs: list[Epoch] = field(default_factory=list)

    @property
    def best(self) -> Epoch | None:
        return max(self.epochs, key=lambda e: e.worst_group, default=None)


Watcher = Callable[[str, int, int], None]


def train(
    model: nn.Module,
    rows: NetworkRows,
    validation: NetworkRows,
    settings: TrainingSettings | None = None,
    *,
    out: str | Path,
    workers: int = 0,
    watch: Watcher | None = None,
) -> Training:
    """Train a network, and leave it with the weights of its best epoch.

    The best epoch is the first with the highest worst-group accuracy on the validation rows.

    Parameters
    ----------
    model : nn.Module
        A classifier; its parameters with ``requires_grad`` are trained where they are.
    rows, validation : NetworkRows
        Rows to train on and rows to choose the epoch by.
    settings : TrainingSettings, default=None
        How to train; None is the default of each.
    out : path
        Folder for the checkpoint and the result. A run that stopped there goes on; one that
        finished is read.
    workers : int, default=0
        Processes that read ahead. The result does not depend on it.
    watch : callable, default=None
        Called after each step with a line about the run, the steps that are done, and all.

    Returns
    -------
    Training

    Notes
    -----
    On a CPU the weights are decided by the seed, the machine and the number of threads; on a GPU as
    far as torch's kernels are deterministic. There, products are in bfloat16 (autocast) if the
    device knows it.

    Examples
    --------
    >>> import tempfile, torch
    >>> from isrlearn.networks import NetworkRows, TrainingSettings, train
    >>> x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
    >>> rows = NetworkRows(x, (x[:, 0] > 0).long(), torch.arange(64) % 2)
    >>> network = torch.nn.Linear(3, 2)
    >>> done = train(network, rows, rows, TrainingSettings(epochs=2), out=tempfile.mkdtemp())
    >>> len(done.epochs)
    2
    """
    run = _Run(model, rows, validation, settings or TrainingSettings(), Path(out), workers, watch)
    return run.to_the_end()


class _Run:
    """One training run: the parts that its steps share."""

    def __init__(
        self,
        model: nn.Module,
        rows: NetworkRows,
        validation: NetworkRows,
        settings: TrainingSettings,
        out: Path,
        workers: int,
        watch: Watcher | None,
    ) -> None:
        self.model, self.rows, self.validation = model, rows, validation
        self.settings, self.out, self.workers, self.watch = settings, out, workers, watch
        self.device = device_of(model)
        self.groups, sizes = _groups(rows, settings)
        self.n_classes = 1 + int(max(rows.labels.max(), validation.labels.max()))
        if np.all(validation.environments < 0):
            raise ValueError(
                "no validation row has a known environment: the best epoch is chosen by groups."
            )
        self.probabilities = None
        self.weights: GroupWeights | None = None
        if settings.draws_groups_alike:
            self.probabilities = balanced_probabilities(self.groups)
        if settings.objective == "groupdro":
            self.weights = GroupWeights(
                sizes, settings.step_size, settings.adjustment, device=self.device
            )
        self.optimizer = settings.make_optimizer(model)
        self.network = network_digest(model)
        self.state = _State()
        self.saved = time.monotonic()

    def to_the_end(self) -> Training:
        self.out.mkdir(parents=True, exist_ok=True)
        with only_user(self.out) as ours:
            if not ours:
                raise TrainingError(
                    f"{self.out} is being written by another process: wait for it, or name another "
                    "folder."
                )
            sweep(self.out)
            return self._resume() or self._from_here()

    def _from_here(self) -> Training:
        with _reproducible(), stops_between_steps(self._save) as stopping:
            while not self._over:
                self._epoch(stopping)
        return self._finish()

    @property
    def _batches_per_epoch(self) -> int:
        # Every epoch has as many batches as another: the sizes do not depend on the order.
        return len(epoch_batches(len(self.rows), self.settings.batch_size, 0, 0))

    @property
    def _over(self) -> bool:
        done, best = len(self.state.epochs), self.state.best
        if done >= self.settings.epochs:
            return True
        patience = self.settings.patience
        return patience is not None and best is not None and done - best.epoch >= patience

    def _epoch(self, stopping: Callable[[], None]) -> None:
        done = len(self.state.epochs)
        per_epoch = self._batches_per_epoch
        batches = epoch_batches(
            len(self.rows),
            self.settings.batch_size,
            self.settings.seed,
            done,
            probabilities=self.probabilities,
            lengths=self.rows.lengths,
        )
        left = batches[self.state.step - done * per_epoch :]
        loader = self.rows.loader(self.settings.batch_size, batches=left, workers=self.workers)
        self.model.train()
        for places, batch in zip(left, loader, strict=True):
            self._step(batch, self.groups[places], per_epoch)
            stopping()
        self._validate(stopping)
        stopping()

    def _step(self, batch: Any, groups: IntArray, per_epoch: int) -> None:
        state, n_steps = self.state, self.settings.epochs * per_epoch
        torch.manual_seed(self.settings.seed * 2_000_003 + state.step)
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.rate_at(state.step, n_steps)
        inputs, labels, _ = unpack(batch)
        with _half_where_it_helps(self.device):
            logits = logits_of(call(self.model, fast_layout(to_device(inputs, self.device))))
        refuse_labels(logits, self.n_classes)
        losses = losses_of(logits, torch.as_tensor(labels, device=self.device))
        loss = losses.mean()
        if self.weights is not None:
            loss = self.weights.robust_loss(losses, torch.as_tensor(groups, device=self.device))
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if self.settings.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        self.optimizer.step()
        self._count(float(losses.detach().sum()), n_steps)

    def _count(self, loss: float, n_steps: int) -> None:
        if not np.isfinite(loss):
            raise TrainingError(
                f"the loss is not finite in step {self.state.step + 1}: lower the learning rate "
                f"(now {self.settings.learning_rate})."
            )
        self.state.loss += loss
        self.state.step += 1
        if self.watch is not None:
            best = self.state.best
            worst = "" if best is None else f", worst group {best.worst_group:.3f}"
            epoch = f"epoch {len(self.state.epochs) + 1} of {self.settings.epochs}{worst}"
            self.watch(epoch, self.state.step, n_steps)
        if time.monotonic() - self.saved > SECONDS_BETWEEN_CHECKPOINTS:
            self._save()

    def _validate(self, stopping: Callable[[], None]) -> None:
        scores = evaluate(
            self.model, self.validation, self.settings.batch_size, after_batch=stopping
        )
        weights = None if self.weights is None else self.weights.values.tolist()
        before = self.state.best
        epoch = Epoch(
            len(self.state.epochs) + 1,
            self.state.loss / len(self.rows),
            scores.average,
            scores.worst,
            weights,
        )
        if before is None or epoch.worst_group > before.worst_group:
            # Before the checkpoint that knows of it: killed in between, the epoch is done again
            # and writes the same weights.
            save_tensors(self.out / WEIGHTS, model_tensors(self.model), {"epoch": epoch.epoch})
        self.state.epochs.append(epoch)
        self.state.loss = 0.0
        self._save()

    def _identity(self) -> dict[str, Any]:
        return {
            "protocol": PROTOCOL,
            "settings": asdict(self.settings),
            "rows": self.rows.digest(),
            "validation": self.validation.digest(),
            "network": self.network,
        }

    def _save(self) -> None:
        tensors = model_tensors(self.model, "model.") | optimizer_tensors(self.optimizer)
        if self.weights is not None:
            tensors["group_weights"] = self.weights.values
        notes = {"run": self._identity(), "state": asdict(self.state)}
        save_tensors(self.out / CHECKPOINT, tensors, notes)
        self.saved = time.monotonic()

    def _resume(self) -> Training | None:
        """Go on from a checkpoint, or return the result of a run that finished."""
        summary = self.out / SUMMARY
        if summary.exists():
            notes = _read_summary(summary)
            self._refuse_another(notes["run"])
            self._load_best()
            (self.out / CHECKPOINT).unlink(missing_ok=True)  # stopped between the two
            return training_of(self.settings, notes["epochs"])
        if not (self.out / CHECKPOINT).exists():
            return None
        tensors, notes = load_tensors(self.out / CHECKPOINT)
        try:
            self._refuse_another(dict(notes["run"]))
            self._go_on_from(tensors, notes["state"])
        except TrainingError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
            raise TrainingError(
                f"{self.out / CHECKPOINT} is damaged ({str(error).splitlines()[:1]}): remove it to "
                "begin anew."
            ) from error
        return None

    def _go_on_from(self, tensors: Tensors, state: dict[str, Any]) -> None:
        self.model.load_state_dict(without_prefix(tensors, "model."))
        restore_optimizer(self.optimizer, tensors)
        if self.weights is not None:
            self.weights.values = tensors["group_weights"].to(self.device)
        epochs = epochs_of(state["epochs"])
        self.state = _State(int(state["step"]), float(state["loss"]), epochs)

    def _refuse_another(self, found: dict[str, Any]) -> None:
        own = json.loads(json.dumps(self._identity()))
        different = _differences(found, own)
        if different:
            raise TrainingError(
                f"{self.out} holds another run ({'; '.join(different)}): name another folder, or "
                "remove this one."
            )

    def _load_best(self) -> None:
        self.model.load_state_dict(load_tensors(self.out / WEIGHTS)[0])

    def _finish(self) -> Training:
        self._load_best()
        epochs = [asdict(epoch) for epoch in self.state.epochs]
        write_sealed(self.out / SUMMARY, {"run": self._identity(), "epochs": epochs})
        (self.out / CHECKPOINT).unlink(missing_ok=True)
        return training_of(self.settings, epochs)


def _groups(rows: NetworkRows, settings: TrainingSettings) -> tuple[IntArray, IntArray]:
    """Return the group of each row, and the sizes of the groups."""
    n_environments = max(1, int(rows.environments.max()) + 1)
    if settings.draws_groups_alike and np.any(rows.environments < 0):
        unknown = int(np.sum(rows.environments < 0))
        raise ValueError(
            f"{settings.objective} needs the environment of every row; {unknown} of {len(rows)} "
            "are unknown (-1). Drop these rows, or train by erm."
        )
    groups = rows.labels * n_environments + np.maximum(rows.environments, 0)
    return groups, np.bincount(groups)


def _read_summary(path: Path) -> dict[str, Any]:
    try:
        notes = read_sealed(path)
        run = dict(notes["run"])
        if not epochs_of(notes["epochs"]) or not isinstance(run.get("settings"), dict):
            raise ValueError("it has no epochs, or no settings")
        return {"run": run, "epochs": notes["epochs"]}
    except (ValueError, OSError, KeyError, TypeError) as error:
        raise TrainingError(f"{path} is damaged ({error!r}): remove it to begin anew.") from error


def _differences(found: dict[str, Any], own: dict[str, Any]) -> list[str]:
    settings = dict(found.get("settings", {})), own["settings"]
    different = [
        f"{name} {settings[0].get(name)!r} there, {value!r} here"
        for name, value in settings[1].items()
        if settings[0].get(name) != value
    ]
    others = [key for key in own if key != "settings" and found.get(key) != own[key]]
    return different + [f"other {key}" for key in others]


@contextmanager
def _half_where_it_helps(device: torch.device) -> Iterator[None]:
    half = device.type == "cuda" and torch.cuda.is_bf16_supported()
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=half):
        yield


@contextmanager
def _reproducible() -> Iterator[None]:
    """Seed freely inside; the caller's generators are as before afterwards."""
    with torch.random.fork_rng(), torch.backends.cudnn.flags(deterministic=True, benchmark=False):
        yield
