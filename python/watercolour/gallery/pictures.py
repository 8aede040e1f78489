"""Paintings made small: thumbnails inside the page, and the strip for a README."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont, UnidentifiedImageError

from watercolour.gallery.record import Entry, RunRecord

#: Side in pixels of a small copy that the run's folder lacks.
SMALL = 96
WEBP_QUALITY = 80

PAPER = (250, 246, 238)
INK = (58, 54, 48)
FAINT = (150, 142, 130)


def small_copy(record: RunRecord, entry: Entry) -> str | None:
    """The painting's small copy as a ``data:`` URI; None when there is none or it is broken."""
    if entry.thumb is not None:
        try:
            return _data_uri((record.folder / entry.thumb).read_bytes())
        except OSError:
            pass
    return shrunk(record, entry, SMALL)


def shrunk(record: RunRecord, entry: Entry, side: int) -> str | None:
    """The painting as a WebP of that side as a ``data:`` URI; None as in :func:`small_copy`."""
    small = _small(record.folder / entry.painting, side) if entry.painting else None
    if small is None:
        return None
    out = io.BytesIO()
    small.save(out, "WEBP", quality=WEBP_QUALITY, method=4)
    return _data_uri(out.getvalue())


def _data_uri(webp: bytes) -> str:
    return "data:image/webp;base64," + base64.b64encode(webp).decode()


def _small(path: Path, side: int) -> Image.Image | None:
    try:
        with Image.open(path) as picture:
            small = Image.new("RGB", picture.size, "white")
            rgba = picture.convert("RGBA")
            small.paste(rgba, mask=rgba)
    except (OSError, UnidentifiedImageError, ValueError):
        return None
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    return small


@dataclass(frozen=True)
class Cell:
    """One place of the strip: a subject at a step; no entry when the gate admitted none."""

    step: int
    entry: Entry | None


def median_admitted(entries: Sequence[Entry]) -> Entry | None:
    """The painting in the middle by reward among those admitted and scored; None for none.

    Of an even number it is the lower of the two in the middle, so the choice never flatters.
    """
    good = [e for e in entries if e.rollout.gate_passed and e.rollout.reward is not None]
    good = [e for e in good if e.painting]
    good.sort(key=lambda e: (e.rollout.reward or 0.0, e.rollout.group, e.rollout.index))
    return good[(len(good) - 1) // 2] if good else None


def strip_cells(record: RunRecord, columns: int = 8) -> dict[str, list[Cell]]:
    """For every subject, cells evenly spread from the first step that painted it to the last."""
    by_subject: dict[str, dict[int, list[Entry]]] = {}
    for entry in record.entries:
        rollout = entry.rollout
        by_subject.setdefault(rollout.subject, {}).setdefault(rollout.step, []).append(entry)
    return {
        subject: [Cell(step, median_admitted(steps[step])) for step in spread(list(steps), columns)]
        for subject, steps in by_subject.items()
    }


def spread(values: Sequence[int], count: int) -> list[int]:
    """``count`` of the sorted values at even distances, both ends included; fewer if there are."""
    ordered = sorted(values)
    if len(ordered) <= count:
        return ordered
    return [ordered[round(place * (len(ordered) - 1) / (count - 1))] for place in range(count)]


def strip_caption(record: RunRecord) -> str:
    """What the strip shows, so that nobody takes it for a selection of the best."""
    steps = [entry.rollout.step for entry in record.entries]
    return (
        f"{record.name}, step {min(steps)} to {max(steps)}: of each subject the painting of median "
        "reward among those that the gate admitted at the step; an empty frame where it admitted "
        "none."
    )


def strip(record: RunRecord, *, columns: int = 8, side: int = 160) -> Image.Image:
    """One row a subject, columns from the first step to the last, with the caption below."""
    rows = strip_cells(record, columns)
    gap, label, foot = 8, 26, 34
    wide = max(len(cells) for cells in rows.values())
    width = gap + wide * (side + gap)
    sheet = Image.new("RGB", (width, gap + len(rows) * (side + label + gap) + foot), PAPER)
    pen = ImageDraw.Draw(sheet)
    font, small = ImageFont.load_default(15), ImageFont.load_default(12)
    for row, (subject, cells) in enumerate(rows.items()):
        top = gap + row * (side + label + gap)
        pen.text((gap, top), subject, fill=INK, font=font)
        for column, cell in enumerate(cells):
            left = gap + column * (side + gap)
            _cell(sheet, pen, record.folder, cell, (left, top + label), side, small)
    caption = strip_caption(record)
    size = 13
    while size > 8 and pen.textlength(caption, ImageFont.load_default(size)) > width - 2 * gap:
        size -= 1
    at = (gap, sheet.height - foot + 8)
    pen.text(at, caption, fill=FAINT, font=ImageFont.load_default(size))
    return sheet


def _cell(
    sheet: Image.Image,
    pen: ImageDraw.ImageDraw,
    folder: Path,
    cell: Cell,
    at: tuple[int, int],
    side: int,
    font: ImageFont.ImageFont | ImageFont.FreeTypeFont,
) -> None:
    left, top = at
    path = folder / cell.entry.painting if cell.entry and cell.entry.painting else None
    picture = _small(path, side) if path else None
    if picture is None:
        pen.rectangle((left, top, left + side - 1, top + side - 1), outline=FAINT)
    else:
        picture = picture.resize((side, side), Image.Resampling.LANCZOS)
        sheet.paste(picture, at)
    tag = f"step {cell.step}"
    width = pen.textlength(tag, font)
    pen.text((left + side - width, top - 17), tag, fill=FAINT, font=font)
