"""A storm over one namespace: API faults, operator kills, deletions, suspensions, evictions."""

from __future__ import annotations

import subprocess
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.cluster.chaos import fates
from tests.cluster.chaos.fates import Fate
from tests.cluster.chaos.pulse import Pulse
from tests.cluster.chaos.verdicts import ENDED, Outage, phase
from tests.cluster.chaos.witness import Seen, Witness
from tests.cluster.ground.api import Api, ApiError
from tests.cluster.ground.controlplane import ControlPlane
from tests.cluster.ground.faultproxy import FaultProxy
from tests.cluster.ground.faults import (
    Answer,
    Call,
    Delay,
    Drop,
    Expire,
    Fault,
    HangUp,
    Matches,
    Replay,
    all_but_watches,
)
from tests.cluster.ground.podplayer import PodPlayer
from tests.cluster.operator import harness

Json = dict[str, Any]
# Shares of the operator's calls that each fault strikes.
CALL_FAULTS: tuple[tuple[float, Fault], ...] = (
    (0.01, Answer(429, retry_after=1)),
    (0.01, Answer(500)),
    (0.01, Answer(500, after=True)),
    (0.005, Answer(409)),
    (0.005, Answer(422)),
    (0.01, Drop()),
    (0.01, Drop(after=True)),
    (0.02, Delay(0.3)),
)
WATCH_FAULTS: tuple[tuple[float, Fault], ...] = (
    (0.2, HangUp(events=3)),
    (0.1, Expire(events=5)),
    (0.1, Replay(events=4)),
)
LEASE = "operator"


@dataclass
class Storm:
    """The world of one storm and what it has done so far."""

    plane: ControlPlane
    proxy: FaultProxy
    pods: PodPlayer
    answers: harness.Answers
    witness: Witness
    pulse: Pulse
    namespace: str
    folder: Path
    chance: Random
    fates: dict[str, Fate] = field(default_factory=dict[str, Fate])
    done: Counter[str] = field(default_factory=Counter[str])
    outages: list[Outage] = field(default_factory=list[Outage])
    #: Uids of the objects of runs that were deleted behind the operator's back.
    taken: set[str] = field(default_factory=set[str])
    _operator: harness.Running | None = None
    #: Since when nobody holds the Lease; None while an operator does.
    _down_since: float | None = field(default_factory=time.monotonic)
    #: By process id: when an operator has ended.
    _ended: dict[int, float] = field(default_factory=dict[int, float])
    _starts: int = 0

    @property
    def api(self) -> Api:
        """The storm's own client, which no fault strikes."""
        return self.plane.api

    def begin(self) -> None:
        """The operator's account, and the claim that all runs share."""
        token = self.plane.token_of(self.namespace, "operator", cluster_admin=True)
        self._kubeconfig = self.proxy.kubeconfig(token, self.folder / "kubeconfig")
        name = f"{self.namespace}-artifacts"
        wants = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        self.api.create(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": name},
                "spec": {
                    **wants,
                    "capacity": {"storage": "1Ti"},
                    "hostPath": {"path": "/nowhere"},
                    "claimRef": {"namespace": self.namespace, "name": "artifacts"},
                },
            }
        )
        self.api.create(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "artifacts"},
                "spec": {
                    **wants,
                    "volumeName": name,
                    "resources": {"requests": {"storage": "1Ti"}},
                },
            },
            self.namespace,
        )
        self.start_operator()

    def rise(self) -> None:
        """From now on a part of the operator's calls and watches fails."""
        for share, fault in CALL_FAULTS:
            self.proxy.inject(fault, self._now_and_then(share, watches=False), times=None)
        for share, fault in WATCH_FAULTS:
            self.proxy.inject(fault, self._now_and_then(share, watches=True), times=None)

    def calm(self) -> None:
        """No more faults; the operator runs, and nobody stays suspended by chance."""
        self.proxy.clear()
        self.tend()

    def add_run(self, name: str) -> None:
        """A new run with a fate of its own."""
        fate = self.fates[name] = fates.draw(self.chance)
        self._create(name, fate)
        self.done[f"run that {fate.name}"] += 1

    def act(self) -> None:
        """Do one thing by chance, about three in a second."""
        time.sleep(self.chance.expovariate(3.0))
        acts = {
            self.kill_operator: 2,
            self.end_operator: 1,
            self.delete_run: 3,
            self.replace_run: 1,
            self.suspend: 4,
            self.resume: 4,
            self.delete_child: 4,
            self.evict: 4,
        }
        chosen = self.chance.choices(list(acts), list(acts.values()))[0]
        if chosen():
            self.done[chosen.__name__] += 1
        self.tend()

    def tend(self) -> None:
        """Start the operator again if it has ended, as its Deployment would."""
        if self._operator is None or self._operator.process.poll() is not None:
            if self._operator is not None:
                process = self._operator.process
                self.done[f"operator ended with {process.returncode}"] += 1
                self._goes_down(self._ended.get(process.pid, time.monotonic()))
            self.start_operator()

    def start_operator(self) -> None:
        """Start it and wait until it holds the Lease: until then nobody could act."""
        self._starts += 1
        identity = f"operator-{self._starts}"
        mark = len(self.witness.seen)
        self._operator = harness.start(
            self._kubeconfig,
            self.namespace,
            self.folder / "operator.log",
            identity=identity,
            reach=self.answers.reach,
        )
        threading.Thread(target=self._note_end, args=(self._operator,), daemon=True).start()

        def holds(seen: Seen) -> bool:
            return seen.kind == "Lease" and seen.thing["spec"].get("holderIdentity") == identity

        since = self._goes_down(time.monotonic())
        while not self.witness.wait(holds, mark, 2.0):
            assert time.monotonic() - since < 300, self._operator.words()[-4000:]
            if self._operator.process.poll() is not None:
                break  # `tend` starts the next one; until it holds the Lease nobody acts
        else:
            self.outages.append(Outage(since, time.monotonic()))
            self._down_since = None

    def _note_end(self, operator: harness.Running) -> None:
        """An operator that ends by itself, as one that has lost its Lease, is away from then on."""
        operator.process.wait()
        self._ended[operator.process.pid] = time.monotonic()

    def _goes_down(self, at: float) -> float:
        """Nobody acts since then, or since earlier if nobody did before; returns since when."""
        if self._down_since is None:
            self._down_since = at
        return self._down_since

    def kill_operator(self) -> bool:
        """SIGKILL, in the midst of whatever it does."""
        return self._take_operator_away(harness.Running.kill)

    def end_operator(self) -> bool:
        """SIGTERM, as at an upgrade."""

        def end(operator: harness.Running) -> None:
            try:
                operator.stop(60)
            except subprocess.TimeoutExpired as refusal:
                raise AssertionError("the operator ignores SIGTERM for a minute") from refusal

        return self._take_operator_away(end)

    def delete_run(self) -> bool:
        """Delete a run, whatever it does."""
        if name := self._some_run():
            self.api.delete("WatercolourRun", name, self.namespace)
        return bool(name)

    def replace_run(self) -> bool:
        """Delete a run and create another of its name at once."""
        name = self._some_run()
        if not name:
            return False
        self.api.delete("WatercolourRun", name, self.namespace)
        if self.api.find("WatercolourRun", name, self.namespace) is None:
            self._create(name, self.fates[name])
        return True

    def suspend(self) -> bool:
        """Ask a run to suspend."""
        return self._ask_to_suspend(True)

    def resume(self) -> bool:
        """Let a suspended run go on."""
        return self._ask_to_suspend(False)

    def delete_child(self) -> bool:
        """Delete an object of a run behind the operator's back."""
        kind = self.chance.choice(["Pod", "Job", "Deployment", "NetworkPolicy", "Service"])
        found = self.api.list(kind, self.namespace, labels="watercolour.dev/run-uid")
        if found:
            chosen = self.chance.choice(found)["metadata"]
            self.taken.add(chosen["uid"])
            self.api.delete(kind, chosen["name"], self.namespace)
        return bool(found)

    def evict(self) -> bool:
        """Evict a pod of a run, as a drain does."""
        found = self.api.list("Pod", self.namespace, labels="watercolour.dev/run-uid")
        if not found:
            return False
        name = self.chance.choice(found)["metadata"]["name"]
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        try:
            self.api.post("Pod", name, self.namespace, "eviction", body)
        except ApiError as refusal:
            if refusal.code not in {404, 429}:
                raise
        return True

    def stop(self) -> str:
        """End the operator for good; what it has said."""
        if self._operator is None:
            return ""
        self._operator.kill()
        return self._operator.words()

    def _take_operator_away(self, how: Any) -> bool:
        assert self._operator
        if self._operator.process.poll() is not None:
            return False
        self._goes_down(time.monotonic())
        how(self._operator)
        self._operator = None
        if self.chance.random() < 0.5:
            self._others_act()
        self.start_operator()
        return True

    def _others_act(self) -> None:
        """What happens while there is no operator."""
        for act in self.chance.sample([self.delete_run, self.suspend, self.resume, self.evict], 2):
            if act():
                self.done[f"{act.__name__} without an operator"] += 1

    def _ask_to_suspend(self, suspend: bool) -> bool:
        runs = [
            run
            for run in self.api.list("WatercolourRun", self.namespace)
            if run["spec"].get("suspend", False) != suspend and phase(run) not in ENDED
        ]
        if not runs:
            return False
        name = self.chance.choice(runs)["metadata"]["name"]
        body = {"spec": {"suspend": suspend}}
        try:
            self.api.patch("WatercolourRun", name, body, self.namespace)
        except ApiError as refusal:
            if refusal.code != 404:
                raise
        return True

    def _some_run(self) -> str:
        runs = self.api.list("WatercolourRun", self.namespace)
        return self.chance.choice(runs)["metadata"]["name"] if runs else ""

    def _create(self, name: str, fate: Fate) -> None:
        fates.script(self.pods, self.namespace, name, fate)
        self.answers.say(name, "trainer", "/progress", {"step": 1, "steps": 3})
        self.answers.say(name, "env", "/v1/demand", {"queued": 0, "inflight": 0, "announced": 4})
        self.api.create(fates.manifest(name, fate), self.namespace)

    def _now_and_then(self, share: float, *, watches: bool) -> Matches:
        # A generator of its own: calls come in another thread, at moments that no seed decides.
        chance = Random(self.chance.random())

        def matches(call: Call) -> bool:
            return all_but_watches(call) != watches and chance.random() < share

        return matches
