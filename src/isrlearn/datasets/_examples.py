"""Images or texts with a label, an environment and a split: what a network is trained on."""

import hashlib
import io
import os
import tarfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, Self

import numpy as np

from isrlearn._limits import refuse_irregular
from isrlearn.display import brief
from isrlearn.exceptions import DataError
from isrlearn.typing import IntArray

SPLITS: Final = ("train", "validation", "test")
SHOWN: Final = 3
FORMATS: Final = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
"""Of pictures. Pillow knows more, and gives some to other programs (EPS to Ghostscript)."""


@dataclass(frozen=True)
class ImageFolder:
    """Images in a folder, by their path below it."""

    root: Path

    def read(self, name: str) -> bytes:
        """Return the bytes of an image."""
        refuse_irregular(self.root / name)
        return (self.root / name).read_bytes()

    def missing(self, names: Sequence[str]) -> list[str]:
        """Return the names that have no file; each folder is listed once."""
        folders = {name.rpartition("/")[0] for name in names}
        there = {
            f"{folder}/{entry.name}" if folder else entry.name
            for folder in folders
            if (self.root / folder).is_dir()
            for entry in os.scandir(self.root / folder)
        }
        return [name for name in names if name not in there]

    def where(self, name: str) -> str:
        """Return what to call an image in a message."""
        return str(self.root / name)


@dataclass(frozen=True)
class ImageArchive:
    """Images in a tar file that is not unpacked: its members are read where they lie."""

    path: Path
    places: Mapping[str, tuple[int, int]]
    """Offset and size of each member, by its name below the folder of the table."""

    @classmethod
    def open(cls, path: Path, below: str) -> Self:
        """List the members below a folder of the archive."""
        try:
            with tarfile.open(path, "r:") as archive:
                members = [m for m in archive if m.isfile() and m.name.startswith(below)]
        except (tarfile.TarError, OSError, ValueError, OverflowError, MemoryError) as error:
            raise DataError(f"{path} is not a whole tar file ({error}): fetch it again.") from error
        n_bytes = path.stat().st_size
        long = next((m for m in members if not 0 <= m.size <= n_bytes - m.offset_data), None)
        if long is not None:
            raise DataError(f"{path} ends within {long.name!r}: fetch it again.")
        return cls(path, {m.name.removeprefix(below): (m.offset_data, m.size) for m in members})

    def read(self, name: str) -> bytes:
        """Return the bytes of an image."""
        offset, size = self.places[name]
        with self.path.open("rb") as file:
            file.seek(offset)
            return file.read(size)

    def missing(self, names: Sequence[str]) -> list[str]:
        """Return the names that are not in the archive."""
        return [name for name in names if name not in self.places]

    def where(self, name: str) -> str:
        """Return what to call an image in a message."""
        return f"{name} in {self.path}"


@dataclass(frozen=True, eq=False)
class ExampleSet:
    """Images or texts, not read yet, with a label, an environment and a split each.

    Parameters
    ----------
    layout : str
        Where they come from: "waterbirds", "celeba", "multinli" or "table".
    kind : {"image", "text"}
        What a network gets.
    inputs : sequence of n str or (str, str)
        Names of images, or texts, or pairs of texts.
    labels : ndarray of shape (n,)
        Place of each label in `classes`.
    environments : ndarray of shape (n,)
        Place of each environment in `environment_names`; -1 where it is unknown.
    split : ndarray of shape (n,)
        0 train, 1 validation, 2 test.
    classes, environment_names : tuple of str
        Names.
    images : ImageFolder or ImageArchive, default=None
        Where images are read from.

    Examples
    --------
    >>> import numpy as np
    >>> codes, split = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 2])
    >>> texts = ["all good", "not good", "fine", "no way"]
    >>> names = ("praise", "blame"), ("plain", "negated")
    >>> examples = ExampleSet("table", "text", texts, codes, codes, split, *names)
    >>> len(examples), examples.take("train").inputs
    (4, ['all good', 'not good'])
    >>> examples.counts()["train"].tolist()
    [[1, 0], [0, 1]]
    """

    layout: str
    kind: Literal["image", "text"]
    inputs: Sequence[Any]
    labels: IntArray
    environments: IntArray
    split: IntArray
    classes: tuple[str, ...]
    environment_names: tuple[str, ...]
    images: ImageFolder | ImageArchive | None = None

    def __post_init__(self) -> None:
        if not len(self.inputs):
            raise DataError(f"the {self.layout} table has no rows.")
        if self.images is not None:
            refuse_outside(self.layout, self.inputs)
            refuse_twice(self.layout, self.inputs)
            refuse_missing(self.images, self.inputs)

    def __len__(self) -> int:
        return len(self.inputs)

    def take(self, split: str | None = None, *, rows: Any = None) -> Self:
        """Return the rows of one split ("train", "validation", "test"), or those given.

        Parameters
        ----------
        split : str, default=None
            Name of a split.
        rows : array-like of int, default=None
            Places of the rows, instead.

        Returns
        -------
        ExampleSet
        """
        if split is not None:
            if split not in SPLITS:
                raise ValueError(f"split={brief(split)} must be one of {', '.join(SPLITS)}.")
            rows = np.flatnonzero(self.split == SPLITS.index(split))
            if not len(rows):
                raise DataError(f"no row of the {self.layout} table is in the {split} split.")
        taken = np.asarray(rows, dtype=np.intp)
        return replace(
            self,
            inputs=[self.inputs[i] for i in taken],
            labels=self.labels[taken],
            environments=self.environments[taken],
            split=self.split[taken],
            images=None,
        )._with_images(self.images)

    @property
    def family(self) -> str:
        """The layout, or the kind of rows in a table of the user's own."""
        return self.kind if self.layout == "table" else self.layout

    def numbered_as(self, classes: Sequence[str]) -> Self:
        """Return the rows with the classes in another order, as a network has learned them.

        Parameters
        ----------
        classes : sequence of str
            All classes of these rows, and perhaps more.

        Returns
        -------
        ExampleSet
        """
        unknown = [name for name in self.classes if name not in classes]
        if unknown:
            raise DataError(
                f"the class {brief(unknown[0])} of the data is none of the network's: "
                f"{', '.join(classes)}."
            )
        places = np.array([list(classes).index(name) for name in self.classes], dtype=np.intp)
        labels = places[self.labels]
        return replace(self, labels=labels, classes=tuple(classes), images=None)._with_images(
            self.images
        )

    def counts(self) -> dict[str, IntArray]:
        """Return the number of rows by split, class (rows) and environment (columns)."""
        shape = len(self.classes), len(self.environment_names)
        tables = {}
        for place, name in enumerate(SPLITS):
            rows = (self.split == place) & (self.environments >= 0)
            cells = self.labels[rows] * shape[1] + self.environments[rows]
            tables[name] = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
        return tables

    def digest(self) -> str:
        """Return a hash of the rows: two runs on other rows must not be mixed."""
        summary = hashlib.sha256()
        for name in self.inputs:
            summary.update(repr(name).encode())
        for codes in (self.labels, self.environments, self.split):
            summary.update(np.ascontiguousarray(codes, dtype=np.int64).tobytes())
        return summary.hexdigest()[:16]

    def image(self, row: int) -> Any:
        """Return a decoded image (PIL, RGB).

        Parameters
        ----------
        row : int
            Its place.
        """
        from PIL import Image

        if self.images is None:
            raise TypeError(f"the rows of this {self.layout} table are texts, not images.")
        name = self.inputs[row]
        try:
            image = Image.open(io.BytesIO(self.images.read(name)), formats=FORMATS)
            _refuse_many_pixels(image)
            return _rgb(image)
        except _damage() as error:
            raise DataError(
                f"{self.images.where(name)} is not a whole image ({error}): fetch it again."
            ) from error

    def _with_images(self, images: ImageFolder | ImageArchive | None) -> Self:
        # Not through the constructor: the files of a part were looked for with the whole.
        object.__setattr__(self, "images", images)
        return self


def _damage() -> tuple[type[Exception], ...]:
    """Return what Pillow raises about a file; some of it as warnings, if these are errors."""
    from PIL import Image

    bombs = (Image.DecompressionBombError, Image.DecompressionBombWarning)
    return (OSError, SyntaxError, ValueError, *bombs)


def _refuse_many_pixels(image: Any) -> None:
    """Refuse what Pillow only warns about: a file of some kilobytes becomes half a gigabyte."""
    from PIL import Image

    most, found = Image.MAX_IMAGE_PIXELS, image.width * image.height
    if most is not None and found > most:
        raise ValueError(f"it has {found} pixels, and PIL.Image.MAX_IMAGE_PIXELS is {most}")


def _rgb(image: Any) -> Any:
    """Return an image in the usual eight bits, upright."""
    from PIL import Image, ImageOps

    if image.mode == "F":
        raise ValueError("its values are floating-point numbers of unknown range")
    if image.mode.startswith("I"):
        # Sixteen bits: Pillow would clip them to the largest of eight.
        image = Image.fromarray((np.asarray(image).clip(0, 65535) // 257).astype(np.uint8))
    return ImageOps.exif_transpose(image).convert("RGB")


def refuse_outside(layout: str, names: Sequence[str]) -> None:
    """Raise `DataError` for a path that leaves the folder: a table must not read other files."""
    for name in names:
        if not name or Path(name).is_absolute() or ".." in Path(name).parts:
            raise DataError(
                f"the {layout} table names the image {brief(name)}, which must be a file below the "
                "folder of the images."
            )


def refuse_twice(layout: str, names: Sequence[str]) -> None:
    """Raise `DataError` for an image in two rows: it may be in training and test."""
    if len(set(names)) < len(names):
        name = next(name for name, count in Counter(names).items() if count > 1)
        raise DataError(
            f"the {layout} table names the image {brief(name)} in more than one row: keep one of "
            "them."
        )


def refuse_missing(images: ImageFolder | ImageArchive, names: Sequence[str]) -> None:
    """Raise `DataError` if a row of the table has no image."""
    missing = images.missing(names)
    if missing:
        shown = ", ".join(images.where(name) for name in missing[:SHOWN])
        rest = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        raise DataError(
            f"{len(missing)} of {len(names)} images of the table are not there: {shown}{rest}. "
            "Unpack the images again, or drop these rows from the table."
        )
