"""What a sketch painted, in order: outlines and pigment. The format of docs/reference/replay.md.

A replay is a description and no picture: bleed, texture and the mixing of pigments are p5.brush's,
and only a painting has them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, FiniteFloat

from watercolour.api.rollout import Record

#: Version of the format; raised with any change that a reader would notice.
VERSION = 1

#: Most shapes, and most points of all their paths together; ``truncated`` tells of the rest.
MAX_SHAPES, MAX_POINTS = 5_000, 100_000

#: Pixels by which a path may differ from what was painted.
TOLERANCE = 0.25

Share = Annotated[float, Field(ge=0, le=1)]
Kind = Literal["paper", "fill", "wash", "stroke", "hatch", "mass"]


class Shape(Record):
    """One thing that was painted."""

    kind: Kind = Field(
        description="paper: the whole canvas; fill: watercolour with bleed and texture; wash: flat "
        "colour; stroke: one line of a brush; hatch: lines that fill an outline; mass: strokes "
        "that fill an outline."
    )
    call: str = Field(
        max_length=16, description="p5.brush's function that painted it; empty when it is unknown."
    )
    paths: tuple[tuple[FiniteFloat, ...], ...] = Field(
        description="x, y, x, y, … in pixels of the canvas, from its upper left corner. An outline "
        "that closes (fill, wash; one path) or the ways of the brush; empty for paper."
    )
    colour: str = Field(pattern=r"^#[0-9a-f]{6}$", description="sRGB.")
    opacity: Share = Field(
        description="Of a fill or wash: as the sketch set it. Of strokes: about how much of the "
        "paper they hide. Of paper: 1 unless it was painted over what lay there."
    )
    bleed: Share | None = Field(default=None, description="Of a fill: how far it runs.")
    direction: Literal["in", "out"] | None = Field(
        default=None, description="Of a fill: whether it bleeds into its outline or out of it."
    )
    texture: Share | None = Field(default=None, description="Of a fill: strength of its texture.")
    border: Share | None = Field(default=None, description="Of a fill: strength of its border.")
    brush: str | None = Field(default=None, max_length=64, description="Of a stroke: its name.")
    weight: float | None = Field(
        default=None, ge=0, description="Of a stroke: what strokeWeight or set gave it."
    )
    width: float | None = Field(
        default=None, ge=0, description="Of a stroke: about how wide it is, in pixels."
    )

    @property
    def closed(self) -> bool:
        """Whether its path is an outline that ends where it starts."""
        return self.kind in ("fill", "wash")


class Replay(Record):
    """The shapes of one painting, in the order in which they were painted."""

    version: Literal[1] = Field(default=VERSION, description="Of this format.")
    width: int = Field(gt=0, description="Of the canvas, in pixels.")
    height: int = Field(gt=0, description="Of the canvas, in pixels.")
    seed: int = Field(ge=0, description="The seed of the render: with it and the sketch the same.")
    shapes: tuple[Shape, ...] = Field(
        max_length=MAX_SHAPES, description="Everything that p5.brush painted on the canvas."
    )
    truncated: bool = Field(
        description=f"Whether shapes are missing at the end: beyond {MAX_SHAPES} shapes or "
        f"{MAX_POINTS} points nothing more is recorded."
    )
    elsewhere: int = Field(
        ge=0, description="Shapes left out because they were painted on buffers, not the canvas."
    )

    def upto(self, count: int) -> Replay:
        """The same with the first ``count`` shapes alone: a frame of the painting's growth."""
        return self.model_copy(update={"shapes": self.shapes[:count]})
