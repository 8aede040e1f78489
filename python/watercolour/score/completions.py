"""A client of any OpenAI-compatible chat completion: the judge and the marks ask through it.

A call ends in the text of the first choice or in :class:`CallFailed`. It is tried again when the
connection, the time or the server failed. A rate limit is waited out exactly as the server asks
and is no failed try. An endpoint that is away opens the breaker, and a spent budget ends every call
before it goes out.
"""

from __future__ import annotations

import asyncio
import base64
import email.utils
import json
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from watercolour.score.breaker import Breaker, State
from watercolour.score.budget import Budget, Reservation
from watercolour.score.posting import Connections, Poster, PostFailed, Reply

#: Seconds before the second attempt of a failed call; doubled with each further one.
BACKOFF_SECONDS = 1.0

#: Failed calls in a row after which an endpoint is left alone, and for how many seconds.
FAILURES, COOLDOWN_SECONDS = 8, 30.0

#: Answers for which the key or the address is to blame: no other call will fare better.
_MISDIRECTED = {
    401: "is the key right?",
    403: "may this key use that model?",
    404: "are the endpoint's address and the model's name right?",
}

Sleep = Callable[[float], Awaitable[None]]
#: Told of calls and tokens, to keep what was spent.
Spend = Callable[[int, int], Awaitable[None]]


class CallFailed(Exception):
    """One call brought no answer that can be used.

    Attributes:
        spent: because the budget is.
    """

    def __init__(self, message: str, *, spent: bool = False) -> None:
        super().__init__(message)
        self.spent = spent


@dataclass(frozen=True)
class Completion:
    """What an endpoint answered.

    Attributes:
        content: text of the first choice.
        tokens: what the endpoint counted for prompt and answer; None when it does not say.
    """

    content: str
    tokens: int | None


@dataclass
class Counts:
    """What became of the requests so far.

    Attributes:
        requests: sent, repeated ones included.
        refused: of these, held back by a rate limit.
        failed: calls that brought no answer that can be used.
        remembered: answers that needed no request; whoever remembers counts them.
    """

    requests: int = 0
    refused: int = 0
    failed: int = 0
    remembered: int = 0


class Completions:
    """Connections to one endpoint, with its breaker and the run's budget."""

    def __init__(
        self,
        url: str,
        *,
        attempts: int = 3,
        timeout_s: float = 120.0,
        api_key: str | None = None,
        concurrency: int = 16,
        breaker: Breaker | None = None,
        budget: Budget | None = None,
        spend: Spend | None = None,
        sleep: Sleep = asyncio.sleep,
        poster: Poster | None = None,
    ) -> None:
        """Connect to nothing yet.

        Args:
            url: base URL of the API, with or without its ``/v1``.
            attempts: tries of a call that ends in a lost connection, a time-out or a 5xx.
            timeout_s: limit of one try, and of all the waiting that a rate limit asks of a call.
            api_key: sent as a bearer token; never logged.
            concurrency: calls under way at once; a call that a rate limit holds back keeps its
                place, so that the load falls by itself.
            breaker: None opens after FAILURES, for COOLDOWN_SECONDS.
            budget: None has no limits.
            spend: keeps what was spent beyond this process.
            sleep: waits some seconds; a test's own clock.
            poster: brings the replies instead of the network.
        """
        self.endpoint = endpoint(url)
        self.counts = Counts()
        self.breaker = breaker or Breaker(FAILURES, COOLDOWN_SECONDS)
        self.budget = budget or Budget()
        self._attempts = attempts
        self._timeout_s = timeout_s
        self._spend = spend
        self._sleep = sleep
        self._places = asyncio.Semaphore(concurrency)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if api_key:
            headers["Authorization"] = f"Bearer {api_key}"
        self._poster = poster or Connections(self.endpoint, headers)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._poster.aclose()

    async def ask(
        self, body: dict[str, Any] | bytes, kept: Reservation | None = None
    ) -> Completion:
        """One completion, with retries.

        Args:
            body: the request, or its JSON.
            kept: calls of the budget that were reserved for this one and its sisters.

        Raises:
            CallFailed: the attempts are used up, the rate limit outlasts ``timeout_s``, the
                request was refused, the answer is no chat completion, the endpoint is being left
                alone, or the budget is spent.
        """
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            async with self._places:
                if not self.breaker.admits():
                    raise CallFailed(self._is_away())
                probe = self.breaker.state is State.HALF_OPEN
                attempts = 1 if probe else self._attempts
                try:
                    return await self._ask(data, attempts, kept or Reservation(0))
                finally:
                    if probe and self.breaker.state is State.HALF_OPEN:
                        self.breaker.abandoned()
        except CallFailed:
            self.counts.failed += 1
            raise

    def spent(self) -> CallFailed:
        """The failure that a spent budget is."""
        return CallFailed(f"the budget is spent: {self.budget}", spent=True)

    async def _ask(self, data: bytes, attempts: int, kept: Reservation) -> Completion:
        failed = throttled = 0
        waited = 0.0
        while True:
            found = await self._sent(data, kept)
            if isinstance(found, Completion):
                self.breaker.succeeded()
                return found
            if isinstance(found, str):
                failed, why = failed + 1, found
                delay = backoff(failed)
            else:
                why = f"HTTP {found.status}"
                asked_for = retry_after(found)
                if found.status == 429 or asked_for is not None:
                    # The server is there, and waiting as it asks is no failed try; but it has an
                    # end.
                    self.breaker.succeeded()
                    self.counts.refused += 1
                    throttled += 1
                    delay = asked_for if asked_for is not None else backoff(throttled)
                    waited += delay
                    if waited > self._timeout_s:
                        raise CallFailed(f"{why}, rate limit outlasted {self._timeout_s:g} s")
                elif found.status >= 500 or found.status == 408:
                    failed += 1
                    delay = backoff(failed)
                else:
                    raise self._refused(found)
            if failed >= attempts:
                self.breaker.failed()
                raise CallFailed(f"{why}, after {failed} attempts")
            await self._sleep(delay)
            if self.breaker.holds():
                raise CallFailed(f"{why}; {self._is_away()}")

    async def _sent(self, data: bytes, kept: Reservation) -> Completion | Reply | str:
        """One request: the completion, an answer of another kind, or why there is neither.

        Raises:
            CallFailed: the budget does not allow it, or the message holds no text.
        """
        if not self.budget.call(kept):
            raise self.spent()
        self.counts.requests += 1
        tokens = 0
        try:
            async with asyncio.timeout(self._timeout_s):
                reply = await self._poster.post(data)
            if reply.status != 200:
                return reply
            found = completion(reply.body)
            tokens = self.budget.answered(None if found is None else found.tokens)
            return found or "the answer is not a chat completion"
        except TimeoutError:
            return f"no answer in {self._timeout_s:g} s"
        except PostFailed as error:
            return str(error)
        finally:
            if self._spend is not None:
                await self._spend(1, tokens)

    def _refused(self, reply: Reply) -> CallFailed:
        advice = _MISDIRECTED.get(reply.status)
        if advice:
            # No other call will fare better, and a locked key is worse than a wrong one.
            self.breaker.failed()
        else:
            self.breaker.succeeded()
        said = " ".join(reply.text[:200].split())
        return CallFailed(f"HTTP {reply.status}: {said}{f' ({advice})' if advice else ''}")

    def _is_away(self) -> str:
        left = self.breaker.seconds_left
        return f"the endpoint is away; it is asked again in {left:.0f} s"


def endpoint(url: str) -> str:
    """The address of chat completions below a base URL; ``/v1`` is added if no path is given."""
    base = url.rstrip("/")
    if base.endswith("/chat/completions"):
        return base
    return f"{base}/chat/completions" if urlsplit(base).path else f"{base}/v1/chat/completions"


def data_url(picture: bytes) -> str:
    """A picture as a URL that holds it: PNG, JPEG or WebP, by its first bytes."""
    kind = "jpeg" if picture[:2] == b"\xff\xd8" else "webp" if picture[8:12] == b"WEBP" else "png"
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode('ascii')}"


def completion(body: bytes) -> Completion | None:
    """The first choice of a chat completion; None if the body is none: HTML, JSON cut off.

    Raises:
        CallFailed: it is one, and its message holds no text: the model declined.
    """
    try:
        found = json.loads(body)
        content = found["choices"][0]["message"]["content"]
        usage = found.get("usage")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return None
    if not isinstance(content, str):
        raise CallFailed("the answer's message holds no text")
    counted = usage.get("total_tokens") if isinstance(usage, dict) else None
    whole = isinstance(counted, int) and not isinstance(counted, bool) and counted >= 0
    return Completion(content, counted if whole else None)


def backoff(attempt: int) -> float:
    """Seconds to wait after the n-th failure, from 1: doubled each time, and a little by chance."""
    return BACKOFF_SECONDS * 2.0 ** (attempt - 1) * random.uniform(1.0, 1.2)


def retry_after(reply: Reply) -> float | None:
    """Seconds that the server asks to wait (RFC 9110 §10.2.3); None when it does not say."""
    text = reply.headers.get("Retry-After", "").strip()
    if text.isdecimal():
        return float(text)
    if not text:
        return None
    try:
        when = email.utils.parsedate_to_datetime(text)
        # By the server's own clock, when it shows it: ours may be off.
        sent = reply.headers.get("Date")
        now = email.utils.parsedate_to_datetime(sent) if sent else email.utils.localtime()
        return max(0.0, (when - now).total_seconds())
    except (ValueError, TypeError):
        return None
