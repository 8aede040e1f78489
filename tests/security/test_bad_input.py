"""What is no request for a painting gets 400 and a field's name, never a browser's time."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from tests.security.attack import HONEST
from tests.security.conftest import SEED, Stage

JSON = {"content-type": "application/json"}

FIELDS: dict[str, tuple[str, Any]] = {
    "no sketch": ("sketch", ""),
    "a sketch that is a number": ("sketch", 7),
    "a sketch of five megabytes": ("sketch", "/" * 5_000_000),
    "a negative seed": ("seed", -1),
    "a seed that is too large": ("seed", 2**31),
    "a seed of a million digits": ("seed", 10**4000),
    "a seed with a fraction": ("seed", 1.5),
    "a seed that is a text": ("seed", "3"),
    "a seed that is true": ("seed", True),
    "no seed": ("seed", None),
    "a size of nothing": ("size", 0),
    "a size too large": ("size", 9000),
    "a deadline that has passed": ("deadline_s", 0),
    "a deadline without end": ("deadline_s", 1e9),
    "a budget of less than nothing": ("cpu_budget_s", -1.0),
    "a field that nobody knows": ("allow_network", True),
}


def request(**changed: Any) -> dict[str, Any]:
    return {"sketch": HONEST, "seed": SEED, **changed}


async def post(stage: Stage, body: bytes) -> httpx.Response:
    url = f"{stage.server.url}/v1/render"
    return await stage.http.post(url, content=body, headers=JSON)


@pytest.mark.parametrize("name", FIELDS)
async def test_a_field_out_of_bounds_is_named(stage: Stage, name: str) -> None:
    field, value = FIELDS[name]
    text = json.dumps(request(**{field: value}))
    answer = await post(stage, text.encode())
    assert answer.status_code in (400, 413), answer.text[:300]
    assert field in answer.json()["detail"] or answer.status_code == 413


BODIES: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"sketch",
    "bytes": bytes(range(256)),
    "JSON that is no object": b"[1]",
    "half of an object": b'{"sketch": "',
    "not a number": b'{"sketch": "x", "seed": NaN}',
    "infinity": b'{"sketch": "x", "seed": 1, "deadline_s": Infinity}',
    "a hundred thousand brackets": b"[" * 100_000,
    "the same field twice, once wrong": b'{"seed": 1, "sketch": "x", "seed": -1}',
}


@pytest.mark.parametrize("name", BODIES)
async def test_a_body_that_is_no_request_is_refused(stage: Stage, name: str) -> None:
    answer = await stage.http.post(
        f"{stage.server.url}/v1/render", content=BODIES[name], headers=JSON
    )
    assert answer.status_code == 400, answer.text[:300]
    assert answer.headers["content-type"].startswith("application/problem+json")


async def test_half_a_character_is_the_sketchs_fault_or_the_requests(stage: Stage) -> None:
    text = '{"sketch": "const a = \\"\\ud800\\";", "seed": 3}'
    answer = await stage.http.post(
        f"{stage.server.url}/v1/render", content=text.encode(), headers=JSON
    )
    assert answer.status_code in (400, 422), answer.text[:300]


@pytest.mark.parametrize("seed", [0, 2**31 - 1])
async def test_the_outermost_seeds_paint(stage: Stage, seed: int) -> None:
    answer = await stage.http.post(f"{stage.server.url}/v1/render", json=request(seed=seed))
    assert answer.status_code == 200, answer.text[:300]
