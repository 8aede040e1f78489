"""The judge that a specification asks for: endpoint, breaker, budget, memory and stand-in."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from watercolour.api.spec import RunSpec
from watercolour.reward.judge import Judge
from watercolour.reward.verdict import CRITERIA
from watercolour.reward.verdict_cache import VerdictFile, Verdicts
from watercolour.score.breaker import Breaker
from watercolour.score.budget import Budget
from watercolour.score.completions import Completions

#: The embedded judge's name for itself.
EMBEDDED = "embedded"


@asynccontextmanager
async def opened(
    spec: RunSpec,
    url: str,
    *,
    key: str | None = None,
    verdicts: Path | None = None,
    stand_in: str | None = None,
) -> AsyncGenerator[Judge]:
    """The judge, with everything that it holds open.

    The embedded judge keeps no verdicts beyond the process: another version of it would judge
    otherwise, and its name does not tell.

    Args:
        spec: the run's.
        url: base URL of the judge.
        key: its bearer token.
        verdicts: file for verdicts and what was spent; None keeps both in memory alone.
        stand_in: base URL of an embedded judge, which the specification may ask for as a fallback.

    Raises:
        InputError: the file can be neither opened nor made.
    """
    wanted = spec.judge
    embedded = wanted.backend == "embedded"
    async with AsyncExitStack() as stack:
        file = None
        if verdicts is not None and not embedded:
            file = VerdictFile(verdicts, wanted.cache.max_verdicts)
            stack.push_async_callback(file.aclose)
        kept: Verdicts | None = file
        if wanted.cache.url is not None and not embedded:
            # Imported here: most runs need no client of it.
            from watercolour.reward.verdict_server import VerdictServer

            kept = VerdictServer(wanted.cache.url)
            stack.push_async_callback(kept.aclose)
        calls, tokens = (0, 0) if file is None else await file.spent()
        completions = Completions(
            url,
            attempts=wanted.attempts,
            timeout_s=wanted.timeout_seconds,
            concurrency=wanted.concurrency,
            api_key=key,
            breaker=Breaker(wanted.breaker.failures, wanted.breaker.cooldown_seconds),
            budget=Budget(wanted.budget.calls, wanted.budget.tokens, calls, tokens),
            spend=None if file is None else file.spend,
        )
        stack.push_async_callback(completions.aclose)
        fallback = None
        if wanted.fallback == EMBEDDED and stand_in is not None:
            others = Completions(stand_in, concurrency=wanted.concurrency)
            stack.push_async_callback(others.aclose)
            fallback = Judge(others, model=EMBEDDED)
        yield Judge(
            completions,
            model=wanted.model,
            criteria=wanted.criteria or CRITERIA,
            both_orders=wanted.order == "both",
            remember=wanted.cache.enabled,
            verdicts=kept,
            fallback=fallback,
        )
