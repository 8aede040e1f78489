"""The command that draws a sketch's shapes as SVG."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from watercolour.cli import root, sketches

if TYPE_CHECKING:
    from watercolour.render.replay import Replay

#: Millimetres of the units that a sheet may be given in.
UNITS = {"mm": 1.0, "cm": 10.0, "in": 25.4}

#: Widest sheet, in millimetres.
WIDEST_MM = 5_000.0


class Width(click.ParamType):
    """A sheet's width such as 200mm, 20cm or 8in; its value is in millimetres."""

    name = "width"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The width in millimetres; what is no width ends the command."""
        found = re.fullmatch(r"(\d+(?:\.\d+)?)(mm|cm|in)", str(value))
        if found is None:
            self.fail(f"{value!r} is no width; give one such as 200mm, 20cm or 8in.", param, ctx)
        width = float(found[1]) * UNITS[found[2]]
        if not 1 <= width <= WIDEST_MM:
            self.fail(f"{value} is out of bounds: 1 mm to {WIDEST_MM:g} mm.", param, ctx)
        return width


@root.cli.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="SVG to write.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--width", type=Width(), help="Of the sheet: 200mm, 20cm, 8in; unset: in pixels.")
@click.option("--outlines", is_flag=True, help="Lines alone, a layer a colour: for a pen plotter.")
@click.option("--shapes", type=click.IntRange(min=0), help="Only the first so many shapes.")
@click.option("--replay", type=click.Path(path_type=Path), help="JSON to write the shapes to.")
@root.painting_options
def svg(
    file: Path,
    out: Path,
    seed: int,
    width: float | None,
    outlines: bool,
    shapes: int | None,
    replay: Path | None,
    no_gate: bool,
    renderer: str | None,
    renderer_python: Path | None,
    allow_unsandboxed: bool,
    json_: bool,
) -> None:
    """Draw the shapes of a sketch as SVG, without bleed, for prints and plotters.

    FILE is a sketch (or chat reply), which is painted to learn its shapes, or the JSON that
    --replay wrote; - reads standard input.
    """
    from watercolour.local import files, painting
    from watercolour.render import svg as drawing

    if file.suffix == ".json":
        found = _saved(file)
    else:
        try:
            with painting.painter(
                renderer, renderer_python, allow_unsandboxed=allow_unsandboxed
            ) as paint:
                wish = painting.Wish(seed=seed, replay=True)
                found = sketches.paint(file, paint, wish, no_gate=no_gate).replay
        except sketches.Refused as refusal:
            raise refusal.tell(json_) from None
    if found is None:
        raise click.UsageError(f"The renderer at {renderer} is too old to record shapes.")
    if replay is not None:
        files.write_output(replay, found.model_dump_json(exclude_none=True).encode())
    shown = found if shapes is None else found.upto(shapes)
    name = "sketch" if str(file) == "-" else file.stem
    text = drawing.export(shown, title=name, width_mm=width, outlines=outlines)
    files.write_output(out, text.encode())
    if json_:
        facts = found.model_dump(include={"width", "height", "seed", "truncated", "elsewhere"})
        root.print_json({**facts, "shapes": len(shown.shapes), "out": str(out)})
        return
    missing = "; the painting has more than were recorded" if found.truncated else ""
    click.echo(f"{out}: {len(shown.shapes)} shapes, without bleed{missing}")


def _saved(path: Path) -> Replay:
    """The replay in a file.

    Raises:
        InputError: it cannot be read, or holds no replay (InvalidInput).
    """
    from pydantic import ValidationError

    from watercolour.api.errors import InputError
    from watercolour.api.reasons import Reason
    from watercolour.local import files
    from watercolour.render.replay import Replay

    try:
        return Replay.model_validate_json(files.read_sketch(path))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise InputError(
            Reason.INVALID_INPUT,
            f"{path} holds no replay: {place}: {first['msg']}.",
            remedy="Name a sketch, or JSON that watercolour svg --replay has written.",
            field="FILE",
            value=str(path),
        ) from error
