"""``isrlearn reproduce``: the paper's tables and figure on real data."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Group, Parameter

from isrlearn._cli_networks import Source, loading
from isrlearn._cli_options import BackboneName, Epochs, PlanName, Seeds, Several
from isrlearn._cli_progress import watching
from isrlearn._cli_support import (
    Result,
    UserError,
    answering,
    going_on,
    may_fill,
    may_write,
    must_exist,
    written_together,
)

OUT = Path("isrlearn-reproduce")

reproduce = App(
    name="reproduce",
    help=(
        "The paper's experiments on real data, beside its figures.\n\n"
        "Example: isrlearn reproduce table1 --data waterbirds --seeds 10."
    ),
    help_epilogue="",
    group_commands=Group("Commands"),
)


@Parameter(name="*")
@dataclass(frozen=True)
class Networks:
    """Which networks.

    Parameters
    ----------
    out
        Folder for networks and tables; it is created, and a run that stopped goes on there.
    """

    seeds: Seeds = 10
    out: Path = OUT
    backbone: BackboneName = None
    config: PlanName = None
    epochs: Epochs = None


@reproduce.command
@answering
def table1(
    *,
    source: Source,
    networks: Networks = Networks(),  # noqa: B008 - frozen
    objectives: Annotated[list[str] | None, Several] = None,
) -> Result:
    """Table 1: networks by ERM, Reweighting and GroupDRO, before and after ISR.

    Trains the networks, reads their features, and fits heads with and without removal; what is
    chosen is chosen on validation rows. Prints the paper's table beside ours and writes table1.md,
    table1.csv and a result for each network. Stop it at any time; the same command goes on.

    Example: isrlearn reproduce table1 --data waterbirds --seeds 10

    Example: isrlearn reproduce table1 --data waterbirds --backbone efficientnet-lite0 --seeds 3

    Parameters
    ----------
    objectives
        Out of erm, reweighting, groupdro.
    """
    if objectives == []:
        raise UserError("--objectives needs at least one of erm, reweighting, groupdro.")
    _may_write(networks.out, "table1.csv", "table1.md", reads=[source.data, networks.config])
    results, plan = _results(source, networks, tuple(objectives or ()))[:2]
    from isrlearn.reproduce.tables import published, table_rows, text_table

    theirs = published(1, results[0]["data"])
    text = _heading(results, plan, source) + text_table(table_rows(results), theirs)
    if len(plan.heads.heads) > 1 and "plain" in plan.heads.heads:
        text += "\n\nThe same with plain heads, in which every row counts alike:\n\n"
        text += text_table(table_rows(results, "plain"), theirs)
    return _written(networks.out, "table1", text, results, theirs, made="networks")


def _may_write(out: Path, *names: str, reads: Iterable[str | Path | None]) -> None:
    """Refuse a folder in which a table would take the place of a file that is read."""
    may_fill(out)
    for name in names:
        may_write(out / name, True, reads=[Path(read) for read in reads if read is not None])


def _written(
    out: Path, name: str, text: str, results: list[Any], theirs: Any, *, made: str
) -> Result:
    """Write a table as csv and as text."""
    from isrlearn.reproduce.tables import csv_rows, table_rows, write_csv

    files = {"table": out / f"{name}.csv", "text": out / f"{name}.md"}
    with going_on(out), written_together(*files.values()) as (table, shown):
        write_csv(table, csv_rows(results))
        shown.write_text(text + "\n", encoding="utf-8")
    cells = [
        {
            "objective": objective,
            "method": method,
            **_cells(scores),
            "paper": _cells(theirs.get((objective, method), {})),
        }
        for (objective, method), scores in table_rows(results).items()
    ]
    seeds = len({result["seed"] for result in results})
    figures = {"cells": cells, "seeds": seeds, "rule": results[0]["rule"]}
    return Result(figures, [text, ""], {**files, made: out / made})


def _cells(scores: dict[str, Any]) -> dict[str, Any]:
    """Return means and standard deviations in percent, by score."""
    return {score: asdict(cell) for score, cell in scores.items()}


@reproduce.command
@answering
def table2(
    *,
    data: Path,
    seeds: Seeds = 10,
    out: Path = OUT,
    config: PlanName = None,
) -> Result:
    """Table 2: a linear probe on frozen features, plain and reweighted, before and after ISR.

    Each seed takes a random 80 % of the training rows of every group. For CLIP as in the paper,
    first: isrlearn extract --backbone clip-vit-b32 --data waterbirds --out clip.

    Example: isrlearn reproduce table2 --data clip --seeds 10

    Parameters
    ----------
    data
        Where the rows are: a folder that isrlearn extract wrote, or an .npz with features, labels,
        environments, split.
    out
        Folder for table2.md, table2.csv and a result for each seed; it is created, and a run that
        stopped goes on there.
    """
    _may_write(out, "table2.csv", "table2.md", reads=[data, config])
    must_exist(data)
    loading()
    from isrlearn.reproduce.frozen import SHARE, frozen_results, read_frozen
    from isrlearn.reproduce.plans import read_heads
    from isrlearn.reproduce.tables import published, table_rows, text_table

    with going_on(out):
        grid = read_heads(config or "frozen-features")
        rows = read_frozen(data)
        results: list[Any] = []
        with watching() as watch:
            for result in frozen_results(rows, grid, seeds, out / "frozen"):
                results.append(result)
                watch("heads on frozen features", len(results), 2 * seeds)
    theirs = published(2, "waterbirds")
    text = (
        f"Frozen features, {seeds} seeds, each a random {SHARE:.0%} of the training rows of every "
        f"group. Settings chosen by the {results[0]['rule']}. The paper's rows are of CLIP "
        "ViT-B/32 on Waterbirds.\n\n"
    ) + text_table(table_rows(results), theirs)
    return _written(out, "table2", text, results, theirs, made="frozen")


@reproduce.command(name="partial-labels")
@answering
def partial_labels(
    *,
    source: Source,
    networks: Networks = Networks(),  # noqa: B008 - frozen
) -> Result:
    """Worst-group accuracy of ERM networks with 10 to 100 % of the environment labels.

    Takes the networks of table1 in the same folder, and trains those that are not there. Ten random
    subsets of labels for each network and share. Writes partial-labels.png and .csv.

    Example: isrlearn reproduce partial-labels --data waterbirds --seeds 10
    """
    names = "partial-labels.csv", "partial-labels.png"
    _may_write(networks.out, *names, reads=[source.data, networks.config])
    results, plan, runs = _results(source, networks, ("erm",))
    from isrlearn.reproduce.partial import FRACTIONS, N_SUBSETS, partial_figure
    from isrlearn.reproduce.results import kept
    from isrlearn.reproduce.tables import chosen, write_csv

    out = networks.out
    files = {"table": out / "partial-labels.csv", "picture": out / "partial-labels.png"}
    records: list[Any] = []
    done, total = 0, len(runs) * ((len(FRACTIONS) - 1) * N_SUBSETS + 1)
    with going_on(out), watching() as watch:

        def advance() -> None:
            nonlocal done
            done += 1
            watch("partial labels", done, total)

        for run, result in zip(runs, results, strict=True):
            make = partial(_partial_records, run, result, plan, advance)
            identity = {**result["identity"], "selected": chosen(result)}
            records += kept(run.folder / "partial-labels.json", identity, make)["records"]
        figure = partial_figure(records, results)
        with written_together(*files.values()) as (table, picture):
            write_csv(table, records)
            figure.savefig(picture, format="png")
    return Result({"records": records}, files={**files, "networks": out / "networks"})


def _partial_records(run: Any, result: Any, plan: Any, advance: Any) -> dict[str, Any]:
    from isrlearn.reproduce.partial import partial_records

    return {"records": partial_records(run.features(), result, plan, advance=advance)}


def _results(
    source: Source, networks: Networks, objectives: tuple[str, ...]
) -> tuple[list[dict[str, Any]], Any, list[Any]]:
    """Return the result of every network, the plan, and the runs."""
    must_exist(source.data)
    loading()
    from isrlearn.reproduce import find_plan
    from isrlearn.reproduce.runs import network_runs

    with going_on(networks.out):
        examples = source.examples()
        plan = find_plan(examples.family, networks.backbone, networks.config)
        plan = plan.with_epochs(networks.epochs)
        device = source.chosen_device()
        runs = list(
            network_runs(examples, plan, networks.out, networks.seeds, objectives, device=device)
        )
        with watching() as watch:
            results = [run.result(watch) for run in runs]
    return results, plan, runs


def _heading(results: list[dict[str, Any]], plan: Any, source: Source) -> str:
    seeds = len({result["seed"] for result in results})
    settings = json.dumps(plan.training["erm"].__dict__)
    return (
        f"{source.data.resolve().name}, read as {results[0]['data']}, by {plan.backbone}; plan "
        f"{plan.name}, {seeds} seeds, mean ± standard deviation. Settings chosen by the "
        f"{results[0]['rule']}. ERM was trained with {settings}. "
        "Refit: a new head without removal.\n\n"
    )
