"""Features of examples, straight into a feature file."""

from collections.abc import Callable
from pathlib import Path

from isrlearn.datasets import ExampleSet
from isrlearn.io import Features
from isrlearn.networks._backbones import Backbone
from isrlearn.networks._collect import collect_features
from isrlearn.networks._inputs import rows_of


def extract_features(
    backbone: Backbone,
    examples: ExampleSet,
    out: str | Path,
    *,
    batch_size: int = 32,
    watch: Callable[[str, int, int], None] | None = None,
) -> Features:
    """Write what goes into the last layer of a network for all examples; resumable.

    Parameters
    ----------
    backbone : Backbone
        The network.
    examples : ExampleSet
        Rows of all splits.
    out : path
        Folder for the feature file.
    batch_size : int, default=32
        Rows that go through the network together.
    watch : callable, default=None
        Called with a text, the rows that are done, and all.

    Returns
    -------
    Features
        With the split of the examples.
    """
    rows = rows_of(examples, backbone.inputs)
    done = 0

    def advance(n_rows: int) -> None:
        nonlocal done
        done += n_rows
        if watch is not None:
            watch("features", done, len(rows))

    return collect_features(
        backbone.model,
        rows.loader(batch_size),
        out=out,
        made_of={"data": rows.digest(), "batch_size": batch_size},
        split=examples.split,
        progress=advance,
    )
