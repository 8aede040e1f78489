"""The command that takes real pictures into a pool."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from watercolour.cli import root
from watercolour.cli.pool_making import CANVAS, keep_subject, subject_of
from watercolour.cli.pools import pool

if TYPE_CHECKING:
    from watercolour.reward.pool_import import Imported, Rights


@pool.command("import")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--as",
    "kind",
    type=click.Choice(["references", "seeds"]),
    default="references",
    show_default=True,
    help="To compare with, or for a model to paint from.",
)
@click.option("--subject", help="What the pictures show; unset: what the pool paints.")
@click.option("--tier", type=click.Choice(["love", "okay", "meh"]), help="Unset: to be rated.")
@click.option("--licence", help="Of all pictures, such as CC-BY-4.0, or own.")
@click.option("--attribution", default="", help="Whom the licence wants named.")
@click.option("--source", default="", help="Where they come from.")
@click.option(
    "--metadata",
    type=click.Path(path_type=Path),
    help="CSV with the columns file, licence, attribution, source; a line a picture.",
)
@click.option(
    "--fit",
    type=click.Choice(["whole", "crop"]),
    default="whole",
    show_default=True,
    help="Lay the whole picture on a square sheet, or cut its middle.",
)
@click.option("--canvas", type=click.IntRange(64, 1024), help="Side of a new pool's paintings.")
@root.as_json
def import_(
    folder: Path,
    files: Sequence[Path],
    kind: str,
    subject: str | None,
    tier: Literal["love", "okay", "meh"] | None,
    licence: str | None,
    attribution: str,
    source: str,
    metadata: Path | None,
    fit: Literal["whole", "crop"],
    canvas: int | None,
    json_: bool,
) -> None:
    """Take photos or scans of real paintings into the pool in FOLDER, licence and author kept.

    \b
    watercolour pool import my-pool scans/*.jpg --licence own --tier love
    watercolour pool import my-pool photos/*.jpg --as seeds --metadata photos/credits.csv
    """
    from watercolour.reward import pool_import, pool_intake

    rights = _rights(files, licence, attribution, source, metadata)
    what = subject_of(folder, subject)
    name = what if isinstance(what, str) else what.name
    pool_import.require_rights(files, rights)
    pool_intake.open_or_make(
        folder,
        canvas=canvas or CANVAS,
        what=f"Watercolours of {name}.",
        made="Pictures by watercolour pool import; every record has its licence and author.",
        licence="own",
    )
    keep_subject(folder, what)
    if kind == "seeds":
        done = pool_import.import_seeds(folder, files, rights)
    else:
        done = pool_import.import_references(
            folder, files, rights, subject=name, tier=tier, fit=fit
        )
    _tell_imported(folder, done, kind, json_)


def _rights(
    files: Sequence[Path],
    licence: str | None,
    attribution: str,
    source: str,
    metadata: Path | None,
) -> dict[str, Rights]:
    from watercolour.reward import pool_import
    from watercolour.reward.pool_import import Rights

    found: dict[str, Rights] = {}
    if licence is not None:
        found = {path.name: Rights(licence, attribution, source) for path in files}
    if metadata is not None:
        found |= pool_import.read_metadata(metadata)
    if not found:
        raise click.UsageError("Say under which licence: --licence CC-BY-4.0, or --metadata FILE.")
    return found


def _tell_imported(folder: Path, done: Imported, kind: str, json_: bool) -> None:
    if json_:
        root.print_json({"pool": str(folder), "added": done.added, "twins": done.twins})
        return
    for path, twin in done.twins:
        click.echo(f"{path}: left out, it looks like {twin}", err=True)
    click.echo(f"{folder}: {len(done.added)} {kind} added")
