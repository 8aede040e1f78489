"""A step's judge calls against an endpoint that takes 120 ms and refuses one call in twenty.

8 rollouts meet 4 references in both orders: 64 calls. Told are the calls that the endpoint saw, the
longest wait beside what Retry-After asked for, and the seconds without refusals beside two ideals.
By the clock every call takes its 120 ms and all of them go out at once. On this machine the same
bodies go over open sockets with nothing around them, in turn with ours: what else runs here delays
both. Theirs is the published way: one rollout after the other, a new client a call, five seconds
after a refusal.

    python bench/judge_calls.py [--rounds 5] [--seed 0]

The exit status is 1 if a call was lost or waited too long, or if ours takes over 1.5 times both
ideals.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# Servers are the tests' own.
sys.path.insert(0, str(ROOT))

import httpx
from tests.serving import request, response

from watercolour.reward import pool, verdict
from watercolour.reward.judge import Judge
from watercolour.reward.pool import Reference
from watercolour.reward.verdict_cache import VerdictFile
from watercolour.score.completions import Completions, data_url

ROLLOUTS, REFERENCES, ORDERS = 8, 4, 2
CALLS = ROLLOUTS * REFERENCES * ORDERS
LATENCY_SECONDS, RETRY_AFTER_SECONDS, REFUSED_SHARE = 0.12, 1, 0.05
THEIR_BACKOFF_SECONDS, THEIR_ATTEMPTS = 5.0, 3
#: How far above the ideal the calls may take.
MOST_OF_IDEAL = 1.5
#: Steps of ours and of bare sockets in a round: they are short, and one alone says little.
STEPS_A_ROUND = 4

ANSWER = json.dumps(
    {"choices": [{"message": {"content": '{"winner": "A", "reason": "softer edges"}'}}]}
).encode()


class Endpoint:
    """An endpoint that answers after a while, refuses by a seeded chance, and counts."""

    def __init__(self, refused_share: float, seed: int, latency_s: float) -> None:
        self.rng = random.Random(seed)
        self.share = refused_share
        self.latency_s = latency_s
        self.seen = self.refused = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, request by request."""
        try:
            while True:
                await request(reader)
                self.seen += 1
                if self.rng.random() < self.share:
                    self.refused += 1
                    more = f"Retry-After: {RETRY_AFTER_SECONDS}\r\n".encode()
                    writer.write(response(b"429 Too Many Requests", b"{}", more))
                else:
                    await asyncio.sleep(self.latency_s)
                    writer.write(response(b"200 OK", ANSWER))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@dataclass(frozen=True)
class Step:
    """What a step's calls came to.

    Attributes:
        resolved: references with a value.
        calls: requests that the endpoint saw.
        refused: of these, with 429.
        waits: seconds that the client waited, one entry a wait.
        seconds: of the whole step.
        cpu_seconds: of the client, in that time.
    """

    resolved: int
    calls: int
    refused: int
    waits: tuple[float, ...]
    seconds: float
    cpu_seconds: float = 0.0


def faults(step: Step) -> list[str]:
    """What a step with refusals got wrong; empty if nothing."""
    found: list[str] = []
    if step.resolved != ROLLOUTS * REFERENCES:
        found.append(f"{step.resolved} of {ROLLOUTS * REFERENCES} references are resolved")
    if step.calls != CALLS + step.refused:
        found.append(f"{step.calls} calls, must be {CALLS} and the {step.refused} refused ones")
    if any(wait > RETRY_AFTER_SECONDS for wait in step.waits):
        longest = max(step.waits)
        found.append(f"a wait of {longest:g} s, Retry-After said {RETRY_AFTER_SECONDS} s")
    return found


class Ours:
    """The judge as a run has it: one for all steps, its connections open from the first one on.

    A file keeps every verdict and what was spent.
    """

    def __init__(self, endpoint: Remote, verdicts: Path) -> None:
        self.endpoint = endpoint
        self.waits: list[float] = []
        self.file = VerdictFile(verdicts, most=65_536)
        self.judge = Judge(
            Completions(endpoint.url, concurrency=CALLS, sleep=self.sleep, spend=self.file.spend),
            model="vlm",
            verdicts=self.file,
        )
        self.steps = 0

    async def aclose(self) -> None:
        """Close connections and file."""
        await self.judge.completions.aclose()
        await self.file.aclose()

    async def sleep(self, seconds: float) -> None:
        """Wait, and remember for how long."""
        self.waits.append(seconds)
        await asyncio.sleep(seconds)

    async def step(self, references: Sequence[Reference]) -> Step:
        """Compare a step's rollouts with their draw."""
        self.waits.clear()
        self.steps += 1
        before = self.endpoint.counts()
        began, used = time.perf_counter(), time.process_time()
        found = await asyncio.gather(
            *(
                # The same picture under a key of its own: nothing is remembered.
                self.judge.compare(references[0].painting, references[1:], key=f"{self.steps} {n}")
                for n in range(ROLLOUTS)
            )
        )
        seconds, used = time.perf_counter() - began, time.process_time() - used
        after = self.endpoint.counts()
        resolved = sum(vote.value is not None for one in found for vote in one.votes)
        seen, refused = (late - early for late, early in zip(after, before, strict=True))
        return Step(resolved, seen, refused, tuple(self.waits), seconds, used)


class Bare:
    """Open sockets, over which the same bodies go with nothing around them."""

    def __init__(self, url: str, references: Sequence[Reference]) -> None:
        self.port = int(url.rpartition(":")[2])
        ours, *drawn = [data_url(one.painting) for one in references]
        self.bodies = [
            verdict.body("vlm", verdict.CRITERIA, *((ours, one) if n else (one, ours)))
            for one in drawn
            for n in range(ORDERS)
        ] * ROLLOUTS
        self.open: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def connect(self) -> None:
        """One socket a call."""
        for _ in self.bodies:
            self.open.append(await asyncio.open_connection("127.0.0.1", self.port))

    async def step(self) -> float:
        """Seconds of a step's calls."""

        async def call(n: int) -> None:
            reader, writer = self.open[n]
            body = self.bodies[n]
            writer.write(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(len(ANSWER))

        began = time.perf_counter()
        await asyncio.gather(*(call(n) for n in range(CALLS)))
        return time.perf_counter() - began

    def close(self) -> None:
        """Close the sockets."""
        for _, writer in self.open:
            writer.close()


async def theirs(url: str, references: Sequence[Reference]) -> float:
    """Seconds of a step by a new client a call, rollout after rollout."""
    a, b = data_url(references[0].painting), data_url(references[1].painting)
    body: dict[str, Any] = verdict.request("vlm", verdict.CRITERIA, a, b)

    async def call() -> None:
        for _ in range(THEIR_ATTEMPTS):
            async with httpx.AsyncClient(trust_env=False) as client:
                if (await client.post(f"{url}/v1/chat/completions", json=body)).is_success:
                    return
            await asyncio.sleep(THEIR_BACKOFF_SECONDS)

    began = time.perf_counter()
    for _ in range(ROLLOUTS):
        await asyncio.gather(*(call() for _ in range(REFERENCES * ORDERS)))
    return time.perf_counter() - began


class Remote:
    """An endpoint in a process of its own, asked for its counts over its pipes."""

    def __init__(self, refused_share: float, seed: int) -> None:
        command = [sys.executable, __file__, "--serve", str(refused_share), "--seed", str(seed)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.url = f"http://127.0.0.1:{self._line()}"

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def counts(self) -> tuple[int, int]:
        """Requests that it has seen, and those that it refused."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        seen, refused = self._line().split()
        return int(seen), int(refused)

    def close(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.communicate()


async def endpoint(refused_share: float, seed: int) -> None:
    """Serve; print the port, then the counts for every line of standard input."""
    one = Endpoint(refused_share, seed, LATENCY_SECONDS)
    server = await asyncio.start_server(one.serve, "127.0.0.1", 0, backlog=4 * CALLS, limit=2**20)
    print(server.sockets[0].getsockname()[1], flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        print(one.seen, one.refused, flush=True)


def main() -> int:
    """Measure and tell; the exit code says whether the figures hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--serve", type=float, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve is not None:
        asyncio.run(endpoint(args.serve, args.seed))
        return 0
    references = pool.load("builtin:flowers").references[: REFERENCES + 1]
    smooth, rough = Remote(0.0, args.seed), Remote(REFUSED_SHARE, args.seed)
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = asyncio.run(measured(smooth, rough, references, args.rounds, Path(folder)))
    finally:
        smooth.close()
        rough.close()
    return told(found)


@dataclass(frozen=True)
class Measured:
    """Steps of each kind.

    Attributes:
        steps: ours without refusals.
        bare: seconds of bare sockets, each in turn with one of these.
        refused: ours with refusals.
        published: seconds of the published way.
    """

    steps: list[Step]
    bare: list[float]
    refused: list[Step]
    published: list[float]


async def measured(
    smooth: Remote, rough: Remote, references: Sequence[Reference], rounds: int, folder: Path
) -> Measured:
    """Rounds of all kinds in turn; the verdicts' files lie in the folder."""
    bare = Bare(smooth.url, references)
    calm, refusing = Ours(smooth, folder / "calm.sqlite"), Ours(rough, folder / "refusing.sqlite")
    found = Measured([], [], [], [])
    # The first step opens the connections, as a run's first step does; it is not counted.
    await calm.step(references)
    await bare.connect()
    await bare.step()
    for _ in range(rounds):
        for _ in range(STEPS_A_ROUND):
            found.steps.append(await calm.step(references))
            found.bare.append(await bare.step())
        found.published.append(await theirs(smooth.url, references))
        found.refused.append(await refusing.step(references))
    for one in (calm, refusing):
        await one.aclose()
    bare.close()
    return found


def told(found: Measured) -> int:
    """Print the table and the line of JSON; 1 if something does not hold."""
    wrong = [fault for step in found.refused for fault in faults(step)]
    seconds = statistics.median(step.seconds for step in found.steps)
    cpu = statistics.median(step.cpu_seconds for step in found.steps)
    bare, published = statistics.median(found.bare), statistics.median(found.published)
    by_clock, by_bare = seconds / LATENCY_SECONDS, seconds / bare
    print(
        f"{CALLS} calls, {LATENCY_SECONDS * 1000:.0f} ms each; median of {len(found.steps)} steps"
    )
    print(f"  ours               {seconds:.3f} s, {cpu * 1000:.0f} ms of it CPU time")
    print(f"  ideal, by the clock {LATENCY_SECONDS:.3f} s: ours takes {by_clock:.2f} of it")
    print(f"  ideal, bare sockets {bare:.3f} s: ours takes {by_bare:.2f} of it")
    print(f"  the published way  {published:.3f} s")
    for step in found.refused:
        print(
            f"  {step.refused} refused          {step.seconds:.3f} s, {step.calls} calls, "
            f"{step.resolved} of {ROLLOUTS * REFERENCES} resolved, longest wait "
            f"{max(step.waits, default=0.0):g} s of {RETRY_AFTER_SECONDS} s"
        )
    print("\n".join(wrong) or "  every call is resolved; none waited longer than it was told to")
    line = {
        "bench": "judge_calls",
        "ours": round(seconds, 4),
        "theirs": round(published, 4),
        "ratio": round(published / seconds, 2),
        "cpu": round(cpu, 4),
        "of_ideal": round(by_clock, 3),
        "bare": round(bare, 4),
        "of_bare": round(by_bare, 3),
        "refused": sum(step.refused for step in found.refused),
        "faults": wrong,
        "unit": "s a step",
        "n": len(found.steps),
        "conditions": f"{CALLS} calls, 120 ms, {platform.machine()}",
    }
    print(json.dumps(line))
    return 1 if wrong or min(by_clock, by_bare) > MOST_OF_IDEAL else 0


if __name__ == "__main__":
    sys.exit(main())
