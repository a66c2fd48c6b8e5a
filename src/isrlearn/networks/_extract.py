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
    r"""Write what goes into the last layer of a network for all examples; resumable.

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

    Examples
    --------
    >>> import tempfile, torch
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from isrlearn.datasets import read_table
    >>> from isrlearn.networks import Backbone, ImageInputs, extract_features
    >>> layers = torch.nn.Flatten(), torch.nn.Linear(192, 5), torch.nn.Linear(5, 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (8, 8)).save(Path(folder) / "a.png")
    ...     path = Path(folder) / "rows.csv"
    ...     _ = path.write_text("path,label,environment,split\na.png,cat,day,train")
    ...     backbone = Backbone(torch.nn.Sequential(*layers), ImageInputs(size=8))
    ...     found = extract_features(backbone, read_table(path), Path(folder) / "features")
    >>> found.features.shape, found.split.tolist()
    ((1, 5), [0])
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
        names=(examples.classes, examples.environment_names),
        progress=advance,
    )
