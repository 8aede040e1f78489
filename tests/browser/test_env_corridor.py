"""The corridor with nothing replaced: real renderer, real scorer and judge, real sockets."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from tests.browser.conftest import Server
from tests.browser.sketches import HONEST, sketch

from watercolour.api.rollout import Rollout
from watercolour.env.client import EnvClient
from watercolour.reward import pool

SPEC = """
apiVersion: watercolour.dev/v1alpha1
kind: WatercolourRun
metadata: {name: corridor}
spec:
  recipe: {name: hps-led}
  env: {messageTimeoutSeconds: 100}
"""

#: Seconds in which a process has to be ready: the machine may be busy with other tests.
START_SECONDS = 240


def start(folder: Path, module: str, *arguments: str) -> tuple[subprocess.Popen[bytes], str]:
    """A process of ours that is ready, and its URL."""
    announce, log = folder / f"{module}.json", folder / f"{module}.log"
    command = [sys.executable, "-m", f"watercolour.{module}", "--announce", str(announce)]
    with log.open("wb") as out:
        process = subprocess.Popen([*command, *arguments], stdout=out, stderr=out)
    give_up = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < give_up:
        if announce.exists():
            url: str = json.loads(announce.read_text())["url"]
            try:
                if httpx.get(f"{url}/readyz", timeout=5).status_code == 200:
                    return process, url
            except httpx.HTTPError:
                pass
        time.sleep(0.1)
    process.kill()
    process.wait()
    pytest.fail(log.read_text())


@pytest.fixture(scope="module")
def env_url(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The environment between the module's renderer and an embedded scorer."""
    folder = tmp_path_factory.mktemp("corridor")
    spec = folder / "run.yaml"
    spec.write_text(SPEC)
    running: list[subprocess.Popen[bytes]] = []
    try:
        scorer, scorer_url = start(folder, "score.service")
        running.append(scorer)
        around = ("--renderer", server.url, "--scorer", scorer_url, "--judge", scorer_url)
        env, url = start(folder, "env.server", "--spec", str(spec), *around)
        running.append(env)
        yield url
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait(30)


@pytest_asyncio.fixture
async def env(env_url: str) -> AsyncIterator[EnvClient]:
    client = EnvClient(env_url, sessions=4)
    yield client
    await asyncio.to_thread(client.close)


async def ask(env: EnvClient, source: str, seed: int = 1) -> Rollout:
    return await env.evaluate(f"```javascript\n{source}\n```", subject="a red poppy", seed=seed)


async def test_a_loved_sketch_earns_more_than_a_meh_one(env: EnvClient) -> None:
    flowers = pool.load("builtin:flowers")
    love, meh = flowers.tier("love")[0], flowers.tier("meh")[0]
    good, poor = await asyncio.gather(ask(env, love.sketch), ask(env, meh.sketch))
    for rollout in (good, poor):
        assert rollout.violations == ()
        assert rollout.unscored_reason is None
        assert len(rollout.votes) == 4
        assert rollout.painting is not None
        assert rollout.painting.startswith(b"\x89PNG")
    assert good.reward is not None
    assert poor.reward is not None
    assert good.reward > poor.reward > 0
    assert good.references == poor.references


async def test_equal_sketches_have_equal_rollouts_and_one_render(env: EnvClient) -> None:
    first, second = await asyncio.gather(ask(env, HONEST), ask(env, HONEST))
    assert first.reward == second.reward
    assert first.painting == second.painting
    assert ("render" in first.timings) != ("render" in second.timings)


async def test_only_the_sketchs_own_fault_is_worth_0(env: EnvClient) -> None:
    rollout = await ask(env, sketch(setup="throw new Error('in setup');"))
    assert rollout.reward == 0.0
    assert rollout.gate_passed is False
    assert rollout.violations


async def test_a_browser_killed_in_the_middle_leaves_no_phantom_zero(
    env: EnvClient, env_url: str, server: Server
) -> None:
    sketches = [sketch(tail=f"brush.circle({20 + 4 * n}, 100, 8);") for n in range(5)]
    rollouts: list[Rollout] = []
    async with httpx.AsyncClient() as http:
        for source in sketches:
            asked = asyncio.create_task(ask(env, source))
            while not asked.done():
                demand = (await http.get(f"{env_url}/v1/demand")).json()
                if demand["inflight"]:
                    # No process is found while the browser is being started again.
                    with suppress(StopIteration, ProcessLookupError):
                        os.kill(server.browser(), signal.SIGKILL)
                    break
            rollouts.append(await asked)
    again = await asyncio.gather(*(ask(env, source) for source in sketches))
    for killed, quiet in zip(rollouts, again, strict=True):
        assert quiet.reward is not None
        assert quiet.reward > 0
        assert killed.violations == ()
        if killed.reward is None:
            assert killed.unscored_reason is not None
        else:
            assert killed.reward == quiet.reward
