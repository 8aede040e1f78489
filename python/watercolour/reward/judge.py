"""The pairwise judge: a client of any OpenAI-compatible chat completion with images.

Each reference is compared in both orders. A call that fails in any way (no answer, an error, an
answer outside the schema) is a failed call and never a loss: its reference is dropped.
"""

from __future__ import annotations

import asyncio
import email.utils
import hashlib
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

import httpx

from watercolour import logs
from watercolour.api.rollout import Vote
from watercolour.reward import terms, verdict
from watercolour.reward.once import Once

log = logs.get(__name__)

#: Verdicts remembered; one is a letter and a key, so this is some 20 MB at most.
REMEMBERED = 65_536

#: Seconds before the second attempt of a failed call; doubled with each further one.
BACKOFF_SECONDS = 1.0

Sleep = Callable[[float], Awaitable[None]]


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
    """

    votes: tuple[Vote, ...]
    failures: tuple[str, ...] = ()


class CallFailed(Exception):
    """One call brought no verdict."""


class Judge:
    """Compares paintings with references; holds connections and remembers verdicts."""

    def __init__(
        self,
        url: str,
        *,
        model: str,
        attempts: int = 3,
        timeout_s: float = 120.0,
        api_key: str | None = None,
        concurrency: int = 16,
        criteria: str = verdict.CRITERIA,
        both_orders: bool = True,
        remember: bool = True,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Connect to nothing yet.

        Args:
            url: base URL of the API, with or without its ``/v1``.
            model: the model's name there.
            attempts: tries of a call that ends in a lost connection, a time-out or a 5xx.
            timeout_s: limit of one try, and of all the waiting that a rate limit asks of a call.
            api_key: sent as a bearer token; never logged.
            concurrency: calls under way at once; a call that a rate limit holds back keeps its
                place, so that the load falls by itself.
            criteria: the system message.
            both_orders: ask again with the pictures swapped; without it the preference that the
                judge has for a place goes into the reward.
            remember: ask once for an equal comparison. Equal ones at the same time share a call
                in any case.
            sleep: waits some seconds; a test's own clock.
        """
        self.model = model
        self._endpoint = endpoint(url)
        self._attempts = attempts
        self._timeout_s = timeout_s
        self._criteria = criteria
        self._criteria_hash = hashlib.sha256(criteria.encode()).hexdigest()[:16]
        self._sleep = sleep
        self._places = asyncio.Semaphore(concurrency)
        self._orders = (True, False) if both_orders else (True,)
        self._verdicts: Once[str] = Once(REMEMBERED if remember else 0)
        self._http = httpx.AsyncClient(
            timeout=timeout_s,
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            limits=httpx.Limits(max_connections=concurrency),
            trust_env=False,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def compare(
        self, painting: bytes, references: Sequence[Picture], *, key: str | None = None
    ) -> Comparison:
        """Ask about every reference in both orders; raises nothing for a failed call.

        Args:
            painting: PNG of the rollout.
            references: the draw.
            key: what equal paintings share, such as the hash of their sketch; the hash of the
                painting's bytes if None.
        """
        key = key or hashlib.sha256(painting).hexdigest()
        ours = verdict.data_url(painting)
        answers = await asyncio.gather(
            *(
                self._answer(key, ours, reference, ours_first=ours_first)
                for reference in references
                for ours_first in self._orders
            )
        )
        asked = len(self._orders)
        votes = tuple(
            self._vote(reference, [winner for winner, _ in answers[asked * n : asked * (n + 1)]])
            for n, reference in enumerate(references)
        )
        return Comparison(votes, tuple(dict.fromkeys(why for _, why in answers if why)))

    def _vote(self, reference: Picture, winners: Sequence[str | None]) -> Vote:
        first, second = winners[0], winners[1] if len(winners) > 1 else None
        if len(self._orders) == 1:
            value = None if first is None else float(first == "A")
        else:
            value = terms.vote_value(first, second)
        return Vote(reference=reference.name, first=first, second=second, value=value)

    async def _answer(
        self, key: str, ours: str, reference: Picture, *, ours_first: bool
    ) -> tuple[str | None, str]:
        """The winner ('A' or 'B') and an empty string, or None and why the call failed."""

        async def ask() -> str:
            theirs = verdict.data_url(reference.painting)
            a, b = (ours, theirs) if ours_first else (theirs, ours)
            async with self._places:
                return await self._ask(verdict.request(self.model, self._criteria, a, b))

        asked = (key, reference.name, self._criteria_hash, self.model, ours_first)
        try:
            return await self._verdicts.get(asked, ask), ""
        except CallFailed as failure:
            log.warning("a call of the judge failed: %s", failure)
            return None, str(failure)

    async def _ask(self, body: dict[str, object]) -> str:
        """One verdict, with retries.

        Raises:
            CallFailed: the attempts are used up, the rate limit outlasts ``timeout_s``, the
                request was refused, or the answer does not follow the schema.
        """
        failed = throttled = 0
        waited = 0.0
        while True:
            try:
                async with asyncio.timeout(self._timeout_s):
                    response = await self._http.post(self._endpoint, json=body)
            except (httpx.HTTPError, TimeoutError) as error:
                failed, why = failed + 1, f"{type(error).__name__} {error}".strip()
                delay = backoff(failed)
            else:
                if response.status_code == 200:
                    return winner(response)
                why = f"HTTP {response.status_code}"
                asked_for = retry_after(response)
                if response.status_code == 429 or asked_for is not None:
                    # Waiting as asked is no failed attempt, but it has an end.
                    throttled += 1
                    delay = asked_for if asked_for is not None else backoff(throttled)
                    waited += delay
                    if waited > self._timeout_s:
                        raise CallFailed(f"{why}, rate limit outlasted {self._timeout_s:g} s")
                elif response.status_code >= 500 or response.status_code == 408:
                    failed += 1
                    delay = backoff(failed)
                else:
                    raise CallFailed(f"{why}: {response.text[:200]}")
            if failed >= self._attempts:
                raise CallFailed(f"{why}, after {failed} attempts")
            await self._sleep(delay * random.uniform(1.0, 1.2))


def endpoint(url: str) -> str:
    """The address of chat completions below a base URL; ``/v1`` is added if no path is given."""
    base = url.rstrip("/")
    if base.endswith("/chat/completions"):
        return base
    return f"{base}/chat/completions" if urlsplit(base).path else f"{base}/v1/chat/completions"


def winner(response: httpx.Response) -> str:
    """The winner in a chat completion.

    Raises:
        CallFailed: the answer is no chat completion, or its verdict breaks the schema.
    """
    try:
        content = response.json()["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
        raise CallFailed("the answer is not a chat completion") from error
    found = verdict.parse(content)
    if found is None:
        raise CallFailed(f"the verdict breaks the schema: {str(content)[:120]!r}")
    return found.winner


def backoff(attempt: int) -> float:
    """Seconds to wait after the n-th failure, from 1: doubled each time."""
    return BACKOFF_SECONDS * 2.0 ** (attempt - 1)


def retry_after(response: httpx.Response) -> float | None:
    """Seconds that the server asks to wait (RFC 9110 §10.2.3); None when it does not say."""
    text = response.headers.get("Retry-After", "").strip()
    if text.isdecimal():
        return float(text)
    if not text:
        return None
    try:
        when = email.utils.parsedate_to_datetime(text)
        # By the server's own clock, when it shows it: ours may be off.
        sent = response.headers.get("Date")
        now = email.utils.parsedate_to_datetime(sent) if sent else email.utils.localtime()
        return max(0.0, (when - now).total_seconds())
    except (ValueError, TypeError):
        return None
