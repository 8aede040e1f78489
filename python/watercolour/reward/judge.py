"""The pairwise judge: a client of any OpenAI-compatible chat completion with images.

Each reference is compared in both orders. A call that fails in any way (no answer, an error, an
answer outside the schema) is a failed call and never a loss: its reference is dropped.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from watercolour import logs
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Vote
from watercolour.reward import terms, verdict, verdict_cache
from watercolour.reward.once import Once
from watercolour.reward.verdict_cache import Verdicts
from watercolour.score.budget import Reservation
from watercolour.score.completions import CallFailed, Completions, data_url

log = logs.get(__name__)

#: Verdicts remembered; one is a letter and a key, so this is some 20 MB at most.
REMEMBERED = 65_536

#: References whose data URL is kept: 70 kB each in the built-in pool.
ENCODED = 256


class Picture(Protocol):
    """A reference, as far as the judge cares."""

    @property
    def name(self) -> str:
        """Unique in its pool."""
        ...

    @property
    def painting(self) -> bytes:
        """PNG, JPEG or WebP."""
        ...


@dataclass(frozen=True)
class Comparison:
    """One painting against its draw.

    Attributes:
        votes: one a reference, in the draw's order.
        failures: why calls failed, one sentence each, without repeats.
        reason: why there may be no value: JudgeUnavailable, or JudgeBudgetSpent if that was it.
        model: who judged.
    """

    votes: tuple[Vote, ...]
    failures: tuple[str, ...] = ()
    reason: Reason = Reason.JUDGE_UNAVAILABLE
    model: str = ""

    @property
    def resolved(self) -> bool:
        """Whether any reference has a value."""
        return any(vote.value is not None for vote in self.votes)


@dataclass(frozen=True)
class _Call:
    """One call about one reference."""

    reference: Picture
    ours_first: bool
    key: str


@dataclass(frozen=True)
class _Asked:
    """What the calls about one painting share.

    Attributes:
        ours: the painting, as a data URL.
        kept: winners that were kept beyond this process, by key.
        reserved: calls of the budget.
        fresh: ask anew.
    """

    ours: str
    kept: dict[str, str]
    reserved: Reservation
    fresh: bool


class Judge:
    """Compares paintings with references and remembers the verdicts."""

    def __init__(
        self,
        completions: Completions,
        *,
        model: str,
        criteria: str = verdict.CRITERIA,
        both_orders: bool = True,
        remember: bool = True,
        verdicts: Verdicts | None = None,
        fallback: Judge | None = None,
    ) -> None:
        """Ask nothing yet.

        Args:
            completions: the endpoint, with its limits, breaker and budget.
            model: the model's name there.
            criteria: the system message.
            both_orders: ask again with the pictures swapped; without it the preference that the
                judge has for a place goes into the reward.
            remember: ask once for an equal comparison. Equal ones at the same time share a call
                in any case.
            verdicts: where they are kept beyond this process.
            fallback: who judges a painting of which this judge resolves nothing.
        """
        self.model = model
        self.completions = completions
        self.stood_in = 0
        self._criteria = criteria
        self.both_orders = both_orders
        self._orders = (True, False) if both_orders else (True,)
        self._remembered: Once[str] = Once(REMEMBERED if remember else 0)
        self._verdicts = verdicts if remember else None
        self._fallback = fallback

    async def compare(
        self,
        painting: bytes,
        references: Sequence[Picture],
        *,
        key: str | None = None,
        fresh: bool = False,
    ) -> Comparison:
        """Ask about every reference in both orders; raises nothing for a failed call.

        Args:
            painting: PNG of the rollout.
            references: the draw.
            key: what equal paintings share, such as the hash of their sketch; the hash of the
                painting's bytes if None.
            fresh: ask anew, and forget the verdicts: for checks of the judge itself, which the
                fallback must not answer.
        """
        calls = self._calls(key or hashlib.sha256(painting).hexdigest(), references)
        answers = await self._answers(painting, calls, fresh=fresh)
        asked = len(self._orders)
        winners = [None if isinstance(one, CallFailed) else one for one in answers]
        failures = [one for one in answers if isinstance(one, CallFailed)]
        votes = tuple(
            self._vote(reference, winners[asked * n : asked * (n + 1)])
            for n, reference in enumerate(references)
        )
        spent = any(one.spent for one in failures)
        found = Comparison(
            votes,
            tuple(dict.fromkeys(map(str, failures))),
            Reason.JUDGE_BUDGET_SPENT if spent else Reason.JUDGE_UNAVAILABLE,
            self.model,
        )
        if found.resolved or self._fallback is None or fresh:
            return found
        self.stood_in += 1
        return await self._fallback.compare(painting, references, key=key)

    def _calls(self, sketch: str, references: Sequence[Picture]) -> list[_Call]:
        return [
            _Call(
                reference,
                ours_first,
                verdict_cache.key(
                    sketch, reference.painting, self._criteria, self.model, ours_first=ours_first
                ),
            )
            for reference in references
            for ours_first in self._orders
        ]

    async def _answers(
        self, painting: bytes, calls: Sequence[_Call], *, fresh: bool
    ) -> list[str | CallFailed]:
        """Of each call the winner, 'A' or 'B', or why it failed."""
        unknown = [one.key for one in calls if fresh or one.key not in self._remembered]
        kept: dict[str, str] = {}
        if unknown and self._verdicts is not None and not fresh:
            kept = await self._verdicts.find(unknown)
        # A painting is compared with its whole draw or not at all.
        with self.completions.budget.reserving(len(unknown) - len(kept)) as reserved:
            if reserved is None:
                return [self.completions.spent()] * len(calls)
            ours = data_url(painting)
            asked = _Asked(ours, kept, reserved, fresh)
            return await asyncio.gather(*(self._answer(one, asked) for one in calls))

    async def _answer(self, call: _Call, asked: _Asked) -> str | CallFailed:
        made = False

        async def make() -> str:
            nonlocal made
            made = call.key not in asked.kept
            return await self._ask(call, asked) if made else asked.kept[call.key]

        try:
            winner = await (make() if asked.fresh else self._remembered.get(call.key, make))
        except CallFailed as failure:
            log.warning("a call of the judge failed: %s", failure)
            return failure
        if not made:
            self.completions.counts.remembered += 1
        return winner

    async def _ask(self, call: _Call, asked: _Asked) -> str:
        """One verdict.

        Raises:
            CallFailed: no answer, or one that does not follow the schema.
        """
        theirs = encoded(call.reference.painting)
        a, b = (asked.ours, theirs) if call.ours_first else (theirs, asked.ours)
        body = verdict.body(self.model, self._criteria, a, b)
        answer = await self.completions.ask(body, asked.reserved)
        found = verdict.parse(answer.content)
        if found is None:
            self.completions.counts.failed += 1
            raise CallFailed(f"the verdict breaks the schema: {answer.content[:120]!r}")
        if self._verdicts is not None and not asked.fresh:
            await self._verdicts.keep(call.key, found.winner)
        return found.winner

    def _vote(self, reference: Picture, winners: Sequence[str | None]) -> Vote:
        first, second = winners[0], winners[1] if len(winners) > 1 else None
        if len(self._orders) == 1:
            value = None if first is None else float(first == "A")
        else:
            value = terms.vote_value(first, second)
        return Vote(reference=reference.name, first=first, second=second, value=value)


@lru_cache(ENCODED)
def encoded(painting: bytes) -> str:
    """A reference's data URL; it is sent again and again."""
    return data_url(painting)
