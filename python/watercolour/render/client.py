"""Ask one or several renderers to paint. No browser driver is needed here."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import httpx

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Violation
from watercolour.render.result import Painted, SketchFault

__all__ = ["NotTaken", "Painted", "RenderClient", "SketchFault"]

#: Seconds in which a renderer has to accept a connection.
CONNECT_SECONDS = 5.0

#: Seconds that an answer may take beyond the render's own deadline.
SLACK_SECONDS = 75.0

#: Reasons worth one more attempt, on another renderer if there is one.
_AGAIN = (Reason.RENDERER_UNAVAILABLE, Reason.BROWSER_CRASHED, Reason.RENDER_DEADLINE)


class NotTaken(InfrastructureError):
    """The renderer did not take the job: it is gone, or drains. Nothing of it has been done."""


@dataclass
class _Renderer:
    url: str
    busy: int = 0
    rests_until: float = 0.0
    failures: int = field(default=0)


class RenderClient:
    """Sends each job to the least busy renderer, waits while all are busy, tries twice.

    Args:
        urls: base addresses of the renderers.
        wait_s: how long a job may wait for a free slot before it counts as RendererUnavailable.
    """

    def __init__(self, urls: Iterable[str], *, wait_s: float = 300.0) -> None:
        self._renderers = [_Renderer(url.rstrip("/")) for url in urls]
        if not self._renderers:
            raise ValueError("RenderClient needs at least one URL")
        self._wait_s = wait_s
        self._http = httpx.AsyncClient(
            timeout=None, limits=httpx.Limits(max_connections=None), trust_env=False
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def load(self) -> dict[str, dict[str, Any]]:
        """``/v1/load`` of every renderer that answers, by URL."""
        found: dict[str, dict[str, Any]] = {}
        for renderer in self._renderers:
            try:
                answer = await self._http.get(f"{renderer.url}/v1/load", timeout=5)
                found[renderer.url] = answer.json()
            except (httpx.HTTPError, ValueError):
                continue
        return found

    async def render(
        self,
        sketch: str,
        *,
        seed: int,
        size: int | None = None,
        deadline_s: float = 60.0,
        cpu_budget_s: float = 20.0,
        fresh: bool = False,
    ) -> Painted:
        """Paint one sketch.

        Args:
            sketch: JavaScript that has passed the static gate.
            seed: seeds every source of chance in the sketch.
            size: side of the painting in pixels; None keeps the sketch's own canvas.
            deadline_s: wall-clock limit of the render, waiting for a slot excluded.
            cpu_budget_s: CPU seconds of the browser that the sketch may use.
            fresh: paint again even if the renderer remembers the painting.

        Raises:
            SketchFault: the sketch is at fault.
            NotTaken: no renderer took the job, and none has begun it.
            InfrastructureError: RendererUnavailable, RenderDeadline, BrowserCrashed or
                SandboxUnavailable after a second attempt; InternalError for a request that no
                renderer understands.
        """
        body: dict[str, Any] = {
            "sketch": sketch,
            "seed": seed,
            "deadline_s": float(deadline_s),
            "cpu_budget_s": float(cpu_budget_s),
            "fresh": fresh,
        }
        if size is not None:
            body["size"] = size
        try:
            return await self._attempt(body, deadline_s + SLACK_SECONDS, avoid=None)
        except _Failed as failed:
            alone = isinstance(failed.error, NotTaken) and len(self._renderers) == 1
            if failed.error.reason not in _AGAIN or alone:
                raise failed.error from failed
            first = failed
        try:
            return await self._attempt(body, deadline_s + SLACK_SECONDS, avoid=first.renderer)
        except _Failed as failed:
            raise failed.error from failed

    def _pick(self, avoid: _Renderer | None) -> _Renderer:
        now = time.monotonic()
        return min(
            self._renderers,
            key=lambda each: (each is avoid, each.rests_until > now, each.failures, each.busy),
        )

    async def _attempt(
        self, body: dict[str, Any], timeout: float, *, avoid: _Renderer | None
    ) -> Painted:
        """One answer that is not "busy".

        Raises:
            SketchFault: the sketch is at fault.
            _Failed: the infrastructure is.
        """
        give_up = time.monotonic() + self._wait_s
        while True:
            renderer = self._pick(avoid)
            answer = await self._post(renderer, body, timeout)
            if answer.status_code != 429:
                return _read(renderer, answer)
            now = time.monotonic()
            renderer.rests_until = now + min(_retry_after(answer), 0.1)
            if now > give_up:
                raise _Failed(
                    renderer,
                    InfrastructureError(
                        Reason.RENDERER_UNAVAILABLE,
                        f"all renderers were busy for {self._wait_s:g} s.",
                    ),
                )
            if all(each.rests_until > now for each in self._renderers):
                await asyncio.sleep(min(each.rests_until for each in self._renderers) - now)

    async def _post(
        self, renderer: _Renderer, body: dict[str, Any], timeout: float
    ) -> httpx.Response:
        renderer.busy += 1
        limits = httpx.Timeout(timeout, connect=CONNECT_SECONDS)
        try:
            answer = await self._http.post(f"{renderer.url}/v1/render", json=body, timeout=limits)
            renderer.failures = 0
            return answer
        except httpx.HTTPError as error:
            renderer.failures += 1
            unmet = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
            raise _Failed(
                renderer,
                (NotTaken if unmet else InfrastructureError)(
                    Reason.RENDERER_UNAVAILABLE,
                    f"{renderer.url} did not answer: {error or type(error).__name__}.",
                ),
            ) from error
        finally:
            renderer.busy -= 1


class _Failed(Exception):
    """One attempt met an infrastructure failure."""

    def __init__(self, renderer: _Renderer, error: InfrastructureError) -> None:
        super().__init__(str(error))
        self.renderer = renderer
        self.error = error


def _retry_after(answer: httpx.Response) -> float:
    try:
        return max(0.02, float(answer.headers.get("Retry-After", "1")))
    except ValueError:
        return 1.0


def _read(renderer: _Renderer, answer: httpx.Response) -> Painted:
    try:
        body: dict[str, Any] = answer.json()
        if answer.status_code == 200:
            painting = base64.b64decode(body.pop("painting"))
            errors = tuple(body.pop("js_errors"))
            return Painted(painting=painting, js_errors=errors, **body)
        if answer.status_code == 422:
            raise SketchFault(
                Violation.model_validate(body["violation"]), tuple(body.get("js_errors", ()))
            )
        known = set(Reason)
        reason = Reason(body["reason"]) if body["reason"] in known else Reason.INTERNAL_ERROR
        detail, taken = str(body["detail"]), body.get("taken", True) is True
    except (ValueError, KeyError, TypeError) as error:
        raise _Failed(
            renderer,
            InfrastructureError(
                Reason.RENDERER_UNAVAILABLE,
                f"{renderer.url} answered {answer.status_code} outside the contract.",
            ),
        ) from error
    raise _Failed(renderer, (InfrastructureError if taken else NotTaken)(reason, detail))
