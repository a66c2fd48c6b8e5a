"""``isrlearn train``, ``extract`` and ``repair``: thin commands over `isrlearn.networks`."""

import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from cyclopts import Parameter

from isrlearn._cli_options import (
    BackboneName,
    BatchSize,
    Epochs,
    Force,
    Names,
    PlanName,
    Seed,
    Whole,
)
from isrlearn._cli_pages import made_here, write_result
from isrlearn._cli_progress import watching, working
from isrlearn._cli_support import (
    Result,
    UserError,
    all_or_nothing,
    answering,
    going_on,
    may_fill,
    may_write,
    must_exist,
    written_together,
)

REPAIRED = ("network.json", "model.safetensors", "result.json", "report.html")


@Parameter(name="*")
@dataclass(frozen=True)
class Source:
    """Where the rows come from.

    Parameters
    ----------
    data
        Where the rows are: a folder of Waterbirds, CelebA or MultiNLI as released, or a .csv with
        the columns path or text, label, environment and split.
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

    epochs: Epochs = None
    batch_size: BatchSize = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    optimizer: Literal["sgd", "adamw"] | None = None
    adjustment: float | None = None
    patience: Whole = None

    def given(self) -> dict[str, Any]:
        """Return what the user gave."""
        return {name: value for name, value in vars(self).items() if value is not None}


@answering
def train(
    *,
    source: Source,
    out: Path,
    backbone: BackboneName = None,
    objective: Literal["erm", "reweighting", "groupdro"] = "erm",
    config: PlanName = None,
    seed: Seed = 0,
    changes: Changes = Changes(),  # noqa: B008 - frozen
) -> Result:
    """Train a network by ERM, Reweighting or GroupDRO; stopped at any time, it goes on.

    The weights of the epoch with the best worst group in validation are kept.

    Example: isrlearn train --data waterbirds --backbone resnet50 --objective groupdro --out net

    Example: isrlearn train --data my.csv --backbone my_module:factory --out net

    Parameters
    ----------
    out
        Folder for the network; it is created, and a run that stopped goes on there. One of another
        run is refused, so that nothing is overwritten.
    objective
        erm, reweighting or groupdro.
    """
    may_fill(out)
    _refuse_weights(out)
    must_exist(source.data)
    loading()
    from isrlearn.networks import NetworkCard, rows_of, train as train_network
    from isrlearn.networks._backbones import lasting_name
    from isrlearn.reproduce import find_plan

    with going_on(out):
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
        card.save(out)
        rows = rows_of(examples.take("train"), network.inputs)
        kept = rows_of(examples.take("validation"), network.inputs)
        with watching() as watch:
            done = train_network(network.model, rows, kept, settings, out=out, watch=watch)
    best = done.epochs[done.best_epoch - 1]
    figures = {
        "best_epoch": done.best_epoch,
        "average": best.average,
        "worst_group": best.worst_group,
        "epochs": [asdict(epoch) for epoch in done.epochs],
        "settings": asdict(settings),
    }
    text = (
        f"Best epoch {done.best_epoch} of {len(done.epochs)}: in validation average "
        f"{best.average:.3f}, worst group {best.worst_group:.3f}."
    )
    return Result(figures, [text], {"network": out})


def _refuse_weights(out: Path) -> None:
    """Refuse a folder of weights that we did not write: the network may begin with them."""
    card, weights = (out / name for name in REPAIRED[:2])
    if weights.exists() and not card.exists():
        raise UserError(
            f"--out {out} would overwrite {weights}, which is of another program: name another "
            "folder."
        )


@answering
def extract(
    model: Path | None = None,
    /,
    *,
    source: Source,
    out: Path,
    backbone: BackboneName = None,
    batch_size: BatchSize = None,
    trust: Names = None,
) -> Result:
    """Write what goes into the last layer of a network, for all rows; stopped, it goes on.

    The network is one that isrlearn trained, or a backbone as it comes.

    Example: isrlearn extract net --data waterbirds --out features

    Example: isrlearn extract --backbone clip-vit-b32 --data waterbirds --out clip-features

    Parameters
    ----------
    model
        Folder of a network that isrlearn trained.
    out
        Folder for the features; it is created, and a run that stopped goes on there. One of other
        features is refused, so that nothing is overwritten.
    trust
        A function of your own that the network may be built by, my_module:factory: it is imported
        only if it is named here.
    """
    if (model is None) == (backbone is None):
        raise UserError("name either the folder of a network or a --backbone.")
    may_fill(out)
    must_exist(source.data)
    loading()
    from isrlearn.networks import extract_features, load_backbone, load_network

    with going_on(out):
        examples = source.examples()
        if model is not None:
            network, card = load_network(model, trusted=trust or ())
            examples = examples.numbered_as(card.classes)
        else:
            network = load_backbone(str(backbone), len(examples.classes))
        network.model.to(source.chosen_device())
        with watching() as watch:
            features = extract_features(
                network, examples, out, batch_size=batch_size or 32, watch=watch
            )
    n_rows, n_features = features.features.shape
    text = f"{n_rows} rows of {n_features} features."
    return Result({"rows": n_rows, "n_features": n_features}, [text], {"features": out})


@answering
def repair(
    model: Path,
    /,
    *,
    source: Source,
    out: Path,
    method: Literal["isr-mean", "isr-cov", "isr"] | None = None,
    n_spurious: Whole = None,
    head: Literal["refit", "fold"] = "refit",
    group_weight: Literal["balanced", "class", "none"] = "balanced",
    seed: Seed = 0,
    trust: Names = None,
    force: Force = False,
) -> Result:
    """Repair the last layer of a trained network, and say what it did to each group.

    Learns from the training rows and scores the test rows. The repaired network has the same
    modules, names and shapes.

    Example: isrlearn repair net --data waterbirds --out repaired

    Parameters
    ----------
    model
        Folder of a network that isrlearn trained.
    out
        Folder for the repaired network, result.json and report.html; it is created.
    method
        How the spurious directions are found: by class means, by covariances, or both. Covariances
        of learned features differ in many directions; look at what is left before you trust them.
        If left out: as ISRClassifier does, one direction of the class means with more than 20
        features.
    n_spurious
        How many directions to remove. If left out: found by tests where a method is named.
    head
        refit: fit a logistic head on the rest; fold: keep the old head without these directions.
    group_weight
        How rows count in a new head. balanced: classes alike, and within a class the environments
        that it has; class: classes alike; none: rows alike.
    trust
        A function of your own that the network may be built by, my_module:factory: it is imported
        only if it is named here.
    """
    inputs = [source.data, *(model / name for name in REPAIRED)]
    files = [may_write(out / name, force, reads=inputs) for name in REPAIRED]
    must_exist(source.data)
    begin = time.monotonic()
    loading()
    from isrlearn import networks

    with all_or_nothing():
        examples = source.examples()
        network, card = networks.load_network(model, trusted=trust or ())
        examples = examples.numbered_as(card.classes)
        network.model.to(source.chosen_device())
        parts = [networks.rows_of(examples.take(s), network.inputs) for s in ("train", "test")]
        with watching() as watch:
            done = networks.repair(
                network.model,
                parts[0].loader(32),
                isr=_transformer(method, n_spurious, seed),
                head=head,
                group_weight=None if group_weight == "none" else group_weight,
                inplace=True,
                holdout=parts[1].loader(32),
                progress=_counter(watch, sum(len(part) for part in parts)),
            )
        done = _with_names(done, examples)
        with working("Writing the report ..."):
            page = _page(done, examples.take("test"), model, made_here(begin, seed=str(seed)))
            _write_repaired(files, card, done, model, page)
    found = {"network": out, "result": files[2], "report": files[3]}
    return Result(done.report.to_dict(), [str(done.report)], found)


def _page(done: Any, tested: Any, model: Path, made: Any) -> Any:
    from isrlearn.reporting import report

    class Pictures:
        """Images are read when they are shown."""

        def __getitem__(self, row: int) -> Any:
            if tested.kind == "image":
                return tested.image(row)
            words = tested.inputs[row]
            return words if isinstance(words, str) else " / ".join(words)

    return report(done, examples=Pictures(), title=f"Repair of {model.name}", made=made)


def _write_repaired(files: list[Path], card: Any, done: Any, repaired: Path, page: Any) -> None:
    from isrlearn.networks._checkpoints import model_tensors, save_tensors

    with written_together(*files) as (card_file, weights, figures, html):
        card.save(card_file.parent)
        notes = {"repaired": str(repaired), "card": card.digest()}
        save_tensors(weights, model_tensors(done.model), notes)
        write_result(figures, page, done.report.to_dict())
        html.write_text(page.html, encoding="utf-8")


def _transformer(method: str | None, n_spurious: int | None, seed: int) -> Any:
    from isrlearn.estimators import ISR, ISRCov, ISRMean

    if method is None and n_spurious is None:
        return None
    kind = {"isr": ISR, "isr-mean": ISRMean, "isr-cov": ISRCov}[method or "isr-mean"]
    return kind(n_spurious="auto" if n_spurious is None else n_spurious, random_state=seed)


def _with_names(done: Any, examples: Any) -> Any:
    import numpy as np

    classes, places = np.array(examples.classes), np.array(examples.environment_names)

    def named(scores: Any) -> Any:
        return replace(
            scores, classes=classes[scores.classes], environments=places[scores.environments]
        )

    report, shown, found = done.report, done.shown, done.report.diagnosis
    diagnosis = replace(
        found, classes=classes[found.classes], environments=places[found.environments]
    )
    names = [None if e is None else places[int(e)] for e in shown.environments.tolist()]
    scores = {"before": named(report.before), "after": named(report.after)}
    return replace(
        done,
        report=replace(report, **scores, diagnosis=diagnosis),
        shown=replace(shown, y=classes[shown.y], environments=np.array(names, dtype=object)),
    )


def _counter(watch: Any, total: int) -> Any:
    done = 0

    def advance(n_rows: int) -> None:
        nonlocal done
        done += n_rows
        watch("reading features", done, total)

    return advance


def loading() -> None:
    """Import torch, which takes a while."""
    try:
        with working("Loading ..."):
            import isrlearn.networks  # noqa: F401
    except ImportError as error:
        raise UserError(str(error)) from error
