"""``isrlearn reproduce``: the paper's tables and figure on real data."""

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from isrlearn._cli_bench import Count, Several, Whole
from isrlearn._cli_networks import Source, _going_on, _loading
from isrlearn._cli_support import UserError, make_folder, mistakes_of_the_user, say, watching

reproduce = App(
    name="reproduce",
    help=(
        "The paper's experiments on real data, beside its figures. "
        "Example: isrlearn reproduce table1 --data waterbirds --seeds 10."
    ),
)


@Parameter(name="*")
@dataclass(frozen=True)
class Networks:
    """Which networks.

    Parameters
    ----------
    seeds
        How many seeds; 10 means the seeds 0 to 9, as in the paper.
    out
        Folder for networks and tables; it is created, and a run that stopped goes on there.
    backbone
        Another network than the paper's: efficientnet-lite0 and minilm train on a CPU; or a
        transformers folder, a name on the hub, my_module:factory.
    config
        Plan: a name or a .toml file. If left out: that of the data and the backbone.
    epochs
        Other number of epochs than the plan's.
    """

    seeds: Count = 10
    out: Path = Path("isrlearn-reproduce")
    backbone: str | None = None
    config: str | None = None
    epochs: Whole = None


@reproduce.command
def table1(
    *,
    source: Source,
    networks: Networks = Networks(),  # noqa: B008 - frozen
    objectives: Annotated[list[str] | None, Several] = None,
) -> None:
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
    results, plan = _results(source, networks, tuple(objectives or ()))[:2]
    from isrlearn.reproduce.tables import csv_rows, published, table_rows, text_table, write_csv

    theirs = published(1, results[0]["data"])
    text = _heading(results, plan, source) + text_table(table_rows(results), theirs)
    if len(plan.heads.heads) > 1 and "plain" in plan.heads.heads:
        text += "\n\nThe same with plain heads, in which every row counts alike:\n\n"
        text += text_table(table_rows(results, "plain"), theirs)
    (networks.out / "table1.md").write_text(text + "\n", encoding="utf-8")
    write_csv(networks.out / "table1.csv", csv_rows(results))
    say(text)
    say(f"\nFiles: {networks.out.resolve()}")


@reproduce.command
def table2(
    *,
    data: Path,
    seeds: Count = 10,
    out: Path = Path("isrlearn-reproduce"),
    config: str | None = None,
) -> None:
    """Table 2: a linear probe on frozen features, plain and reweighted, before and after ISR.

    Each seed takes a random 80 % of the training rows of every group. For CLIP as in the paper,
    first: isrlearn extract --backbone clip-vit-b32 --data waterbirds --out clip.

    Example: isrlearn reproduce table2 --data clip --seeds 10

    Parameters
    ----------
    data
        A folder that isrlearn extract wrote, or an .npz with features, labels, environments, split.
    seeds
        How many seeds.
    out
        Folder for table2.md, table2.csv and a result for each seed; it is created, and a run that
        stopped goes on there.
    config
        Plan whose [heads] are tried: a name or a .toml file. If left out: frozen-features.
    """
    console = _loading()
    from isrlearn.reproduce.frozen import SHARE, frozen_results, read_frozen
    from isrlearn.reproduce.plans import read_heads
    from isrlearn.reproduce.tables import csv_rows, published, table_rows, text_table, write_csv

    with mistakes_of_the_user(), _going_on(f"the same command goes on from {out}."):
        grid = read_heads(config or "frozen-features")
        rows = read_frozen(data)
        results: list[Any] = []
        with watching(console) as watch:
            for result in frozen_results(rows, grid, seeds, out / "frozen"):
                results.append(result)
                watch("heads on frozen features", len(results), 2 * seeds)
    make_folder(out)
    text = (
        f"Frozen features, {seeds} seeds, each a random {SHARE:.0%} of the training rows of every "
        f"group. Settings chosen by the {results[0]['rule']}. The paper's rows are of CLIP "
        "ViT-B/32 on Waterbirds.\n\n"
    ) + text_table(table_rows(results), published(2, "waterbirds"))
    (out / "table2.md").write_text(text + "\n", encoding="utf-8")
    write_csv(out / "table2.csv", csv_rows(results))
    say(text)
    say(f"\nFiles: {out.resolve()}")


@reproduce.command(name="partial-labels")
def partial_labels(
    *,
    source: Source,
    networks: Networks = Networks(),  # noqa: B008 - frozen
) -> None:
    """Worst-group accuracy of ERM networks with 10 to 100 % of the environment labels.

    Takes the networks of table1 in the same folder, and trains those that are not there. Ten random
    subsets of labels for each network and share. Writes partial-labels.png and .csv.

    Example: isrlearn reproduce partial-labels --data waterbirds --seeds 10
    """
    results, plan, runs = _results(source, networks, ("erm",))
    console = _loading()
    from isrlearn._files import write_whole
    from isrlearn.reproduce.partial import FRACTIONS, N_SUBSETS, partial_figure
    from isrlearn.reproduce.results import kept
    from isrlearn.reproduce.tables import chosen, write_csv

    records: list[Any] = []
    done, total = 0, len(runs) * ((len(FRACTIONS) - 1) * N_SUBSETS + 1)
    with mistakes_of_the_user(), watching(console) as watch:

        def advance() -> None:
            nonlocal done
            done += 1
            watch("partial labels", done, total)

        for run, result in zip(runs, results, strict=True):
            make = partial(_partial_records, run, result, plan, advance)
            identity = {**result["identity"], "selected": chosen(result)}
            records += kept(run.folder / "partial-labels.json", identity, make)["records"]
    write_csv(networks.out / "partial-labels.csv", records)
    figure = partial_figure(records, results)
    picture = networks.out / "partial-labels.png"
    write_whole(picture, lambda path: figure.savefig(path, format="png"))
    say(f"Picture: {picture.resolve()}")


def _partial_records(run: Any, result: Any, plan: Any, advance: Any) -> dict[str, Any]:
    from isrlearn.reproduce.partial import partial_records

    return {"records": partial_records(run.features(), result, plan, advance=advance)}


def _results(
    source: Source, networks: Networks, objectives: tuple[str, ...]
) -> tuple[list[dict[str, Any]], Any, list[Any]]:
    """Return the result of every network, the plan, and the runs."""
    console = _loading()
    from isrlearn.reproduce import find_plan
    from isrlearn.reproduce.runs import network_runs

    with mistakes_of_the_user(), _going_on(f"the same command goes on from {networks.out}."):
        examples = source.examples()
        plan = find_plan(examples.family, networks.backbone, networks.config)
        plan = plan.with_epochs(networks.epochs)
        make_folder(networks.out)
        device = source.chosen_device()
        runs = list(
            network_runs(examples, plan, networks.out, networks.seeds, objectives, device=device)
        )
        with watching(console) as watch:
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
