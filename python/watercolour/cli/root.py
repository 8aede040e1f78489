"""The command itself, and what its subcommands share: options, exit status, JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

#: Exit statuses: the input is at fault, usage, infrastructure, interrupted and resumable.
FAULT, USAGE, INFRASTRUCTURE, INTERRUPTED = 1, 2, 3, 130

Command = TypeVar("Command", bound=Callable[..., Any])


def as_json(command: Command) -> Command:
    """The --json option."""
    return click.option(
        "--json",
        "json_",
        is_flag=True,
        help="Print one JSON object on standard output and nothing else there.",
    )(command)


def renderer_options(command: Command) -> Command:
    """Where the renderer comes from."""
    command = click.option(
        "--renderer-python",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Interpreter of the renderer's environment; found by itself as .venv-render.",
    )(command)
    return click.option(
        "--allow-unsandboxed",
        is_flag=True,
        help="Go on without Chromium's own sandbox where the kernel lacks it.",
    )(command)


def _url(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """The value as it is.

    Raises:
        click.BadParameter: it is no address over HTTP.
    """
    if value is not None and not re.fullmatch(r"https?://[^/\s]+(/\S*)?", value):
        raise click.BadParameter(f"{value!r} is no URL. Give one such as http://127.0.0.1:8080.")
    return value


def running_renderer(command: Command) -> Command:
    """Whom a command asks that could start a renderer itself."""
    return click.option(
        "--renderer",
        metavar="URL",
        callback=_url,
        help="A running renderer, instead of starting one.",
    )(command)


def painting_options(command: Command) -> Command:
    """What commands that paint a sketch share: its gate, the renderer, how they answer."""
    command = renderer_options(as_json(command))
    command = running_renderer(command)
    return click.option(
        "--no-gate", is_flag=True, help="Paint even what the gate's static checks refuse."
    )(command)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="watercolour")
def cli() -> None:
    """Train a code model to paint watercolours, against a renderer.

    \b
    Exit status: 0 fine, 1 the input is at fault, 2 usage,
    3 infrastructure, 130 interrupted and resumable.
    """


def run_folder(named: Path) -> Path:
    """A run's folder, given as a path or as the name of one in runs/."""
    below = Path("runs", named)
    return below if not named.exists() and below.is_dir() else named


def print_json(value: dict[str, Any]) -> None:
    """One JSON object on standard output."""
    click.echo(json.dumps(value, ensure_ascii=False, default=str))
