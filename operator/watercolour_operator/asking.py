"""Asks the pods of runs over HTTP: their progress, queue and load, and to drain.

In the cluster a pod is asked at its own address; from outside through the API server's proxy, or at
an address that a template gives. A question never raises: no usable answer is ``None``.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from pydantic import ValidationError

from watercolour.api.reasons import known
from watercolour.api.status import Progress
from watercolour_operator.cluster import kinds
from watercolour_operator.cluster.api import LONGEST_ANSWER, Api
from watercolour_operator.cluster.errors import ApiError
from watercolour_operator.names import PORTS
from watercolour_operator.observed import Demand, Load, Pod
from watercolour_operator.settings import Settings

#: Seconds for one answer; a pod that takes longer counts as silent.
ANSWER_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Asking:
    """How pods are asked."""

    reach: str
    api: Api
    http: aiohttp.ClientSession

    async def progress(self, namespace: str, run: str, pod: Pod) -> Progress | None:
        """The trainer's ``GET /progress``."""
        found = await self._json("GET", namespace, run, pod, "/progress")
        try:
            return None if found is None else Progress.model_validate(found, by_alias=True)
        except ValidationError:
            return None

    async def demand(self, namespace: str, run: str, pod: Pod) -> Demand | None:
        """The environment's ``GET /v1/demand``."""
        found = await self._json("GET", namespace, run, pod, "/v1/demand")
        counts = _counts(found, "queued", "inflight", "announced")
        return Demand(*counts) if counts else None

    async def load(self, namespace: str, run: str, pod: Pod) -> Load | None:
        """A renderer's ``GET /v1/load``."""
        found = await self._json("GET", namespace, run, pod, "/v1/load")
        counts = _counts(found, "slots", "busy")
        if found is None or counts is None:
            return None
        said = found.get("refuses")
        refuses = known(said)
        return Load(*counts, draining=bool(found.get("draining")), refuses=refuses)

    async def drain(self, namespace: str, run: str, pod: Pod) -> bool:
        """A renderer's ``POST /v1/drain``; whether it agreed."""
        return await self._json("POST", namespace, run, pod, "/v1/drain") is not None

    async def undrain(self, namespace: str, run: str, pod: Pod) -> bool:
        """A renderer's ``DELETE /v1/drain``; whether it agreed."""
        return await self._json("DELETE", namespace, run, pod, "/v1/drain") is not None

    async def _json(
        self, method: str, namespace: str, run: str, pod: Pod, path: str
    ) -> dict[str, Any] | None:
        try:
            if self.reach == "proxy":
                text = await self._through_api(method, namespace, pod, path)
            else:
                text = await self._directly(method, self._base(namespace, run, pod) + path)
            found = json.loads(text)
        except (aiohttp.ClientError, ApiError, OSError, TimeoutError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def _base(self, namespace: str, run: str, pod: Pod) -> str:
        """The pod's base URL.

        Raises:
            ValueError: it has no address yet.
        """
        if self.reach != "dns":
            words = {"namespace": namespace, "run": run, "pod": pod.name}
            return self.reach.format(component=pod.component.value, **words)
        if not pod.ip:
            raise ValueError(pod.name)
        host = f"[{pod.ip}]" if ":" in pod.ip else pod.ip
        return f"http://{host}:{PORTS[pod.component]}"

    async def _directly(self, method: str, url: str) -> bytes:
        async with self.http.request(method, url, allow_redirects=False) as answer:
            answer.raise_for_status()
            return await answer.content.read(LONGEST_ANSWER)

    async def _through_api(self, method: str, namespace: str, pod: Pod, path: str) -> bytes:
        below = f"{pod.name}:{PORTS[pod.component]}"
        where = kinds.POD.path(namespace, below, f"proxy{path}")
        return await self.api.reach(method, where, ANSWER_SECONDS)


def _counts(found: dict[str, Any] | None, *names: str) -> tuple[int, ...] | None:
    """Numbers of an answer; None unless each is a count."""
    values = [found.get(name) for name in names] if found else []
    counts = [value for value in values if isinstance(value, int) and value >= 0]
    return tuple(counts) if counts and len(counts) == len(names) else None


@asynccontextmanager
async def connect(settings: Settings, api: Api) -> AsyncGenerator[Asking]:
    """A way to ask pods, open while the block runs."""
    limit = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
    connector = aiohttp.TCPConnector(limit=100, limit_per_host=4)
    # Pods of the cluster are never behind the proxy of the environment's variables.
    async with aiohttp.ClientSession(timeout=limit, connector=connector) as http:
        yield Asking(settings.reach, api, http)
