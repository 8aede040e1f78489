"""A control: how long a small write takes until a bare watcher sees it, with no operator between.

While it takes long, the machine or the API server is out of breath, and nobody could have acted.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Self

import httpx
from tests.cluster.chaos.verdicts import Outage
from tests.cluster.chaos.witness import Seen, Witness
from tests.cluster.ground.api import Api, ApiError

#: Seconds between two beats, and seconds from which on a beat counts as a stall; usual are 0.02.
PAUSE, STALL = 0.25, 0.5
#: Seconds after which a beat that was not seen is given up: the watch itself is away.
LOST = 30.0
NAME = "pulse"


@dataclass
class Pulse:
    """Beats while the block runs."""

    api: Api
    namespace: str
    witness: Witness
    stalls: list[Outage] = field(default_factory=list[Outage])
    beats: int = 0
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        spec = {"holderIdentity": NAME}
        self.api.create({**lease, "metadata": {"name": NAME}, "spec": spec}, self.namespace)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            began = time.monotonic()
            self._beat()
            self.beats += 1
            ended = time.monotonic()
            if ended - began > STALL:
                self.stalls.append(Outage(began, ended))
            self._over.wait(PAUSE)

    def _beat(self) -> None:
        """Write a number and wait until it is seen."""
        number, mark = str(self.beats), len(self.witness.seen)
        body = {"metadata": {"annotations": {"beat": number}}}
        try:
            self.api.patch("Lease", NAME, body, self.namespace)
        except (httpx.TransportError, ApiError):
            return  # its time counts all the same

        def seen(each: Seen) -> bool:
            beat = each.thing["metadata"].get("annotations", {}).get("beat")
            return each.kind == "Lease" and each.name == NAME and beat == number

        self.witness.wait(seen, mark, LOST)
