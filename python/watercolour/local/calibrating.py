"""Calibrate a pool on this machine: an untrained policy's paintings meet those of each tier."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from watercolour.api.errors import InfrastructureError, InputError
from watercolour.api.reasons import Reason
from watercolour.local.processes import Service, Supervisor
from watercolour.local.run import START_SECONDS
from watercolour.render.dispatcher import Dispatcher
from watercolour.reward import pool as pools
from watercolour.reward import pool_intake
from watercolour.reward.calibration import Bout
from watercolour.reward.judge import Judge
from watercolour.reward.pool import Pool
from watercolour.reward.pool_intake import Admitted
from watercolour.reward.pool_writers import Proposal
from watercolour.reward.ratings import TIERS

#: Comparisons under way at once.
AT_ONCE = 4

#: A painting and its name.
Named = tuple[str, bytes]


@contextmanager
def own_judge() -> Generator[str]:
    """The embedded judge for the length of the block; its URL.

    Raises:
        WatercolourError: it could not be started.
    """
    command = (sys.executable, "-m", "watercolour.score.service", "--backend", "embedded")
    with (
        TemporaryDirectory(prefix="watercolour-") as folder,
        Supervisor(Path(folder), kept=False) as supervisor,
    ):
        supervisor.start(Service("scorer", command))
        supervisor.wait_ready(["scorer"], START_SECONDS)
        yield supervisor.processes["scorer"].url
        supervisor.stop(["scorer"])


async def painted(
    proposals: AsyncGenerator[Proposal], url: str, *, canvas: int, count: int, attempts: int
) -> tuple[list[Named], int]:
    """The first ``count`` paintings that pass the gate; and how many sketches that took.

    Args:
        proposals: of the policy.
        url: of a renderer.
        canvas: side of the painting in pixels.
        count: paintings.
        attempts: most sketches.

    Raises:
        InfrastructureError: no renderer painted them.
    """
    found: list[Named] = []
    tried = 0
    async with Dispatcher([url]) as renderers:
        async for proposal in proposals:
            tried += 1
            outcome = await pool_intake.judge_by_gate(
                proposal.reply, seed=proposal.seed, canvas=canvas, renderers=renderers
            )
            if isinstance(outcome, Admitted):
                found.append((f"sketch {tried}", outcome.painted.painting))
            if len(found) == count or tried == attempts:
                break
    await proposals.aclose()
    return found, tried


def require_policys(pool: Pool, paintings: Sequence[Named], given: str, *, twins: bool) -> None:
    """See that the paintings can be the policy's: none is a reference, and none is there twice.

    A reference ties with itself and meets its own tier, so it would say nothing of the policy; a
    painting that is there twice counts twice, and the interval would be too narrow.

    Args:
        pool: the references.
        paintings: with the names of their files.
        given: by which option.
        twins: refuse equal pictures among them too. A policy may paint one picture twice, so this
            is for files that a person has named.

    Raises:
        InputError: one is not (InvalidInput).
    """
    rated = pool_intake.Seen((one.name, one.painting) for one in pool.references)
    seen: dict[str, str] = {}
    for name, painting in paintings:
        reference = rated.twin(painting)
        if reference is not None:
            raise _refused(
                given,
                name,
                f"is the pool's reference {reference}, or cannot be told from it, and no painting "
                "of the policy's",
                "Leave it out, and name paintings that the untrained policy has made.",
            )
        digest = pools.pixel_digest(painting)
        if twins and digest in seen:
            raise _refused(
                given,
                name,
                f"is the same picture as {seen[digest]}, pixel for pixel",
                "Name every painting once.",
            )
        seen.setdefault(digest, name)


def _refused(given: str, name: str, why: str, remedy: str) -> InputError:
    message = f"--{given} {name}: it {why}."
    return InputError(Reason.INVALID_INPUT, message, remedy=remedy, field=given, value=name)


async def bouts(
    pool: Pool,
    paintings: Sequence[Named],
    judge: Judge,
    *,
    per_tier: int,
    seed: int,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> list[Bout]:
    """Let every painting meet references of each tier, in both orders.

    Args:
        pool: the references.
        paintings: the policy's.
        judge: compares.
        per_tier: references of each tier that a painting meets.
        seed: of the draw.
        progress: called with paintings done and in all.

    Raises:
        InfrastructureError: not one comparison could be resolved (JudgeUnavailable).
    """
    free = asyncio.Semaphore(AT_ONCE)
    done = 0
    why: list[str] = []

    async def one(name: str, painting: bytes) -> list[Bout]:
        nonlocal done
        rng = random.Random(f"calibrate {seed} {name}")
        drawn = [
            reference
            for tier in TIERS
            for reference in rng.sample(pool.tier(tier), min(per_tier, len(pool.tier(tier))))
        ]
        async with free:
            met = await judge.compare(painting, drawn)
        done += 1
        progress(done, len(paintings))
        why.extend(met.failures)
        return [
            Bout(name, reference.tier, vote.value)
            for reference, vote in zip(drawn, met.votes, strict=True)
            if vote.value is not None
        ]

    found = await asyncio.gather(*(one(name, painting) for name, painting in paintings))
    flat = [bout for of_one in found for bout in of_one]
    if paintings and not flat:
        raise InfrastructureError(
            Reason.JUDGE_UNAVAILABLE,
            f"the judge resolved none of its comparisons: {why[0] if why else 'no references'}",
            remedy="Check --judge-endpoint, --judge-model and the key.",
        )
    return flat
