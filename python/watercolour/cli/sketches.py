"""Commands on one sketch or painting: gate, score; what commands that paint share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from watercolour.cli import root

if TYPE_CHECKING:
    from watercolour.api.rollout import Violation
    from watercolour.local.painting import Paint, Wish
    from watercolour.render.result import Painted


def paint(file: Path, paint_one: Paint, wish: Wish, *, no_gate: bool) -> Painted:
    """Read a sketch, check it unless ``no_gate``, paint it.

    Raises:
        Refused: the gate or the renderer refuses it.
        WatercolourError: the file cannot be read, or no renderer painted it.
    """
    from watercolour.api.spec import Gate
    from watercolour.local import files
    from watercolour.render.result import SketchFault
    from watercolour.sketch import gate as checks

    text = files.read_sketch(file)
    verdict = checks.inspect(text, Gate())
    if verdict.violations and not no_gate:
        raise Refused(verdict.violations)
    try:
        return paint_one(text if verdict.sketch is None else verdict.sketch, wish)
    except SketchFault as fault:
        raise Refused((fault.violation,)) from fault


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
        raise Refused(verdict.violations).tell(json_)
    if json_:
        root.print_json({"admitted": True, "violations": []})
    else:
        click.echo("admitted")


class Refused(click.exceptions.Exit):
    """A sketch is refused; ends the command as a fault of the input, unless it is caught."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        super().__init__(root.FAULT)
        self.violations = tuple(violations)

    def told(self) -> list[dict[str, Any]]:
        """The violations for JSON."""
        return [violation.model_dump(mode="json") for violation in self.violations]

    def show(self, name: str = "") -> None:
        """The violations for a person, a line each."""
        for violation in self.violations:
            place = f"line {violation.line}" if violation.line else "the whole"
            if violation.line and violation.column:
                place += f", column {violation.column}"
            before = f"{name}: " if name else ""
            click.echo(f"{before}{violation.code}  {place}: {violation.message}", err=True)

    def tell(self, json_: bool) -> Self:
        """The violations for whoever asked."""
        if json_:
            root.print_json({"admitted": False, "violations": self.told()})
        self.show()
        return self


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
