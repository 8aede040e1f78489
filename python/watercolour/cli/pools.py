"""Commands on reference pools: check, show, build."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from watercolour.cli import root

if TYPE_CHECKING:
    from watercolour.reward.pool import Pool


@root.cli.group()
def pool() -> None:
    """Reference pools: check, show, build."""


@pool.command("check")
@click.argument("path", default="builtin:flowers")
@root.as_json
def pool_check(path: str, json_: bool) -> None:
    """Check that every painting of the pool PATH is whole, rated and passes the gate."""
    from watercolour.reward import pool_build

    found = pool_build.check(path)
    tiers = _count(found)
    if json_:
        root.print_json({"pool": path, "references": len(found.references), "tiers": tiers})
    else:
        shown = ", ".join(f"{count} {tier}" for tier, count in tiers.items())
        click.echo(f"{path}: {len(found.references)} references ({shown}), all whole")


@pool.command("show")
@click.argument("path", default="builtin:flowers")
@click.option("--sheet", type=click.Path(path_type=Path), help="Write a PNG contact sheet.")
@root.as_json
def pool_show(path: str, sheet: Path | None, json_: bool) -> None:
    """List the references of the pool PATH, the strongest first."""
    from watercolour.reward import pool as pools

    ordered = sorted(pools.load(path).references, key=lambda reference: -reference.strength)
    if sheet is not None:
        from watercolour.local import files
        from watercolour.reward import pool_build

        files.write_output(sheet, pool_build.sheet(ordered))
    if json_:
        rows = [
            {"name": r.name, "subject": r.subject, "tier": r.tier, "strength": r.strength}
            for r in ordered
        ]
        root.print_json({"pool": path, "references": rows})
        return
    for r in ordered:
        click.echo(f"{r.strength:+6.2f}  {r.tier:5} {r.name}  {r.subject}")


@pool.command("build")
@click.argument("path", type=click.Path(path_type=Path, file_okay=False))
@click.option("--renderer", metavar="URL", help="A running renderer, instead of starting one.")
@root.renderer_options
@root.as_json
def pool_build(
    path: Path,
    renderer: str | None,
    renderer_python: Path | None,
    allow_unsandboxed: bool,
    json_: bool,
) -> None:
    """Paint all sketches of the pool in folder PATH and fit its strengths anew."""
    import asyncio
    from contextlib import nullcontext
    from dataclasses import asdict

    from watercolour.local.painting import own_renderer
    from watercolour.reward import pool_build as building

    def show(done: int, of: int) -> None:
        if done % 10 == 0 or done == of:
            click.echo(f"{done}/{of} painted", err=True)

    with (
        nullcontext(renderer)
        if renderer
        else own_renderer(renderer_python, slots=2, allow_unsandboxed=allow_unsandboxed)
    ) as url:
        built = asyncio.run(building.build(path, [url], progress=show))
    if json_:
        root.print_json({"pool": str(path), **asdict(built)})
    else:
        changed = f"{len(built.changed)} changed" if built.changed else "none changed"
        click.echo(f"{path}: {built.paintings} painted in {built.seconds:.0f} s, {changed}")


def _count(found: Pool) -> dict[str, int]:
    from collections import Counter

    return dict(sorted(Counter(str(r.tier) for r in found.references).items()))
