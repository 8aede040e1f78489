"""Commands on reference pools: check, show, build."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from watercolour.cli import root

if TYPE_CHECKING:
    from watercolour.reward.pool import Record


@root.cli.group()
def pool() -> None:
    """Reference pools: make, rate, calibrate, share.

    \b
    watercolour pool generate my-pool --subject examples/subjects/jellyfish.yaml
    watercolour pool rate my-pool
    watercolour pool calibrate my-pool
    watercolour run examples/local.yaml --set spec.references.pool=my-pool
    """


@pool.command("check")
@click.argument("path", default="builtin:flowers")
@root.as_json
def pool_check(path: str, json_: bool) -> None:
    """Check that every rated painting of the pool PATH is whole and passes the gate."""
    from watercolour.reward import pool as pools
    from watercolour.reward import pool_build, rating_log
    from watercolour.reward.ratings import TIERS

    found = pool_build.check(path)
    folder = pools.locate(path)
    rating_log.read_all(folder)
    records = pools.read_records(folder)
    tiers = {tier: len(found.tier(tier)) for tier in sorted(TIERS) if found.tier(tier)}
    unrated = sum(record.tier is None and not record.aside for record in records)
    aside = sum(bool(record.aside) for record in records)
    if json_:
        told = {"references": len(found.references), "tiers": tiers}
        root.print_json({"pool": path, **told, "unrated": unrated, "aside": aside})
        return
    shown = ", ".join(f"{count} {tier}" for tier, count in tiers.items())
    click.echo(f"{path}: {len(found.references)} references ({shown}), all whole")
    for count, what in ((unrated, "wait to be rated"), (aside, "were set aside")):
        if count:
            click.echo(f"{count} {what}", err=True)
    if len(tiers) == 1:
        click.echo(
            f"All are {next(iter(tiers))}: references.tierShares has to take that tier alone, and "
            "the pool can be made neither easier nor harder. Rate some paintings differently.",
            err=True,
        )


@pool.command("show")
@click.argument("path", default="builtin:flowers")
@click.option("--sheet", type=click.Path(path_type=Path), help="Write a PNG contact sheet.")
@click.option("--columns", type=click.IntRange(1, 40), default=8, help="Of the sheet.")
@click.option("--side", type=click.IntRange(32, 1024), default=192, help="Of its pictures.")
@click.option("--all", "all_", is_flag=True, help="Those that were set aside too, with the reason.")
@root.as_json
def pool_show(
    path: str, sheet: Path | None, columns: int, side: int, all_: bool, json_: bool
) -> None:
    """List the paintings of the pool PATH: by tier, the strongest first, then the unrated."""
    from watercolour.reward import pool as pools

    folder = pools.locate(path)
    ordered = _ordered(pools.read_records(folder), all_)
    if sheet is not None:
        _write_sheet(folder, ordered, sheet, columns, side)
    if json_:
        root.print_json(
            {
                "pool": path,
                "references": [
                    r.model_dump(include={"name", "subject", "tier", "strength", "origin", "aside"})
                    for r in ordered
                ],
            }
        )
        return
    for r in ordered:
        strength = f"{r.strength:+6.2f}" if r.drawn else "     –"
        tier = "aside" if r.aside else r.tier or "–"
        by = f"  by {r.attribution} ({r.licence})" if r.attribution else ""
        click.echo(
            f"{strength}  {tier:5} {r.name}  {r.subject}{by}{f'  {r.aside}' * bool(r.aside)}"
        )


def _ordered(records: Sequence[Record], all_: bool) -> list[Record]:
    def place(record: Record) -> tuple[bool, bool, float, str]:
        return bool(record.aside), record.tier is None, -record.strength, record.name

    return sorted((r for r in records if all_ or not r.aside), key=place)


def _write_sheet(
    folder: Path, records: Sequence[Record], sheet: Path, columns: int, side: int
) -> None:
    from watercolour.api.errors import InputError
    from watercolour.api.reasons import Reason
    from watercolour.local import files
    from watercolour.reward import pool as pools
    from watercolour.reward import pool_build

    pictures = [
        (path.read_bytes(), f"{r.name} {'aside' if r.aside else r.tier or ''}")
        for r in records
        if (path := pools.painting_path(folder, r.name)).exists()
    ]
    if not pictures:
        raise InputError(
            Reason.INVALID_POOL,
            f"{folder}: it holds no painting yet.",
            remedy="Make some: watercolour pool generate, or build them: watercolour pool build.",
            field="PATH",
            value=str(folder),
        )
    columns = min(columns, len(pictures))
    files.write_output(sheet, pool_build.sheet(pictures, columns=columns, side=side))


@pool.command("build")
@click.argument("path", type=click.Path(path_type=Path, file_okay=False))
@root.running_renderer
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
