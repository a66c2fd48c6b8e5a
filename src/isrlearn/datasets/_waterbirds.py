"""Waterbirds: birds cut out of one photograph and put into another."""

import tarfile
from pathlib import Path
from typing import Final

from isrlearn._limits import refuse_irregular
from isrlearn.datasets._columns import Table, as_text, first_there, splits_by_number_or_name
from isrlearn.datasets._examples import ExampleSet, ImageArchive, ImageFolder
from isrlearn.exceptions import DataError

ADDRESS: Final = "https://nlp.stanford.edu/data/dro/waterbird_complete95_forest2water2.tar.gz"
FOLDER: Final = "waterbird_complete95_forest2water2"
TABLE: Final = "metadata.csv"
BINARY: Final = {"0": 0, "1": 1}


def find_waterbirds(folder: Path) -> Path | None:
    """Return the table of Waterbirds in or below a folder, or a tar file that holds one."""
    if folder.is_file():
        return folder if _member(folder) else None
    places = (folder, folder / FOLDER, folder / "data" / FOLDER, *_folders(folder))
    table = first_there([place / TABLE for place in places])
    return table or next((tar for tar in sorted(folder.glob("*.tar")) if _member(tar)), None)


def read_waterbirds(folder: str | Path) -> ExampleSet:
    r"""Read Waterbirds in the layout of its release.

    Parameters
    ----------
    folder : path
        Holds ``metadata.csv`` (img_filename, y: 1 waterbird, place: 1 water, split: 0 train, 1
        validation, 2 test) and the images below it; or a folder above; or a tar file of it.

    Returns
    -------
    ExampleSet
        Classes landbird and waterbird, environments land and water.

    References
    ----------
    .. [1] S. Sagawa, P. W. Koh, T. Hashimoto, P. Liang (2020). Distributionally robust neural
       networks for group shifts. ICLR.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = "img_filename,y,place,split\ngull.jpg,1,0,2"
    ...     _ = (Path(folder) / "metadata.csv").write_text(table)
    ...     (Path(folder) / "gull.jpg").touch()
    ...     birds = read_waterbirds(folder)
    >>> birds.classes[birds.labels[0]], birds.environment_names[birds.environments[0]]
    ('waterbird', 'land')
    """
    folder = Path(folder)
    path = find_waterbirds(folder)
    if path is None:
        packed = sorted(folder.glob("*.tar.gz")) if folder.is_dir() else []
        how = f"Unpack {packed[0]}" if packed else f"Fetch {ADDRESS} and unpack it"
        raise DataError(
            f"{folder} has no {TABLE} of Waterbirds. {how} there: the table belongs at "
            f"{folder / FOLDER / TABLE}."
        )
    table, images = _open(path)
    return ExampleSet(
        layout="waterbirds",
        kind="image",
        inputs=table.texts("img_filename"),
        labels=table.codes("y", BINARY),
        environments=table.codes("place", BINARY),
        split=table.codes("split", splits_by_number_or_name()),
        classes=("landbird", "waterbird"),
        environment_names=("land", "water"),
        images=images,
    )


def _open(path: Path) -> tuple[Table, ImageFolder | ImageArchive]:
    if path.suffix != ".tar":
        return Table.read(path), ImageFolder(path.parent)
    member = _member(path)
    below = member.removesuffix(TABLE)
    images = ImageArchive.open(path, below)
    return Table(f"{path}:{member}", as_text(images.read(TABLE), f"{path}:{member}")), images


def _member(tar: Path) -> str:
    """Return the name of the table in a tar file, or ""."""
    try:
        refuse_irregular(tar)
        with tarfile.open(tar, "r:") as archive:
            # The table stands near the front or the end; a listing reads the headers alone.
            return next((m.name for m in archive if Path(m.name).name == TABLE), "")
    except (tarfile.TarError, OSError, ValueError, OverflowError, MemoryError):
        return ""


def _folders(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else []
