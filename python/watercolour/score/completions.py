"""A client of any OpenAI-compatible chat completion: the judge and the marks ask through it.

A call ends in the text of the first choice or in :class:`CallFailed`. It is tried again when the
connection, the time or the server failed, and waits for as long as a rate limit asks.
"""

from __future__ import annotations

import asyncio
import base64
import email.utils
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx

#: Seconds before the second attempt of a failed call; doubled with each further one.
BACKOFF_SECONDS = 1.0

Sleep = Callable[[float], Awaitable[None]]


class CallFailed(Exception):
    """One call brought no answer that can be used."""


@dataclass(frozen=True)
class Completion:
    """What an endpoint answered.

    Attributes:
        content: text of the first choice.
        tokens: what the endpoint counted for prompt and answer; None when it does not say.
    """

    content: str
    tokens: int | None


class Completions:
    """Connections to one endpoint."""

    def __init__(
        self,
        url: str,
        *,
        attempts: int = 3,
        timeout_s: float = 120.0,
        api_key: str | None = None,
        concurrency: int = 16,
        sleep: Sleep = asyncio.sleep,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Connect to nothing yet.

        Args:
            url: base URL of the API, with or without its ``/v1``.
            attempts: tries of a call that ends in a lost connection, a time-out or a 5xx.
            timeout_s: limit of one try, and of all the waiting that a rate limit asks of a call.
            api_key: sent as a bearer token; never logged.
            concurrency: calls under way at once; a call that a rate limit holds back keeps its
                place, so that the load falls by itself.
            sleep: waits some seconds; a test's own clock.
            transport: httpx transport instead of the network.
        """
        self.endpoint = endpoint(url)
        self._attempts = attempts
        self._timeout_s = timeout_s
        self._sleep = sleep
        self._places = asyncio.Semaphore(concurrency)
        self._http = httpx.AsyncClient(
            timeout=timeout_s,
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            limits=httpx.Limits(max_connections=concurrency),
            trust_env=False,
            transport=transport,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def ask(self, body: dict[str, Any]) -> Completion:
        """One completion, with retries.

        Raises:
            CallFailed: the attempts are used up, the rate limit outlasts ``timeout_s``, the
                request was refused, or the answer is no chat completion.
        """
        async with self._places:
            return await self._ask(body)

    async def _ask(self, body: dict[str, Any]) -> Completion:
        failed = throttled = 0
        waited = 0.0
        while True:
            try:
                async with asyncio.timeout(self._timeout_s):
                    response = await self._http.post(self.endpoint, json=body)
            except (httpx.HTTPError, TimeoutError) as error:
                failed, why = failed + 1, f"{type(error).__name__} {error}".strip()
                delay = backoff(failed)
            else:
                if response.status_code == 200:
                    return completion(response)
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


def data_url(picture: bytes) -> str:
    """A picture as a URL that holds it: PNG, JPEG or WebP, by its first bytes."""
    kind = "jpeg" if picture[:2] == b"\xff\xd8" else "webp" if picture[8:12] == b"WEBP" else "png"
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode('ascii')}"


def completion(response: httpx.Response) -> Completion:
    """The first choice of a chat completion.

    Raises:
        CallFailed: the answer is no chat completion: HTML, JSON cut off, another shape.
    """
    try:
        found = response.json()
        content = found["choices"][0]["message"]["content"]
        usage = found.get("usage")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise CallFailed("the answer is not a chat completion") from error
    if not isinstance(content, str):
        raise CallFailed("the answer is not a chat completion: its content is no text")
    counted = usage.get("total_tokens") if isinstance(usage, dict) else None
    whole = isinstance(counted, int) and not isinstance(counted, bool) and counted >= 0
    return Completion(content, counted if whole else None)


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
