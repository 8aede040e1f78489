"""A client of the scorer. It returns a score or raises; it never invents a number."""

from __future__ import annotations

import asyncio
import base64
import math
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import httpx

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason

#: Seconds before the second attempt; doubled with each further one, unless the scorer says.
BACKOFF_SECONDS = 1.0
#: Longest wait that a Retry-After may ask for, in seconds.
MAX_WAIT_SECONDS = 60.0


@dataclass(frozen=True)
class Score:
    """The scorer's answer for one painting.

    Attributes:
        mu: mean on HPSv3's scale, unbounded.
        sigma: its deviation.
        score: logistic of mu/4, 0 to 1.
        backend, version: what computed it.
        marks: by name, 0 to 1 each; those that were asked for.
    """

    mu: float
    sigma: float
    score: float
    backend: str
    version: str
    marks: Mapping[str, float] = field(default_factory=dict[str, float])


class ScoreClient:
    """Connections to one scorer."""

    def __init__(
        self,
        url: str,
        *,
        attempts: int = 3,
        timeout_s: float = 90.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Connect to nothing yet.

        Args:
            url: base URL, without ``/v1``.
            attempts: tries of one score.
            timeout_s: limit of one try.
            sleep: waits some seconds; a test's own clock.
            transport: httpx transport instead of the network.
        """
        self._attempts = attempts
        self._sleep = sleep
        self._http = httpx.AsyncClient(
            base_url=url.rstrip("/"), timeout=timeout_s, trust_env=False, transport=transport
        )

    async def __aenter__(self) -> ScoreClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def score(self, painting: bytes, prompt: str, marks: Sequence[str] = ()) -> Score:
        """The quality of a painting.

        Args:
            painting: PNG.
            prompt: what it is scored for.
            marks: of ``api.terms.MARKS``; only the backend vlm-mark gives any.

        Raises:
            InfrastructureError: no attempt brought a score (ScorerUnavailable).
        """
        body: dict[str, Any] = {
            "painting": base64.b64encode(painting).decode("ascii"),
            "prompt": prompt,
        }
        if marks:
            body["marks"] = list(marks)
        why, attempt = "no attempt was made", 0
        for attempt in range(1, self._attempts + 1):
            delay = BACKOFF_SECONDS * 2.0 ** (attempt - 1)
            try:
                response = await self._http.post("/v1/score", json=body)
                if response.is_success:
                    return parse(response, marks)
                why = f"HTTP {response.status_code}: {response.text[:200]}"
                if 400 <= response.status_code < 500 and response.status_code not in (408, 429):
                    break  # the same request will not be better another time
                delay = retry_after(response) or delay
            except httpx.HTTPError as error:
                why = f"{type(error).__name__} {error}".strip()
            except ValueError as error:
                why = str(error)
            if attempt < self._attempts:
                await self._sleep(min(delay, MAX_WAIT_SECONDS) * random.uniform(1.0, 1.2))
        raise InfrastructureError(
            Reason.SCORER_UNAVAILABLE,
            f"no score from {self._http.base_url} after {attempt} attempts: {why}.",
            remedy="See the scorer's /readyz and its log.",
        )


def parse(response: httpx.Response, marks: Sequence[str] = ()) -> Score:
    """The score in an answer.

    Args:
        response: the answer.
        marks: what it must carry.

    Raises:
        ValueError: a field or a mark is missing, or a number is not finite.
    """
    try:
        found = response.json()
        score = Score(
            float(found["mu"]),
            float(found["sigma"]),
            float(found["score"]),
            str(found["backend"]),
            str(found["version"]),
            {name: float(found["marks"][name]) for name in marks},
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"the scorer's answer is malformed: {response.text[:200]}") from error
    if not all(map(math.isfinite, (score.mu, score.sigma, score.score, *score.marks.values()))):
        raise ValueError(f"the scorer's answer is not finite: {response.text[:200]}")
    return score


def retry_after(response: httpx.Response) -> float | None:
    """Seconds that the scorer asks to wait; None when it names no number."""
    text = response.headers.get("Retry-After", "").strip()
    return float(text) if text.isdecimal() else None
