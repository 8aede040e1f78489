"""Commands that share a pool: publish, fetch."""

from __future__ import annotations

from pathlib import Path

import click

from watercolour.cli import root
from watercolour.cli.pools import pool

#: How a data set of the hub is written.
HUB = "hub:"


@pool.command("publish")
@click.argument("path")
@click.argument("target")
@click.option("--public", is_flag=True, help="Make a new data set of the hub visible to all.")
@root.as_json
def publish(path: str, target: str, public: bool, json_: bool) -> None:
    """Write the rated paintings of the pool PATH to TARGET, licences and authors with them.

    \b
    watercolour pool publish my-pool shared/my-pool           a folder
    watercolour pool publish my-pool my-pool.parquet          one file
    watercolour pool publish my-pool hub:OWNER/NAME           a data set of the hub

    Unrated paintings, those that were set aside and the raters' names stay here.
    """
    from watercolour.reward import pool_share

    where = target
    if target.startswith(HUB):
        from watercolour.reward import pool_hub

        count, where = pool_hub.publish(path, target, private=not public)
    elif target.endswith(".parquet"):
        count = pool_share.to_parquet(path, Path(target))
    else:
        count = pool_share.to_folder(path, Path(target))
    if json_:
        root.print_json({"pool": path, "target": where, "paintings": count})
    else:
        click.echo(f"{where}: {count} paintings published")


@pool.command("fetch")
@click.argument("source")
@click.argument("folder", type=click.Path(path_type=Path))
@root.as_json
def fetch(source: str, folder: Path, json_: bool) -> None:
    """Make the pool SOURCE a new folder: hub:OWNER/NAME[@REVISION], a parquet file, a folder.

    builtin:flowers gives a copy of the shipped pool, to rate and change.
    """
    from watercolour.reward import pool as pools
    from watercolour.reward import pool_share

    if source.startswith(HUB):
        from watercolour.reward import pool_hub

        count = pool_hub.fetch(source, folder)
    elif source.endswith(".parquet"):
        count = pool_share.from_parquet(Path(source), folder)
    else:
        count = pool_share.from_folder(pools.locate(source), folder)
    if json_:
        root.print_json({"source": source, "pool": str(folder), "paintings": count})
    else:
        click.echo(f"{folder}: {count} paintings fetched")
