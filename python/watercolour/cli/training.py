"""Commands around a training: run, report, push, sft."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from watercolour.cli import root

if TYPE_CHECKING:
    from watercolour.gallery.record import RunRecord


@root.cli.command()
@click.argument("spec", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--resume", is_flag=True, help="Go on from the run's last checkpoint.")
@click.option("--name", help="Instead of metadata.name.")
@click.option("--steps", type=click.IntRange(min=1), help="Instead of spec.trainer.steps.")
@click.option("--seed", type=click.IntRange(min=0), help="Instead of spec.seed.")
@click.option("--recipe", help="Instead of spec.recipe: a shipped recipe's name, or a YAML file.")
@click.option("--set", "sets", multiple=True, metavar="PATH=VALUE", help="Any field of the spec.")
@click.option("--no-open", is_flag=True, help="Do not open the report in a browser.")
@click.option("--judge-key-file", type=click.Path(path_type=Path), help="The judge's bearer token.")
@root.renderer_options
@root.as_json
def run(
    spec: Path,
    resume: bool,
    name: str | None,
    steps: int | None,
    seed: int | None,
    recipe: str | None,
    sets: Sequence[str],
    no_open: bool,
    judge_key_file: Path | None,
    renderer_python: Path | None,
    allow_unsandboxed: bool,
    json_: bool,
) -> None:
    """Train on this machine as the file SPEC says, then write report.html.

    \b
    watercolour run examples/local.yaml
    watercolour run examples/local.yaml --name second --seed 2 --recipe judge-led
    watercolour run examples/local.yaml --name third --recipe my-recipe.yaml --steps 30
    """
    import json

    from watercolour.api import load
    from watercolour.cli.recipes import fields
    from watercolour.gallery import record, report
    from watercolour.local import progress
    from watercolour.local import run as local
    from watercolour.reward import recipes

    given = {"metadata.name": name, "spec.trainer.steps": steps, "spec.seed": seed}
    overrides = {} if recipe is None else {"spec.recipe": json.dumps(fields(recipe))}
    overrides |= dict(assignment(text) for text in sets)
    overrides |= {path: str(value) for path, value in given.items() if value is not None}
    if allow_unsandboxed:
        overrides["spec.renderers.allowUnsandboxed"] = "true"
    wanted = load.run(spec, overrides)
    terminal = sys.stderr.isatty() and not json_
    with progress.display(wanted.metadata.name, stream_is_terminal=terminal) as display:
        finished = local.run(
            wanted,
            display,
            local.programs(renderer_python, paints=recipes.get(wanted.spec.recipe).paints),
            resume=resume,
            judge_key_file=judge_key_file,
            again=_again(),
        )
        display.say("writing the report")
        page = report.write(record.read(finished.folder))
    if json_:
        root.print_json({**finished.summary, "folder": str(finished.folder), "report": str(page)})
        return
    click.echo(_headline(finished.summary))
    click.echo(f"Report: {page}")
    if not no_open and sys.stdout.isatty():
        click.launch(page.resolve().as_uri())


def assignment(text: str) -> tuple[str, str]:
    """Path and value of a --set option."""
    path, equals, value = text.partition("=")
    if not equals or not path:
        raise click.UsageError(f"--set {text!r}: write it as spec.trainer.steps=3.")
    return path, value


def _again() -> str:
    """The command that was typed, with --resume."""
    import shlex

    typed = [word for word in sys.argv[1:] if word != "--resume"]
    return shlex.join(["watercolour", *typed, "--resume"])


def _headline(summary: dict[str, Any]) -> str:
    """The run in two lines of words."""
    from watercolour.gallery.words import duration, number, percent

    def pair(key: str, show: Callable[[float | None], str]) -> str:
        first, last = (summary.get(f"{key}_{end}_fifth") for end in ("first", "last"))
        return f"{show(first)} → {show(last)}"

    return (
        f"{summary.get('steps', 0)} steps in {duration(summary.get('seconds'))}, "
        f"unscored {percent(summary.get('unscored_rate'))}, "
        f"peak memory {summary.get('peak_memory_mib', 0) / 1024:.1f} GiB\n"
        f"Reward {pair('reward', number)}, adjusted {pair('reward_adjusted', number)}, "
        f"gate {pair('gate_pass', percent)} (first → last fifth)"
    )


@root.cli.command()
@click.argument("run_folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--strip", type=click.Path(path_type=Path), help="Write a PNG strip instead.")
@click.option("--columns", type=click.IntRange(2, 24), default=8, help="Of the strip.")
@root.as_json
def report(run_folder: Path, strip: Path | None, columns: int, json_: bool) -> None:
    """Write report.html of the run in folder RUN (or of that name in runs/)."""
    from watercolour.gallery import pictures, record
    from watercolour.gallery import report as page
    from watercolour.local import files

    found = record.read(root.run_folder(run_folder))
    _warn_damaged(found)
    if strip is None:
        out = page.write(found)
    else:
        import io

        out, content = strip, io.BytesIO()
        pictures.strip(found, columns=columns).save(content, "PNG", optimize=True)
        files.write_output(out, content.getvalue())
    steps = len(found.by_step())
    if json_:
        root.print_json({"out": str(out), "steps": steps, "rollouts": len(found.entries)})
    else:
        click.echo(out)


def _warn_damaged(found: RunRecord) -> None:
    for path, cause in found.damaged:
        click.echo(f"{path} could not be read and is left out: {cause}", err=True)


@root.cli.command()
@click.argument("run_folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--repo", metavar="OWNER/NAME", help="Instead of spec.artifacts.hub.repo.")
@root.as_json
def push(run_folder: Path, repo: str | None, json_: bool) -> None:
    """Push the newest adapter of RUN to the hub, with a page of its figures and paintings.

    A run does so by itself where spec.artifacts.hub says it. The token is that of
    WATERCOLOUR_PUSH_TOKEN or HF_TOKEN, or the one of `hf auth login`.
    """
    from watercolour.api import load
    from watercolour.gallery import push as pushing

    folder = root.run_folder(run_folder)
    overrides = {} if repo is None else {"spec.artifacts.hub.repo": repo}
    found = pushing.push(load.run(folder / "run.yaml", overrides), folder)
    if json_:
        root.print_json({"step": found.step, "url": found.url})
    else:
        click.echo(found.url)


@root.cli.command()
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder to write.")
@click.option(
    "--file",
    "-f",
    "spec",
    type=click.Path(path_type=Path, allow_dash=True),
    help="A run's specification: make an adapter of its policy, as spec.sft says.",
)
@click.option("--corpus", help="Instead of spec.sft.corpus: also a run, or its name in runs/.")
@click.option("--samples", type=click.IntRange(min=1), help="Sketches to learn from.")
@click.option("--epochs", type=click.IntRange(min=1), help="Times that each is seen.")
@click.option("--seed", type=click.IntRange(min=0), help="Seeds weights and order.")
@click.option("--set", "sets", multiple=True, metavar="PATH=VALUE", help="Any field of the spec.")
@root.as_json
def sft(
    out: Path,
    spec: Path | None,
    corpus: str | None,
    samples: int | None,
    epochs: int | None,
    seed: int | None,
    sets: Sequence[str],
    json_: bool,
) -> None:
    """Make a policy by learning sketches (the cold start).

    \b
    watercolour sft --out tiny                       the tiny policy, from nothing
    watercolour sft -f run.yaml --out warm           an adapter of the policy of run.yaml
    watercolour sft -f run.yaml --out warm --corpus runs/first
                                                     the same from the best of a run (best of n)

    A run begins with an adapter that spec.model.adapter names.
    """
    if spec is None:
        if corpus is not None or sets:
            raise click.UsageError("--corpus and --set: name a specification by -f too.")
        _sft_tiny(out, {"samples": samples, "epochs": epochs, "seed": seed}, json_)
        return
    overrides = dict(assignment(text) for text in sets)
    given = {
        "spec.sft.corpus": corpus and _corpus(corpus),
        "spec.sft.examples": samples,
        "spec.sft.epochs": epochs,
        "spec.seed": seed,
    }
    overrides |= {path: str(value) for path, value in given.items() if value is not None}
    _sft_adapter(out, spec, overrides, json_)


def _corpus(named: str) -> str:
    folder = root.run_folder(Path(named))
    return str(folder.absolute()) if folder.is_dir() else named


def _sft_tiny(out: Path, given: dict[str, int | None], json_: bool) -> None:
    import time
    from dataclasses import asdict, replace

    from watercolour.local.progress import duration
    from watercolour.train import sft as cold_start

    if (samples := given["samples"]) is not None and samples < 100:
        raise click.UsageError("--samples: at least 100 for the tiny policy.")
    told = 0.0

    def show(step: int, steps: int, loss: float, left: float) -> None:
        nonlocal told
        if time.monotonic() - told > 5 or step == steps:
            told = time.monotonic()
            click.echo(f"step {step}/{steps}  loss {loss:.3f}  left {duration(left)}", err=True)

    known = {name: value for name, value in given.items() if value is not None}
    out.mkdir(parents=True, exist_ok=True)
    card = cold_start.train(out, replace(cold_start.Plan(), **known), show)
    if json_:
        root.print_json({**asdict(card), "out": str(out)})
    else:
        click.echo(f"{out}: {card.parameters:,} parameters, gate {card.gate_pass_rate:.0%}")


def _sft_adapter(out: Path, spec: Path, overrides: dict[str, str], json_: bool) -> None:
    import os
    from dataclasses import asdict
    from functools import partial

    from watercolour.api import load, locality
    from watercolour.train import coldrun, launch, ranks

    wanted = load.run(spec, overrides)
    locality.require_one_machine(wanted)
    if launch.needed(wanted.spec, os.environ):
        outcome = coldrun.by_several(wanted, out)
    else:
        with ranks.joined() as alone:
            tell = coldrun.shown(partial(click.echo, err=True))
            outcome = coldrun.adapter(wanted.spec, out, tell, alone)
    if json_:
        root.print_json({**asdict(outcome), "out": str(out)})
    else:
        click.echo(
            f"{out}: {outcome.examples:,} sketches, loss {outcome.loss:.3f}, "
            f"gate {outcome.gate_pass_rate:.0%}"
        )
