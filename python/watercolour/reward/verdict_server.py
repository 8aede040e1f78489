"""Verdicts on a Redis or Valkey server that several runs share."""

from __future__ import annotations

from collections.abc import Sequence

from valkey.asyncio import Valkey
from valkey.exceptions import ValkeyError

from watercolour import logs

log = logs.get(__name__)

#: Stands before every key, so that a server may hold other things besides.
PREFIX = "watercolour:verdict:"

#: Seconds after which a verdict that nobody asked for again is forgotten: 90 days.
KEPT_SECONDS = 90 * 86_400

#: Seconds that one command may take; after that the judge is asked instead.
PATIENCE_SECONDS = 2.0


class VerdictServer:
    """Connections to one server."""

    def __init__(self, url: str) -> None:
        """Connect to nothing yet.

        Args:
            url: ``redis://`` or ``valkey://``, ``rediss://`` or ``valkeys://`` with TLS.
        """
        self._client = Valkey.from_url(
            url,
            socket_timeout=PATIENCE_SECONDS,
            socket_connect_timeout=PATIENCE_SECONDS,
            decode_responses=True,
        )
        self._silent = False

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def find(self, keys: Sequence[str]) -> dict[str, str]:
        """The winners that are known, by key; none while the server is away."""
        try:
            found = await self._client.mget([PREFIX + key for key in keys])
        except (ValkeyError, OSError, TimeoutError) as error:
            self._warn(error)
            return {}
        self._silent = False
        return {key: winner for key, winner in zip(keys, found, strict=True) if winner is not None}

    async def keep(self, key: str, winner: str) -> None:
        """Remember a winner; what another run has remembered meanwhile stays."""
        try:
            await self._client.set(PREFIX + key, winner, ex=KEPT_SECONDS, nx=True)
        except (ValkeyError, OSError, TimeoutError) as error:
            self._warn(error)

    def _warn(self, error: Exception) -> None:
        """Once until it answers again: every call would say the same."""
        if not self._silent:
            log.warning("the verdicts' server failed, so the judge is asked: %s", error)
        self._silent = True
