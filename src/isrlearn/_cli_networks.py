"""``isrlearn train``, ``extract`` and ``repair``: thin commands over `isrlearn.networks`."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Console

from isrlearn._cli_bench import Flag, Seed, Whole
from isrlearn._cli_support import (
    Interrupted,
    UserError,
    make_folder,
    may_write,
    mistakes_of_the_user,
    say,
    watching,
)


@Parameter(name="*")
@dataclass(frozen=True)
class Source:
    """Where the rows come from.

    Parameters
    ----------
    data
        Folder of Waterbirds, CelebA or MultiNLI as released, or a .csv with the columns path or
        text, label, environment and split.
    layout
        waterbirds, celeba, multinli or table; found out if left out.
    negation
        For MultiNLI: published (nobody, no, never, nothing) or extended (also not, n't and others).
    device
        cpu, cuda, cuda:1, ...; the GPU if there is one, if left out.
    """

    data: Path
    layout: Literal["waterbirds", "celeba", "multinli", "table"] | None = None
    negation: Literal["published", "extended"] = "published"
    device: str | None = None

    def examples(self) -> Any:
        """Read the data."""
        from isrlearn.datasets import read_examples

        return read_examples(self.data, self.layout, negation=self.negation)

    def chosen_device(self) -> str:
        """Return the device to use."""
        from isrlearn.networks import best_device

        return best_device(self.device)


@Parameter(name="*")
@dataclass(frozen=True)
class Changes:
    """Settings that differ from the plan's.

    Parameters
    ----------
    epochs
        Passes over the training rows.
    batch_size
        Rows in a step.
    learning_rate
        Of the optimizer.
    weight_decay
        Of the optimizer.
    optimizer
        sgd (with momentum 0.9) or adamw.
    adjustment
        GroupDRO's group adjustment C.
    patience
        Stop after so many epochs without a better worst group in validation.
    """

    epochs: Whole = None
    batch_size: Whole = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    optimizer: Literal["sgd", "adamw"] | None = None
    adjustment: float | None = None
    patience: Whole = None

    def given(self) -> dict[str, Any]:
        """Return what the user gave."""
        return {name: value for name, value in vars(self).items() if value is not None}


def train(
    *,
    source: Source,
    out: Path,
    backbone: str | None = None,
    objective: Literal["erm", "reweighting", "groupdro"] = "erm",
    config: str | None = None,
    seed: Seed = 0,
    changes: Changes = Changes(),  # noqa: B008 - frozen
) -> None:
    """Train a network by ERM, Reweighting or GroupDRO; stopped at any time, it goes on.

    The weights of the epoch with the best worst group in validation are kept.

    Example: isrlearn train --data waterbirds --backbone resnet50 --objective groupdro --out net

    Example: isrlearn train --data my.csv --backbone my_module:factory --out net

    Parameters
    ----------
    out
        Folder for the network; it is created.
    backbone
        resnet50, clip-vit-b32, bert, minilm, efficientnet-lite0, a transformers folder, a name on
        the Hugging Face hub, or my_module:factory, a function that takes the number of classes.
    objective
        erm, reweighting or groupdro.
    config
        Plan to take the settings from: a name (such as waterbirds-resnet50) or a .toml file.
    seed
        Decides the new layer, the order of rows and dropout.
    """
    console = _loading()
    from isrlearn.networks import NetworkCard, rows_of
    from isrlearn.networks import train as train_network
    from isrlearn.networks._backbones import lasting_name
    from isrlearn.reproduce import find_plan

    with mistakes_of_the_user(), _going_on(f"the same command goes on from {out}."):
        examples = source.examples()
        plan = find_plan(examples.family, backbone, config)
        settings = replace(plan.training[objective], seed=seed, **changes.given())
        card = NetworkCard(
            lasting_name(plan.backbone),
            examples.classes,
            examples.environment_names,
            plan.inputs,
        )
        network = card.build(seed)
        network.model.to(source.chosen_device())
        make_folder(out)
        card.save(out)
        rows = rows_of(examples.take("train"), network.inputs)
        kept = rows_of(examples.take("validation"), network.inputs)
        with watching(console) as watch:
            done = train_network(network.model, rows, kept, settings, out=out, watch=watch)
    best = done.epochs[done.best_epoch - 1]
    say(
        f"Best epoch {done.best_epoch} of {len(done.epochs)}: in validation average "
        f"{best.average:.3f}, worst group {best.worst_group:.3f}.\nNetwork: {out.resolve()}"
    )


def extract(
    model: Path | None = None,
    *,
    source: Source,
    out: Path,
    backbone: str | None = None,
    batch_size: Whole = None,
) -> None:
    """Write what goes into the last layer of a network, for all rows. Resumable.

    Example: isrlearn extract net --data waterbirds --out features

    Example: isrlearn extract --backbone clip-vit-b32 --data waterbirds --out clip-features

    Parameters
    ----------
    model
        Folder of a network that isrlearn trained.
    out
        Folder for the features; it is created.
    backbone
        A network as it comes, instead of a trained one.
    batch_size
        Rows that go through the network together; 32 if left out.
    """
    if (model is None) == (backbone is None):
        raise UserError("name either the folder of a network or a --backbone.")
    console = _loading()
    from isrlearn.networks import extract_features, load_backbone, load_network

    with mistakes_of_the_user(), _going_on(f"the same command goes on from {out}."):
        examples = source.examples()
        if model is not None:
            network, card = load_network(model)
            examples = examples.numbered_as(card.classes)
        else:
            network = load_backbone(str(backbone), len(examples.classes))
        network.model.to(source.chosen_device())
        with watching(console) as watch:
            features = extract_features(
                network, examples, out, batch_size=batch_size or 32, watch=watch
            )
    say(f"{len(features)} rows of {features.features.shape[1]} features: {out.resolve()}")


def repair(
    model: Path,
    *,
    source: Source,
    out: Path,
    method: Literal["isr-mean", "isr-cov", "isr"] = "isr-mean",
    n_spurious: Whole = None,
    head: Literal["refit", "fold"] = "refit",
    balanced: Annotated[bool, Flag] = False,
    seed: Seed = 0,
    force: Annotated[bool, Flag] = False,
) -> None:
    """Repair the last layer of a trained network, and say what it did to each group.

    Learns from the training rows and scores the test rows. The repaired network has the same
    modules, names and shapes.

    Example: isrlearn repair net --data waterbirds --out repaired

    Parameters
    ----------
    model
        Folder of a network that isrlearn trained.
    out
        Folder for the repaired network and report.json; it is created.
    method
        How the spurious directions are found: by class means, by covariances, or both. Covariances
        of learned features differ in many directions; look at what is left before you trust them.
    n_spurious
        How many directions to remove; found by tests if left out.
    head
        refit: fit a logistic head on the rest; fold: keep the old head without these directions.
    balanced
        Let all (class, environment) groups count the same in a new head.
    seed
        Of the tests that find how many directions there are.
    force
        Overwrite what is there.
    """
    may_write(out, force)
    console = _loading()
    from isrlearn import networks
    from isrlearn.networks._checkpoints import model_tensors, save_tensors

    with mistakes_of_the_user():
        examples = source.examples()
        network, card = networks.load_network(model)
        examples = examples.numbered_as(card.classes)
        network.model.to(source.chosen_device())
        parts = [networks.rows_of(examples.take(s), network.inputs) for s in ("train", "test")]
        with watching(console) as watch:
            done = networks.repair(
                network.model,
                parts[0].loader(32),
                isr=_transformer(method, n_spurious, seed),
                head=head,
                group_weight="balanced" if balanced else None,
                inplace=True,
                holdout=parts[1].loader(32),
                progress=_counter(watch, sum(len(part) for part in parts)),
            )
        card.save(out, replacing=True)
        save_tensors(out / "model.safetensors", model_tensors(done.model), {"repaired": str(model)})
        report = _with_names(done.report, examples)
        figures = report.to_dict()
        (out / "report.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")
    say(str(report))
    say(f"Network: {out.resolve()}")


def _transformer(method: str, n_spurious: int | None, seed: int) -> Any:
    from isrlearn._transformers import ISR, ISRCov, ISRMean

    kind = {"isr": ISR, "isr-mean": ISRMean, "isr-cov": ISRCov}[method]
    return kind(n_spurious="auto" if n_spurious is None else n_spurious, random_state=seed)


def _with_names(report: Any, examples: Any) -> Any:
    import numpy as np

    def named(scores: Any) -> Any:
        return replace(
            scores,
            classes=np.array(examples.classes)[scores.classes],
            environments=np.array(examples.environment_names)[scores.environments],
        )

    return replace(report, before=named(report.before), after=named(report.after))


def _counter(watch: Any, total: int) -> Any:
    done = 0

    def advance(n_rows: int) -> None:
        nonlocal done
        done += n_rows
        watch("reading features", done, total)

    return advance


def _loading() -> Console:
    console = Console()
    try:
        with console.status("Loading ..."):
            import isrlearn.networks  # noqa: F401
    except ImportError as error:
        raise UserError(str(error)) from error
    return console


class _going_on:  # noqa: N801 - reads as a word in a with statement
    """Tell after Ctrl-C how to go on."""

    def __init__(self, how: str) -> None:
        self.how = how

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, *rest: Any) -> None:
        if kind is KeyboardInterrupt:
            raise Interrupted(self.how)
