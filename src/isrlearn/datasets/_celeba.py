"""CelebA: hair colour of faces; the environment is the gender attribute."""

from pathlib import Path
from typing import Final

import numpy as np

from isrlearn.datasets._columns import Table, first_there, read_text, splits_by_number_or_name
from isrlearn.datasets._examples import ExampleSet, ImageFolder
from isrlearn.exceptions import DataError

ADDRESS: Final = "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html"
ATTRIBUTES: Final = ("list_attr_celeba.csv", "list_attr_celeba.txt")
PARTITION: Final = ("list_eval_partition.csv", "list_eval_partition.txt")
IMAGES: Final = "img_align_celeba"
SIGNS: Final = {"-1": 0, "1": 1, "0": 0}


def find_celeba(folder: Path) -> Path | None:
    """Return the attribute list of CelebA in or below a folder."""
    places = (folder, folder / "data", folder / "celebA" / "data", folder / "celeba")
    return first_there([place / name for place in places for name in ATTRIBUTES])


def read_celeba(folder: str | Path) -> ExampleSet:
    r"""Read CelebA: is the hair blond, with gender as environment.

    Parameters
    ----------
    folder : path
        Holds ``list_attr_celeba`` and ``list_eval_partition``, as .csv or as the .txt of the
        release, and the folder ``img_align_celeba``; or a folder above.

    Returns
    -------
    ExampleSet
        Classes "not blond" and "blond" (``Blond_Hair``), environments "female" and "male"
        (``Male``).

    References
    ----------
    .. [1] Z. Liu, P. Luo, X. Wang, X. Tang (2015). Deep learning face attributes in the wild. ICCV.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, text in (
    ...         ("list_attr_celeba.csv", "image_id,Blond_Hair,Male\n1.jpg,1,-1"),
    ...         ("list_eval_partition.csv", "image_id,partition\n1.jpg,0"),
    ...     ):
    ...         _ = (Path(folder) / name).write_text(text)
    ...     (Path(folder) / "img_align_celeba").mkdir()
    ...     (Path(folder) / "img_align_celeba" / "1.jpg").touch()
    ...     faces = read_celeba(folder)
    >>> faces.classes[faces.labels[0]], faces.environment_names[faces.environments[0]]
    ('blond', 'female')
    """
    folder = Path(folder)
    path = find_celeba(folder)
    if path is None:
        raise DataError(
            f"{folder} has no {ATTRIBUTES[0]} of CelebA. Fetch the aligned images, the attributes "
            f"and the partition from {ADDRESS}, and put {ATTRIBUTES[0]}, {PARTITION[0]} (or .txt) "
            f"and the folder {IMAGES} into {folder}."
        )
    home = path.parent
    partition = first_there([home / name for name in PARTITION])
    if partition is None:
        raise DataError(f"{home} has no {PARTITION[0]} (or .txt): fetch it from {ADDRESS}.")
    attributes = _read(path, header=True)
    names = attributes.texts("image_id")
    return ExampleSet(
        layout="celeba",
        kind="image",
        inputs=names,
        labels=attributes.codes("Blond_Hair", SIGNS),
        environments=attributes.codes("Male", SIGNS),
        split=_splits(_read(partition, header=False), names),
        classes=("not blond", "blond"),
        environment_names=("female", "male"),
        images=ImageFolder(_image_folder(home)),
    )


def _image_folder(home: Path) -> Path:
    nested = home / IMAGES / IMAGES  # as one of the public copies unpacks
    return nested if nested.is_dir() else home / IMAGES


def _read(path: Path, *, header: bool) -> Table:
    """Read a list: csv, or the release's text: a count, names, and fields set off by spaces."""
    if path.suffix == ".csv":
        return Table.read(path)
    lines = [" ".join(line.split()) for line in read_text(path).splitlines()]
    if header:
        lines = [f"image_id {lines[1]}", *lines[2:]] if len(lines) > 1 else lines
    else:
        lines = ["image_id partition", *lines]
    return Table(path, "\n".join(lines), first_line=2 if header else 0, delimiter=" ")


def _splits(partition: Table, names: list[str]) -> "np.ndarray":
    codes = partition.codes("partition", splits_by_number_or_name())
    split_of = dict(zip(partition.texts("image_id"), codes.tolist(), strict=True))
    missing = [name for name in names if name not in split_of]
    if missing:
        raise DataError(
            f"{partition.path} has no split for {len(missing)} images, such as {missing[0]}."
        )
    return np.array([split_of[name] for name in names], dtype=np.intp)
