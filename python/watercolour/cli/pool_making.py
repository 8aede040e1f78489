"""Commands that paint for a pool: generate, critique."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from watercolour.cli import root
from watercolour.cli.pools import pool

if TYPE_CHECKING:
    from watercolour.reward.pool_generate import Generated
    from watercolour.reward.pool_writers import Proposal, Writer
    from watercolour.score.completions import Completions
    from watercolour.sketch.figure import Figure

#: Sides of a new pool's paintings: what the grammar's flowers are drawn at, and anything else.
FLOWER_CANVAS, CANVAS = 192, 256

Command = TypeVar("Command", bound=Callable[..., Any])
Result = TypeVar("Result")


def endpoint_options(command: Command) -> Command:
    """Which model writes, and where it is."""
    for option in (
        click.option(
            "--key-file", type=click.Path(path_type=Path), help="Holds the endpoint's bearer token."
        ),
        click.option("--model", metavar="NAME", help="The model's name at the endpoint."),
        click.option(
            "--endpoint", metavar="URL", help="Any OpenAI-compatible API, with or without /v1."
        ),
    ):
        command = option(command)
    return command


@pool.command("generate")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--subject", help="Such as 'a red poppy', or a YAML file that describes one.")
@click.option(
    "--from",
    "source",
    type=click.Choice(["grammar", "model", "rollouts"]),
    default="grammar",
    show_default=True,
    help="Who writes the sketches.",
)
@click.option("--count", type=click.IntRange(1, 5_000), default=24, show_default=True)
@click.option("--attempts", type=click.IntRange(min=1), help="Most sketches; unset: 4 a painting.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--canvas", type=click.IntRange(64, 1024), help="Side of a new pool's paintings.")
@click.option(
    "--intent",
    type=click.Choice(["all", "good", "plain", "ugly"]),
    default="all",
    show_default=True,
    help="What the grammar aims at.",
)
@click.option("--rollouts", type=click.Path(path_type=Path), help="A run, for --from rollouts.")
@click.option("--steps", metavar="FIRST:LAST", help="Of the run; such as 0:4 for an early policy.")
@click.option(
    "--system", default="ten-methods", show_default=True, help="Prompt preset, or a file."
)
@click.option("--temperature", type=click.FloatRange(0, 2), default=0.8, show_default=True)
@click.option("--with-seeds", is_flag=True, help="Show the model the pool's imported seeds.")
@endpoint_options
@click.option("--licence", default="own", show_default=True, help="Of a new pool.")
@root.running_renderer
@root.renderer_options
@root.as_json
def generate(
    folder: Path,
    subject: str | None,
    source: Literal["grammar", "model", "rollouts"],
    count: int,
    attempts: int | None,
    seed: int,
    canvas: int | None,
    intent: str,
    rollouts: Path | None,
    steps: str | None,
    system: str,
    temperature: float,
    with_seeds: bool,
    endpoint: str | None,
    model: str | None,
    key_file: Path | None,
    licence: str,
    renderer: str | None,
    renderer_python: Path | None,
    allow_unsandboxed: bool,
    json_: bool,
) -> None:
    """Paint sketches into the pool in FOLDER; those the gate admits, each picture once.

    \b
    watercolour pool generate my-pool --subject 'a red poppy'
    watercolour pool generate my-pool --subject examples/subjects/jellyfish.yaml --count 40
    watercolour pool generate my-pool --from model --endpoint http://127.0.0.1:8000 --model NAME
    watercolour pool generate my-pool --from rollouts --rollouts runs/tiny --steps 0:4
    """
    import asyncio

    from watercolour.reward import licences, pool_generate, pool_intake, pool_writers

    what = subject_of(folder, subject)
    name = what if isinstance(what, str) else what.name
    writer = None
    if source == "model":
        writer = _writer(endpoint, model, key_file, system, temperature)
    elif source == "rollouts" and rollouts is None:
        raise click.UsageError("--from rollouts needs --rollouts RUN.")
    if source == "grammar":
        # Before anything is made: a subject that the grammar does not know leaves no folder.
        pool_writers.require_known(what)
    card = pool_intake.open_or_make(
        folder,
        canvas=canvas
        or (FLOWER_CANVAS if source == "grammar" and isinstance(what, str) else CANVAS),
        what=f"Watercolours of {name}.",
        made="Sketches by watercolour pool generate; each record says from where. Rated by people.",
        licence=licences.find(licence).name,
    )
    keep_subject(folder, what)
    proposals: AsyncGenerator[Proposal]
    if writer is not None:
        brief = "" if isinstance(what, str) else what.brief
        seeds = _seeds(folder) if with_seeds else ()
        proposals = pool_writers.from_model(writer, name, seed=seed, brief=brief, seeds=seeds)
    elif source == "rollouts":
        assert rollouts is not None
        proposals = pool_writers.from_list(_rollouts(rollouts, steps, name, 2 * count))
    else:
        intents: Any = pool_writers.INTENTS if intent == "all" else {intent: 1.0}
        proposals = pool_writers.from_grammar(what, seed=seed, canvas=card.canvas, intents=intents)
    with _renderer(renderer, renderer_python, allow_unsandboxed) as url:
        work = pool_generate.generate(
            folder,
            name,
            proposals,
            [url],
            count=count,
            attempts=attempts or 4 * count,
            progress=_progress,
        )
        done = asyncio.run(_then_closed(work, *([] if writer is None else [writer.completions])))
    _tell_generated(folder, done, count, json_)


async def _then_closed(work: Awaitable[Result], *connections: Completions) -> Result:
    """What the work brings, with the connections closed in any case."""
    try:
        return await work
    finally:
        for each in connections:
            await each.aclose()


def subject_of(folder: Path, given: str | None) -> str | Figure:
    """The subject: as given, a name or a file; or what the pool already paints.

    Raises:
        InputError: the file breaks its rules (InvalidInput).
        click.UsageError: neither is there.
    """
    from watercolour.reward import pool as pools
    from watercolour.reward import pool_subject
    from watercolour.sketch import figure

    if given is not None:
        path = Path(given)
        return figure.load(path) if path.suffix in (".yaml", ".yml") or path.is_file() else given
    if (folder / pool_subject.FILE).exists():
        return figure.load(folder / pool_subject.FILE)
    if (folder / pools.CARD).exists():
        subjects = {record.subject for record in pools.read_records(folder)}
        if len(subjects) == 1:
            return subjects.pop()
    raise click.UsageError("Say what to paint: --subject 'a red poppy', or a YAML file.")


def keep_subject(folder: Path, what: str | Figure) -> None:
    """Keep a subject's description with the pool, so that later commands need not be given it."""
    import yaml

    from watercolour.reward import pool_build, pool_subject

    if isinstance(what, str) or (folder / pool_subject.FILE).exists():
        return

    text = yaml.safe_dump(what.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    pool_build.write(folder / pool_subject.FILE, text.encode())


def _writer(
    endpoint: str | None, model: str | None, key_file: Path | None, system: str, temperature: float
) -> Writer:
    from watercolour.local import files
    from watercolour.reward.pool_writers import Writer
    from watercolour.score.completions import Completions
    from watercolour.sketch import prompt

    if endpoint is None or model is None:
        raise click.UsageError("A model needs --endpoint URL and --model NAME.")
    completions = Completions(endpoint, api_key=files.read_key(key_file), timeout_s=300)
    if system in prompt.PRESETS:
        return Writer(completions, model, system=system, temperature=temperature)
    text = files.read_sketch(Path(system))
    return Writer(completions, model, system_text=text, temperature=temperature)


def _seeds(folder: Path) -> Sequence[Any]:
    from watercolour.reward import pool_import

    seeds = pool_import.load_seeds(folder)
    if not seeds:
        raise click.UsageError(
            "--with-seeds: the pool has none; add some: watercolour pool import."
        )
    return seeds


def _rollouts(run: Path, steps: str | None, subject: str, most: int) -> list[Proposal]:
    """Admitted sketches of a run that painted the subject, best reward first, spread evenly."""
    from watercolour.gallery import record
    from watercolour.reward import pool_writers
    from watercolour.reward.pool_writers import Proposal

    first, last = _span(steps)
    read = record.read(root.run_folder(run))
    found = [
        entry.rollout
        for entry in read.entries
        if entry.rollout.gate_passed
        and entry.rollout.sketch is not None
        and entry.rollout.subject == subject
        and first <= entry.rollout.step <= last
    ]
    if not found:
        known = sorted({entry.rollout.subject for entry in read.entries})
        raise click.UsageError(
            f"--rollouts {run}: no admitted sketch of {subject!r} in these steps; "
            f"the run painted {', '.join(known)}."
        )
    found.sort(key=lambda rollout: -(rollout.reward if rollout.reward is not None else -1.0))
    once = {rollout.sketch: rollout for rollout in reversed(found)}
    proposals = [
        Proposal(
            rollout.sketch or "",
            1,
            {
                "origin": "rollout",
                "source": f"{read.name} step {rollout.step} group {rollout.group} "
                f"rollout {rollout.index}",
            },
        )
        for rollout in reversed(once.values())
    ]
    return pool_writers.spread(proposals, most)


def _span(steps: str | None) -> tuple[int, int]:
    if steps is None:
        return 0, 2**31
    first, colon, last = steps.partition(":")
    if not (colon and first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
        raise click.UsageError(f"--steps {steps!r}: write it as FIRST:LAST, such as 0:4.")
    return int(first), int(last)


def _renderer(
    url: str | None, python: Path | None, allow_unsandboxed: bool
) -> AbstractContextManager[str]:
    from watercolour.local.painting import own_renderer

    if url is not None:
        return nullcontext(url)
    return own_renderer(python, slots=2, allow_unsandboxed=allow_unsandboxed)


def _progress(done: int, of: int) -> None:
    click.echo(f"{done}/{of} paintings", err=True)


def _tell_generated(folder: Path, done: Generated, count: int, json_: bool) -> None:
    short = len(done.added) < count
    if json_:
        root.print_json(
            {
                "pool": str(folder),
                "added": done.added,
                "refused": dict(done.refused),
                "short": short,
            }
        )
    else:
        click.echo(f"{folder}: {len(done.added)} paintings added of {done.proposals} sketches")
        for code, times in done.refused.most_common():
            click.echo(f"{times:4} {code}: {done.examples[code]}", err=True)
        if done.added:
            click.echo(f"Rate them: watercolour pool rate {folder}")
    if short:
        click.echo(
            f"{count - len(done.added)} are missing: the sketches ran out, or too many were "
            "refused. Give more --attempts, or another --seed.",
            err=True,
        )
        raise click.exceptions.Exit(root.FAULT)


@pool.command("critique")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("names", nargs=-1, metavar="[NAME]…")
@endpoint_options
@click.option("--critic-endpoint", metavar="URL", help="Of the critic, if it lives elsewhere.")
@click.option("--critic-model", metavar="NAME", help="A model that sees pictures; unset: --model.")
@click.option("--rounds", type=click.IntRange(1, 20), default=3, show_default=True)
@click.option("--painter-sees", is_flag=True, help="Show the painter its painting too.")
@click.option(
    "--system", default="ten-methods", show_default=True, help="Prompt preset, or a file."
)
@click.option("--temperature", type=click.FloatRange(0, 2), default=0.7, show_default=True)
@root.running_renderer
@root.renderer_options
@root.as_json
def critique(
    folder: Path,
    names: Sequence[str],
    endpoint: str | None,
    model: str | None,
    key_file: Path | None,
    critic_endpoint: str | None,
    critic_model: str | None,
    rounds: int,
    painter_sees: bool,
    system: str,
    temperature: float,
    renderer: str | None,
    renderer_python: Path | None,
    allow_unsandboxed: bool,
    json_: bool,
) -> None:
    """Let a model criticise paintings of the pool in FOLDER and another paint them again.

    Without a NAME, all that had no rounds yet. Every round is kept, with what was said, in
    FOLDER/rounds; the best of a painting's rounds is rated, the others are set aside.
    """
    import asyncio

    from watercolour.local import files
    from watercolour.reward import pool as pools
    from watercolour.reward import pool_critique, pool_subject
    from watercolour.score.completions import Completions

    writer = _writer(endpoint, model, key_file, system, temperature)
    assert endpoint is not None
    assert model is not None
    completions = writer.completions
    if critic_endpoint is not None:
        completions = Completions(critic_endpoint, api_key=files.read_key(key_file))
    critic = pool_critique.Critic(completions, critic_model or model)
    what = subject_of(folder, None) if (folder / pool_subject.FILE).exists() else ""
    brief = "" if isinstance(what, str) else what.brief
    studio = pool_critique.Studio(
        critic, writer, painter_sees=painter_sees, brief=brief, rounds=rounds
    )
    waiting = pool_critique.waiting(folder, pools.read_records(folder))
    if names:
        unknown = sorted(set(names) - {record.name for record in waiting})
        if unknown:
            raise click.UsageError(
                f"{unknown[0]!r} is not in {folder}, has no sketch, or had its rounds already."
            )
        waiting = [record for record in waiting if record.name in names]

    def show(story: pool_critique.Story) -> None:
        for each in story.rounds:
            click.echo(f"{story.name} round {each.number}: {each.outcome}: {each.why}", err=True)

    with _renderer(renderer, renderer_python, allow_unsandboxed) as url:
        work = pool_critique.refine(folder, waiting, studio, [url], show)
        stories = asyncio.run(_then_closed(work, completions, writer.completions))
    kept = [each for story in stories for each in story.rounds if each.outcome == "kept"]
    better = sum(each.number > 0 for each in kept)
    if json_:
        root.print_json(
            {
                "pool": str(folder),
                "paintings": len(stories),
                "improved": better,
                "rounds": [story.model_dump(mode="json") for story in stories],
            }
        )
    else:
        click.echo(f"{folder}: {len(stories)} paintings criticised, {better} became better")
