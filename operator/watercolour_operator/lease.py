"""One writer: the coordination Lease that the operator holds while it may write.

The rules are those of Kubernetes' own leader election. A Lease counts as expired when *we* have
not seen it change for its duration: clocks of two machines are never compared. The holder stops
writing well before that, so that two never write. The clock goes on while the machine or the
process sleeps: who wakes up late finds that it may not write any more.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from watercolour.logs import get
from watercolour_operator.cluster import kinds
from watercolour_operator.cluster.api import Api, Raw
from watercolour_operator.cluster.errors import ApiError

log = get(__name__)


class LeaseLost(Exception):
    """The Lease could not be renewed in time: this process must not write any more."""


def awake_clock() -> float:
    """Seconds that go on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass
class Lease:
    """The Lease, seen from one process."""

    api: Api
    namespace: str
    name: str
    #: Who we are; a pod's name and something random.
    identity: str
    #: Seconds after the last renewal at which others may take it.
    seconds: float
    #: Until when we may write, by `awake_clock`; None while we do not hold it.
    _until: float | None = field(default=None, init=False)
    #: The Lease as last seen changing, and when.
    _seen: str = field(default="", init=False)
    _seen_at: float = field(default=0.0, init=False)

    @property
    def held(self) -> bool:
        """Whether we may write now."""
        return self.remaining() > 0

    def remaining(self) -> float:
        """Seconds for which we may still write; 0 when we may not."""
        return max(0.0, self._until - awake_clock()) if self._until is not None else 0.0

    async def acquire(self) -> None:
        """Wait until the Lease is ours. Errors of the API server are waited out."""
        told = ""
        while True:
            holder = await self._try()
            if holder is None:
                log.info("holding lease %s/%s", self.namespace, self.name)
                return
            if holder != told:
                log.info("waiting: %s", holder)
                told = holder
            await asyncio.sleep(random.uniform(0.5, 1.0) * min(2.0, self.seconds / 6))

    async def hold(self) -> None:
        """Renew for ever.

        Raises:
            LeaseLost: somebody else has it, or it could not be renewed in time.
        """
        while True:
            await asyncio.sleep(min(self.seconds / 5, self.remaining()))
            if not self.held:
                self._until = None
                raise LeaseLost("it could not be renewed in time")
            holder = await self._try()
            if holder is not None and not self.held:
                self._until = None
                raise LeaseLost(holder)

    async def release(self) -> None:
        """Give it back, so that the next one need not wait. Only when nothing writes any more."""
        if not self.held:
            return
        try:
            raw = await self.api.get(kinds.LEASE, self.namespace, self.name)
            if raw and raw["spec"].get("holderIdentity") == self.identity:
                raw["spec"]["holderIdentity"] = ""
                await self._put(raw)
        except ApiError as error:
            log.warning("lease %s/%s not given back: %s", self.namespace, self.name, error.words)
        finally:
            self._until = None

    async def _try(self) -> str | None:
        """Take or renew it. None when it is ours, else who or what prevents it."""
        # From before the call: the server may have written it any time after.
        began = awake_clock()
        try:
            # An answer that comes later than this is of no use: there is time for another try.
            async with asyncio.timeout(self.seconds / 4):
                if prevented := await self._write():
                    return prevented
        except ApiError as error:
            return f"lease {self.namespace}/{self.name}: {error.words}"
        except TimeoutError:
            return f"lease {self.namespace}/{self.name}: no answer in time"
        # A third of the duration is the margin between our last write and another's first.
        self._until = began + self.seconds * 2 / 3
        return None

    async def _write(self) -> str:
        """Make it ours; returns who holds it instead, if anybody does."""
        raw = await self.api.get(kinds.LEASE, self.namespace, self.name)
        if raw is None:
            await self.api.write_unguarded(
                "create", kinds.LEASE, self.namespace, self.name, self._fresh()
            )
        elif prevented := self._prevented(raw):
            return prevented
        else:
            await self._put(self._taken(raw))
        return ""

    def _prevented(self, raw: Raw) -> str:
        """Who holds it validly, if anybody but us."""
        now, holder = awake_clock(), raw["spec"].get("holderIdentity") or ""
        if raw["metadata"]["resourceVersion"] != self._seen:
            self._seen, self._seen_at = raw["metadata"]["resourceVersion"], now
        if holder in ("", self.identity):
            return ""
        self._until = None
        duration = raw["spec"].get("leaseDurationSeconds") or self.seconds
        if now - self._seen_at < duration:
            return f"{holder} holds lease {self.namespace}/{self.name}"
        return ""

    def _fresh(self) -> Raw:
        spec = {"acquireTime": _now(), "leaseTransitions": 0}
        return self._renewed(
            {
                "apiVersion": kinds.LEASE.api_version,
                "kind": kinds.LEASE.name,
                "metadata": {"name": self.name, "namespace": self.namespace},
                "spec": spec,
            }
        )

    def _taken(self, raw: Raw) -> Raw:
        spec = raw["spec"]
        if spec.get("holderIdentity") != self.identity:
            spec["acquireTime"] = _now()
            spec["leaseTransitions"] = (spec.get("leaseTransitions") or 0) + 1
        return self._renewed(raw)

    def _renewed(self, raw: Raw) -> Raw:
        raw["spec"]["holderIdentity"] = self.identity
        raw["spec"]["leaseDurationSeconds"] = max(1, round(self.seconds))
        raw["spec"]["renewTime"] = _now()
        return raw

    async def _put(self, raw: Raw) -> None:
        """Replace it; the resourceVersion within makes it fail (409) if another was faster."""
        await self.api.write_unguarded("update", kinds.LEASE, self.namespace, self.name, raw)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
