"""Filling a pool: proposals in; paintings that passed the gate and are there once, out."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from watercolour.render.dispatcher import Dispatcher
from watercolour.reward import pool as pools
from watercolour.reward import pool_build, pool_intake
from watercolour.reward.pool import Card, Record
from watercolour.reward.pool_intake import Admitted, Refused
from watercolour.reward.pool_writers import Proposal

#: Proposals under way at once.
AT_ONCE = 4

Progress = Callable[[int, int], None]


@dataclass
class Generated:
    """What became of the proposals.

    Attributes:
        added: names of the new paintings, in order.
        refused: how often each reason was met; ``duplicate`` is one of them.
        examples: one sentence for each reason.
    """

    added: list[str] = field(default_factory=list[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    examples: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def proposals(self) -> int:
        """How many were looked at."""
        return len(self.added) + self.refused.total()


async def generate(
    folder: Path,
    subject: str,
    proposals: AsyncGenerator[Proposal],
    urls: Sequence[str],
    *,
    count: int,
    attempts: int,
    progress: Progress = lambda _done, _of: None,
) -> Generated:
    """Take proposals until the pool has ``count`` paintings more.

    Each painting is written as soon as it is admitted, so what is interrupted keeps what it has.
    They are admitted in the order of the proposals, so equal proposals make equal pools.

    Args:
        folder: a pool; it may be empty.
        subject: what the sketches were asked to paint.
        proposals: may be endless; closed at the end.
        urls: renderers.
        count: paintings to add.
        attempts: most proposals to look at.
        progress: called with paintings added and wanted.

    Raises:
        InputError: the pool is broken (InvalidPool), or the proposals' source refused.
        InfrastructureError: a renderer or the source failed for good, or the disk is full.
    """
    card, records = pools.read_card(folder), pools.read_records(folder)
    seen = pool_intake.seen(folder, records)
    stem = pool_intake.stem_of(subject)
    done = Generated()
    async with Dispatcher(urls) as renderers:
        try:
            while len(done.added) < count and done.proposals < attempts:
                wanted = min(AT_ONCE, attempts - done.proposals, 2 * (count - len(done.added)))
                batch = await _next(proposals, wanted)
                if not batch:
                    break
                outcomes = await _looked_at(batch, card, renderers)
                for proposal, outcome in zip(batch, outcomes, strict=True):
                    if len(done.added) == count:
                        break
                    _take(folder, card, subject, stem, proposal, outcome, seen, done)
                progress(len(done.added), count)
        finally:
            await proposals.aclose()
    return done


async def _next(proposals: AsyncGenerator[Proposal], wanted: int) -> list[Proposal]:
    batch: list[Proposal] = []
    while len(batch) < wanted:
        try:
            batch.append(await anext(proposals))
        except StopAsyncIteration:
            break
    return batch


async def _looked_at(
    batch: Sequence[Proposal], card: Card, renderers: Dispatcher
) -> list[Admitted | Refused]:
    looks = (
        pool_intake.judge_by_gate(
            each.reply, seed=each.seed, canvas=card.canvas, renderers=renderers
        )
        for each in batch
    )
    return await asyncio.gather(*looks)


def _take(
    folder: Path,
    card: Card,
    subject: str,
    stem: str,
    proposal: Proposal,
    outcome: Admitted | Refused,
    seen: pool_intake.Seen,
    done: Generated,
) -> None:
    """Add the painting, or count why not."""
    if isinstance(outcome, Admitted):
        twin = seen.twin(outcome.painted.painting)
        if twin is not None:
            outcome = Refused("duplicate", f"It looks like {twin}.")
    if isinstance(outcome, Refused):
        done.refused[outcome.code] += 1
        done.examples.setdefault(outcome.code, outcome.message)
        return
    painted = outcome.painted
    record = Record(
        name=f"{stem}_001",
        subject=subject,
        seed=proposal.seed,
        **pool_build.facts(outcome.sketch, painted),  # pyright: ignore[reportArgumentType]
        **proposal.facts,
    )
    added = pool_intake.add(folder, record, painted.painting, outcome.sketch)
    if not card.versions and not done.added:
        pool_build.write_card(folder, card.model_copy(update={"versions": painted.versions}))
    seen.add(added.name, painted.painting)
    done.added.append(added.name)
