"""What a run has spent on its judge outlives the environment that counted it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx
import pytest
from tests.unit.env.edges import another
from tests.unit.env.world import World, ask, listening

from watercolour.api.reasons import Reason
from watercolour.env.client import EnvClient
from watercolour.env.ledger import FILE, Ledger

pytestmark = pytest.mark.usefixtures("brisk")

#: Four references in both orders.
CALLS = 8
LATER = 4e9


def spent(url: str) -> dict[str, int]:
    return httpx.get(f"{url}/v1/demand").json()["judge_spent"]


async def test_a_restarted_environment_goes_on_counting(world: World, tmp_path: Path) -> None:
    spec = world.spec("judge-led", judge={"budget": {"calls": CALLS + 2}})
    with listening(spec, world) as url:
        client = EnvClient(url, timeout_s=30, ledger=Ledger(tmp_path))
        assert (await ask(client)).reward is not None
        assert await client.announce(1, LATER)
        client.close()
    assert json.loads((tmp_path / FILE).read_text())["calls"] == CALLS
    # Both are others now: an environment without a memory, a trainer that has read the folder.
    with listening(spec, world) as url:
        client = EnvClient(url, timeout_s=30, ledger=Ledger(tmp_path))
        assert await client.announce(1, LATER)
        refused = await ask(client, another(1))
        told = await asyncio.to_thread(spent, url)
        client.close()
    assert refused.unscored_reason == Reason.JUDGE_BUDGET_SPENT
    assert told["calls"] == CALLS
    assert len(world.judge.posts) == CALLS


async def test_what_is_told_never_makes_less_of_what_was_counted(world: World) -> None:
    spec = world.spec("judge-led")
    with listening(spec, world) as url:
        client = EnvClient(url, timeout_s=30)
        await ask(client)
        body = {"announced": 0, "until": 0, "judge_spent": {"calls": 3, "tokens": 10**9}}
        async with httpx.AsyncClient(base_url=url) as http:
            reply = await http.post("/v1/demand", json=body)
            bad = await http.post("/v1/demand", json=body | {"judge_spent": {"calls": -1}})
        client.close()
    assert reply.json()["judge_spent"] == {"calls": CALLS, "tokens": 10**9}
    assert bad.status_code == 400


async def test_an_environment_without_a_judge_has_nothing_to_tell(
    world: World, tmp_path: Path
) -> None:
    with listening(world.spec("hps-only"), world) as url:
        client = EnvClient(url, timeout_s=30, ledger=Ledger(tmp_path))
        assert await client.announce(1, LATER)
        client.close()
    assert not (tmp_path / FILE).exists()


@pytest.mark.parametrize("kept", ["{", "[]", '{"calls": "many"}', '{"calls": -4}'])
def test_a_ledger_that_cannot_be_read_begins_anew(kept: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(kept)
    ledger = Ledger(tmp_path)
    assert ledger.spent == {"calls": 0, "tokens": 0}
    ledger.note({"calls": 5, "tokens": 7})
    ledger.note({"calls": 2, "tokens": 9})
    ledger.note(None)
    assert Ledger(tmp_path).spent == {"calls": 5, "tokens": 9}
