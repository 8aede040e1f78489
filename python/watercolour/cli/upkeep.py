"""Commands on what is around runs: doctor, reap."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from watercolour.cli import root


@root.cli.command()
@root.renderer_options
@root.as_json
def doctor(renderer_python: Path | None, allow_unsandboxed: bool, json_: bool) -> None:
    """Say what is missing on this machine, and which command brings it."""
    from watercolour.local import doctor as checks

    findings = checks.examine(renderer_python, allow_unsandboxed=allow_unsandboxed)
    whole = all(finding.ok for finding in findings)
    if json_:
        root.print_json({"ok": whole, "checks": [finding.as_dict() for finding in findings]})
    else:
        for finding in findings:
            click.echo(str(finding))
    raise click.exceptions.Exit(0 if whole else root.INFRASTRUCTURE)


@root.cli.command()
@click.option("--yes", is_flag=True, help="Remove what is found, instead of only listing it.")
@click.option("--namespace", "-n", multiple=True, help="Look only here; as often as needed.")
@click.option("--kubeconfig", type=click.Path(dir_okay=False), help="Instead of kubectl's own.")
@root.as_json
def reap(yes: bool, namespace: Sequence[str], kubeconfig: str | None, json_: bool) -> None:
    """List what runs that no longer exist have left in a cluster.

    \b
    watercolour reap
    watercolour reap --namespace studio --yes
    """
    from watercolour_operator import reap as reaper

    options = [flag for flag, given in (("--yes", yes), ("--json", json_)) if given]
    options += [f"--namespace={name}" for name in namespace]
    options += [f"--kubeconfig={kubeconfig}"] if kubeconfig else []
    raise click.exceptions.Exit(reaper.main(options))
