"""Ask one renderer for one painting: a single HTTP call, its answer read by the contract.

No browser driver is needed here. Whom to ask, and what follows a failure, is the dispatcher's
affair (:mod:`watercolour.render.dispatcher`).
"""

from __future__ import annotations

import base64
from dataclasses import asdict, fields
from typing import Any

import httpx

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Violation
from watercolour.render.replay import Replay
from watercolour.render.result import Job, Painted, SketchFault

#: Seconds in which a renderer has to accept a connection.
CONNECT_SECONDS = 5.0

#: Seconds that an answer may take beyond the render's own deadline, which holds for all but the
#: encoding and the way back.
SLACK_SECONDS = 30.0

#: What an answer tells beside the painting itself and the errors.
_FIELDS = {field.name for field in fields(Painted)} - {"painting", "js_errors"}

#: Seconds after which an idle connection is given up: sooner than a server does (uvicorn: 5), so
#: that no job is written to a connection that is being closed.
IDLE_SECONDS = 2.0


class Busy(Exception):
    """Every slot of the renderer paints; nothing of the job has been done.

    Attributes:
        retry_after_s: when it is worth asking again.
    """

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(f"busy; ask again in {retry_after_s:g} s")
        self.retry_after_s = retry_after_s


class NotTaken(InfrastructureError):
    """The renderer did not take the job: it is gone, or drains. Nothing of it has been done."""


class NotUnderstood(InfrastructureError):
    """The renderer finds the request malformed; another one would, too."""


def http_client() -> httpx.AsyncClient:
    """A client for any number of renderers, without time-outs of its own."""
    limits = httpx.Limits(max_connections=None, keepalive_expiry=IDLE_SECONDS)
    return httpx.AsyncClient(timeout=None, limits=limits, trust_env=False)


async def ask(http: httpx.AsyncClient, url: str, job: Job, *, fresh: bool = False) -> Painted:
    """Have one renderer paint one sketch.

    Args:
        http: see :func:`http_client`.
        url: the renderer's base URL.
        job: what to paint.
        fresh: paint again even if the renderer remembers the painting.

    Raises:
        SketchFault: the sketch is at fault.
        Busy: it has no free slot.
        NotTaken: it did not take the job.
        NotUnderstood: it finds the request malformed (InternalError).
        InfrastructureError: it failed, with its own reason, or RendererUnavailable.
    """
    # What is not asked for stays out, so that a renderer of an earlier version understands.
    unasked = {"size": None, "scale": 1, "replay": False, "fresh": False}
    wanted = {**asdict(job), "fresh": fresh}
    body = {name: one for name, one in wanted.items() if one != unasked.get(name, ...)}
    limits = httpx.Timeout(job.deadline_s + SLACK_SECONDS, connect=CONNECT_SECONDS)
    try:
        answer = await http.post(f"{url}/v1/render", json=body, timeout=limits)
    except httpx.HTTPError as error:
        unmet = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
        kind = NotTaken if unmet else InfrastructureError
        raise kind(Reason.RENDERER_UNAVAILABLE, silence(url, error)) from error
    if answer.status_code == 429:
        raise Busy(_retry_after(answer))
    try:
        raised = _read(answer.status_code, answer.json())
    except (ValueError, KeyError, TypeError) as error:
        raise InfrastructureError(
            Reason.RENDERER_UNAVAILABLE,
            f"{url} answered {answer.status_code} outside the contract.",
        ) from error
    if isinstance(raised, Painted):
        return raised
    raise raised


def silence(url: str, error: Exception) -> str:
    """A sentence about a renderer that did not answer."""
    return f"{url} did not answer: {str(error).rstrip('.') or type(error).__name__}."


def _retry_after(answer: httpx.Response) -> float:
    try:
        return max(0.0, float(answer.headers.get("Retry-After", "1")))
    except ValueError:
        return 1.0


def _read(status: int, body: dict[str, Any]) -> Painted | SketchFault | InfrastructureError:
    """What an answer means.

    Raises:
        ValueError, KeyError, TypeError: it is outside the contract.
    """
    if status == 200:
        painting = base64.b64decode(body.pop("painting"))
        errors = tuple(body.pop("js_errors"))
        # A renderer of a later version may tell more than is known here.
        told = {name: body[name] for name in _FIELDS if name in body}
        if told.get("replay") is not None:
            told["replay"] = Replay.model_validate(told["replay"])
        return Painted(painting=painting, js_errors=errors, **told)
    if status == 422:
        violation = Violation.model_validate(body["violation"])
        return SketchFault(violation, tuple(body.get("js_errors", ())))
    known = set(Reason)
    reason = Reason(body["reason"]) if body["reason"] in known else Reason.INTERNAL_ERROR
    detail = str(body["detail"])
    if 400 <= status < 500:
        return NotUnderstood(Reason.INTERNAL_ERROR, detail)
    taken = body.get("taken", True) is True
    return (InfrastructureError if taken else NotTaken)(reason, detail)
