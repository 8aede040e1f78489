"""Something to paint that is described by data alone: its parts, outlines and colours.

With such a file the grammar paints a subject that it has never heard of. Lengths are in sizes: one
size is about the reach of the figure from its middle, and how large that is on the sheet is drawn
anew for each sketch. Angles are degrees, 0 points right, 90 down, -90 up.
"""

from __future__ import annotations

import colorsys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.sketch import dialect

#: Most bytes that a figure's file may have.
LARGEST = 2**18
#: Degrees on either side of a pigment's hue that count as the figure's: about what the shipped
#: flowers have around their petals' pigments, which run into one another on the sheet.
AROUND = 20.0
#: Saturation below which a pigment has no hue to speak of; as where paintings are read.
LEAST_SATURATION = 0.12

Colour = Annotated[str, Field(pattern=r"^#[0-9a-fA-F]{6}$")]
Share = Annotated[float, Field(ge=0, le=1)]
Point = tuple[Annotated[float, Field(ge=-2, le=2)], Annotated[float, Field(ge=-2, le=2)]]
Degrees = Annotated[float, Field(ge=0, le=360)]
#: Part of the circle of hues, from the first value up to the second, through 0 if that is less.
Arc = tuple[Degrees, Degrees]
Outline = Annotated[list[Point], Field(min_length=3, max_length=24)]


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Wash(_Data):
    """One layer of a part; what is a pair is drawn between its two values."""

    colour: str = Field(description="A key of the figure's colours.")
    reach: float = Field(default=1, gt=0, le=2, description="Share of the part's length and width.")
    opacity: tuple[int, int] = Field(default=(120, 180), description="0 to 255.")
    bleed: tuple[Share, Share] = Field(default=(0.2, 0.3), description="How far pigment runs.")
    texture: tuple[Share, Share] = Field(default=(0.2, 0.5), description="Grain and rim.")


class Part(_Data):
    """One outline, painted once or several times."""

    what: str = Field(description="A word for people.")
    outline: str = Field(description="A key of the figure's outlines, or a petal of the dialect.")
    arrange: Literal["one", "ring", "fan", "row"] = Field(
        default="one",
        description="one; ring: all round; fan: spread degrees about the angle; row: side by side, "
        "spread sizes wide.",
    )
    count: tuple[int, int] = Field(default=(1, 1), description="How many of it.")
    length: tuple[float, float] = Field(description="Along the outline's u, in sizes.")
    width: tuple[float, float] = Field(description="Half of it, along v, in sizes.")
    at: tuple[float, float] = Field(default=(0, 0), description="From the middle, in sizes.")
    angle: float = Field(default=-90, description="Where u points.")
    spread: float = Field(default=0, ge=0, le=360)
    jitter: float = Field(default=6, ge=0, le=90, description="Degrees that chance adds.")
    mirror: bool = Field(default=True, description="Whether v may be turned round.")
    chance: Share = Field(default=1, description="How often the part is there at all.")
    washes: list[Wash] = Field(min_length=1, max_length=4)


class Figure(_Data):
    """A subject that the grammar can paint."""

    name: str = Field(min_length=1, max_length=80, description="With its article: a jellyfish.")
    brief: str = Field(
        default="", max_length=2_000, description="What a painter has to know of it, in words."
    )
    hue: list[Arc] = Field(
        default_factory=list[Arc],
        max_length=8,
        description="What counts as its colours, as arcs of the HSV circle in degrees; left out, "
        "20 degrees on either side of every pigment of its parts.",
    )
    size: tuple[float, float] = Field(default=(0.3, 0.4), description="Shares of the canvas.")
    x: tuple[float, float] = Field(default=(0.44, 0.56), description="The middle, as shares.")
    y: tuple[float, float] = Field(default=(0.42, 0.5), description="The middle, as shares.")
    paper: list[Colour] = Field(default=["#faf5ea", "#f7f2e8"], min_length=1)
    colours: dict[str, Annotated[list[Colour], Field(min_length=1)]] = Field(min_length=1)
    outlines: dict[str, Outline] = Field(default_factory=dict)
    parts: list[Part] = Field(min_length=1, max_length=16, description="In the order of painting.")

    @model_validator(mode="after")
    def _names_exist(self) -> Figure:
        for part in self.parts:
            if part.outline not in self.outlines and part.outline not in dialect.PETALS:
                known = ", ".join((*self.outlines, *dialect.PETALS))
                raise ValueError(f"parts: the outline {part.outline!r} is none of {known}")
            for wash in part.washes:
                if wash.colour not in self.colours:
                    known = ", ".join(self.colours)
                    raise ValueError(f"parts: the colour {wash.colour!r} is none of {known}")
            if not 1 <= part.count[0] <= part.count[1] <= 40:
                raise ValueError(f"parts: count={part.count} of {part.what!r} must rise, 1 to 40")
        return self


def hues(figure: Figure) -> tuple[Arc, ...]:
    """What counts as the figure's colours: arcs in degrees; none if it is grey or white."""
    if figure.hue:
        return tuple(figure.hue)
    used = {wash.colour for part in figure.parts for wash in part.washes}
    return _joined(_hue(pigment) for name in used for pigment in figure.colours[name])


def _hue(pigment: str) -> float | None:
    """A pigment's hue in degrees, or None for a grey one."""
    red, green, blue = (int(pigment[at : at + 2], 16) / 255 for at in (1, 3, 5))
    hue, saturation, _ = colorsys.rgb_to_hsv(red, green, blue)
    return hue * 360 if saturation >= LEAST_SATURATION else None


def _joined(middles: Iterable[float | None]) -> tuple[Arc, ...]:
    """The arcs about some hues, those that touch made one."""
    found: list[tuple[float, float]] = []
    for middle in sorted({round(one, 1) for one in middles if one is not None}):
        if found and middle - AROUND <= found[-1][1]:
            found[-1] = (found[-1][0], middle + AROUND)
        else:
            found.append((middle - AROUND, middle + AROUND))
    # The last may reach round the circle to the first.
    if len(found) > 1 and found[-1][1] - 360 >= found[0][0]:
        found[0] = (found.pop()[0] - 360, found[0][1])
    if len(found) == 1 and found[0][1] - found[0][0] >= 360:
        return ((0.0, 360.0),)
    return tuple((start % 360, end % 360) for start, end in found)


def load(path: Path) -> Figure:
    """Read a figure's file.

    Raises:
        InputError: it cannot be read, is no YAML, or breaks a rule (InvalidInput).
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _refused(
            path, f"cannot be read ({error.strerror})", "Name a subject's file in YAML."
        ) from error
    if len(data) > LARGEST:
        raise _refused(path, f"larger than {LARGEST >> 10} KiB", "Name a subject's file in YAML.")
    try:
        return Figure.model_validate(yaml.safe_load(data))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise _refused(path, f"not YAML ({error})", "Repair the file.") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the figure"
        value = "" if first["type"] in ("missing", "value_error") else f"={first['input']!r:.80}"
        raise _refused(
            path, f"{where}{value}: {first['msg'].removeprefix('Value error, ')}", "Correct it."
        ) from error


def _refused(path: Path, fault: str, remedy: str) -> InputError:
    return InputError(
        Reason.INVALID_INPUT,
        f"--subject {path}: {fault}.",
        remedy=remedy,
        field="subject",
        value=str(path),
    )
