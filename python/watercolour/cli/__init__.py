"""The command line. Each command imports what it needs itself, so that ``--help`` is quick."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from watercolour.cli import (
    planning,
    pool_making,
    pool_pictures,
    pool_rating,
    pool_sharing,
    pools,
    prints,
    recipe_explaining,
    recipes,
    recompute,
    renders,
    root,
    serving,
    sketches,
    training,
    upkeep,
)
from watercolour.cli.root import cli

if TYPE_CHECKING:
    from watercolour.api.errors import WatercolourError

__all__ = [
    "cli",
    "main",
    "planning",
    "pool_making",
    "pool_pictures",
    "pool_rating",
    "pool_sharing",
    "pools",
    "prints",
    "recipe_explaining",
    "recipes",
    "recompute",
    "renders",
    "serving",
    "sketches",
    "status",
    "tell",
    "training",
    "upkeep",
]


def tell(error: WatercolourError, json_: bool) -> int:
    """Show an error to whoever asked; return the exit status."""
    if json_ and error.exit_code != root.INTERRUPTED:
        told = {"reason": error.reason.value, "message": error.message, "remedy": error.remedy}
        field, value = getattr(error, "field", ""), getattr(error, "value", None)
        root.print_json({"error": {**told, "field": field, "value": value}})
    prefix = "" if error.exit_code == root.INTERRUPTED else "watercolour: "
    click.echo(f"{prefix}{error}", err=True)
    return error.exit_code


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    sys.exit(status(words))


def status(words: list[str]) -> int:
    """Run the command line and tell every error; the exit status."""
    json_ = "--json" in words
    try:
        return cli.main(words, standalone_mode=False) or 0
    except click.ClickException as error:
        error.show()
        return root.USAGE
    except (KeyboardInterrupt, click.Abort):
        click.echo("Interrupted.", err=True)
        return root.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has seen enough.
        sys.stderr.close()
        return 0
    except Exception as error:
        from watercolour.api.errors import WatercolourError

        if isinstance(error, WatercolourError):
            return tell(error, json_)
        traceback.print_exc()
        if json_:
            root.print_json({"error": {"reason": "InternalError", "message": repr(error)}})
        click.echo(
            "\nwatercolour: a fault of ours. Please report it with the lines above.", err=True
        )
        return root.INFRASTRUCTURE
