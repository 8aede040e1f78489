"""Commands on one sketch or painting: gate, render, score."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from watercolour.cli import root

if TYPE_CHECKING:
    from watercolour.api.rollout import Violation
    from watercolour.local.painting import Wish
    from watercolour.render.result import Painted


@root.cli.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="PNG to write.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--size", type=click.IntRange(64, 1024), help="Side in pixels; unset: the canvas'.")
@click.option("--no-gate", is_flag=True, help="Paint even what the gate's static checks refuse.")
@click.option("--renderer", metavar="URL", help="A running renderer, instead of starting one.")
@root.renderer_options
@root.as_json
def render(
    file: Path,
    out: Path,
    seed: int,
    size: int | None,
    no_gate: bool,
    renderer: str | None,
    renderer_python: Path | None,
    allow_unsandboxed: bool,
    json_: bool,
) -> None:
    """Paint the sketch (or chat reply) in FILE; - reads standard input."""
    from dataclasses import asdict

    from watercolour.local import files
    from watercolour.local.painting import Wish

    painted = paint(
        file,
        Wish(seed=seed, size=size),
        no_gate=no_gate,
        renderer=renderer,
        python=renderer_python,
        allow_unsandboxed=allow_unsandboxed,
        json_=json_,
    )
    files.write_output(out, painted.painting)
    if json_:
        facts = asdict(painted)
        del facts["painting"], facts["replay"]
        root.print_json({**facts, "out": str(out)})
        return
    click.echo(
        f"{out}: {painted.shapes} shapes, {painted.paint_fraction:.1%} painted, "
        f"{painted.cpu_seconds:.2f} CPU s"
    )
    for line in painted.js_errors:
        click.echo(f"JavaScript: {line}", err=True)


def paint(
    file: Path,
    wish: Wish,
    *,
    no_gate: bool,
    renderer: str | None,
    python: Path | None,
    allow_unsandboxed: bool,
    json_: bool,
) -> Painted:
    """Read a sketch, check it unless ``no_gate``, paint it; a refusal is told and ends the command.

    Raises:
        WatercolourError: the file cannot be read, or no renderer painted it.
    """
    from watercolour.api.spec import Gate
    from watercolour.local import files, painting
    from watercolour.render.result import SketchFault
    from watercolour.sketch import gate as checks

    text = files.read_sketch(file)
    verdict = checks.inspect(text, Gate())
    if verdict.violations and not no_gate:
        _refuse(verdict.violations, json_)
    sketch = text if verdict.sketch is None else verdict.sketch
    try:
        return painting.paint(
            sketch, wish, renderer=renderer, python=python, allow_unsandboxed=allow_unsandboxed
        )
    except SketchFault as fault:
        _refuse((fault.violation,), json_)


@root.cli.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--allow",
    default="all",
    show_default=True,
    help="Allowed p5.brush methods: all, ten, or names with commas between.",
)
@root.as_json
def gate(file: Path, allow: str, json_: bool) -> None:
    """Check the sketch (or chat reply) in FILE without painting it; - reads standard input."""
    from watercolour.api.spec import Gate
    from watercolour.local import files
    from watercolour.sketch import gate as checks

    names = tuple(filter(None, allow.split(",")))
    verdict = checks.inspect(files.read_sketch(file), Gate.model_validate({"allow": names}))
    if verdict.violations:
        _refuse(verdict.violations, json_)
    if json_:
        root.print_json({"admitted": True, "violations": []})
    else:
        click.echo("admitted")


def _refuse(violations: Sequence[Violation], json_: bool) -> NoReturn:
    """Tell why the sketch is refused and end the command."""
    told = [violation.model_dump(mode="json") for violation in violations]
    if json_:
        root.print_json({"admitted": False, "violations": told})
    for violation in violations:
        place = f"line {violation.line}" if violation.line else "the whole"
        if violation.line and violation.column:
            place += f", column {violation.column}"
        click.echo(f"{violation.code}  {place}: {violation.message}", err=True)
    raise click.exceptions.Exit(root.FAULT)


@root.cli.command()
@click.argument("paintings", nargs=-1, metavar="PNG…", type=click.Path(path_type=Path))
@click.option("--validate", is_flag=True, help="How well the heads rank subjects they never saw.")
@root.as_json
def score(paintings: Sequence[Path], validate: bool, json_: bool) -> None:
    """Score paintings with the embedded scorer."""
    if validate == bool(paintings):
        raise click.UsageError("Name paintings, or give --validate.")
    if validate:
        from watercolour.score import examples
        from watercolour.score import validate as validation

        trust = validation.report(examples.BUILTIN, validation.PROBES)
        if json_:
            root.print_json(trust)
        else:
            click.echo(validation.table(trust))
        raise click.exceptions.Exit(0 if trust["passed"] else root.FAULT)
    from watercolour.local import files
    from watercolour.score import embedded
    from watercolour.score.pictures import NotAPicture

    backend = embedded.load(2)
    found = backend.embed([files.read_painting(path) for path in paintings])
    rows: list[dict[str, Any]] = []
    for path, features in zip(paintings, found, strict=True):
        if isinstance(features, NotAPicture):
            raise files.not_a_painting(path, str(features))
        one = backend.score(features)
        rows.append({"painting": str(path), "mu": one.mu, "sigma": one.sigma, "score": one.score})
    if json_:
        root.print_json({"backend": embedded.NAME, "version": backend.version, "scores": rows})
        return
    for row in sorted(rows, key=lambda row: -row["mu"]):
        click.echo(
            f"{row['score']:.3f}  mu {row['mu']:+6.2f} ± {row['sigma']:.2f}  {row['painting']}"
        )
