"""Plays the kubelets of the fake nodes: pods live as the test scripts them.

    pods.script(namespace, podlife.out_of_memory(after=0.2), labels={...}, times=1)
    pods.step(namespace, "name-of-a-pod", podlife.Exited(0, message="{}"))
    pods.freeze("gpu-0")

The newest script that matches a new pod decides its life; without one it becomes ready at once.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import ssl
import threading
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import aiohttp
from tests.cluster.ground import kubelet, podlife
from tests.cluster.ground.api import Api, Json
from tests.cluster.ground.loopthread import LoopThread
from tests.cluster.ground.podlife import Life, Step
from tests.cluster.ground.streams import lines

MERGE = "application/strategic-merge-patch+json"


@dataclass
class _Script:
    namespace: str
    life: Life
    labels: Mapping[str, str]
    left: int | None

    def takes(self, pod: Json) -> bool:
        metadata = pod["metadata"]
        worn = metadata.get("labels", {})
        return (
            self.left != 0
            and metadata["namespace"] == self.namespace
            and all(worn.get(key) == value for key, value in self.labels.items())
        )


@dataclass
class _Kept:
    """A pod that is being played."""

    pod: Json
    life: Life
    seen: kubelet.Pod
    task: asyncio.Task[None] | None = None
    stopping: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class PodPlayer:
    """The kubelets of every fake node, in a thread of their own."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._scripts: list[_Script] = []
        self._scripting = threading.Lock()
        self._pods: dict[str, _Kept] = {}
        self._frozen: set[str] = set()
        self._addresses = itertools.count(1)
        self._news = asyncio.Event()
        self.problems: list[str] = []

    def __enter__(self) -> Self:
        self._thread = LoopThread("kubelets")
        self._session = self._thread.call(self._open())
        self._watching = asyncio.run_coroutine_threadsafe(self._watch(), self._thread.loop)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._watching.cancel()
        self._thread.call(self._session.close())
        self._thread.close()

    def script(
        self,
        namespace: str,
        life: Life,
        *,
        labels: Mapping[str, str] | None = None,
        times: int | None = None,
    ) -> None:
        """Give this life to pods created from now on; to the first `times` of them, or to all."""
        with self._scripting:
            self._scripts.insert(0, _Script(namespace, life, labels or {}, times))

    def step(self, namespace: str, name: str, *steps: Step) -> None:
        """Play steps on a living pod now, in place of what its life had in store.

        Returns when the API server has taken the last step. Raises KeyError when no node holds it.
        """
        self._thread.call(self._step(namespace, name, steps), timeout=60)

    def freeze(self, node: str) -> None:
        """The node's kubelet falls silent: its pods change no more, deleted ones stay."""
        self._thread.call(self._freeze(node, frozen=True))

    def thaw(self, node: str) -> None:
        """The kubelet is back and catches up with deletions that it missed."""
        self._thread.call(self._freeze(node, frozen=False))

    def forget(self, namespace: str) -> None:
        """Drop the scripts of a namespace and thaw every node."""
        with self._scripting:
            self._scripts = [each for each in self._scripts if each.namespace != namespace]
        for node in list(self._frozen):
            self.thaw(node)

    async def _open(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            base_url=self._api.server,
            headers=self._api.headers,
            connector=aiohttp.TCPConnector(
                ssl=ssl.create_default_context(cafile=str(self._api.authority)), limit=64
            ),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=5),
        )

    async def _watch(self) -> None:
        """List, then follow; again after every interruption, as a kubelet does."""
        while True:
            try:
                await self._follow()
            except (aiohttp.ClientError, OSError, json.JSONDecodeError):
                await asyncio.sleep(0.1)  # the API server may be away on purpose

    async def _follow(self) -> None:
        bound = {"fieldSelector": "spec.nodeName!="}
        async with self._session.get("/api/v1/pods", params=bound) as answer:
            answer.raise_for_status()
            listed: Json = await answer.json()
        for pod in listed["items"]:
            self._seen(pod)
        gone = set(self._pods) - {pod["metadata"]["uid"] for pod in listed["items"]}
        for uid in gone:
            self._gone(uid)
        since = listed["metadata"]["resourceVersion"]
        query = bound | {"watch": "true", "resourceVersion": since}
        async with self._session.get("/api/v1/pods", params=query) as stream:
            stream.raise_for_status()
            async for line in lines(stream):
                event: Json = json.loads(line)
                if event["type"] == "ERROR":
                    return
                if event["type"] == "DELETED":
                    self._gone(event["object"]["metadata"]["uid"])
                else:
                    self._seen(event["object"])

    def _seen(self, pod: Json) -> None:
        uid: str = pod["metadata"]["uid"]
        kept = self._pods.get(uid)
        if kept is None:
            number = next(self._addresses)
            ip = f"10.244.{number // 250 % 250}.{number % 250 + 1}"
            seen = kubelet.admit(pod, ip, "10.0.0.1")
            kept = self._pods[uid] = _Kept(pod, self._life_of(pod), seen)
            self._news.set()
            if pod["status"].get("phase") not in {"Succeeded", "Failed"}:
                self._play(kept, self._live(kept, kept.life.steps))
        kept.pod = kept.seen.manifest = pod
        if pod["metadata"].get("deletionTimestamp") and not kept.stopping:
            self._end(kept)

    def _end(self, kept: _Kept) -> None:
        if kept.pod["spec"]["nodeName"] not in self._frozen:
            kept.stopping = True
            self._play(kept, self._stop(kept))

    def _gone(self, uid: str) -> None:
        kept = self._pods.pop(uid, None)
        if kept and kept.task:
            kept.task.cancel()

    def _life_of(self, pod: Json) -> Life:
        with self._scripting:
            for script in self._scripts:
                if script.takes(pod):
                    if script.left is not None:
                        script.left -= 1
                    return script.life
        return podlife.READY

    def _play(self, kept: _Kept, work: Coroutine[Any, Any, None]) -> None:
        if kept.task:
            kept.task.cancel()
        kept.task = asyncio.get_running_loop().create_task(work)

    async def _live(self, kept: _Kept, steps: tuple[Step, ...]) -> None:
        for step in steps:
            await asyncio.sleep(step.after)
            if kept.pod["spec"]["nodeName"] in self._frozen:
                return
            for status in kubelet.statuses(kept.seen, step, _now()):
                await self._write(kept, status)

    async def _stop(self, kept: _Kept) -> None:
        """SIGTERM, the rest of the grace period at most, the final status, the object's removal."""
        metadata = kept.pod["metadata"]
        grace = float(metadata.get("deletionGracePeriodSeconds") or 0)
        wished = kept.life.stop_after
        await asyncio.sleep(grace if wished is None else min(wished, grace))
        if kept.pod["status"].get("phase") in {"Pending", "Running"}:
            await self._write(kept, kubelet.stopped(kept.seen, kept.life, _now()))
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
        await self._send("DELETE", path, body, "application/json")

    async def _write(self, kept: _Kept, status: Json) -> None:
        async with kept.lock:
            _keep_transitions(status, kept.pod["status"])
            metadata = kept.pod["metadata"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status"
            body = {"metadata": {"uid": metadata["uid"]}, "status": status}
            if written := await self._send("PATCH", path, body, MERGE):
                kept.pod = kept.seen.manifest = written

    async def _send(self, method: str, path: str, body: Json, kind: str) -> Json | None:
        """Send until the API server answers; None when the pod is gone or is another by now."""
        while True:
            try:
                async with self._session.request(
                    method, path, data=json.dumps(body), headers={"Content-Type": kind}
                ) as answer:
                    if answer.status < 300:
                        return await answer.json()
                    if answer.status in {404, 409}:
                        return None
                    if answer.status not in {429, 500, 503}:
                        self.problems.append(f"{method} {path}: {await answer.text()}")
                        return None
            except (aiohttp.ClientError, OSError):
                pass
            await asyncio.sleep(0.1)

    async def _step(self, namespace: str, name: str, steps: tuple[Step, ...]) -> None:
        give_up = asyncio.get_running_loop().time() + 10
        while (kept := self._named(namespace, name)) is None:
            # The test may have heard of the pod before this watch did.
            self._news.clear()
            try:
                async with asyncio.timeout_at(give_up):
                    await self._news.wait()
            except TimeoutError:
                raise KeyError(f"no fake node holds a pod {namespace}/{name}") from None
        self._play(kept, self._live(kept, steps))
        assert kept.task
        await kept.task

    def _named(self, namespace: str, name: str) -> _Kept | None:
        for kept in self._pods.values():
            metadata = kept.pod["metadata"]
            if (metadata["namespace"], metadata["name"]) == (namespace, name):
                return kept
        return None

    async def _freeze(self, node: str, *, frozen: bool) -> None:
        if frozen:
            self._frozen.add(node)
            return
        self._frozen.discard(node)
        for kept in self._pods.values():
            deleted = kept.pod["metadata"].get("deletionTimestamp")
            if kept.pod["spec"]["nodeName"] == node and deleted and not kept.stopping:
                self._end(kept)


def _keep_transitions(status: Json, before: Json) -> None:
    """A condition that did not change keeps its time."""
    known = {each["type"]: each for each in before.get("conditions", [])}
    for condition in status.get("conditions", []):
        old = known.get(condition["type"])
        if old and old["status"] == condition["status"]:
            condition["lastTransitionTime"] = old["lastTransitionTime"]


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
