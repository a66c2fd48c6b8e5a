"""From images and texts to what a network takes."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Final, Protocol

import numpy as np
import torch

from isrlearn.datasets import ExampleSet
from isrlearn.display import brief
from isrlearn.exceptions import DataError
from isrlearn.networks._rows import NetworkRows

IMAGENET_MEAN: Final = (0.485, 0.456, 0.406)
IMAGENET_SPREAD: Final = (0.229, 0.224, 0.225)
MOST_SHAPE: Final = 100  # longer side over the shorter: the shorter becomes what is seen
RANGES: Final = {"size": (1, 4096), "max_length": (1, 65536), "margin": (0.1, 4.0)}
"""Pixels of a side, tokens of a text, and how many times the side."""


class Inputs(Protocol):
    """How the examples of one kind become the inputs of a network."""

    @property
    def kind(self) -> str:
        """Return "image" or "text"."""

    def one(self, examples: ExampleSet, row: int) -> Any:
        """Return one example, read and prepared."""

    def collate(self, items: list[Any]) -> Any:
        """Return the inputs of a batch."""

    def describe(self) -> str:
        """Return what decides the tensors of an example."""


@dataclass(frozen=True)
class ImageInputs:
    """Images as tensors: resized, the middle cut out, and normalised.

    Parameters
    ----------
    size : int, default=224
        Pixels of each side of what the network sees, at most 4096.
    margin : float, default=1.0
        An image is first resized to ``margin * size``; from 0.1 to 4.
    keep_shape : bool, default=True
        Resize so that the shorter side fits and cut the middle; False stretches to a square, as in
        the published Waterbirds experiments.
    mean, spread : tuple of float
        Of each colour in [0, 1]: subtracted and divided by.

    Examples
    --------
    >>> from PIL import Image
    >>> from isrlearn.networks import ImageInputs
    >>> tuple(ImageInputs(size=32).tensor(Image.new("RGB", (64, 48))).shape)
    (3, 32, 32)
    """

    size: int = 224
    margin: float = 1.0
    keep_shape: bool = True
    mean: tuple[float, ...] = IMAGENET_MEAN
    spread: tuple[float, ...] = IMAGENET_SPREAD
    kind: str = field(default="image", init=False)

    def __post_init__(self) -> None:
        refuse_settings({"size": self.size, "margin": self.margin})

    def one(self, examples: ExampleSet, row: int) -> torch.Tensor:
        """Return an image as a tensor of shape (3, size, size)."""
        return self.tensor(examples.image(row))

    def tensor(self, image: Any) -> torch.Tensor:
        """Return a PIL image as a tensor of shape (3, size, size)."""
        pixels = np.asarray(self._cut(image), dtype=np.float32) / 255
        mean, spread = (np.array(v, dtype=np.float32) for v in (self.mean, self.spread))
        pixels = (pixels - mean) / spread
        return torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))

    def collate(self, items: list[torch.Tensor]) -> torch.Tensor:
        """Return a batch of images."""
        return torch.stack(items)

    def describe(self) -> str:
        """Return what decides the tensors of an image."""
        return repr(self)

    def _cut(self, image: Any) -> Any:
        from PIL import Image

        target = round(self.margin * self.size)
        width, height = target, target
        if self.keep_shape:
            factor = target / min(image.size)
            width, height = (max(target, round(side * factor)) for side in image.size)
        if max(width, height) > MOST_SHAPE * target:
            raise DataError(
                f"an image of {image.size[0]} x {image.size[1]} pixels is too narrow: give one "
                f"whose longer side is at most {MOST_SHAPE} times the shorter."
            )
        if image.size != (width, height):
            image = image.resize((width, height), Image.Resampling.BILINEAR)
        left, top = (width - self.size) // 2, (height - self.size) // 2
        return image.crop((left, top, left + self.size, top + self.size))


@dataclass(frozen=True)
class TextInputs:
    """Texts, or pairs of them, as tokens.

    Parameters
    ----------
    tokenizer : transformers tokenizer
        Of the network.
    max_length : int, default=128
        Tokens that are kept, at most 65 536; of a pair, the longer text is cut first.

    Examples
    --------
    >>> from tokenizers import Tokenizer, models, pre_tokenizers
    >>> from transformers import PreTrainedTokenizerFast
    >>> words = Tokenizer(models.WordLevel({"[PAD]": 0, "no": 1, "way": 2}, unk_token="[PAD]"))
    >>> words.pre_tokenizer = pre_tokenizers.Whitespace()
    >>> tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]")
    >>> TextInputs(tokenizer, max_length=64).collate(["no way", "no"])["input_ids"].tolist()
    [[1, 2], [1, 0]]
    """

    tokenizer: Any
    max_length: int = 128
    kind: str = field(default="text", init=False)

    def __post_init__(self) -> None:
        refuse_settings({"max_length": self.max_length})

    def one(self, examples: ExampleSet, row: int) -> Any:
        """Return a text or a pair as it is."""
        return examples.inputs[row]

    def collate(self, items: list[Any]) -> dict[str, torch.Tensor]:
        """Return the tokens of a batch, padded to its longest."""
        if isinstance(items[0], str):
            texts: list[Any] = [items]
        else:
            texts = [[first for first, _ in items], [second for _, second in items]]
        return dict(
            self.tokenizer(
                *texts,
                padding=True,
                truncation=True,
                max_length=self.max_length,
                return_tensors="pt",
            )
        )

    def describe(self) -> str:
        """Return what decides the tokens of a text."""
        vocabulary = sorted(self.tokenizer.get_vocab().items())
        return f"{type(self.tokenizer).__name__} {hash_of(vocabulary)} {self.max_length}"

    def lengths(self, examples: ExampleSet) -> list[int]:
        """Return about how long each text is: its words."""
        return [
            len(text.split()) if isinstance(text, str) else sum(len(part.split()) for part in text)
            for text in examples.inputs
        ]


def refuse_settings(settings: Mapping[str, Any]) -> None:
    """Raise `ValueError` for a size, margin or length that no network needs.

    Parameters
    ----------
    settings : mapping of str to object
        As `load_backbone` takes them; others than these three are not looked at.
    """
    for name in sorted(RANGES.keys() & settings.keys()):
        value, (least, most) = settings[name], RANGES[name]
        kind, called = (Integral, "whole number") if isinstance(least, int) else (Real, "number")
        is_number = isinstance(value, kind)
        if not is_number or not least <= value <= most:
            raise ValueError(f"{name}={brief(value)}: give a {called} from {least} to {most}.")


class _Read(Sequence[Any]):
    """ExampleSet that are read when they are asked for."""

    def __init__(self, examples: ExampleSet, inputs: Inputs) -> None:
        self.examples, self.inputs = examples, inputs

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, row: Any) -> Any:
        return self.inputs.one(self.examples, int(row))

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(len(self)))


def rows_of(examples: ExampleSet, inputs: Inputs) -> NetworkRows:
    r"""Return examples as rows of a network.

    Parameters
    ----------
    examples : ExampleSet
        Images or texts.
    inputs : ImageInputs or TextInputs
        How the network takes them.

    Returns
    -------
    NetworkRows

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from isrlearn.datasets import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (9, 9)).save(Path(folder) / "a.png")
    ...     path = Path(folder) / "rows.csv"
    ...     _ = path.write_text("path,label,environment,split\na.png,cat,day,train")
    ...     image, label, environment = rows_of(read_table(path), ImageInputs(size=8))[0]
    >>> tuple(image.shape), label, environment
    ((3, 8, 8), 0, 0)
    """
    if inputs.kind != examples.kind:
        raise ValueError(
            f"the backbone takes {inputs.kind}s, and the {examples.layout} data are "
            f"{examples.kind}s: choose another backbone."
        )
    lengths = inputs.lengths(examples) if isinstance(inputs, TextInputs) else None
    return NetworkRows(
        _Read(examples, inputs),
        examples.labels,
        examples.environments,
        collate=inputs.collate,
        lengths=lengths,
        digest=hash_of([examples.digest(), inputs.describe()]),
    )


def hash_of(value: Any) -> str:
    """Return a hash of something that prints all that it holds."""
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]
