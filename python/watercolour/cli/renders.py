"""The command that paints: a sketch, standard input or a folder, once or whenever it changes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from watercolour.cli import root, sketches

if TYPE_CHECKING:
    from watercolour.local.painting import Paint, Wish
    from watercolour.render.result import Painted

#: Endings of the files of a folder that are painted.
ENDINGS = (".js", ".mjs")

#: The contact sheet of a folder, beside its paintings.
SHEET = "contact-sheet.png"


@root.cli.command()
@click.argument("path", metavar="PATH", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="PNG to write, or the folder for a folder's; unset: beside the sketch.",
)
@click.option("--seed", type=click.IntRange(min=0, max=2**31 - 1), default=1, show_default=True)
@click.option(
    "--size", type=click.IntRange(64, 2048), help="Longer side in pixels; unset: as drawn."
)
@click.option(
    "--scale",
    type=click.IntRange(1, 8),
    default=1,
    show_default=True,
    help="Pixels for each of the sketch's canvas, along a side: a print of up to 4096.",
)
@click.option("--watch", is_flag=True, help="Paint again whenever a sketch changes, until Ctrl-C.")
@click.option(
    "--preview/--no-preview",
    default=None,
    help="Show the painting in the terminal; unset: where it says that it knows all colours.",
)
@root.painting_options
def render(
    path: Path,
    out: Path | None,
    seed: int,
    size: int | None,
    scale: int,
    watch: bool,
    preview: bool | None,
    no_gate: bool,
    renderer: str | None,
    renderer_python: Path | None,
    allow_unsandboxed: bool,
    json_: bool,
) -> None:
    """Paint the sketch (or chat reply) in PATH; - reads standard input.

    \b
    watercolour render poppy.js               poppy.png, and poppy.json with how it came about
    watercolour render sketches/ -o out/      every sketch in the folder, and a contact sheet
    watercolour render poppy.js --watch       again whenever it is saved
    watercolour render poppy.js --scale 8     a print: 512 pixels of canvas become 4096

    Exit status: 0 all painted, 1 a sketch is at fault, 3 the renderer is.
    """
    from watercolour.local import painting
    from watercolour.local import preview as previews

    piped = str(path) == "-"
    if piped and (out is None or watch):
        raise click.UsageError("Standard input needs -o FILE and cannot be watched.")
    if watch and json_:
        raise click.UsageError("--watch paints again and again; --json prints one object.")
    places = _Places(path, out)
    todo = [path] if not path.is_dir() else places.sketches()
    if preview is None:
        preview = not json_ and not path.is_dir() and previews.shows(sys.stdout, os.environ)
    wish = painting.print_wish(scale) if scale > 1 else painting.Wish()
    wish = replace(wish, seed=seed, size=size)
    show = None if json_ else partial(_show, preview=preview)
    with painting.painter(
        renderer, renderer_python, allow_unsandboxed=allow_unsandboxed, max_scale=scale
    ) as paint:
        told = _paint_all(todo, places, paint, wish, no_gate=no_gate, show=show)
        for changed in places.changes() if watch else ():
            _paint_all(changed, places, paint, wish, no_gate=no_gate, show=show)
    if json_:
        root.print_json({"paintings": told} if path.is_dir() else told[0])
    if any("violations" in one for one in told) and not watch:
        raise click.exceptions.Exit(root.FAULT)


class _Places:
    """Where sketches lie, where their paintings go, and those of a folder by name."""

    def __init__(self, path: Path, out: Path | None) -> None:
        self.path, self.out = path, out
        self.folder = (out or path) if path.is_dir() else None
        self.pictures: dict[str, bytes] = {}

    def painting(self, sketch: Path) -> Path:
        """The PNG of a sketch."""
        if self.folder is not None:
            return self.folder / f"{sketch.stem}.png"
        return self.out or sketch.with_suffix(".png")

    def sketches(self) -> list[Path]:
        """The sketches of the folder, by name.

        Raises:
            InputError: there are none, or two would have the same painting (InvalidInput).
        """
        found = sorted(one for one in self.path.iterdir() if one.suffix in ENDINGS)
        if not found:
            raise _refusal(self.path, "no sketch in it", f"Name one with {', '.join(ENDINGS)}.")
        stems = [one.stem for one in found]
        if twice := [one for one in found if stems.count(one.stem) > 1]:
            names = " and ".join(one.name for one in twice[:2])
            raise _refusal(self.path, f"{names} would be one painting", "Rename one of them.")
        return found

    def changes(self) -> Iterator[list[Path]]:
        """Sketches that were saved, until Ctrl-C."""
        from watchfiles import Change, watch

        click.echo(f"watching {self.path}; Ctrl-C ends it", err=True)
        folder = self.path if self.folder is not None else self.path.parent
        # watchfiles would tell of Ctrl-C itself.
        with suppress(KeyboardInterrupt):
            for several in watch(folder, recursive=False, raise_interrupt=True):
                saved = {Path(name) for change, name in several if change is not Change.deleted}
                known = [one for one in sorted(saved) if self._is_ours(one)]
                if known:
                    yield known

    def _is_ours(self, changed: Path) -> bool:
        if not changed.exists():  # An editor's own, or gone again.
            return False
        if self.folder is None:
            return changed.resolve() == self.path.resolve()
        return changed.suffix in ENDINGS


def _show(out: Path, painted: Painted, *, preview: bool) -> None:
    """Tell a person of a painting."""
    if preview:
        from watercolour.local import preview as previews

        click.echo(previews.of(painted.painting), nl=False)
    click.echo(
        f"{out}: {painted.shapes} shapes, {painted.paint_fraction:.1%} painted, "
        f"{painted.cpu_seconds:.2f} CPU s"
    )
    for line in painted.js_errors:
        click.echo(f"JavaScript: {line}", err=True)


def _paint_all(
    sketches_: Iterable[Path],
    places: _Places,
    paint: Paint,
    wish: Wish,
    *,
    no_gate: bool,
    show: Callable[[Path, Painted], None] | None,
) -> list[dict[str, Any]]:
    """Paint each; a refused one is told and the others go on. What --json prints of each."""
    from watercolour.local import files

    told: list[dict[str, Any]] = []
    for sketch in sketches_:
        out = places.painting(sketch)
        try:
            painted = sketches.paint(sketch, paint, wish, no_gate=no_gate)
        except sketches.Refused as refusal:
            places.pictures.pop(sketch.stem, None)
            refusal.show(sketch.name if places.folder is not None else "")
            told.append({"sketch": str(sketch), "admitted": False, "violations": refusal.told()})
            continue
        files.write_output(out, painted.painting)
        facts = {name: value for name, value in asdict(painted).items() if name != "painting"}
        facts = {"sketch": str(sketch), **facts, "out": str(out)}
        facts["scale"] = wish.scale
        del facts["replay"]
        files.write_output(out.with_suffix(".json"), _text(facts))
        if show is not None:
            show(out, painted)
        told.append(facts)
        places.pictures[sketch.stem] = painted.painting
    if places.folder is not None and len(places.pictures) > 1:
        from watercolour.reward import pool_build

        sheet = [(png, name) for name, png in sorted(places.pictures.items())]
        files.write_output(places.folder / SHEET, pool_build.sheet(sheet))
        if show is not None:
            click.echo(f"{places.folder / SHEET}: {len(sheet)} paintings")
    return told


def _text(facts: dict[str, Any]) -> bytes:
    return (json.dumps(facts, ensure_ascii=False, indent=2, default=str) + "\n").encode()


def _refusal(path: Path, fault: str, remedy: str) -> Exception:
    from watercolour.api.errors import InputError
    from watercolour.api.reasons import Reason

    return InputError(
        Reason.INVALID_INPUT, f"{path}: {fault}.", remedy=remedy, field="PATH", value=str(path)
    )
