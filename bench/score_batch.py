"""Pictures a second through the scorer: waiting ones batched, against one request at a time.

Both sides are the same running server over HTTP, with pictures that it has never seen. Ours
sends 16 requests at once, theirs one after the other; they take turns.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np
from PIL import Image

from watercolour.score import examples
from watercolour.score.client import ScoreClient

ROUNDS = 4
PICTURES = 16
PROMPT = "a loose watercolour flower"


def unseen(rng: np.random.Generator, pictures: tuple[bytes, ...]) -> list[bytes]:
    """Pool paintings with one pixel changed, so that no cache knows them."""
    found: list[bytes] = []
    for i in rng.choice(len(pictures), PICTURES, replace=False):
        with Image.open(io.BytesIO(pictures[i])) as opened:
            image = opened.convert("RGB")
        x, y = (int(v) for v in rng.integers(0, min(image.size), 2))
        r, g, b = (int(v) for v in rng.integers(0, 256, 3))
        image.putpixel((x, y), (r, g, b))
        buffer = io.BytesIO()
        image.save(buffer, "PNG")
        found.append(buffer.getvalue())
    return found


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(url: str, pid: int) -> dict[str, tuple[list[float], list[float]]]:
    """Seconds and CPU seconds a picture, by side and round."""
    rng = np.random.default_rng(0)
    pictures = examples.read(examples.BUILTIN).pictures
    taken: dict[str, tuple[list[float], list[float]]] = {"batched": ([], []), "single": ([], [])}
    async with ScoreClient(url) as client:
        await client.score(pictures[0], PROMPT)
        for _ in range(ROUNDS):
            for side, (walls, cpus) in taken.items():
                batch = unseen(rng, pictures)
                wall, cpu = time.perf_counter(), cpu_seconds(pid)
                if side == "batched":
                    await asyncio.gather(*(client.score(p, PROMPT) for p in batch))
                else:
                    for picture in batch:
                        await client.score(picture, PROMPT)
                walls.append((time.perf_counter() - wall) / PICTURES)
                cpus.append((cpu_seconds(pid) - cpu) / PICTURES)
    return taken


def main() -> None:
    """Start a scorer, measure, print the table and the line of JSON."""
    with tempfile.TemporaryDirectory() as folder:
        announce = Path(folder) / "scorer.json"
        server = subprocess.Popen(
            [sys.executable, "-m", "watercolour.score.service", "--announce", str(announce)],
            stderr=subprocess.DEVNULL,
        )
        try:
            while not announce.exists() and server.poll() is None:
                time.sleep(0.05)
            url = str(json.loads(announce.read_text())["url"])
            while httpx.get(f"{url}/readyz").status_code != 200:
                time.sleep(0.05)
            taken = asyncio.run(measure(url, server.pid))
        finally:
            server.terminate()
            server.wait()
    rate = {side: 1 / statistics.median(walls) for side, (walls, _) in taken.items()}
    print(f"{'side':10} pictures/s  CPU s a picture (median of {ROUNDS} rounds of {PICTURES})")
    for side, (_, cpus) in taken.items():
        print(f"{side:10} {rate[side]:10.1f}  {statistics.median(cpus):.3f}")
    print(
        json.dumps(
            {
                "bench": "score_batch",
                "ours": round(rate["batched"], 2),
                "theirs": round(rate["single"], 2),
                "ratio": round(rate["batched"] / rate["single"], 3),
                "unit": "pictures/s",
                "n": ROUNDS * PICTURES,
                "conditions": f"embedded backend, 1 thread, batches of 8, {platform.machine()}",
            }
        )
    )


if __name__ == "__main__":
    main()
