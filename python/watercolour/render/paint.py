"""From raw pixels to a painting, and how much of it is paint. Pure; numpy and pillow."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint8]

#: Euclidean RGB distance from the background beyond which a pixel is paint.
PAINT_DISTANCE = 32

#: zlib level of a painting's PNG: the bytes are small and soon decoded again.
PNG_LEVEL = 1


def on_white(rgba: Pixels) -> Pixels:
    """Composite premultiplied RGBA of shape (h, w, 4) on white; returns RGB (h, w, 3)."""
    alpha = rgba[..., 3:].astype(np.uint16)
    return np.minimum(rgba[..., :3] + (255 - alpha), 255).astype(np.uint8)


def from_framebuffer(data: bytes, width: int, height: int) -> Pixels:
    """RGB of shape (h, w, 3) from WebGL's readPixels: bottom row first, premultiplied RGBA."""
    rgba = np.frombuffer(data, np.uint8).reshape(height, width, 4)
    return on_white(rgba[::-1])


def resize(rgb: Pixels, size: int | None) -> Pixels:
    """Resample so that the longer side has ``size`` pixels (Lanczos), only when it differs."""
    height, width = rgb.shape[:2]
    longest = max(width, height)
    if size is None or size == longest:
        return rgb
    target = (max(1, round(width * size / longest)), max(1, round(height * size / longest)))
    return np.asarray(Image.fromarray(rgb).resize(target, Image.Resampling.LANCZOS))


def encode(rgb: Pixels) -> bytes:
    """PNG bytes of RGB (h, w, 3); equal pixels give equal bytes."""
    out = io.BytesIO()
    Image.fromarray(rgb).save(out, "PNG", compress_level=PNG_LEVEL)
    return out.getvalue()


def decode(png: bytes) -> Pixels:
    """RGB of shape (h, w, 3) from a PNG, transparent parts composited on white.

    Raises:
        PIL.UnidentifiedImageError: the bytes are no picture.
    """
    with Image.open(io.BytesIO(png)) as image:
        if image.mode in ("RGB", "L"):
            return np.asarray(image.convert("RGB"))
        rgba = image.convert("RGBA")
        white = Image.new("RGBA", rgba.size, "white")
        return np.asarray(Image.alpha_composite(white, rgba).convert("RGB"))


def fraction(rgb: Pixels) -> float:
    """Share of painted pixels of RGB (h, w, 3), 0 to 1.

    The modal colour at 4 bits a channel is the background; a pixel is paint when its distance
    from that colour, the centre of its cell, exceeds :data:`PAINT_DISTANCE`.
    """
    # A plane and a table of 256 squares a channel: six times as quick as pixels as vectors.
    red, green, blue = (np.ascontiguousarray(rgb[..., channel]).ravel() for channel in range(3))
    cells = (red & 0xF0).astype(np.uint16) << 4
    cells |= green & 0xF0
    cells |= blue >> 4
    mode = int(np.bincount(cells, minlength=4096).argmax())
    levels = np.arange(256, dtype=np.int32)
    distance = np.zeros(red.size, np.int32)
    for plane, cell in ((red, mode >> 8), (green, mode >> 4 & 15), (blue, mode & 15)):
        distance += np.square(levels - (cell * 16 + 8))[plane]
    return float((distance > PAINT_DISTANCE**2).mean())


def paint_fraction(png: bytes) -> float:
    """Share of painted pixels of a PNG, 0 to 1; see :func:`fraction`.

    Raises:
        PIL.UnidentifiedImageError: the bytes are no picture.
    """
    return fraction(decode(png))


def likeness(one: Pixels, other: Pixels) -> float:
    """Peak signal-to-noise ratio of two pictures of one shape, in dB; infinite when equal."""
    error = float(((one.astype(np.float64) - other.astype(np.float64)) ** 2).mean())
    return float("inf") if error == 0 else float(10 * np.log10(255**2 / error))
