"""Commands that judge a pool: rate by people, calibrate against a policy."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import AsyncGenerator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from watercolour.cli import root
from watercolour.cli.pools import pool

if TYPE_CHECKING:
    from watercolour.api.spec import TierShares
    from watercolour.local.calibrating import Named
    from watercolour.reward.calibration import Calibration
    from watercolour.reward.pool_writers import Proposal


@pool.command("rate")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--rater", default="", help="Who rates; unset: the page asks.")
@click.option("--pairs", is_flag=True, help="Begin with pairs instead of single paintings.")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="0 takes a free one.")
@click.option("--no-open", is_flag=True, help="Do not open the page in a browser.")
@click.option("--announce", type=click.Path(path_type=Path), help="File that receives {url, pid}.")
def rate(
    folder: Path, rater: str, pairs: bool, port: int, no_open: bool, announce: Path | None
) -> None:
    """Open a page on this machine that rates the paintings of the pool in FOLDER.

    One painting at a time, with the keys 1, 2, 3 for meh, okay, love; or two beside each other.
    Every key press is saved at once. Stop it with Ctrl-C and go on whenever you like.
    """
    from watercolour import service
    from watercolour.gallery import app as application
    from watercolour.gallery import guard
    from watercolour.reward import rating_book, rating_log

    who = rating_log.checked_rater(rater) if rater else ""
    # Whatever is wrong with the pool is told here and not on the page.
    rating_book.write(folder)
    token = guard.new_token()
    app = application.create_app(folder, token, rater=who)
    bound = service.listen("127.0.0.1", port)
    url = f"http://127.0.0.1:{bound.getsockname()[1]}/rate?token={token}{'#pairs' * pairs}"
    click.echo(f"Rate {folder} at {url}\nCtrl-C ends it; everything is saved as you go.")
    if announce is not None:
        service.announce(announce, url)
    if not no_open and sys.stdout.isatty():
        click.launch(url)
    try:
        service.serve(
            app,
            Namespace(host="127.0.0.1", port=port, announce=None),
            grace_seconds=1,
            bound=bound,
        )
    except KeyboardInterrupt:
        click.echo("")
    _tell_rated(folder)


def _tell_rated(folder: Path) -> None:
    from watercolour.reward import pool as pools
    from watercolour.reward import rating_book

    counts = rating_book.tally(pools.read_records(folder))
    unrated = counts.pop(None)
    shown = ", ".join(f"{count} {tier}" for tier, count in counts.items())
    click.echo(f"{folder}: {shown}; {unrated} wait to be rated")


@pool.command("calibrate")
@click.argument("folder", default="builtin:flowers")
@click.option("--policy", default="builtin:tiny", show_default=True, help="Id, folder or builtin.")
@click.option(
    "--rollouts", type=click.Path(path_type=Path), help="Take a run's first step instead."
)
@click.option(
    "--painting",
    "pictures",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Take this picture instead; again for more.",
)
@click.option("--subject", help="What the policy paints; unset: what the pool does.")
@click.option("--paintings", "count", type=click.IntRange(2, 2_000), default=16, show_default=True)
@click.option("--per-tier", type=click.IntRange(1, 50), default=3, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--shares", default="0.5,0.5,0", show_default=True, help="Draw: love,okay,meh.")
@click.option("--judge-endpoint", metavar="URL", help="Unset: the embedded judge.")
@click.option("--judge-model", metavar="NAME", help="The judge's name at its endpoint.")
@click.option("--judge-key-file", type=click.Path(path_type=Path), help="Its bearer token.")
@root.running_renderer
@root.renderer_options
@root.as_json
def calibrate(
    folder: str,
    policy: str,
    rollouts: Path | None,
    pictures: Sequence[Path],
    subject: str | None,
    count: int,
    per_tier: int,
    seed: int,
    shares: str,
    judge_endpoint: str | None,
    judge_model: str | None,
    judge_key_file: Path | None,
    renderer: str | None,
    renderer_python: Path | None,
    allow_unsandboxed: bool,
    json_: bool,
) -> None:
    """Compare paintings of the untrained policy with the pool in FOLDER, and say what to change.

    It should win between 25 and 75 % of its comparisons: without wins there is nothing to learn
    from, without losses nothing to learn.
    """
    import asyncio

    from watercolour.local import calibrating, files
    from watercolour.reward import calibration, pool_build
    from watercolour.reward.judge import Judge
    from watercolour.score.completions import Completions

    wanted = _shares(shares)
    references = pool_build.check(folder)
    if judge_endpoint is not None and judge_model is None:
        raise click.UsageError("--judge-endpoint needs --judge-model.")
    key = files.read_key(judge_key_file)

    def show(done: int, of: int) -> None:
        if done % 4 == 0 or done == of:
            click.echo(f"{done}/{of} compared", err=True)

    async def compared(found: Sequence[Named], url: str) -> list[calibration.Bout]:
        completions = Completions(url, api_key=key)
        try:
            return await calibrating.bouts(
                references,
                found,
                Judge(completions, model=judge_model or "embedded"),
                per_tier=per_tier,
                seed=seed,
                progress=show,
            )
        finally:
            await completions.aclose()

    with ExitStack() as stack:
        if rollouts is not None or pictures:
            found = _pictures(pictures) if pictures else _first_step(rollouts, count)
            given = "painting" if pictures else "rollouts"
            calibrating.require_policys(references, found, given, twins=bool(pictures))
        else:
            asked = subject or _subject(folder)
            found = _painted(
                stack,
                policy,
                asked,
                seed,
                references.card.canvas,
                count,
                renderer,
                renderer_python,
                allow_unsandboxed,
            )
        url = judge_endpoint or stack.enter_context(calibrating.own_judge())
        bouts = asyncio.run(compared(found, url))
    _tell(folder, calibration.calibrate(bouts, wanted), len(found), json_)


def _shares(text: str) -> TierShares:
    from pydantic import ValidationError

    from watercolour.api.spec import TierShares

    try:
        love, okay, meh = (float(part) for part in text.split(","))
        return TierShares(love=love, okay=okay, meh=meh)
    except (ValueError, ValidationError) as error:
        raise click.UsageError(
            f"--shares {text!r}: write three shares that sum to 1, such as 0.5,0.25,0.25."
        ) from error


def _subject(folder: str) -> str:
    """The pool's subject; of several the one it has most of."""
    from collections import Counter

    from watercolour.reward import pool as pools

    records = pools.read_records(pools.locate(folder))
    return Counter(record.subject for record in records if record.drawn).most_common(1)[0][0]


def _pictures(paths: Sequence[Path]) -> list[Named]:
    from watercolour.reward import picture_file

    return [(str(path), picture_file.png(picture_file.read(path))) for path in paths]


def _first_step(run: Path | None, count: int) -> list[Named]:
    """Paintings of a run's first steps, while its policy was as good as untrained."""
    from watercolour.gallery import record

    assert run is not None
    read = record.read(root.run_folder(run))
    return [
        (entry.painting, (read.folder / entry.painting).read_bytes())
        for entry in read.entries
        if entry.rollout.gate_passed and entry.painting is not None
    ][:count]


def _painted(
    stack: ExitStack,
    policy: str,
    subject: str,
    seed: int,
    canvas: int,
    count: int,
    renderer: str | None,
    python: Path | None,
    allow_unsandboxed: bool,
) -> list[Named]:
    import asyncio

    from watercolour.api.errors import InputError
    from watercolour.api.reasons import Reason
    from watercolour.local import calibrating, untrained
    from watercolour.local.painting import own_renderer

    url = renderer or stack.enter_context(
        own_renderer(python, slots=2, allow_unsandboxed=allow_unsandboxed)
    )

    async def proposals() -> AsyncGenerator[Proposal]:
        for each in untrained.replies(policy, subject, seed):
            yield each

    found, tried = asyncio.run(
        calibrating.painted(proposals(), url, canvas=canvas, count=count, attempts=8 * count)
    )
    click.echo(f"{policy}: {len(found)} of {tried} sketches were admitted", err=True)
    if len(found) < 2:
        raise InputError(
            Reason.POLICY_TOO_WEAK,
            f"--policy {policy}: the gate admits {len(found)} of {tried} sketches of {subject}.",
            remedy="Fine-tune it on sketches first (watercolour sft).",
            field="policy",
            value=policy,
        )
    return found


def _tell(folder: str, found: Calibration, paintings: int, json_: bool) -> None:
    from watercolour.gallery.words import percent
    from watercolour.reward.ratings import TIERS

    if json_:
        told: dict[str, Any] = {
            "pool": folder,
            "paintings": paintings,
            "wins": found.wins,
            "low": found.low,
            "high": found.high,
            "by_tier": dict(found.by_tier),
            "comparisons": dict(found.bouts),
            "shares": found.shares.model_dump(),
            "fits": found.fits,
            "sure": found.sure,
            "better_shares": found.better.model_dump() if found.better else None,
            "advice": list(found.advice),
        }
        root.print_json(told)
    else:
        band = (
            f" (95 %: {percent(found.low)} to {percent(found.high)})"
            if found.low is not None
            else ""
        )
        drawn = ", ".join(f"{getattr(found.shares, tier):g} {tier}" for tier in TIERS)
        click.echo(f"{paintings} paintings win {percent(found.wins)}{band} against {drawn}")
        for tier in TIERS:
            click.echo(
                f"  {tier:5} {percent(found.by_tier[tier]):>5} of {found.bouts[tier]} comparisons"
            )
        for line in found.advice:
            click.echo(line)
    if not found.fits:
        raise click.exceptions.Exit(root.FAULT)
