"""What the service costs on top of the library: HTTP, JSON, checks, and the watch for a hang-up.

One process, one browser, one slot. Ours is a POST to /v1/render over the loopback, the client's
work included; theirs is the same sketch painted on the same slot and encoded as PNG by a call. They
take turns, sketch by sketch. The overhead is the median over the pairs of ours beyond theirs.

    .venv/bin/python bench/render_service.py [PAIRS] [SKETCH.js ...]
"""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import json
import os
import platform
import socket
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx
    import uvicorn

ROOT = Path(__file__).parents[1]
RENDER_PYTHON = str(ROOT / ".venv-render" / "bin" / "python")

#: Overhead up to which the service is as good as the library.
BOUND = 0.05


async def ready(server: uvicorn.Server, http: httpx.AsyncClient) -> None:
    """Wait until the service takes work."""
    for _ in range(3000):
        if server.started and (await http.get("/readyz")).status_code == 200:
            return
        await asyncio.sleep(0.1)
    raise SystemExit("the renderer did not get ready")


async def measure(pairs: int, paths: list[Path]) -> list[tuple[str, float, float]]:
    """Name, and wall seconds of ours and theirs, for each pair."""
    import httpx
    import uvicorn

    from watercolour.render import paint
    from watercolour.render.app import Options, Service
    from watercolour.render.result import Job

    service = Service(Options(slots=1))
    config = uvicorn.Config(service.app, log_config=None, access_log=False, ws="none")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as bound:
        serving = asyncio.create_task(server.serve(sockets=[bound]))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        rows: list[tuple[str, float, float]] = []
        async with httpx.AsyncClient(base_url=url, timeout=600, trust_env=False) as http:
            await ready(server, http)

            async def by_service(job: Job) -> bytes:
                body = {"sketch": job.sketch, "seed": job.seed, "fresh": True}
                body |= {"deadline_s": job.deadline_s, "cpu_budget_s": job.cpu_budget_s}
                answer = await http.post("/v1/render", json=body)
                return base64.b64decode(answer.raise_for_status().json()["painting"])

            async def by_library(job: Job) -> bytes:
                drawn = await service.renderer.pool.paint(job)
                rgb = paint.from_framebuffer(drawn.data, drawn.width, drawn.height)
                return await asyncio.to_thread(paint.encode, rgb)

            for number in range(pairs + 1):
                for place, path in enumerate(paths):
                    job = Job(path.read_text(), number, deadline_s=600, cpu_budget_s=600)
                    ways = [by_service, by_library]
                    order = ways if (number + place) % 2 else ways[::-1]
                    taken: dict[str, float] = {}
                    pictures: set[bytes] = set()
                    for way in order:
                        began = time.perf_counter()
                        pictures.add(await way(job))
                        taken[way.__name__] = time.perf_counter() - began
                    if len(pictures) != 1:
                        raise SystemExit(f"{path.stem} differs between the two ways")
                    if number:  # The first round warms both ways up.
                        rows.append((path.stem, taken["by_service"], taken["by_library"]))
        server.should_exit = True
        await serving
    return rows


def main() -> int:
    """Print the table and the line of JSON."""
    if importlib.util.find_spec("pyppeteer") is None:
        os.execv(RENDER_PYTHON, [RENDER_PYTHON, *sys.argv])
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    paths = [Path(name) for name in sys.argv[2:]]
    paths = paths or sorted((ROOT / "examples" / "sketches").glob("*.js"))
    load = os.getloadavg()[0]
    rows = asyncio.run(measure(pairs, paths))
    overheads = [ours / theirs - 1 for _, ours, theirs in rows]
    for name in dict.fromkeys(row[0] for row in rows):
        ours = statistics.median(row[1] for row in rows if row[0] == name)
        theirs = statistics.median(row[2] for row in rows if row[0] == name)
        print(f"{name:16} service {ours:7.3f} s   library {theirs:7.3f} s")
    overhead = statistics.median(overheads)
    print(f"overhead {overhead:+.1%}, median of {len(rows)} pairs; the bound is {BOUND:.0%}")
    print(
        json.dumps(
            {
                "bench": "render_service",
                "ours": round(statistics.median(row[1] for row in rows), 4),
                "theirs": round(statistics.median(row[2] for row in rows), 4),
                "ratio": round(1 / (1 + overhead), 4),
                "unit": "wall seconds a painting (median), by the service and by the library",
                "n": len(rows),
                "conditions": {
                    "overhead": round(overhead, 4),
                    "bound": BOUND,
                    "sketches": [path.stem for path in paths],
                    "pictures": "byte-identical between the two ways",
                    "cpus": os.cpu_count(),
                    "load_before": round(load, 1),
                    "machine": platform.machine(),
                },
            }
        )
    )
    return 0 if overhead <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
