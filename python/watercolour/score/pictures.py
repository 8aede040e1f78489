"""From bytes that came over the network to an RGB picture, or a sentence on why there is none.

Size and shape are read from the header and checked before a pixel is decoded, so that a small file
cannot unfold to gigabytes.
"""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

FORMATS = ("PNG", "JPEG", "WEBP")
#: Longest side that is decoded at all, in pixels: 16.8 million of them, 67 MB.
MAX_SIDE = 4096
#: Longest side over the shortest: what a canvas of 64 to 1,024 pixels a side can have.
MAX_ASPECT = 16


class NotAPicture(ValueError):
    """The bytes are no picture that can be scored. The message follows the field's name."""


def rgb(painting: bytes) -> Image.Image:
    """The picture in 8-bit RGB: transparency on white, 16 bits by their upper eight.

    CMYK becomes RGB by Pillow's formula, without a colour profile. Of an animation the first
    picture counts.

    Raises:
        NotAPicture: empty, not a PNG, JPEG or WebP, cut off, a side above ``MAX_SIDE``, or longer
            than ``MAX_ASPECT`` times its width.
    """
    if not painting:
        raise NotAPicture("is empty. Send a PNG, JPEG or WebP picture")
    try:
        with Image.open(io.BytesIO(painting), formats=FORMATS) as image:
            _check(image.size)
            if image.has_transparency_data:
                rgba = image.convert("RGBA")
                white = Image.new("RGBA", rgba.size, "white")
                white.alpha_composite(rgba)
                return white.convert("RGB")
            return _eight_bits(image).convert("RGB")
    # Pillow answers damaged files with any of these.
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        if isinstance(error, NotAPicture):
            raise
        raise NotAPicture(
            f"is not a whole PNG, JPEG or WebP picture ({_start(painting)}). "
            "Send the file's bytes as they are, whole"
        ) from error


def check(painting: bytes) -> None:
    """That the bytes are a picture, decoded whole, for a backend that passes them on.

    Raises:
        NotAPicture: see :func:`rgb`.
    """
    rgb(painting)


def _check(size: tuple[int, int]) -> None:
    shape = f"{size[0]}×{size[1]}"
    if max(size) > MAX_SIDE:
        raise NotAPicture(f"is {shape} pixels. Scale it to at most {MAX_SIDE} a side")
    if max(size) > MAX_ASPECT * min(size):
        raise NotAPicture(
            f"is {shape} pixels, more than {MAX_ASPECT} times as long as wide. Crop it"
        )


def _eight_bits(image: Image.Image) -> Image.Image:
    """A grey picture of 16 bits by its upper eight; Pillow would cut at 255 instead."""
    if not image.mode.startswith("I"):
        return image
    return Image.fromarray((np.asarray(image, np.uint32) >> 8).astype(np.uint8))


def _start(painting: bytes) -> str:
    known = {b"\x89PNG": "PNG", b"\xff\xd8": "JPEG", b"RIFF": "WebP", b"GIF8": "GIF", b"BM": "BMP"}
    kind = next((name for magic, name in known.items() if painting.startswith(magic)), None)
    begins = f"begins as {kind}" if kind else f"begins {painting[:8].hex(' ')}"
    return f"{len(painting)} bytes, {begins}"
