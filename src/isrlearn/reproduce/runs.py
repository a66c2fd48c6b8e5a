"""Table 1: train networks, read their features, and compare heads on them; resumable."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from isrlearn import __version__
from isrlearn._files import write_whole
from isrlearn.datasets import Examples
from isrlearn.exceptions import TrainingError
from isrlearn.io import Features
from isrlearn.networks import NetworkCard, Training, rows_of, train
from isrlearn.networks._collect import collect
from isrlearn.networks._repair import head_of
from isrlearn.networks._saved import weights_digest
from isrlearn.reproduce.heads import RULE, compare_heads, selected
from isrlearn.reproduce.plans import Plan

PROTOCOL: Final = 1
RESULT: Final = "result.json"
BATCH: Final = 64

Watcher = Callable[[str, int, int], None]
"""Gets what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class NetworkRun:
    """One network of a table: an objective and a seed."""

    examples: Examples
    plan: Plan
    objective: str
    seed: int
    folder: Path

    @property
    def name(self) -> str:
        """What to call it."""
        return f"{self.objective}, seed {self.seed}"

    def identity(self) -> dict[str, Any]:
        """Return what decides the result."""
        return {
            "protocol": PROTOCOL,
            "plan": self.plan.digest(),
            "data": self.examples.digest(),
            "objective": self.objective,
            "seed": self.seed,
        }

    def done(self) -> dict[str, Any] | None:
        """Return the result if it is there, and refuse one of another plan."""
        path = self.folder / RESULT
        if not path.exists():
            return None
        try:
            result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise TrainingError(f"{path} is damaged ({error}): remove it.") from error
        if result.get("identity") != self.identity():
            raise TrainingError(
                f"{self.folder} has a result of another plan or other data: name another folder "
                "with --out."
            )
        return result

    def result(self, watch: Watcher | None = None) -> dict[str, Any]:
        """Train, read features and compare heads, as far as that is not done.

        Parameters
        ----------
        watch : callable, default=None
            Told about progress.

        Returns
        -------
        dict
            What is written to ``result.json``.
        """
        found = self.done()
        if found is not None:
            return found
        training, layer, original, features = self.trained(watch)
        if watch is not None:
            watch(f"{self.name}: heads", 0, 1)
        splits = (features.take(place) for place in range(3))
        outcomes = compare_heads(
            *splits, self.plan.heads, original=original, random_state=self.seed
        )
        result = {
            "identity": self.identity(),
            "version": __version__,
            "plan": self.plan.name,
            "data": self.examples.layout,
            "backbone": self.plan.backbone,
            "objective": self.objective,
            "seed": self.seed,
            "rule": RULE,
            "settings": asdict(training.settings),
            "layer": layer,
            "best_epoch": training.best_epoch,
            "epochs": [asdict(epoch) for epoch in training.epochs],
            "heads": asdict(self.plan.heads),
            "outcomes": [outcome.record() for outcome in outcomes],
            "selected": {
                method: outcomes.index(selected(outcomes, method))
                for method in dict.fromkeys(outcome.method for outcome in outcomes)
            },
        }
        text = json.dumps(result, indent=1)
        write_whole(self.folder / RESULT, lambda path: path.write_text(text, encoding="utf-8"))
        return result

    def trained(
        self, watch: Watcher | None = None
    ) -> tuple[Training, str, tuple[Any, Any], Features]:
        """Return the training, the last layer, its weights and all features.

        Parameters
        ----------
        watch : callable, default=None
            Told about progress.
        """
        backbone = self._card().build(self.seed)
        self._card().save(self.folder)
        rows = {
            split: rows_of(self.examples.take(split), backbone.inputs)
            for split in ("train", "validation")
        }
        training = train(
            backbone.model,
            rows["train"],
            rows["validation"],
            replace(self.plan.training[self.objective], seed=self.seed),
            out=self.folder,
            watch=_prefixed(watch, self.name),
        )
        every = rows_of(self.examples, backbone.inputs)
        made_of = {"data": self.examples.digest(), "weights": weights_digest(self.folder)}
        layer, features = collect(
            backbone.model,
            every.loader(BATCH),
            out=self.folder / "features",
            made_of=made_of,
            progress=_counting(watch, f"{self.name}: features", len(every)),
        )
        return (
            training,
            layer,
            head_of(backbone.model, layer),
            replace(features, split=self.examples.split),
        )

    def _card(self) -> NetworkCard:
        return NetworkCard(
            self.plan.backbone,
            self.examples.classes,
            self.examples.environment_names,
            self.plan.image_size,
            self.plan.max_length,
        )


def network_runs(
    examples: Examples,
    plan: Plan,
    out: Path,
    n_seeds: int,
    objectives: tuple[str, ...] | None = None,
) -> Iterator[NetworkRun]:
    """Yield the networks of a table, seed by seed.

    Parameters
    ----------
    examples : Examples
        The data.
    plan : Plan
        How they are trained.
    out : Path
        Folder of all of them.
    n_seeds : int
        Seeds 0 to n_seeds - 1.
    objectives : tuple of str, default=None
        Which; None is all of the plan.

    Yields
    ------
    NetworkRun
    """
    for seed in range(n_seeds):
        for objective in objectives or tuple(plan.training):
            folder = out / "networks" / f"{objective}-seed{seed}"
            yield NetworkRun(examples, plan, objective, seed, folder)


def _prefixed(watch: Watcher | None, name: str) -> Watcher | None:
    if watch is None:
        return None
    return lambda text, done, total: watch(f"{name}: {text}", done, total)


def _counting(watch: Watcher | None, text: str, total: int) -> Callable[[int], None]:
    done = 0

    def advance(n_rows: int) -> None:
        nonlocal done
        done += n_rows
        if watch is not None:
            watch(text, done, total)

    return advance
