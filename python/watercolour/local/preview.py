"""A painting in a terminal: two pixels a character, the upper in its ink, the lower behind it."""

from __future__ import annotations

import io
import shutil
from collections.abc import Mapping
from typing import IO

from PIL import Image

#: Characters that a preview is wide at most; a painting is square, and so is two by one of these.
WIDEST = 48

_RESET = "\x1b[0m"


def shows(stream: IO[str], env: Mapping[str, str]) -> bool:
    """Whether a stream is a terminal that says that it knows all colours (COLORTERM)."""
    colours = env.get("COLORTERM", "").lower() in ("truecolor", "24bit")
    return stream.isatty() and colours and "NO_COLOR" not in env


def of(png: bytes, columns: int | None = None) -> str:
    """The painting in half blocks, lines ending in a newline.

    Args:
        png: a picture.
        columns: characters a line; None takes what the terminal has, up to :data:`WIDEST`.
    """
    wide = columns or min(WIDEST, shutil.get_terminal_size().columns)
    with Image.open(io.BytesIO(png)) as image:
        high = max(2, round(wide * image.height / image.width / 2) * 2)
        small = image.convert("RGB").resize((wide, high), Image.Resampling.LANCZOS)
    raw = small.tobytes()
    rows = [raw[3 * wide * row : 3 * wide * (row + 1)] for row in range(high)]
    return "".join(_line(*rows[row : row + 2]) for row in range(0, high, 2))


def _line(upper: bytes, lower: bytes) -> str:
    cells = (
        "\x1b[38;2;{};{};{};48;2;{};{};{}m▀".format(*upper[at : at + 3], *lower[at : at + 3])
        for at in range(0, len(upper), 3)
    )
    return "".join(cells) + _RESET + "\n"
