"""A photo or scan, however a camera or scanner wrote it, as upright 8-bit sRGB.

Other rooms judge what the renderer made. Here come the files of the world: turned by a flag,
in 16 bits, in a printer's inks, with a colour profile, transparent, cut off, or made to unfold to
gigabytes. The size is read from the header and checked before a pixel is decoded.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image, ImageCms, ImageOps

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason

FORMATS = ("PNG", "JPEG", "WEBP", "TIFF")
#: Longest file, in bytes, and largest picture, in pixels: an 80-megapixel scan. Pillow itself warns
#: from 89 million on.
LARGEST_FILE, MOST_PIXELS = 200 * 2**20, 80_000_000
#: Shortest side, in pixels: below it there is nothing to compare.
SHORTEST = 64


def read(path: Path) -> Image.Image:
    """The picture in 8-bit sRGB, upright, on white where it is transparent.

    Of several pictures in a file the first counts. An embedded profile is followed; inks without
    one become RGB by Pillow's formula.

    Raises:
        InputError: it cannot be read, is no picture of these formats, damaged, too small or too
            large (InvalidInput).
    """
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise refused(path, f"{size >> 20} MiB, more than {LARGEST_FILE >> 20}", "Shrink it.")
        data = path.read_bytes()
    except OSError as error:
        raise refused(
            path, f"cannot be read ({error.strerror})", "Name a readable file."
        ) from error
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            _check_size(path, image.size)
            return _upright_rgb(image)
    except Image.DecompressionBombError as error:
        fault = f"far more than {MOST_PIXELS // 10**6} million pixels"
        raise refused(path, fault, "Scale it down first.") from error
    # Pillow answers damaged files with any of these.
    except (
        OSError,
        SyntaxError,
        ValueError,
        EOFError,
        TypeError,
        KeyError,
        MemoryError,
    ) as error:
        raise refused(
            path,
            f"not a whole PNG, JPEG, WebP or TIFF picture ({len(data)} bytes, {error})"[:300],
            "Open it in a picture editor and save it as PNG or JPEG.",
        ) from error


def _check_size(path: Path, size: tuple[int, int]) -> None:
    shape = f"{size[0]}x{size[1]} pixels"
    if size[0] * size[1] > MOST_PIXELS:
        raise refused(
            path, f"{shape}, more than {MOST_PIXELS // 10**6} million", "Scale it down first."
        )
    if min(size) < SHORTEST:
        raise refused(path, f"{shape}, less than {SHORTEST} a side", "Take a larger copy.")


def _upright_rgb(image: Image.Image) -> Image.Image:
    profile = image.info.get("icc_profile")
    upright = ImageOps.exif_transpose(_eight_bits(image))
    if upright.has_transparency_data:
        rgba = upright.convert("RGBA")
        white = Image.new("RGBA", rgba.size, "white")
        white.alpha_composite(rgba)
        upright = white.convert("RGB")
    if profile and upright.mode in ("RGB", "CMYK", "L"):
        upright = _in_srgb(upright, profile)
    return upright.convert("RGB")


def _eight_bits(image: Image.Image) -> Image.Image:
    """A grey picture of 16 bits by its upper eight, one of floats by its range 0 to 1.

    Pillow would cut the former at 255. The flag that turns the picture stays with it.
    """
    if image.mode.startswith("I"):
        small = Image.fromarray((np.asarray(image, np.int64) >> 8).clip(0, 255).astype(np.uint8))
    elif image.mode == "F":
        small = Image.fromarray((np.asarray(image).clip(0, 1) * 255).round().astype(np.uint8))
    else:
        return image
    orientation = image.getexif().get(0x0112)
    if orientation:
        small.getexif()[0x0112] = orientation
    return small


def _in_srgb(image: Image.Image, profile: bytes) -> Image.Image:
    """The picture's colours in sRGB; as they are if its profile cannot be read."""
    try:
        found = ImageCms.profileToProfile(
            image,
            ImageCms.ImageCmsProfile(io.BytesIO(profile)),
            ImageCms.createProfile("sRGB"),
            outputMode="RGB",
        )
    except (ImageCms.PyCMSError, OSError):
        return image
    return found or image


def square(image: Image.Image, side: int, fit: str) -> Image.Image:
    """The picture as a square.

    Args:
        image: RGB.
        side: in pixels.
        fit: ``whole`` lays all of it on a sheet of its margin's colour, ``crop`` cuts the middle.
    """
    if fit == "crop":
        return ImageOps.fit(image, (side, side), Image.Resampling.LANCZOS)
    scale = side / max(image.size)
    small = image.resize(
        (max(1, round(image.width * scale)), max(1, round(image.height * scale))),
        Image.Resampling.LANCZOS,
    )
    sheet = Image.new("RGB", (side, side), _margin(small))
    sheet.paste(small, ((side - small.width) // 2, (side - small.height) // 2))
    return sheet


def _margin(image: Image.Image) -> tuple[int, int, int]:
    """The median colour along a picture's edge."""
    pixels = np.asarray(image)
    edge = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    red, green, blue = np.median(edge, axis=0).astype(int).tolist()
    return red, green, blue


def png(image: Image.Image) -> bytes:
    """PNG bytes without anything that a camera wrote beside the picture."""
    out = io.BytesIO()
    Image.fromarray(np.asarray(image)).save(out, "PNG")
    return out.getvalue()


def refused(path: Path, fault: str, remedy: str) -> InputError:
    """The error for a picture's file that cannot be used."""
    return InputError(
        Reason.INVALID_INPUT, f"{path}: {fault}.", remedy=remedy, field="FILE", value=str(path)
    )
