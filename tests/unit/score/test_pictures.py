"""What is no picture is refused by a sentence, before it can unfold in memory."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from watercolour.score.pictures import NotAPicture, rgb


def saved(image: Image.Image, kind: str = "PNG") -> bytes:
    buffer = BytesIO()
    image.save(buffer, kind)
    return buffer.getvalue()


def bomb(side: int) -> bytes:
    """A PNG of a few kB whose header promises side × side pixels."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        )

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    body = zlib.compress(bytes(1_000_000), 9)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("side", [4097, 50_000, 2**31 - 1])
def test_a_png_bomb_is_refused_by_its_header(side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image.Image, "load", lambda _: pytest.fail("it was decoded"))
    with pytest.raises(NotAPicture):
        rgb(bomb(side))


def test_sixteen_bits_become_eight_without_turning_white() -> None:
    grey = Image.fromarray(np.full((8, 8), 0x40FF, np.uint16))
    assert rgb(saved(grey)).getpixel((0, 0)) == (0x40, 0x40, 0x40)


def test_cmyk_becomes_rgb() -> None:
    ink = Image.new("CMYK", (8, 8), (0, 255, 255, 0))
    red, green, blue = np.asarray(rgb(saved(ink, "JPEG")))[0, 0]
    assert red > 200
    assert max(green, blue) < 60


@pytest.mark.parametrize(
    ("painting", "says"),
    [
        (b"", "is empty"),
        (saved(Image.new("RGB", (8, 8)))[:40], "40 bytes, begins as PNG"),
        (saved(Image.new("RGB", (8, 8)), "GIF"), "begins as GIF"),
        (saved(Image.new("RGB", (8, 8)), "TIFF"), "is not a whole PNG, JPEG or WebP"),
        (b"<html>502</html>", "is not a whole PNG, JPEG or WebP"),
        (saved(Image.new("RGB", (340, 20))), "340×20 pixels, more than 16 times"),
    ],
)
def test_what_is_no_picture_is_named_with_a_remedy(painting: bytes, says: str) -> None:
    with pytest.raises(NotAPicture, match=says) as caught:
        rgb(painting)
    assert ". " in str(caught.value)


def test_the_longest_canvas_is_a_picture() -> None:
    assert rgb(saved(Image.new("RGB", (1024, 64)))).size == (1024, 64)
