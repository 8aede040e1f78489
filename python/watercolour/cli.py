"""The command line. Each command imports what it needs itself, so that ``--help`` is quick."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from watercolour.api.errors import WatercolourError
    from watercolour.api.rollout import Violation
    from watercolour.gallery.record import RunRecord
    from watercolour.reward.pool import Pool

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


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="watercolour")
def cli() -> None:
    """Train a code model to paint watercolours, against a renderer.

    \b
    Exit status: 0 fine, 1 the input is at fault, 2 usage,
    3 infrastructure, 130 interrupted and resumable.
    """


@cli.command()
@click.argument("spec", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--resume", is_flag=True, help="Go on from the run's last checkpoint.")
@click.option("--name", help="Instead of metadata.name.")
@click.option("--steps", type=click.IntRange(min=1), help="Instead of spec.trainer.steps.")
@click.option("--seed", type=click.IntRange(min=0), help="Instead of spec.seed.")
@click.option("--set", "sets", multiple=True, metavar="PATH=VALUE", help="Any field of the spec.")
@click.option("--no-open", is_flag=True, help="Do not open the report in a browser.")
@click.option("--judge-key-file", type=click.Path(path_type=Path), help="The judge's bearer token.")
@renderer_options
@as_json
def run(
    spec: Path,
    resume: bool,
    name: str | None,
    steps: int | None,
    seed: int | None,
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
    watercolour run examples/local.yaml --name second --seed 2 --set spec.recipe.name=judge-led
    """
    from watercolour.api import load
    from watercolour.gallery import record, report
    from watercolour.local import progress
    from watercolour.local import run as local

    given = {"metadata.name": name, "spec.trainer.steps": steps, "spec.seed": seed}
    overrides = dict(_assignment(text) for text in sets)
    overrides |= {path: str(value) for path, value in given.items() if value is not None}
    if allow_unsandboxed:
        overrides["spec.renderers.allowUnsandboxed"] = "true"
    wanted = load.run(spec, overrides)
    terminal = sys.stderr.isatty() and not json_
    with progress.display(wanted.metadata.name, stream_is_terminal=terminal) as display:
        finished = local.run(
            wanted,
            display,
            local.programs(renderer_python),
            resume=resume,
            judge_key_file=judge_key_file,
            again=_again(),
        )
        display.say("writing the report")
        page = report.write(record.read(finished.folder))
    if json_:
        _print_json({**finished.summary, "folder": str(finished.folder), "report": str(page)})
        return
    click.echo(_headline(finished.summary))
    click.echo(f"Report: {page}")
    if not no_open and sys.stdout.isatty():
        click.launch(page.resolve().as_uri())


def _assignment(text: str) -> tuple[str, str]:
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


@cli.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="PNG to write.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--size", type=click.IntRange(64, 1024), help="Side in pixels; unset: the canvas'.")
@click.option("--no-gate", is_flag=True, help="Paint even what the gate's static checks refuse.")
@click.option("--renderer", metavar="URL", help="A running renderer, instead of starting one.")
@renderer_options
@as_json
def render(
    file: Path,
    out: Path,
    seed: int,
    size: int | None,
    no_gate: bool,
    renderer: str | None,
    renderer_python: Path | None,
    allow_unsandboxed: bool,
    json_: bool,
) -> None:
    """Paint the sketch (or chat reply) in FILE; - reads standard input."""
    from dataclasses import asdict

    from watercolour.api.spec import Gate
    from watercolour.local import files
    from watercolour.local.painting import Wish, paint
    from watercolour.render.result import SketchFault
    from watercolour.sketch import gate as checks

    text = files.read_sketch(file)
    verdict = checks.inspect(text, Gate())
    if verdict.violations and not no_gate:
        _refuse(verdict.violations, json_)
    sketch = text if verdict.sketch is None else verdict.sketch
    try:
        painted = paint(
            sketch,
            Wish(seed=seed, size=size),
            renderer=renderer,
            python=renderer_python,
            allow_unsandboxed=allow_unsandboxed,
        )
    except SketchFault as fault:
        _refuse((fault.violation,), json_)
    files.write_output(out, painted.painting)
    if json_:
        facts = asdict(painted)
        del facts["painting"]
        _print_json({**facts, "out": str(out)})
        return
    click.echo(
        f"{out}: {painted.shapes} shapes, {painted.paint_fraction:.1%} painted, "
        f"{painted.cpu_seconds:.2f} CPU s"
    )
    for line in painted.js_errors:
        click.echo(f"JavaScript: {line}", err=True)


@cli.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--allow",
    default="all",
    show_default=True,
    help="Allowed p5.brush methods: all, ten, or names with commas between.",
)
@as_json
def gate(file: Path, allow: str, json_: bool) -> None:
    """Check the sketch (or chat reply) in FILE without painting it; - reads standard input."""
    from watercolour.api.spec import Gate
    from watercolour.local import files
    from watercolour.sketch import gate as checks

    names = tuple(filter(None, allow.split(",")))
    verdict = checks.inspect(files.read_sketch(file), Gate.model_validate({"allow": names}))
    if verdict.violations:
        _refuse(verdict.violations, json_)
    if json_:
        _print_json({"admitted": True, "violations": []})
    else:
        click.echo("admitted")


def _refuse(violations: Sequence[Violation], json_: bool) -> NoReturn:
    """Tell why the sketch is refused and end the command."""
    told = [violation.model_dump(mode="json") for violation in violations]
    if json_:
        _print_json({"admitted": False, "violations": told})
    for violation in violations:
        place = f"line {violation.line}" if violation.line else "the whole"
        if violation.line and violation.column:
            place += f", column {violation.column}"
        click.echo(f"{violation.code}  {place}: {violation.message}", err=True)
    raise click.exceptions.Exit(FAULT)


@cli.command()
@click.argument("paintings", nargs=-1, metavar="PNG…", type=click.Path(path_type=Path))
@click.option("--validate", is_flag=True, help="How well the heads rank subjects they never saw.")
@as_json
def score(paintings: Sequence[Path], validate: bool, json_: bool) -> None:
    """Score paintings with the embedded scorer."""
    if validate == bool(paintings):
        raise click.UsageError("Name paintings, or give --validate.")
    if validate:
        from watercolour.score import examples
        from watercolour.score import validate as validation

        trust = validation.report(examples.BUILTIN, validation.PROBES)
        if json_:
            _print_json(trust)
        else:
            click.echo(validation.table(trust))
        raise click.exceptions.Exit(0 if trust["passed"] else FAULT)
    from watercolour.local import files
    from watercolour.score import embedded
    from watercolour.score.features import NotAPicture

    backend = embedded.load(2)
    found = backend.embed([files.read_painting(path) for path in paintings])
    rows: list[dict[str, Any]] = []
    for path, features in zip(paintings, found, strict=True):
        if isinstance(features, NotAPicture):
            raise files.not_a_painting(path, str(features))
        one = backend.score(features)
        rows.append({"painting": str(path), "mu": one.mu, "sigma": one.sigma, "score": one.score})
    if json_:
        _print_json({"backend": embedded.NAME, "version": backend.version, "scores": rows})
        return
    for row in sorted(rows, key=lambda row: -row["mu"]):
        click.echo(
            f"{row['score']:.3f}  mu {row['mu']:+6.2f} ± {row['sigma']:.2f}  {row['painting']}"
        )


@cli.command()
@click.argument("run_folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--strip", type=click.Path(path_type=Path), help="Write a PNG strip instead.")
@click.option("--columns", type=click.IntRange(2, 24), default=8, help="Of the strip.")
@as_json
def report(run_folder: Path, strip: Path | None, columns: int, json_: bool) -> None:
    """Write report.html of the run in folder RUN (or of that name in runs/)."""
    from watercolour.gallery import pictures, record
    from watercolour.gallery import report as page
    from watercolour.local import files

    named = Path("runs", run_folder)
    folder = named if not run_folder.exists() and named.is_dir() else run_folder
    found = record.read(folder)
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
        _print_json({"out": str(out), "steps": steps, "rollouts": len(found.entries)})
    else:
        click.echo(out)


def _warn_damaged(found: RunRecord) -> None:
    for path, cause in found.damaged:
        click.echo(f"{path} could not be read and is left out: {cause}", err=True)


@cli.group()
def pool() -> None:
    """Reference pools: check, show, build."""


@pool.command("check")
@click.argument("path", default="builtin:flowers")
@as_json
def pool_check(path: str, json_: bool) -> None:
    """Check that every painting of the pool PATH is whole, rated and passes the gate."""
    from watercolour.reward import pool_build

    found = pool_build.check(path)
    tiers = _count(found)
    if json_:
        _print_json({"pool": path, "references": len(found.references), "tiers": tiers})
    else:
        shown = ", ".join(f"{count} {tier}" for tier, count in tiers.items())
        click.echo(f"{path}: {len(found.references)} references ({shown}), all whole")


@pool.command("show")
@click.argument("path", default="builtin:flowers")
@click.option("--sheet", type=click.Path(path_type=Path), help="Write a PNG contact sheet.")
@as_json
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
        _print_json({"pool": path, "references": rows})
        return
    for r in ordered:
        click.echo(f"{r.strength:+6.2f}  {r.tier:5} {r.name}  {r.subject}")


@pool.command("build")
@click.argument("path", type=click.Path(path_type=Path, file_okay=False))
@click.option("--renderer", metavar="URL", help="A running renderer, instead of starting one.")
@renderer_options
@as_json
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
        _print_json({"pool": str(path), **asdict(built)})
    else:
        changed = f"{len(built.changed)} changed" if built.changed else "none changed"
        click.echo(f"{path}: {built.paintings} painted in {built.seconds:.0f} s, {changed}")


def _count(found: Pool) -> dict[str, int]:
    from collections import Counter

    return dict(sorted(Counter(str(r.tier) for r in found.references).items()))


@cli.command(context_settings={"ignore_unknown_options": True})
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder to write.")
@click.option("--samples", type=click.IntRange(min=100), help="Sketches to learn from.")
@click.option("--epochs", type=click.IntRange(min=1), help="Times that each is seen.")
@click.option("--seed", type=click.IntRange(min=0), help="Seeds weights and order.")
@as_json
def sft(out: Path, json_: bool, **plan: int | None) -> None:
    """Make the tiny policy by learning the sketch grammar (the cold start)."""
    import time
    from dataclasses import asdict, replace

    from watercolour.local.progress import duration
    from watercolour.train import sft as cold_start

    told = 0.0

    def show(step: int, steps: int, loss: float, left: float) -> None:
        nonlocal told
        if time.monotonic() - told > 5 or step == steps:
            told = time.monotonic()
            click.echo(f"step {step}/{steps}  loss {loss:.3f}  left {duration(left)}", err=True)

    given = {name: value for name, value in plan.items() if value is not None}
    out.mkdir(parents=True, exist_ok=True)
    card = cold_start.train(out, replace(cold_start.Plan(), **given), show)
    if json_:
        _print_json({**asdict(card), "out": str(out)})
    else:
        click.echo(f"{out}: {card.parameters:,} parameters, gate {card.gate_pass_rate:.0%}")


@cli.command()
@renderer_options
@as_json
def doctor(renderer_python: Path | None, allow_unsandboxed: bool, json_: bool) -> None:
    """Say what is missing on this machine, and which command brings it."""
    from watercolour.local import doctor as checks

    findings = checks.examine(renderer_python, allow_unsandboxed=allow_unsandboxed)
    whole = all(finding.ok for finding in findings)
    if json_:
        _print_json({"ok": whole, "checks": [finding.as_dict() for finding in findings]})
    else:
        for finding in findings:
            click.echo(str(finding))
    raise click.exceptions.Exit(0 if whole else INFRASTRUCTURE)


@cli.command()
@click.option("--yes", is_flag=True, help="Remove what is found, instead of only listing it.")
@click.option("--namespace", "-n", multiple=True, help="Look only here; as often as needed.")
@click.option("--kubeconfig", type=click.Path(dir_okay=False), help="Instead of kubectl's own.")
@as_json
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


def _print_json(value: dict[str, Any]) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, default=str))


def tell(error: WatercolourError, json_: bool) -> int:
    """Show an error to whoever asked; return the exit status."""
    if json_ and error.exit_code != INTERRUPTED:
        told = {"reason": error.reason.value, "message": error.message, "remedy": error.remedy}
        field, value = getattr(error, "field", ""), getattr(error, "value", None)
        _print_json({"error": {**told, "field": field, "value": value}})
    prefix = "" if error.exit_code == INTERRUPTED else "watercolour: "
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
        return USAGE
    except (KeyboardInterrupt, click.Abort):
        click.echo("Interrupted.", err=True)
        return INTERRUPTED
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
            _print_json({"error": {"reason": "InternalError", "message": repr(error)}})
        click.echo(
            "\nwatercolour: a fault of ours. Please report it with the lines above.", err=True
        )
        return INFRASTRUCTURE


if __name__ == "__main__":
    main()
