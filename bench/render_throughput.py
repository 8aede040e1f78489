"""Paintings a minute of the service with two slots against the published way of rendering.

Ours: the renderer's own process with two slots, asked over HTTP by two clients. Theirs: p5.brush as
published, Chromium's default flags, two at once in a running browser, each on a new page. They take
turns, round by round; every round paints each sketch twice with a seed of its own. Printed are the
median round's paintings a minute, CPU seconds a painting of everything below each side's process,
and the 99th percentile of the service's memory (PSS) by slot.

    .venv/bin/python bench/render_throughput.py [ROUNDS [SKETCH.js ...]]
"""

from __future__ import annotations

import asyncio
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from painting import (
    PATIENCE,
    RENDER_PYTHON,
    Clock,
    chromium,
    ensure_environment,
    paint_on_new_page,
    report,
    sketches,
    tree_cpu,
    tree_pss,
)

SLOTS = 2

#: Seconds that the service gets until it is ready, on a busy machine.
START_SECONDS = 120

#: Seconds between two looks at the memory.
LOOK_SECONDS = 0.25

#: MiB a slot that the renderer promises to stay below.
MEMORY_TARGET = 450


@dataclass
class Side:
    """Rounds of one side: paintings a minute and CPU seconds a painting."""

    speeds: list[float] = field(default_factory=list[float])
    cpu: list[float] = field(default_factory=list[float])


def start(announce: Path) -> subprocess.Popen[bytes]:
    """A renderer of its own as a process."""
    command = [RENDER_PYTHON, "-m", "watercolour.render.service", "--slots", str(SLOTS)]
    return subprocess.Popen(
        [*command, "--announce", str(announce)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@asynccontextmanager
async def service() -> AsyncIterator[tuple[int, str]]:
    """A renderer while the block runs; yields its process's id and its address once it is ready."""
    with tempfile.TemporaryDirectory() as folder:
        announce = Path(folder) / "renderer.json"
        process = start(announce)
        try:
            give_up = time.monotonic() + START_SECONDS
            while not announce.exists():
                if process.poll() is not None or time.monotonic() > give_up:
                    raise SystemExit("the renderer did not start")
                await asyncio.sleep(0.1)
            url = json.loads(announce.read_text())["url"]
            async with httpx.AsyncClient() as http:
                while (await http.get(f"{url}/readyz")).status_code != 200:
                    if time.monotonic() > give_up:
                        raise SystemExit("the renderer did not become ready")
                    await asyncio.sleep(0.2)
            yield process.pid, url
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


async def run_round(
    texts: list[str], seed: int, paint: Callable[[str, int], Awaitable[None]]
) -> float:
    """Every sketch twice, ``SLOTS`` at a time; paintings a minute."""
    waiting = [(text, 2 * seed + again) for again in range(2) for text in texts]
    total = len(waiting)

    async def worker() -> None:
        while waiting:
            await paint(*waiting.pop(0))

    clock = Clock()
    await asyncio.gather(*(worker() for _ in range(SLOTS)))
    return 60 * total / clock.seconds


async def watch(root: int, seen: list[int]) -> None:
    """Look at the memory of a tree until cancelled."""
    while True:
        seen.append(await asyncio.to_thread(tree_pss, root))
        await asyncio.sleep(LOOK_SECONDS)


async def measure(paths: list[Path], rounds: int) -> tuple[Side, Side, list[int]]:
    """Both sides' rounds and the service's memory in bytes."""
    from watercolour.render.result import Job

    texts = [path.read_text() for path in paths]
    ours, theirs = Side(), Side()
    seen: list[int] = []
    async with (
        service() as (root, url),
        chromium((), stock=True) as browser,
        httpx.AsyncClient(timeout=PATIENCE) as http,
    ):

        async def ask(sketch: str, seed: int) -> None:
            body = {"sketch": sketch, "seed": seed, "fresh": True}
            (await http.post(f"{url}/v1/render", json=body)).raise_for_status()

        async def open_page(sketch: str, seed: int) -> None:
            job = Job(sketch, seed, deadline_s=PATIENCE, cpu_budget_s=PATIENCE)
            await paint_on_new_page(browser, job)

        await run_round(texts[:1], 1, ask)
        await run_round(texts[:1], 1, open_page)
        for number in range(rounds):
            looking = asyncio.create_task(watch(root, seen))
            before = tree_cpu(root)
            ours.speeds.append(await run_round(texts, number + 1, ask))
            ours.cpu.append((tree_cpu(root) - before) / (2 * len(texts)))
            looking.cancel()
            # Looking takes time from whoever paints: both sides are looked at.
            looking = asyncio.create_task(watch(browser.process.pid, []))
            before = tree_cpu(browser.process.pid)
            theirs.speeds.append(await run_round(texts, number + 1, open_page))
            looking.cancel()
            theirs.cpu.append((tree_cpu(browser.process.pid) - before) / (2 * len(texts)))
            print(
                f"round {number + 1}: ours {ours.speeds[-1]:5.1f}/min {ours.cpu[-1]:5.2f} CPU s   "
                f"theirs {theirs.speeds[-1]:5.1f}/min {theirs.cpu[-1]:5.2f} CPU s   "
                f"{ours.speeds[-1] / theirs.speeds[-1]:4.2f}x",
                flush=True,
            )
    return ours, theirs, seen


def main() -> None:
    """Print the rounds and the line of JSON."""
    ensure_environment()
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    paths = sketches(sys.argv[2:])
    ours, theirs, seen = asyncio.run(measure(paths, rounds))
    by_slot = sorted(size / SLOTS / 2**20 for size in seen)
    memory = by_slot[min(len(by_slot) - 1, int(0.99 * len(by_slot)))]
    ratios = [a / b for a, b in zip(ours.speeds, theirs.speeds, strict=True)]
    print(f"memory by slot: 99th percentile {memory:.0f} MiB, at most {MEMORY_TARGET} promised")
    report(
        "render_throughput",
        statistics.median(ours.speeds),
        statistics.median(theirs.speeds),
        statistics.median(ratios),
        unit="paintings a minute, two at once (median round; ratio: median of the rounds')",
        n=rounds,
        conditions={
            "sketches": [path.stem for path in paths],
            "cpu_seconds": {
                "ours": round(statistics.median(ours.cpu), 2),
                "theirs": round(statistics.median(theirs.cpu), 2),
            },
            "memory_mib_a_slot_p99": round(memory),
        },
    )


if __name__ == "__main__":
    main()
