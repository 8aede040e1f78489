"""One session with an environment, in OpenEnv's socket protocol.

Written here because importing OpenEnv's own client takes seconds, and because a caller must know
a full server (wait) from a broken one (try again).
"""

from __future__ import annotations

import asyncio
import json
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason

#: Largest message, in bytes: a base64 painting of 1024 pixels a side is below 8 MiB.
LARGEST_MESSAGE = 64 * 2**20


class Full(Exception):
    """The server has no free session."""


@dataclass(frozen=True)
class Task:
    """What one rollout asks of the environment.

    Attributes:
        client: whose turn in the render queue it uses up.
        subject: what the policy was asked to paint.
        seed: the group's draw seed.
        references: how many to compare with; the run's number if None.
        return_image: bring the painting back.
        step, group, index: where in its run the rollout stands.
    """

    client: str
    subject: str
    seed: int
    references: int | None = None
    return_image: bool = True
    step: int = -1
    group: int = 0
    index: int = 0


async def opened(url: str, timeout_s: float) -> ClientConnection:
    """A socket to the environment with that base URL, ``http`` or ``ws``.

    Raises:
        OSError: nobody listens.
        WebSocketException, TimeoutError: whoever listens is no environment.
    """
    base = url.replace("http", "ws", 1) if url.startswith("http") else url
    return await connect(
        f"{base}/ws",
        open_timeout=timeout_s,
        max_size=LARGEST_MESSAGE,
        proxy=None,
        compression=None,
    )


async def begin(socket: ClientConnection, task: Task, timeout_s: float) -> str:
    """Start an episode and return its id. Raises as :func:`ask`."""
    episode = str(uuid.uuid4())
    wanted: dict[str, Any] = {
        "episode_id": episode,
        "client": task.client,
        "subject": task.subject,
        "seed": task.seed,
        "return_image": task.return_image,
        "step": task.step,
        "group": task.group,
        "index": task.index,
    }
    if task.references is not None:
        wanted["references"] = task.references
    observed(await ask(socket, "reset", wanted, timeout_s), episode)
    return episode


async def ask(
    socket: ClientConnection, kind: str, data: dict[str, Any], timeout_s: float
) -> dict[str, Any]:
    """Send one message and wait for its reply's data.

    After any error the socket is of no more use: what may still arrive on it answers this
    message, not the next.

    Raises:
        Full: the server has no free session.
        InfrastructureError: it reports an error, or its reply cannot be read.
        TimeoutError, WebSocketException: no reply came.
    """
    async with asyncio.timeout(timeout_s):
        # A server that is full says so and closes; its last words may lie there unread.
        with suppress(ConnectionClosed):
            await socket.send(json.dumps({"type": kind, "data": data}))
        text = await socket.recv()
    try:
        reply = json.loads(text)
        body = reply["data"]
        if reply["type"] == "error":
            if body.get("code") == "CAPACITY_REACHED":
                raise Full
            raise InfrastructureError(
                Reason.ENV_UNAVAILABLE, f"{body.get('code')}: {body.get('message')}"
            )
        return body
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InfrastructureError(
            Reason.ENV_UNAVAILABLE, f"the reply to {kind} cannot be read: {text[:120]!r}"
        ) from error


def observed(reply: dict[str, Any], episode: str) -> dict[str, Any]:
    """The observation in a reply, if it belongs to the episode.

    Raises:
        InfrastructureError: it is none, or answers another request.
    """
    observation = reply.get("observation")
    if not isinstance(observation, dict) or observation.get("episode_id") != episode:
        raise InfrastructureError(
            Reason.ENV_UNAVAILABLE, f"the reply does not belong to episode {episode}"
        )
    return observation


async def hang_up(socket: ClientConnection) -> None:
    """Tell the server that the session has ended, and close."""
    try:
        await socket.send(json.dumps({"type": "close"}))
        await socket.close()
    except WebSocketException:
        socket.transport.abort()
