"""Commands that serve: the renderer alone."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from watercolour.cli import root


@root.cli.command(
    add_help_option=False,
    options_metavar="",
    context_settings={"ignore_unknown_options": True, "max_content_width": 100},
)
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS]")
def renderer(options: Sequence[str]) -> None:
    """Serve paintings over HTTP until it is stopped; --help lists the options.

    \b
    watercolour renderer --port 8080
    watercolour renderer --port 8080 --slots 4
    """
    from watercolour.local.processes import renderer_python

    python = str(renderer_python())
    # In its place: signals and the terminal are the service's own.
    os.execv(python, [python, "-m", "watercolour.render.service", *options])
