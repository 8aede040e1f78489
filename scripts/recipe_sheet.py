"""Paintings side by side, each with its reward and its terms below: the look of the pictures."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from PIL import Image, ImageDraw, ImageFont

from watercolour.gallery.pictures import FAINT, INK, PAPER

#: Pixels of the file for each that a page shows: text stays crisp on a dense screen.
DENSE = 2

#: In pixels of the page.
SIDE, GAP, APART, MARGIN = 138, 12, 26, 14
HEADING, TITLE, ROW = 24, 15, 18

#: Pale pigment of a bar, by term; others take the last.
PIGMENTS = {
    "gate": (196, 189, 176),
    "length": (176, 176, 160),
    "quality": (214, 132, 116),
    "judge": (104, 139, 190),
    "utility": (104, 139, 190),
    "pigment": (222, 170, 84),
    "perceptual": (140, 170, 130),
    "diversity": (168, 136, 184),
}
OTHER = (150, 160, 168)
TRACK = (236, 229, 216)


@dataclass(frozen=True)
class Row:
    """A term below a painting.

    Attributes:
        name: of the term, as it is shown.
        value: 0 to 1; None when there is none.
        adds: what it adds to the reward; None where only the value is shown.
    """

    name: str
    value: float | None
    adds: float | None = None


@dataclass(frozen=True)
class Cell:
    """A painting and what is said of it.

    Attributes:
        painting: PNG; None for a sketch that was refused.
        title, note: two short lines.
        reward: None where none is shown.
        rows: the terms.
        said: instead of a painting, a line each.
    """

    painting: bytes | None
    title: str
    note: str = ""
    reward: float | None = None
    rows: tuple[Row, ...] = ()
    said: tuple[str, ...] = ()


@dataclass(frozen=True)
class Band:
    """Cells below one heading."""

    heading: str
    cells: tuple[Cell, ...]


Anchor = Literal["la", "ra", "ma"]


class Sheet:
    """A drawing in the pixels of the page, at the file's density."""

    def __init__(self, width: int, height: int) -> None:
        """Begin with an empty sheet."""
        self.image = Image.new("RGB", (width * DENSE, height * DENSE), PAPER)
        self._pen = ImageDraw.Draw(self.image)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        size: float,
        colour: tuple[int, int, int] = INK,
        anchor: Anchor = "la",
    ) -> None:
        """One line of text; ``anchor`` says which point of it lies at x."""
        at = (x * DENSE, y * DENSE)
        self._pen.text(at, words, colour, ImageFont.load_default(size * DENSE), anchor=anchor)

    def box(
        self, left: float, top: float, right: float, bottom: float, colour: tuple[int, int, int]
    ) -> None:
        """A filled box with round ends."""
        corners = [value * DENSE for value in (left, top, right, bottom)]
        if corners[2] - corners[0] > DENSE:
            self._pen.rounded_rectangle(corners, radius=DENSE * 1.5, fill=colour)

    def frame(self, x: float, y: float, side: float) -> None:
        """An empty square."""
        corners = [value * DENSE for value in (x, y, x + side, y + side)]
        self._pen.rectangle(corners, outline=FAINT, width=1)

    def paste(self, painting: bytes, x: float, y: float, side: int) -> None:
        """A painting as a square."""
        with Image.open(io.BytesIO(painting)) as opened:
            square = (side * DENSE, side * DENSE)
            shown = opened.convert("RGB").resize(square, Image.Resampling.LANCZOS)
        self.image.paste(shown, (round(x * DENSE), round(y * DENSE)))


def draw(lines: Sequence[Sequence[Band]]) -> Image.Image:
    """Lines of bands, one below the other."""
    width = max(_width(line) for line in lines)
    heights = [_height(line) for line in lines]
    sheet = Sheet(width, sum(heights) + MARGIN * (len(lines) + 1))
    top = MARGIN
    for line, height in zip(lines, heights, strict=True):
        left = MARGIN
        for band in line:
            _band(sheet, band, left, top)
            left += len(band.cells) * (SIDE + GAP) - GAP + APART
        top += height + MARGIN
    return sheet.image


def _width(line: Sequence[Band]) -> int:
    cells = sum(len(band.cells) for band in line)
    return cells * (SIDE + GAP) - len(line) * GAP + (len(line) - 1) * APART + 2 * MARGIN


def _height(line: Sequence[Band]) -> int:
    cells = [cell for band in line for cell in band.cells]
    rows = max(len(cell.rows) for cell in cells)
    notes = 2 if any(cell.note for cell in cells) else 1
    return HEADING + SIDE + 6 + notes * TITLE + 6 + rows * ROW


def _band(sheet: Sheet, band: Band, left: int, top: int) -> None:
    wide = len(band.cells) * (SIDE + GAP) - GAP
    sheet.text(left, top, band.heading, 13)
    sheet.box(left, top + HEADING - 6, left + wide, top + HEADING - 5, TRACK)
    for number, cell in enumerate(band.cells):
        _cell(sheet, cell, left + number * (SIDE + GAP), top + HEADING)


def _cell(sheet: Sheet, cell: Cell, left: int, top: int) -> None:
    if cell.painting is not None:
        sheet.paste(cell.painting, left, top, SIDE)
    else:
        sheet.frame(left, top, SIDE)
        for number, line in enumerate(cell.said):
            middle = top + SIDE / 2 - 8 * len(cell.said) + 16 * number
            sheet.text(left + SIDE / 2, middle, line, 11, FAINT, "ma")
    y = top + SIDE + 6
    sheet.text(left, y, cell.title, 11.5)
    if cell.reward is not None:
        sheet.text(left + SIDE, y - 2, f"{cell.reward:.3f}", 15, INK, "ra")
    if cell.note:
        y += TITLE
        sheet.text(left, y, cell.note, 10, FAINT)
    y += TITLE + 6
    for row in cell.rows:
        _row(sheet, row, left, y)
        y += ROW


def _row(sheet: Sheet, row: Row, left: int, y: int) -> None:
    value = "–" if row.value is None else f"{row.value:.2f}"
    sheet.text(left, y, row.name.removeprefix("mark_"), 10)
    if row.adds is None:
        sheet.text(left + SIDE, y, value, 10, INK, "ra")
    else:
        sheet.text(left + SIDE - 38, y, value, 10, INK, "ra")
        sheet.text(left + SIDE, y, f"{row.adds:+.3f}", 10, FAINT, "ra")
    bar = y + 13
    sheet.box(left, bar, left + SIDE, bar + 2, TRACK)
    if row.value:
        own = PIGMENTS.get(row.name, OTHER)
        sheet.box(left, bar, left + SIDE * row.value, bar + 2, own)
