"""Thousands of small paintings in a row, one in ten hostile: what leaks, and what is left of it.

A renderer of its own paints 256 by 256 sketches on all its slots at once. Every tenth job is
hostile: it loops, fills the memory, navigates, breaks the syntax, empties its document, hangs up,
or is no sketch at all. Ours and theirs are the worker's memory at the end and at the base, which is
the 300th job: by then the memory of paintings is full. Exits with 1 if a process, a file descriptor
or a temporary file has leaked, if the memory has grown by more than 5 %, or if a job has no answer
or a wrong one.

    .venv/bin/python bench/soak.py [--renders 3000] [--slots 2]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from watercolour.render import procfs

ROOT = Path(__file__).parents[1]
RENDER_PYTHON = ROOT / ".venv-render" / "bin" / "python"

#: The base: by then the memory of paintings is full. With fewer jobs growth is not judged.
BASE = 300

#: Jobs between two looks at the processes.
LOOK_EVERY = 20

#: Growth of the worker's memory that is no leak.
GROWTH = 1.05

#: Seconds in which the browser has to start, and in which the last pages have to be replaced.
START_SECONDS, SETTLE_SECONDS = 600.0, 120.0


def sketch(number: int, body: str = "") -> str:
    """A flower of five filled shapes, no two alike, with code of the attacker's own before it."""
    return f"""function setup() {{ createCanvas(256, 256, WEBGL); noLoop(); }}
function draw() {{
  {body}
  translate(-128, -128);
  background("#faf5ea");
  brush.noStroke();
  brush.fillBleed(0.2);
  brush.fillTexture(0.4, 0.4);
  brush.fill("#4f7840", 110);
  brush.rect({118 + number % 9}, 130, 8, 90);
  for (const [x, y, r] of [[100, 110, 30], [156, 110, 30], [128, 76, 34]]) {{
    brush.fill("#c9374b", 130);
    brush.circle(x + {number % 7}, y + {number % 5}, r);
  }}
  brush.fill("#f2c53d", 180);
  brush.circle(128, 104, 12);
}}"""


#: What a hostile job does, and the answers that it may get.
HOSTILE: tuple[tuple[str, str, frozenset[str]], ...] = (
    ("an endless loop", "while (true);", frozenset({"sketch_timeout"})),
    ("a reload", "location.reload();", frozenset({"render_failed"})),
    ("a broken syntax", "let = ;", frozenset({"syntax_error"})),
    ("an exception", "throw new Error('no');", frozenset({"painted", "render_failed"})),
    ("deep recursion", "const f = () => f(); try { f(); } catch {}", frozenset({"painted"})),
    ("an emptied document", 'document.body.innerHTML = "";', frozenset({"painted"})),
    (
        "endless promises",
        "const again = () => Promise.resolve().then(again); again();",
        frozenset({"sketch_timeout"}),
    ),
    ("a huge canvas", "createCanvas(20000, 20000, WEBGL);", frozenset({"canvas_out_of_bounds"})),
    (
        "a huge array",
        "window.big = new Uint8Array(2 ** 31).fill(1);",
        frozenset({"sketch_oom", "painted"}),
    ),
    ("dialogs", 'alert("x"); confirm("x"); prompt("x");', frozenset({"painted"})),
)
HANG_UP, BINARY = "who hangs up", "a binary"


@dataclass
class Look:
    """What the renderer holds at one moment."""

    jobs: int
    kinds: Counter[str]  # its processes by what Chromium calls them
    descriptors: int
    files: int
    worker_bytes: int
    tree_bytes: int


@dataclass
class Account:
    """Each job's one answer."""

    answers: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])
    looks: list[Look] = field(default_factory=list[Look])

    def enter(self, job: str, answer: str, allowed: frozenset[str]) -> None:
        """Write down a job's answer."""
        self.answers[answer] += 1
        if answer not in allowed:
            self.wrong.append(f"{job}: {answer}")


def look(pid: int, jobs: int, folder: Path) -> Look:
    """What the worker and all below it hold now."""
    family = procfs.descendants(pid)
    resident = [procfs.resident_bytes(each) or 0 for each in [pid, *family]]
    return Look(
        jobs=jobs,
        kinds=Counter(filter(None, map(procfs.kind, family))),
        descriptors=len(os.listdir(f"/proc/{pid}/fd")),
        files=sum(1 for _ in folder.glob("*")),
        worker_bytes=resident[0],
        tree_bytes=sum(resident),
    )


async def ask(http: httpx.AsyncClient, number: int) -> tuple[str, str, frozenset[str]]:
    """One job: what it is, its answer, and the answers that it may get."""
    limits = {"deadline_s": 300.0, "cpu_budget_s": 30.0}
    if number % 10:
        job = {"sketch": sketch(number), "seed": number, **limits}
        return "honest", await answer_of(http, job), frozenset({"painted"})
    turn = number // 10 % (len(HOSTILE) + 2)
    if turn == len(HOSTILE):
        raw = await http.post(
            "/v1/render",
            content=bytes(range(256)) * 64,
            headers={"Content-Type": "application/json"},
        )
        return BINARY, raw.json()["reason"], frozenset({"MalformedRequest"})
    if turn > len(HOSTILE):
        return HANG_UP, await hang_up(http, number), frozenset({"gone"})
    name, body, allowed = HOSTILE[turn]
    if "sketch_timeout" in allowed:
        limits["cpu_budget_s"] = 0.5
    return (
        name,
        await answer_of(http, {"sketch": sketch(number, body), "seed": 1, **limits}),
        allowed,
    )


async def answer_of(http: httpx.AsyncClient, job: dict[str, Any]) -> str:
    """``painted``, the violation's code or the reason."""
    while True:
        answer = await http.post("/v1/render", json=job)
        if answer.status_code == 429:
            # The slot of one who has hung up is taken until the renderer has heard of it.
            await asyncio.sleep(0.05)
            continue
        told = answer.json()
        if answer.status_code == 200:
            return "painted"
        return told["violation"]["code"] if answer.status_code == 422 else told["reason"]


async def hang_up(http: httpx.AsyncClient, number: int) -> str:
    """Ask for a loop of minutes and go away."""
    job = {"sketch": sketch(number, "while (true);"), "seed": number, "deadline_s": 300.0}
    try:
        await http.post("/v1/render", json={**job, "cpu_budget_s": 300.0}, timeout=1.0)
    except httpx.TimeoutException:
        return "gone"
    return "answered"


async def settled(http: httpx.AsyncClient, slots: int, seconds: float) -> None:
    """Wait until every slot is warm and nothing is painted."""
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        told = (await http.get("/readyz")).json()
        state = told.get("details", told)
        if (state["warm"], state["busy"]) == (slots, 0):
            await asyncio.sleep(1)
            return
        await asyncio.sleep(0.1)
    raise SystemExit(f"the renderer's slots were not warm after {seconds:g} s")


async def soak(url: str, pid: int, folder: Path, renders: int, slots: int) -> Account:
    """All jobs, as many at a time as there are slots; looks before, between and after."""
    account = Account()
    numbers = iter(range(1, renders + 1))
    done = 0
    began = time.monotonic()

    async def work(http: httpx.AsyncClient) -> None:
        nonlocal done
        for number in numbers:
            account.enter(*await ask(http, number))
            done += 1
            if done % LOOK_EVERY == 0:
                account.looks.append(look(pid, done, folder))
            if done % 100 == 0:
                now = account.looks[-1]
                print(
                    f"{done:5}  {time.monotonic() - began:7.0f} s   worker "
                    f"{now.worker_bytes / 2**20:6.1f} MiB   all {now.tree_bytes / 2**20:6.0f} MiB  "
                    f"{now.kinds.total():3} processes   {now.descriptors:3} descriptors",
                    flush=True,
                )

    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=60) as quiet:
        await settled(quiet, slots, START_SECONDS)
        account.looks.append(look(pid, 0, folder))
        # The jobs' own connections are gone before the last look.
        async with httpx.AsyncClient(base_url=url, timeout=900, limits=limits) as http:
            await asyncio.gather(*(work(http) for _ in range(slots)))
        await settled(quiet, slots, SETTLE_SECONDS)
        account.looks.append(look(pid, done, folder))
        counted = await quiet.get("/metrics")
    served = sum(
        float(line.rpartition(" ")[2])
        for line in counted.text.splitlines()
        if line.startswith("watercolour_render_requests_total{") and '"busy"' not in line
    )
    if int(served) != renders or sum(account.answers.values()) != renders:
        account.wrong.append(
            f"{renders} jobs, {account.answers.total()} answers, {served:g} counted"
        )
    return account


def run(renders: int, slots: int) -> tuple[Account, int, int]:
    """The account, then the processes and files that outlived the renderer."""
    # The browser's sockets lie below the second; a socket's path has at most 107 characters.
    with (
        tempfile.TemporaryDirectory(prefix="watercolour-soak-") as place,
        tempfile.TemporaryDirectory(prefix="wc-") as temporary,
    ):
        folder, home = Path(place), Path(temporary)
        home.chmod(0o711)  # The browser is another user's.
        announce, log = folder / "announce.json", folder / "renderer.log"
        command = [RENDER_PYTHON, "-m", "watercolour.render.service", "--slots", str(slots)]
        with log.open("wb") as out:
            service = subprocess.Popen(
                [*map(str, command), "--announce", str(announce)],
                stdout=out,
                stderr=out,
                env={**os.environ, "TMPDIR": str(home)},
            )
        try:
            while not announce.exists():
                if service.poll() is not None:
                    raise SystemExit(log.read_text())
                time.sleep(0.05)
            told = json.loads(announce.read_text())
            account = asyncio.run(soak(told["url"], told["pid"], home, renders, slots))
            family = procfs.descendants(service.pid)
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait(60)
        left = [pid for pid in family if procfs.kind(pid)]
        return account, len(left), sum(1 for _ in home.glob("*"))


def base_of(looks: list[Look]) -> float:
    """The worker's memory at the base, in bytes: the median of five looks around it."""
    nearest = sorted(looks[1:], key=lambda one: abs(one.jobs - BASE))[:5]
    return statistics.median(one.worker_bytes for one in nearest)


def leaked_kinds(looks: list[Look]) -> Counter[str]:
    """Processes of each kind beyond the most that one look of the beginning found.

    A browser starts some of its helpers when it first needs them, and may be replacing a page at
    any moment: the end is the least that the last five looks have in common.
    """
    until = min(2 * BASE, looks[-1].jobs // 2)
    early = [one.kinds for one in looks if one.jobs <= until]
    late = [one.kinds for one in looks[-5:]]
    kinds = {kind for one in late for kind in one}
    return +Counter(
        {kind: min(one[kind] for one in late) - max(one[kind] for one in early) for kind in kinds}
    )


def main() -> int:
    """Run, print the table and the line of JSON."""
    parser = argparse.ArgumentParser(description="Paint for long and see what leaks.")
    parser.add_argument("--renders", type=int, default=3000)
    parser.add_argument("--slots", type=int, default=2)
    options = parser.parse_args()
    began, load = time.monotonic(), os.getloadavg()[0]
    account, outlived, kept = run(options.renders, options.slots)
    seconds = time.monotonic() - began
    first, last = account.looks[0], account.looks[-1]
    base = base_of(account.looks)
    end = statistics.median(one.worker_bytes for one in account.looks[-5:])
    leaked = {
        "processes": leaked_kinds(account.looks).total(),
        "descriptors": max(0, last.descriptors - first.descriptors),
        "files": max(0, last.files - first.files),
        "processes_after_the_end": outlived,
        "files_after_the_end": kept,
    }
    grown = options.renders >= 2 * BASE and end > base * GROWTH
    for name, count in account.answers.most_common():
        print(f"{count:6}  {name}")
    for name, count in leaked.items():
        print(f"{count:6}  leaked {name.replace('_', ' ')}")
    print(f"{base / 2**20:6.1f} MiB of the worker at the base, {end / 2**20:.1f} MiB at the end")
    print(f"       processes at first {dict(first.kinds)}, at the end {dict(last.kinds)}")
    for wrong in account.wrong[:20]:
        print(f"        wrong: {wrong}")
    print(
        json.dumps(
            {
                "bench": "soak",
                "ours": round(end / 2**20, 1),
                "theirs": round(base / 2**20, 1),
                "ratio": round(base / end, 3),
                "unit": "MiB of the worker, at the end and at the base",
                "n": options.renders,
                "conditions": {
                    "answers": dict(account.answers),
                    "accounted": 1 - len(account.wrong) / options.renders,
                    "leaked": leaked,
                    "slots": options.slots,
                    "seconds": round(seconds),
                    "tree_mib": round(last.tree_bytes / 2**20),
                    "cpus": os.cpu_count(),
                    "load_before": round(load, 1),
                    "python": platform.python_version(),
                },
            }
        )
    )
    return 1 if account.wrong or grown or any(leaked.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
