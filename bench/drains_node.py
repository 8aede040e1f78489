"""Renderers ended while they paint, on a whole Kubernetes node: no painting may be lost with one.

A run's renderers are scaled up and down (by its scale subresource, as an HPA does) while more
sketches wait than there are renderers, so that every pod that is ended is at work. Then as many at
once are ended without a drain (deleted with a grace of 0 s), in the same run. Both sides are the
shares of the ended pods whose render was lost. Exits with 1 if a drained pod lost one, a sketch
came back without a painting, or a drained pod did not end by itself.

    .venv/bin/python bench/drains_node.py [--drains 100] [--most 6]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parents[1]
# The node is that of the tests, and the run that of another bench.
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

import on_node
import scaling_node as bench
from on_node import Pods
from scaling_cells import Cell
from tests.cluster.node import cluster, host, images, run
from tests.cluster.node.cluster import Cluster

from watercolour.env.client import EnvClient

NAMESPACE = "drains"
CORES = 0.4  # of a renderer
SHAPES = 60  # of a sketch: seconds of painting, so that a pod is never caught between two
WITHIN = 300.0  # seconds for pods to start or to end


@dataclass(frozen=True)
class Outcome:
    """What was seen.

    Attributes:
        drains: pods that were told to end.
        lost: attempts that the environment lost with a drained renderer.
        unpainted: sketches that came back without a painting.
        forced: pods whose end was not their own.
        painted: sketches painted meanwhile.
        killed: pods that were then ended without a drain.
        killed_lost: attempts lost with those.
    """

    drains: int
    lost: int
    unpainted: int
    forced: int
    painted: int
    killed: int
    killed_lost: int


def specification(most: int) -> dict[str, Any]:
    """The run: an idle trainer, real environment and renderers that somebody else scales."""
    cell = Cell("published-8", None, 1, "HPA", most, CORES, SHAPES, min=1)
    made = bench.specification(cell, images.wanted()["operator"])
    made["metadata"]["name"] = "drained"
    return made


def measure(found: Cluster, drains: int, most: int) -> Outcome:
    """Make the run, end so many of its renderers, take the run away."""

    def kubectl(*words: str, stdin: str = "") -> str:
        return run.kubectl(found, *words, "-n", NAMESPACE, stdin=stdin).decode()

    run.namespace(found, NAMESPACE)
    kubectl("apply", "-f", "-", stdin=json.dumps(specification(most)))
    try:
        on_node.until("the environment", lambda: on_node.begun(kubectl, "drained"))
        with ExitStack() as ends:
            server = ends.enter_context(on_node.served(found, "proxy", "--port=0"))
            forward = on_node.forward(NAMESPACE, "drained")
            env = ends.enter_context(on_node.served(found, *forward))
            return asyncio.run(_drain(env, server, drains, most))
    finally:
        kubectl("delete", "wcr", "drained", "--timeout=600s")
        kubectl("wait", "pod", "--all", "--for=delete", "--timeout=600s")


async def _drain(env: str, server: str, drains: int, most: int) -> Outcome:
    pods, told, painted, unpainted = Pods(), 0, 0, 0
    with EnvClient(env, sessions=2 * most, timeout_s=3600) as client:
        async with httpx.AsyncClient(timeout=30, trust_env=False) as http:
            looking = asyncio.create_task(on_node.look(http, server, NAMESPACE, "drained", pods))

            async def paint_on(number: int) -> None:
                nonlocal painted, unpainted
                while True:
                    source = f"```javascript\n{bench.sketch(number, SHAPES)}\n```"
                    one = await client.evaluate(
                        source, subject="a red poppy", seed=number, return_image=False
                    )
                    painted += "render" in one.timings
                    unpainted += "render" not in one.timings
                    number += 2 * most

            async def all_busy() -> None:
                await _scale(http, server, most)
                await _until(lambda: pods.ready == most, f"{most} renderers")
                enough = painted + most
                await _until(lambda: painted >= enough, "paintings")

            async def lost() -> int:
                found = bench.LOST.search((await http.get(f"{env}/metrics")).text)
                return round(float(found[1])) if found else 0

            painters = [asyncio.create_task(paint_on(number)) for number in range(2 * most)]
            try:
                while told < drains:
                    await all_busy()
                    await _scale(http, server, 1)
                    told += most - 1
                    await _until(lambda: pods.alive == 1, "the pods' end")
                    on_node.say(f"{told} of {drains} drained, {painted} painted, {unpainted} not")
                drained_lost, forced = await lost(), pods.forced
                await all_busy()
                killed = await _kill(http, server, most - 1)
                enough = painted + 2 * most
                await _until(lambda: painted >= enough, "paintings after the kills")
                killed_lost = await lost() - drained_lost
            finally:
                for each in (*painters, looking):
                    each.cancel()
                for each in (*painters, looking):
                    with suppress(asyncio.CancelledError):
                        await each
    return Outcome(told, drained_lost, unpainted, forced, painted, killed, killed_lost)


async def _kill(http: httpx.AsyncClient, server: str, count: int) -> int:
    url = f"{server}/api/v1/namespaces/{NAMESPACE}/pods"
    selector = "watercolour.dev/run=drained,watercolour.dev/component=renderers"
    listed = await http.get(url, params={"labelSelector": selector})
    names = [pod["metadata"]["name"] for pod in listed.raise_for_status().json()["items"]][:count]
    for name in names:
        gone = await http.delete(f"{url}/{name}", params={"gracePeriodSeconds": 0})
        gone.raise_for_status()
    return len(names)


async def _scale(http: httpx.AsyncClient, server: str, replicas: int) -> None:
    runs = f"{server}/apis/watercolour.dev/v1alpha1/namespaces/{NAMESPACE}/watercolourruns"
    patched = await http.patch(
        f"{runs}/drained/scale",
        json={"spec": {"replicas": replicas}},
        headers={"Content-Type": "application/merge-patch+json"},
    )
    patched.raise_for_status()


async def _until(holds: Any, what: str) -> None:
    give_up = time.monotonic() + WITHIN
    while not holds():
        if time.monotonic() > give_up:
            raise RuntimeError(f"{what}: not there after {WITHIN:.0f} s")
        await asyncio.sleep(on_node.LOOK_EVERY / 2)


def main() -> int:
    """Measure, and print a line of JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--drains", type=int, default=100, help="at least so many (default: 100)")
    parser.add_argument("--most", type=int, default=6, help="renderers between them (default: 6)")
    options = parser.parse_args()
    was_up = cluster.there()
    try:
        found = cluster.up(on_node.say)
        if found.place:
            images.bring(found.place, on_node.say, ("operator", "env", "renderer"))
        run.install(found, on_node.say)
        one = measure(found, options.drains, options.most)
    finally:
        if not was_up:
            host.end()
    ours, theirs = one.lost / one.drains, one.killed_lost / one.killed
    print(
        json.dumps(
            {
                "bench": "drains_node",
                "ours": round(ours, 3),
                "theirs": round(theirs, 3),
                # Nothing lost has no ratio.
                "ratio": round(theirs / ours, 2) if ours else None,
                "unit": "renders lost for each pod ended",
                "n": one.drains,
                "conditions": asdict(one),
            }
        )
    )
    return int(bool(one.lost or one.unpainted or one.forced))


if __name__ == "__main__":
    sys.exit(main())
