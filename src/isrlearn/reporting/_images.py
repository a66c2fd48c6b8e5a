"""Pictures and texts of rows, small enough for a page."""

import base64
import io
from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np

SIDE: Final = 96  # pixels
PIXEL_ART: Final = 40  # at most so wide, a picture is kept as it is and enlarged without blur
LONGEST_TEXT: Final = 400


class Examples(Protocol):
    """What each row is, by its place: text, an array, a PIL image, or None."""

    def __getitem__(self, row: int, /) -> Any:
        """Return a text, an array of shape (h, w) or (h, w, 3), a PIL image, or None."""


def illustrations(examples: Examples) -> Callable[[int], tuple[str | None, str | None]]:
    """Return the function from the place of a row to its text and image.

    Parameters
    ----------
    examples : sequence
        One for each row: text, an array of shape (h, w) or (h, w, 3), a PIL image, or None.
    """
    by_place = getattr(examples, "iloc", examples)  # a Series would look up its index

    def of(row: int) -> tuple[str | None, str | None]:
        try:
            example = by_place[row]
        except IndexError:
            raise ValueError(
                f"examples has nothing for row {row}: give one for each row, or None."
            ) from None
        if example is None or _is_missing(example):
            return None, None
        if isinstance(example, str):
            return _short(example), None
        return None, data_address(example)

    return of


def data_address(image: Any) -> str:
    """Return an image as a data address: a PNG if it is tiny, else a JPEG of 96 pixels.

    Parameters
    ----------
    image : ndarray or PIL image
        Floats from 0 to 1 or bytes; (h, w), (h, w, 1) or (h, w, 3).

    Examples
    --------
    >>> import numpy as np
    >>> data_address(np.zeros((4, 4)))[:22]
    'data:image/png;base64,'
    """
    from PIL import Image

    if not isinstance(image, Image.Image):
        image = Image.fromarray(_as_bytes(np.asarray(image)))
    tiny = max(image.size) <= PIXEL_ART
    image = image.convert("RGB")
    if not tiny:
        image.thumbnail((SIDE, SIDE))
    written = io.BytesIO()
    image.save(written, "PNG" if tiny else "JPEG", **({} if tiny else {"quality": 82}))
    return _address("png" if tiny else "jpeg", written.getvalue())


def png_address(written: bytes) -> str:
    """Return a PNG file as a data address."""
    return _address("png", written)


def _address(kind: str, written: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(written).decode('ascii')}"


def _as_bytes(image: Any) -> Any:
    if image.ndim == 3 and image.shape[2] == 1:
        image = image[:, :, 0]
    is_image = image.ndim == 2 or (image.ndim == 3 and image.shape[2] == 3)
    if not is_image or image.dtype.kind not in "biuf":
        raise ValueError(
            f"an image has shape {image.shape} and type {image.dtype}: give numbers of shape "
            "(height, width) or (height, width, 3)."
        )
    bytes_ = image.dtype.kind in "iu"
    low, high = (float(end(image)) if image.size else 0.0 for end in (np.min, np.max))
    if image.size == 0 or low < 0 or high > (255 if bytes_ else 1):
        raise ValueError(
            f"an image has values from {low:g} to {high:g}: give floats from 0 to 1, or whole "
            "numbers from 0 to 255."
        )
    return image.astype(np.uint8) if bytes_ else (255 * image).round().astype(np.uint8)


def _is_missing(example: Any) -> bool:
    """Tell what pandas makes of None: NaN or NA."""
    return type(example).__name__ == "NAType" or (isinstance(example, float) and example != example)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
