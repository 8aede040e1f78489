"""What a burst of real renders costs in time and pods: the operator's scaling, an HPA's, KEDA's.

Plays traces of bursts on a whole Kubernetes node of this machine (tests/cluster/node; started if
none runs), or on the cluster of KUBECONFIG, where metrics-server and KEDA have to serve. Each cell
is a trace, a gap and a mode, and has a run of its own with real renderers, each held to a fifth of
a core so that their number matters on two. The run's trainer is idle: the bench sends the sketches.

    Queue  the operator follows the run's queue, as by default
    HPA    autoscaling/v2 with its defaults and a CPU target of 80 % of a renderer's cores on the
           run's scale (scaling.mode External); it keeps one pod at least. The operator drains pods.
    KEDA   the ScaledObject that the operator makes (scaling.mode KEDA)

`done` is from a burst's first sketch to its last painting, `p95 wait` how long a sketch waited for
a renderer, `pod-s` from pods' own start to their end between the first burst and one gap after the
last one began; each but the wait is a mean over bursts. A burst begins a gap after the one before
began, or when that is done. `busy kills` are renders that the environment lost with their renderer.
Cells of a trace whose bursts are far apart share the node: their bursts begin in turn, and `beside`
tells for how many of a cell's seconds of painting another one painted too.
What was measured with the same images is kept in ~/.cache/watercolour/bench; `--fresh` measures
anew. Exits with 1 if the operator lost a render, or took more than half of the HPA's pod-seconds
between bursts 300 s or more apart.

    .venv/bin/python bench/scaling_node.py [--trace published-8] [--gap 60] [--mode HPA]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import httpx

from watercolour.api.rollout import Rollout
from watercolour.env.client import EnvClient
from watercolour_operator.scaling.simulate import load, shipped

ROOT = Path(__file__).resolve().parents[1]
# The node is that of the tests, and another bench has the sketch.
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from on_node import Pods, begun, forward, look, say, served, until
from render_small import sketch
from scaling_cells import Cell, Outcome, misses, summary, table
from tests.cluster.ground import binaries
from tests.cluster.node import autoscalers, cluster, host, images, run
from tests.cluster.node.cluster import Cluster

NAMESPACE = "scaling"
MODES = ("Queue", "HPA", "KEDA")
IMAGES = ("operator", "env", "renderer")
NEEDS = {"HPA": "metrics-server", "KEDA": "keda"}
#: Seconds between the bursts of the issue's traces; `fast` has times of its own.
TRACES, GAPS = ("published-8", "burst-64", "fast"), (60.0, 300.0, 900.0)
CPU_TARGET = 80  # per cent of the request: what `kubectl autoscale` takes when it is not told
#: Of a sketch: as heavy as lets two cores paint a burst within the shortest gap that it is for.
SHAPES = {"published-8": 700, "burst-64": 120, "fast": 20}
#: Seconds of a gap for each cell that shares the node: what a burst takes the slowest mode, about.
ROOM = {"published-8": 100.0, "burst-64": 350.0}
LOST = re.compile(r'^watercolour_render_attempts_total\{outcome="infrastructure"\} (\S+)$', re.M)
#: Stands where the trainer would: answers its probes, and ends when it is told to.
IDLE_TRAINER = """\
import http.server, os, signal
class Idle(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'{"step": 0, "steps": 1}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
http.server.ThreadingHTTPServer(("", 8000), Idle).serve_forever()
"""
Json = dict[str, Any]


def specification(cell: Cell, operator: str) -> Json:
    """The run: real environment and renderers, an idle trainer, terms that need no scorer."""
    few = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    renderers: Json = {
        "slots": 1,
        "deadlineSeconds": 120,
        # The renderers of all cells that share the node have to find room on it.
        "resources": {
            "requests": {"cpu": "10m", "memory": "64Mi"},
            "limits": {"cpu": f"{round(cell.cpu * 1000)}m", "memory": "1536Mi"},
        },
        "scaling": {
            "mode": "External" if cell.mode == "HPA" else cell.mode,
            "min": cell.min,
            "max": cell.max,
            "idleSeconds": cell.idle_seconds,
        },
    }
    if cell.mode == "HPA":
        renderers["replicas"] = max(1, cell.min)
    idle = {"name": "trainer", "command": ["python", "-c", IDLE_TRAINER]}
    return {
        "apiVersion": "watercolour.dev/v1alpha1",
        "kind": "WatercolourRun",
        "metadata": {"name": cell.name},
        "spec": {
            "recipe": {"name": "painted", "weights": {"gate": 0.5, "pigment": 0.5}},
            "trainer": {"image": operator, "resources": few},
            "podTemplates": {"trainer": {"spec": {"containers": [idle]}}},
            "renderers": renderers,
            "env": {"sessions": 64, "messageTimeoutSeconds": 3600, "resources": few},
            "artifacts": {"storage": {"size": "256Mi"}},
            "startupDeadlineSeconds": 3600,
        },
    }


def autoscaler(cell: Cell) -> Json:
    """An HPA as `kubectl autoscale` makes it, for the run itself.

    The target is said in cores, because what the renderers request here is not what they have.
    """
    target = {"type": "AverageValue", "averageValue": f"{round(cell.cpu * CPU_TARGET * 10)}m"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": f"{cell.name}-cpu"},
        "spec": {
            "scaleTargetRef": {
                "apiVersion": "watercolour.dev/v1alpha1",
                "kind": "WatercolourRun",
                "name": cell.name,
            },
            "minReplicas": max(1, cell.min),
            "maxReplicas": cell.max,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    }


def measure(found: Cluster, cells: Sequence[Cell]) -> Iterator[tuple[Cell, Outcome]]:
    """Make the runs, play their traces in turn, take the runs away."""

    def kubectl(*words: str, stdin: str = "") -> str:
        return run.kubectl(found, *words, "-n", NAMESPACE, stdin=stdin).decode()

    def remove() -> None:
        kubectl("delete", "hpa", "--all", "--wait=false")
        kubectl("delete", "wcr", "--all", "--timeout=600s")
        kubectl("wait", "pod", "--all", "--for=delete", "--timeout=600s")

    remove()
    operator = images.wanted()["operator"]
    try:
        for cell in cells:
            kubectl("apply", "-f", "-", stdin=json.dumps(specification(cell, operator)))
        for cell in cells:
            name = cell.name
            until(f"{name}'s environment", partial(begun, kubectl, name))
            if cell.mode == "HPA":
                kubectl("apply", "-f", "-", stdin=json.dumps(autoscaler(cell)))
                until("the HPA", partial(_is, kubectl, "hpa", f"{name}-cpu", "ScalingActive"))
            if cell.mode == "KEDA":
                scaled = f"{name}-renderers"
                until("KEDA", partial(_is, kubectl, "scaledobject", scaled, "Ready"))
        with ExitStack() as ends:
            server = ends.enter_context(served(found, "proxy", "--port=0"))
            envs = [
                ends.enter_context(served(found, *forward(NAMESPACE, cell.name))) for cell in cells
            ]
            yield from asyncio.run(play_all(cells, envs, server))
    finally:
        remove()


async def play_all(
    cells: Sequence[Cell], envs: Sequence[str], server: str
) -> list[tuple[Cell, Outcome]]:
    """Play several cells' traces, each a part of the gap after the one before.

    A cell that fails (its port-forward can be lost on a full machine) is told, and left out.
    """
    painting: dict[str, list[tuple[float, float]]] = {cell.name: [] for cell in cells}

    async def later(number: int, cell: Cell) -> Outcome:
        await asyncio.sleep(number * (cell.gap or 0.0) / len(cells))
        return await play(cell, envs[number], server, painting[cell.name])

    playing = (later(*each) for each in enumerate(cells))
    outcomes = await asyncio.gather(*playing, return_exceptions=True)
    found: list[tuple[Cell, Outcome]] = []
    for cell, one in zip(cells, outcomes, strict=True):
        if isinstance(one, BaseException):
            say(f"{cell.name}: not measured: {one!r}")
        else:
            there = round(beside(cell.name, painting), 1)
            found.append((cell, replace(one, beside_seconds=there)))
    return found


def beside(name: str, painting: Mapping[str, Sequence[tuple[float, float]]]) -> float:
    """Seconds of a cell's bursts in which a burst of another went on too; pure."""
    others = sorted(span for other, spans in painting.items() if other != name for span in spans)
    seconds = 0.0
    for begin, end in painting[name]:
        counted = begin  # until here, whatever others overlap each other
        for start, stop in others:
            start, stop = max(start, counted), min(stop, end)
            if start < stop:
                seconds += stop - start
                counted = stop
    return seconds


async def play(cell: Cell, env: str, server: str, painting: list[tuple[float, float]]) -> Outcome:
    """Send a trace's sketches when they are due, and look at the pods meanwhile.

    Args:
        cell: the trace and its run.
        env: base URL of the run's environment.
        server: base URL of the cluster's API.
        painting: takes the begin and end of each burst, in seconds since 1970.
    """
    pods, bursts, rollouts = Pods(), cell.arrivals(), list[Rollout]()
    took, started = list[float](), 0.0
    with EnvClient(env, sessions=64, timeout_s=3600) as client:
        async with httpx.AsyncClient(timeout=30, trust_env=False) as http:
            looking = asyncio.create_task(look(http, server, NAMESPACE, cell.name, pods))

            async def paint(number: int, due: float) -> Rollout:
                await asyncio.sleep(due - time.time())
                source = f"```javascript\n{sketch(number, cell.shapes)}\n```"
                return await client.evaluate(
                    source, subject="a red poppy", seed=number, return_image=False
                )

            begin = time.time()
            for at, offsets in bursts:
                due = max(begin + cell.announce + at, time.time())
                if cell.announce:
                    await asyncio.sleep(due - cell.announce - time.time())
                    await client.announce(len(offsets), due + cell.announce, cell.announce)
                await asyncio.sleep(due - time.time())
                started, first = time.time(), len(rollouts)
                rollouts += await asyncio.gather(
                    *(paint(first + n, started + offset) for n, offset in enumerate(offsets))
                )
                painting.append((started, time.time()))
                took.append(time.time() - started)
                say(f"{cell.name}: burst {len(took)} of {len(bursts)} took {took[-1]:.1f} s")
            apart = cell.gap if cell.gap is not None else _apart(bursts)
            await asyncio.sleep(started + apart - cell.announce - time.time())
            end = time.time()
            looking.cancel()
            metrics = (await http.get(f"{env}/metrics")).text
    waits = sorted(one.timings["queue"] for one in rollouts if "queue" in one.timings)
    lost = LOST.search(metrics)
    return Outcome(
        burst_seconds=round(fmean(took), 1),
        p95_wait_seconds=round(waits[math.ceil(0.95 * len(waits)) - 1], 1) if waits else None,
        pod_seconds=round(pods.seconds(begin, end) / len(took), 1),
        most_pods=pods.most,
        busy_kills=round(float(lost[1])) if lost else 0,
        unpainted=sum("render" not in one.timings for one in rollouts),
        forced=pods.forced,
        burst_each=tuple(round(each, 1) for each in took),
        beside_seconds=0.0,
    )


def _apart(bursts: Sequence[tuple[float, list[float]]]) -> float:
    return (bursts[-1][0] - bursts[0][0]) / (len(bursts) - 1) if len(bursts) > 1 else 0.0


def _is(kubectl: Any, kind: str, name: str, condition: str) -> bool:
    """Whether an object is there and a condition of it true."""
    path = f'{{.status.conditions[?(@.type=="{condition}")].status}}'
    words = ["get", kind, name, "--ignore-not-found", "-o", f"jsonpath={path}"]
    return kubectl(*words) == "True"


def cells(options: argparse.Namespace) -> list[Cell]:
    """What is asked for, by trace, gap and mode."""
    found: list[Cell] = []
    made = "-".join(images.digest(name) or "" for name in IMAGES).strip("-")
    for trace in options.trace or TRACES:
        # A recorded trace has its own times, unless a gap is asked for.
        gaps = options.gap or ((None,) if trace == "fast" else GAPS)
        bursts = min(options.bursts, load(trace).bursts)
        for gap in gaps:
            for mode in options.mode or MODES:
                shapes = options.shapes or SHAPES.get(trace, SHAPES["burst-64"])
                pods = (options.max, options.cpu, shapes, options.min)
                found.append(Cell(trace, gap, bursts, mode, *pods, options.announce, build=made))
    return found


def shared(cells: Sequence[Cell]) -> list[list[Cell]]:
    """The cells that are measured at once: as many of one gap as have room in it."""
    groups: list[list[Cell]] = []
    for cell in sorted(cells, key=lambda cell: (cell.trace, cell.gap or 0.0)):
        last = groups[-1] if groups else []
        alike = bool(last) and (last[0].trace, last[0].gap) == (cell.trace, cell.gap)
        room = ROOM.get(cell.trace, math.inf)
        if alike and (len(last) + 1) * room <= (cell.gap or 0.0):
            last.append(cell)
        else:
            groups.append([cell])
    return groups


def main() -> int:
    """Measure what is missing, print the table and the last line; 1 if our rule missed a bound."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trace", action="append", help=f"of {', '.join(shipped())}; repeatable")
    parser.add_argument("--gap", action="append", type=float, help="seconds; repeatable")
    parser.add_argument("--bursts", type=int, default=4, help="at most so many (default: 4)")
    parser.add_argument("--mode", action="append", choices=MODES, help="repeatable")
    parser.add_argument("--min", type=int, default=0, help="least renderers (default: 0)")
    parser.add_argument("--max", type=int, default=8, help="most renderers (default: 8)")
    parser.add_argument("--cpu", type=float, default=0.2, help="cores of one (default: 0.2)")
    parser.add_argument("--shapes", type=int, help="of a sketch (default: by trace)")
    parser.add_argument(
        "--announce",
        type=float,
        default=30.0,
        help="seconds ahead of a burst, 0 never (default: 30)",
    )
    parser.add_argument("--fresh", action="store_true", help="measure again what is kept")
    options = parser.parse_args()
    wanted = cells(options)
    path = binaries.cache().parent / "bench" / "scaling_node.json"
    kept: dict[str, Json] = json.loads(path.read_text()) if path.exists() else {}
    missing = [cell for cell in wanted if options.fresh or cell.key not in kept]
    if missing:
        was_up = cluster.there()
        try:
            found = cluster.up(say)
            if found.place:
                images.bring(found.place, say, IMAGES)
            run.install(found, say)
            run.namespace(found, NAMESPACE)
            modes = {cell.mode for cell in missing}
            autoscalers.install(found, [NEEDS[mode] for mode in NEEDS if mode in modes], say)
            path.parent.mkdir(parents=True, exist_ok=True)
            for several in shared(missing):
                say(f"measuring {', '.join(f'{cell.name} {cell.gap}' for cell in several)}")
                for cell, outcome in measure(found, several):
                    kept[cell.key] = asdict(outcome)
                path.write_text(json.dumps(kept, indent=1) + "\n")
        finally:
            if not was_up:
                host.end()
    outcomes = {cell: Outcome(**kept[cell.key]) for cell in wanted if cell.key in kept}
    if not outcomes:
        return 1
    print(table(outcomes))
    missed = misses(outcomes)
    for each in missed:
        print(each)
    print(json.dumps(summary(outcomes)))
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
