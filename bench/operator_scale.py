"""The operator with 1,000 runs on a real API server: memory, CPU, calls, reaction, start latency.

KWOK plays nodes and pods, so every run has its trainer, environment, scorer and a renderer running,
and none of them is let go. Measured:

* start latency: from apply to the last child created, by the API server's own audit log, with an
  operator that is otherwise idle;
* resident memory, CPU and API calls of the operator over a while in which nothing changes;
* reaction: from the moment at which a bare watcher hears of a change (a run's specification, a
  pod's readiness) to the one at which it hears of the operator's answer in the run's status.

    .venv/bin/python bench/operator_scale.py [--runs 1000] [--starts 100] [--seconds 120]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import quantiles
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# The test ground is no installed package: a script finds it only after this.
sys.path.insert(0, str(ROOT))

from tests.cluster.ground import clusters, kwok
from tests.cluster.ground.api import Api
from tests.cluster.ground.controlplane import ControlPlane
from tests.cluster.operator import harness

Json = dict[str, Any]
NAMESPACE = "scale"
USER = f"system:serviceaccount:{NAMESPACE}:operator"
LIMITS = {
    "memory_mib": 150.0,
    "core_share": 0.10,
    "calls_per_run_minute": 1.0,
    "reaction_p99_s": 1.0,
    "start_p99_s": 1.0,
}
PROGRESS = {"step": 1, "steps": 3}
LOAD = {"slots": 2, "busy": 0, "draining": False}
#: Every part of a run stays awake, so that no run falls asleep while nothing is to change.
AWAKE: Json = {
    "renderers": {"scaling": {"min": 1, "max": 2}},
    "scorer": {"idleTimeoutSeconds": 86_400},
}
DEMAND = {"queued": 0, "inflight": 0, "announced": 0}
#: Seconds after which every run has told what it has learnt since its start.
SETTLE_SECONDS = 360.0
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class World:
    """The ground, the operator and what its pods say."""

    plane: ControlPlane
    operator: harness.Running
    answers: harness.Answers

    @property
    def api(self) -> Api:
        """The bench's own client."""
        return self.plane.api


@contextmanager
def world(runs: int) -> Iterator[World]:
    """A control plane with room for the runs, and an operator with its own defaults."""
    programs = clusters.resolve(lambda text: print(text, file=sys.stderr))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        crds = sorted((ROOT / "crds").glob("*.yaml"))
        plane = stack.enter_context(
            ControlPlane(folder / "plane", programs.kube, programs.etcd, crds=crds)
        )
        fakes = kwok.start(programs.kwok, plane.kubeconfig, plane.folder, pods=True)
        stack.callback(fakes.stop)
        for number in range(1 + runs * 4 // 800):
            kwok.add_node(plane.api, f"node-{number}", gpus=runs)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        plane.api.create(namespace)
        answers = stack.enter_context(harness.answering())
        token = plane.token_of(NAMESPACE, "operator", cluster_admin=True)
        kubeconfig = plane.kubeconfig_of(token, folder / "kubeconfig")
        own = {"lease_seconds": "15", "poll_seconds": "2"}  # the operator's defaults
        operator = harness.start(
            kubeconfig, NAMESPACE, folder / "operator.log", reach=answers.reach, **own
        )
        stack.callback(operator.kill)
        plane.api.until_one("Lease", "operator", NAMESPACE, timeout=60)
        yield World(plane, operator, answers)


def add_run(here: World, name: str) -> None:
    """The run, applied by a user of its own, and all that it needs."""
    ready(here, name)
    here.api.create(harness.run(name, **AWAKE), NAMESPACE)


def ready(here: World, name: str) -> None:
    """A volume, and what the run's pods say."""
    harness.volume(here.api, NAMESPACE, name)
    here.answers.say(name, "trainer", "/progress", PROGRESS)
    here.answers.say(name, "env", "/v1/demand", DEMAND)
    here.answers.say(name, "renderers", "/v1/load", LOAD)


def running(count: int) -> Callable[[list[Json]], bool]:
    """Whether so many runs are Running."""
    return lambda runs: sum(harness.phase(run) == "Running" for run in runs) >= count


def start_latencies(here: World, count: int) -> list[float]:
    """Seconds from each apply to its last child, one run after the other."""
    begun: dict[str, float] = {}
    for number in range(count):
        name = f"start-{number:03}"
        ready(here, name)
        begun[name] = time.time()
        here.api.create(harness.run(name, **AWAKE), NAMESPACE)
        here.api.until_one(
            "WatercolourRun", name, NAMESPACE, lambda run: harness.phase(run) == "Running"
        )
    made: dict[str, float] = {}
    children: dict[str, int] = {}
    for call in here.plane.calls(USER):
        owner = next((name for name in begun if call.name.startswith(name)), None)
        if owner and call.code == 201:
            made[owner] = max(made.get(owner, 0.0), seconds(call.done))
            children[owner] = children.get(owner, 0) + 1
    print(f"  children of a run: {sorted(set(children.values()))}")
    return [made[name] - begun[name] for name in begun]


def seconds(stamp: str) -> float:
    """Seconds since 1970 of an RFC 3339 time."""
    return datetime.fromisoformat(stamp).timestamp()


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_mib(pid: int, what: str = "VmRSS") -> float:
    """Resident memory of a process: now, or with VmHWM at its highest."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) / 1024
    raise ValueError(f"/proc/{pid}/status has no {what}")


def idle(here: World, runs: int, window: float) -> dict[str, float]:
    """What the operator uses while nothing changes."""
    pid = here.operator.process.pid
    before, began = cpu_seconds(pid), time.time()
    samples: list[float] = []
    while time.time() - began < window:
        time.sleep(1)
        samples.append(resident_mib(pid))
    took = time.time() - began
    used = cpu_seconds(pid) - before
    calls = [call for call in here.plane.calls(USER) if began <= seconds(call.at) < began + took]
    by: dict[str, int] = {}
    for call in calls:
        by[f"{call.verb} {call.resource}"] = by.get(f"{call.verb} {call.resource}", 0) + 1
    print(f"  calls while idle: {dict(sorted(by.items(), key=lambda item: -item[1])[:8])}")
    return {
        "memory_mib": max(samples),
        "core_share": used / took,
        "calls_per_run_minute": len(calls) / runs / (took / 60),
    }


@dataclass
class Watcher:
    """A bare watcher: notes when it heard of each version of the objects of one kind."""

    api: Api
    kind: str
    heard: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    newest: dict[str, Json] = field(default_factory=dict[str, Json])
    _news: threading.Condition = field(default_factory=threading.Condition)
    _over: bool = False

    def __enter__(self) -> Watcher:
        since = self.api.version(self.kind, NAMESPACE)
        threading.Thread(target=self._watch, args=(since,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True

    def when(self, name: str, condition: Callable[[Json], bool], timeout: float = 30.0) -> float:
        """When it heard of the first version that meets the condition; waits for it."""
        deadline = time.monotonic() + timeout
        with self._news:
            while not (name in self.newest and condition(self.newest[name])):
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"{self.kind} {name}: not within {timeout:g} s")
                self._news.wait(left)
            return self.heard[name, self.newest[name]["metadata"]["resourceVersion"]]

    def _watch(self, since: str) -> None:
        for event in self.api.events_of(self.kind, NAMESPACE, since=since, timeout=3600):
            now, thing = time.monotonic(), event["object"]
            metadata = thing["metadata"]
            with self._news:
                self.heard[metadata["name"], metadata["resourceVersion"]] = now
                self.newest[metadata["name"]] = thing
                self._news.notify_all()
            if self._over:
                return


def spec_reaction(here: World, runs: Watcher, name: str, number: int) -> float:
    """From a changed specification to conditions that have observed it."""
    change = {"spec": {"activeDeadlineSeconds": 100_000 + number}}
    generation = here.api.patch("WatercolourRun", name, change, NAMESPACE)["metadata"]["generation"]
    changed = runs.when(name, lambda run: run["metadata"]["generation"] >= generation)

    def observed(run: Json) -> bool:
        seen = [each.get("observedGeneration", 0) for each in run["status"]["conditions"]]
        return max(seen) >= generation

    return runs.when(name, observed) - changed


def pod_reaction(here: World, runs: Watcher, pods: Watcher, name: str) -> float:
    """From an environment's pod that is no longer ready to the run's condition."""
    labels = {"watercolour.dev/run": name, "watercolour.dev/component": "env"}
    [pod] = here.api.list("Pod", NAMESPACE, labels=labels)
    conditions = [{"type": kind, "status": "False"} for kind in ("Ready", "ContainersReady")]
    statuses = pod["status"]["containerStatuses"]
    for each in statuses:
        each["ready"] = False
    body = {"status": {"conditions": conditions, "containerStatuses": statuses}}
    called = pod["metadata"]["name"]
    here.api.patch("Pod", called, body, NAMESPACE, how="strategic", subresource="status")

    def unready(thing: Json, kind: str) -> bool:
        found = thing.get("status", {}).get("conditions", [])
        return any(each["type"] == kind and each["status"] == "False" for each in found)

    changed = pods.when(called, lambda thing: unready(thing, "Ready"))
    return runs.when(name, lambda run: unready(run, "EnvReady")) - changed


def p99(values: list[float]) -> float:
    """The 99th percentile."""
    return quantiles(values, n=100, method="inclusive")[98]


def measure(runs: int, starts_of: int, window: float, reactions: int) -> dict[str, float]:
    """All figures, in the order in which they disturb each other least."""
    with world(runs) as here:
        print("start latency, idle operator")
        starts = start_latencies(here, min(starts_of, runs // 2))
        print(f"filling up to {runs} runs")
        names = [f"run-{number:04}" for number in range(runs - len(starts))]
        filling = time.monotonic()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda name: add_run(here, name), names))
        here.api.until("WatercolourRun", running(runs), NAMESPACE, timeout=1800)
        filled = time.monotonic() - filling
        print(f"  {len(names)} runs applied and Running in {filled:.0f} s")
        time.sleep(SETTLE_SECONDS)
        print(f"nothing changes for {window:g} s")
        figures = idle(here, runs, window)
        figures["memory_peak_mib"] = resident_mib(here.operator.process.pid, "VmHWM")
        print("reactions")
        with Watcher(here.api, "WatercolourRun") as watcher, Watcher(here.api, "Pod") as pods:
            specs = [
                spec_reaction(here, watcher, names[number % len(names)], number)
                for number in range(reactions)
            ]
            readiness = [
                pod_reaction(here, watcher, pods, name)
                for name in names[: min(reactions, len(names))]
            ]
        print(f"  specification: p50 {sorted(specs)[len(specs) // 2]:.3f} p99 {p99(specs):.3f} s")
        print(f"  pod: p50 {sorted(readiness)[len(readiness) // 2]:.3f} p99 {p99(readiness):.3f} s")
        print(f"  control plane, MiB: {here.plane.resident_mib()}")
        return figures | {
            "reaction_p99_s": p99(specs + readiness),
            "start_p99_s": p99(starts),
            "start_p50_s": sorted(starts)[len(starts) // 2],
            "fill_s": filled,
        }


def main() -> None:
    """Measure, and print a table and a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--starts", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--reactions", type=int, default=100)
    args = parser.parse_args()
    figures = measure(args.runs, args.starts, args.seconds, args.reactions)
    print(f"{'figure':24} {'measured':>10} {'limit':>8}")
    for name, value in figures.items():
        limit = LIMITS.get(name)
        shown = "" if limit is None else f"{limit:8.2f}{'' if value <= limit else '  exceeded'}"
        print(f"{name:24} {value:10.3f} {shown}")
    worst = min(LIMITS[name] / figures[name] for name in LIMITS)
    line = {
        "bench": "operator_scale",
        "ours": {name: round(value, 4) for name, value in figures.items()},
        "theirs": LIMITS,
        "ratio": round(worst, 3),
        "unit": "limit over measured, the worst of the figures",
        "n": args.runs,
        "conditions": f"{args.runs} runs on KWOK, {args.seconds:g} s without a change, "
        f"{args.reactions} changes a kind, {os.cpu_count()} cores shared with the control plane",
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
