"""Table 1: train networks, read their features, and compare heads on them; resumable."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from isrlearn import __version__
from isrlearn.datasets import ExampleSet
from isrlearn.exceptions import DataError
from isrlearn.io import FeatureFile, Features
from isrlearn.networks import NetworkCard, Training, extract_features, rows_of, train
from isrlearn.networks._backbones import lasting_name
from isrlearn.networks._repair import head_of
from isrlearn.reproduce.heads import RULE, compare_heads, selected
from isrlearn.reproduce.plans import Plan
from isrlearn.reproduce.results import kept

PROTOCOL: Final = 1
RESULT: Final = "result.json"
FEATURES: Final = "features"

Watcher = Callable[[str, int, int], None]
"""Gets what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class NetworkRun:
    """One network of a table: an objective and a seed."""

    examples: ExampleSet
    plan: Plan
    objective: str
    seed: int
    folder: Path
    device: str = "cpu"

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

    def result(self, watch: Watcher | None = None) -> dict[str, Any]:
        """Train, read features and compare heads, as far as that is not done.

        A result of other heads is made anew from the features; `train` refuses another network.

        Parameters
        ----------
        watch : callable, default=None
            Told about progress.

        Returns
        -------
        dict
            What is written to ``result.json``.
        """
        return kept(self.folder / RESULT, self.identity(), lambda: self._make(watch))

    def _make(self, watch: Watcher | None) -> dict[str, Any]:
        training, layer, original, features = self.trained(watch)
        if watch is not None:
            watch(f"{self.name}: heads", 0, 1)
        train_rows, validation, test = (features.take(place) for place in range(3))
        outcomes = compare_heads(
            train_rows,
            validation,
            test,
            self.plan.heads,
            original=original,
            random_state=self.seed,
        )
        return {
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
        backbone.model.to(self.device)
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
        features = extract_features(
            backbone,
            self.examples,
            self.folder / FEATURES,
            watch=_prefixed(watch, self.name),
        )
        layer = str(FeatureFile.open(self.folder / FEATURES).made_of["layer"])
        return training, layer, head_of(backbone.model, layer), features

    def features(self) -> Features:
        """Return the features that `result` has written."""
        return FeatureFile.open(self.folder / FEATURES).read()

    def _card(self) -> NetworkCard:
        return NetworkCard(
            lasting_name(self.plan.backbone),
            self.examples.classes,
            self.examples.environment_names,
            self.plan.inputs,
        )


def network_runs(
    examples: ExampleSet,
    plan: Plan,
    out: Path,
    n_seeds: int,
    objectives: tuple[str, ...] = (),
    *,
    device: str = "cpu",
) -> Iterator[NetworkRun]:
    """Yield the networks of a table, seed by seed.

    Parameters
    ----------
    examples : ExampleSet
        The data.
    plan : Plan
        How they are trained.
    out : Path
        Folder of all of them.
    n_seeds : int
        Seeds 0 to n_seeds - 1.
    objectives : tuple of str, default=()
        Which; none are all of the plan.
    device : str, default="cpu"
        Where they are trained.

    Yields
    ------
    NetworkRun
    """
    unknown = sorted(set(objectives) - set(plan.training))
    if unknown:
        raise ValueError(f"objective {unknown[0]!r} must be one of {', '.join(plan.training)}.")
    _refuse_one_environment(examples)
    for seed in range(n_seeds):
        for objective in objectives or tuple(plan.training):
            folder = out / "networks" / f"{objective}-seed{seed}"
            yield NetworkRun(examples, plan, objective, seed, folder, device)


def _refuse_one_environment(examples: ExampleSet) -> None:
    """Raise `DataError` before anything is trained that could not be compared afterwards."""
    environments = examples.take("train").environments
    n_known = len(set(environments[environments >= 0].tolist()))
    if n_known < 2:
        raise DataError(
            f"the training rows have {n_known} known environment(s); removal compares at least 2. "
            "Give another column as environment."
        )


def _prefixed(watch: Watcher | None, name: str) -> Watcher | None:
    if watch is None:
        return None
    return lambda text, done, total: watch(f"{name}: {text}", done, total)
