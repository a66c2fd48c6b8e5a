"""A table of the user's own: a path or a text, a label, an environment and a split in each row."""

from pathlib import Path
from typing import Final

from isrlearn.datasets._celeba import find_celeba, read_celeba
from isrlearn.datasets._columns import Table, encode, splits_by_number_or_name
from isrlearn.datasets._examples import ExampleSet, ImageFolder
from isrlearn.datasets._multinli import find_multinli, read_multinli
from isrlearn.datasets._waterbirds import find_waterbirds, read_waterbirds
from isrlearn.exceptions import DataError

LAYOUTS: Final = ("waterbirds", "celeba", "multinli", "table")


def read_table(path: str | Path) -> ExampleSet:
    r"""Read a csv of images or texts.

    Parameters
    ----------
    path : path
        A .csv with the columns ``path`` (of an image, below the folder of the csv) or ``text`` (and
        ``text2`` for pairs), ``label``, ``environment`` (empty where unknown) and ``split`` (train,
        validation, test, or 0, 1, 2).

    Returns
    -------
    ExampleSet
        Classes and environments sorted by name, numbers by value.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> rows = ["text,label,environment,split", "all good,1,web,train", "no way,0,,test"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "reviews.csv"
    ...     _ = path.write_text("\n".join(rows))
    ...     examples = read_table(path)
    >>> examples.kind, examples.classes, examples.environments.tolist()
    ('text', ('0', '1'), [0, -1])
    """
    path = Path(path)
    table = Table.read(path)
    is_image = "path" in table.columns
    if not is_image and "text" not in table.columns:
        raise DataError(
            f"{path} has neither a column 'path' (images) nor 'text'; it has "
            f"{', '.join(table.columns)}."
        )
    classes, labels = encode(_without_gaps(table, "label"))
    environment_names, environments = encode(
        [value.strip() for value in table.texts("environment")]
    )
    texts = table.texts("path" if is_image else "text")
    pairs = list(zip(texts, table.texts("text2"), strict=True)) if "text2" in table.columns else []
    return ExampleSet(
        layout="table",
        kind="image" if is_image else "text",
        inputs=[Path(name).as_posix() for name in texts] if is_image else pairs or texts,
        labels=labels,
        environments=environments,
        split=table.codes("split", splits_by_number_or_name()),
        classes=classes,
        environment_names=environment_names,
        images=ImageFolder(path.parent) if is_image else None,
    )


def read_examples(
    path: str | Path, layout: str | None = None, *, negation: str = "published"
) -> ExampleSet:
    r"""Read a data set, finding out its layout.

    Parameters
    ----------
    path : path
        A folder with Waterbirds, CelebA or MultiNLI, or a .csv of your own.
    layout : {"waterbirds", "celeba", "multinli", "table"}, default=None
        What it is; None looks at the files.
    negation : {"published", "extended"}, default="published"
        For MultiNLI: which words are negations.

    Returns
    -------
    ExampleSet

    See Also
    --------
    read_waterbirds, read_celeba, read_multinli, read_table : What each expects.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> head, pair = "gold_label\tsentence1\tsentence2", "neutral\tIt rains.\tIt pours."
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "train.tsv").write_text(f"{head}\n{pair}")
    ...     print(read_examples(folder).layout)
    multinli
    """
    path = Path(path)
    if layout is not None and layout not in LAYOUTS:
        raise ValueError(f"layout={layout!r} must be one of {', '.join(LAYOUTS)}.")
    if not path.exists():
        raise DataError(f"{path} is not there: name a folder with data, or a csv.")
    found = layout or _layout(path)
    if found == "table":
        return read_table(path)
    if found == "multinli":
        return read_multinli(path, negation=negation)
    return {"waterbirds": read_waterbirds, "celeba": read_celeba}[found](path)


def _layout(path: Path) -> str:
    if path.is_file():
        return "waterbirds" if path.suffix == ".tar" else "table"
    finders = {"celeba": find_celeba, "multinli": find_multinli, "waterbirds": find_waterbirds}
    found = [name for name, find in finders.items() if find(path)]
    if len(found) != 1:
        what = f"more than one layout ({', '.join(found)})" if found else "no layout that we know"
        raise DataError(
            f"{path} has {what}. Known are Waterbirds (metadata.csv), CelebA "
            "(list_attr_celeba.csv), MultiNLI (multinli*.tsv, glue_data/MNLI) and a csv with the "
            "columns path or text, label, environment, split: name the csv itself, or say which "
            "with layout."
        )
    return found[0]


def _without_gaps(table: Table, column: str) -> list[str]:
    values = [value.strip() for value in table.texts(column)]
    if "" in values:
        line = table.line_of(values.index(""))
        raise DataError(f"{table.path}, line {line}: {column} is empty.")
    return values
