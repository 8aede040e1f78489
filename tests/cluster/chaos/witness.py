"""Somebody who saw everything: each version of a namespace's objects, in the server's order."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
from tests.cluster.ground.api import Api, ApiError

Json = dict[str, Any]
KINDS = ("WatercolourRun", "Pod", "Job", "Deployment", "Lease")


@dataclass(frozen=True)
class Seen:
    """One version of an object, or its end."""

    at: float  # monotonic seconds
    kind: str
    gone: bool
    thing: Json

    @property
    def name(self) -> str:
        """The object's name."""
        return self.thing["metadata"]["name"]

    @property
    def uid(self) -> str:
        """The object's uid."""
        return self.thing["metadata"]["uid"]

    @property
    def labels(self) -> dict[str, str]:
        """The object's labels."""
        return self.thing["metadata"].get("labels", {})


@dataclass
class Witness:
    """Watches while the block runs. `seen` is in the server's order within each kind."""

    api: Api
    namespace: str
    seen: list[Seen] = field(default_factory=list[Seen])
    #: Why it has not seen everything after all; empty when it has.
    blind: list[str] = field(default_factory=list[str])
    _over: threading.Event = field(default_factory=threading.Event)
    _news: threading.Condition = field(default_factory=threading.Condition)

    def __enter__(self) -> Self:
        for kind in KINDS:
            since = self.api.version(kind, self.namespace)
            threading.Thread(target=self._watch, args=(kind, since), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()

    def of(self, kind: str) -> list[Seen]:
        """What was seen of one kind so far."""
        with self._news:
            return [each for each in self.seen if each.kind == kind]

    def write(self, path: Path) -> None:
        """Keep what was seen, a line each, for whoever has to find out what happened."""
        with self._news, path.open("w") as file:
            for each in self.seen:
                file.write(json.dumps(asdict(each)) + "\n")

    def wait(self, condition: Callable[[Seen], bool], since: int, timeout: float) -> bool:
        """Whether something meets the condition, among what came as number `since` or later."""
        deadline = time.monotonic() + timeout
        with self._news:
            while not any(condition(each) for each in self.seen[since:]):
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._news.wait(left)
            return True

    def _watch(self, kind: str, since: str) -> None:
        while not self._over.is_set():
            try:
                for event in self._events(kind, since):
                    since = event["object"]["metadata"]["resourceVersion"]
                    gone = event["type"] == "DELETED"
                    with self._news:
                        self.seen.append(Seen(time.monotonic(), kind, gone, event["object"]))
                        self._news.notify_all()
            except httpx.TransportError:
                self._over.wait(0.2)  # the API server is away
            except Exception as error:
                # Whatever it is, the verdicts must not be built on what was not seen.
                self.blind.append(f"{kind}: {error!r}")
                return

    def _events(self, kind: str, since: str) -> Iterator[Json]:
        for event in self.api.events_of(kind, self.namespace, since=since, timeout=20):
            if self._over.is_set():
                return
            if event["type"] == "ERROR":
                status = event["object"]
                raise ApiError(status["code"], status["reason"], status["message"])
            yield event
