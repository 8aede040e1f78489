"""The service around the slots: its contract, bad input, askers that hang up, its start and end."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from PIL import Image
from tests.browser.conftest import PYTHON, Server, start, stop
from tests.browser.sketches import HONEST, sketch
from tests.browser.test_survival import SLOW, until_answer

from watercolour.render import schemas
from watercolour.render.result import Painted

LOOP = {"sketch": sketch("while (true);"), "seed": 1, "deadline_s": 300, "cpu_budget_s": 300}
GOOD = {"sketch": HONEST, "seed": 1}


@pytest_asyncio.fixture
async def http(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    """A plain client of the module's renderer."""
    async with httpx.AsyncClient(base_url=server.url, timeout=120) as opened:
        yield opened


async def load(http: httpx.AsyncClient) -> dict[str, Any]:
    return (await http.get("/v1/load")).json()


async def metric(http: httpx.AsyncClient, name: str) -> float:
    """One series' value; 0 while it has none."""
    lines = (await http.get("/metrics")).text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} "))


def test_an_answer_has_every_field_of_a_painting() -> None:
    assert set(schemas.RenderAnswer.model_fields) == {*Painted.__dataclass_fields__}


async def test_an_answer_says_how_the_painting_came_about(http: httpx.AsyncClient) -> None:
    answer = await http.post("/v1/render", json={**GOOD, "seed": 77})
    told = schemas.RenderAnswer.model_validate_json(answer.text)
    assert (told.seed, told.shapes, told.js_errors, told.cached) == (77, 3, (), False)
    assert {"wait", "load", "setup", "draw", "read", "encode", "wall"} <= told.timings.keys()
    parts = sum(seconds for phase, seconds in told.timings.items() if phase != "wall")
    assert 0 < parts <= told.timings["wall"]
    assert told.peak_memory_bytes is not None
    assert 2**26 < told.peak_memory_bytes < 2**30
    assert told.cpu_seconds > 0


async def test_readiness_names_what_the_renderer_stands_on(http: httpx.AsyncClient) -> None:
    await until_answer(http, "/readyz", lambda answer: answer.status_code == 200)
    told = schemas.Readiness.model_validate_json((await http.get("/readyz")).text)
    assert (told.status, told.slots, told.sandbox) == ("ready", 1, True)
    assert "llvmpipe" in (told.rasterizer or "")
    assert {"p5", "p5.brush", "browser"} <= told.versions.keys()
    assert await metric(http, "watercolour_render_sandboxed") == 1


async def test_the_contract_is_published_with_every_status(http: httpx.AsyncClient) -> None:
    document = (await http.get("/openapi.json")).json()
    render = document["paths"]["/v1/render"]["post"]
    assert set(render["responses"]) == {"200", "400", "422", "429", "503"}
    for status, response in render["responses"].items():
        kind = "application/json" if status == "200" else "application/problem+json"
        name = response["content"][kind]["schema"]["$ref"].rpartition("/")[2]
        assert document["components"]["schemas"][name]["examples"]
    assert set(document["paths"]["/readyz"]["get"]["responses"]) == {"200", "503"}
    request = render["requestBody"]["content"]["application/json"]["schema"]
    assert request["examples"]
    assert all("description" in field for field in request["properties"].values())


BAD: dict[str, tuple[bytes | dict[str, Any], str, Any]] = {
    "an empty sketch": ({"sketch": "", "seed": 1}, "sketch", ""),
    "no sketch": ({"seed": 1}, "sketch", None),
    "a seed below its range": ({**GOOD, "seed": -1}, "seed", -1),
    "a seed above its range": ({**GOOD, "seed": 2**31}, "seed", 2**31),
    "a seed of 5,000 digits": (b'{"sketch":"x","seed":' + b"9" * 5000 + b"}", "body", None),
    "a fractional seed": ({**GOOD, "seed": 1.5}, "seed", 1.5),
    "a painting of no size": ({**GOOD, "size": 0}, "size", 0),
    "a painting of 9000 pixels": ({**GOOD, "size": 9000}, "size", 9000),
    "a deadline of 0": ({**GOOD, "deadline_s": 0}, "deadline_s", 0),
    "a deadline that is no number": (
        b'{"sketch":"x","seed":1,"deadline_s":NaN}',
        "deadline_s",
        "NaN",
    ),
    "an endless budget": ({**GOOD, "cpu_budget_s": 601}, "cpu_budget_s", 601),
    "an unknown field": ({**GOOD, "network": True}, "network", True),
    "a sketch of 200,001 characters": (
        {"sketch": "x" * 200_001, "seed": 1},
        "sketch",
        "x" * 60 + "…",
    ),
    "a body of 5 MB": (b'{"sketch":"' + b"x" * 5_000_000 + b'","seed":1}', "body", None),
    "a body of 40 MB": (b" " * 40_000_000, "body", None),
    "a binary": (bytes(range(256)) * 4, "body", None),
    "half a character": (b'{"sketch":"\\ud800","seed":1}', "body", None),
    "a deep nest": (b"[" * 100_000, "body", None),
    "nothing": (b"", "body", None),
}


@pytest.mark.parametrize("name", BAD)
async def test_bad_input_is_refused_with_field_value_and_remedy(
    http: httpx.AsyncClient, name: str
) -> None:
    sent, field, value = BAD[name]
    content = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
    try:
        answer = await http.post(
            "/v1/render", content=content, headers={"Content-Type": "application/json"}
        )
    except httpx.TransportError:
        # Only what is far beyond any sketch may be cut off while it is still being sent.
        assert len(content) > 32 * 2**20
        return
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    told = schemas.MalformedProblem.model_validate_json(answer.text)
    assert told.type == "urn:watercolour:problem:MalformedRequest"
    assert (told.errors[0].field, told.errors[0].value) == (field, value)
    assert told.errors[0].remedy
    assert field in told.detail
    assert len(answer.content) < 4096


async def test_a_body_that_is_not_json_is_told_so(http: httpx.AsyncClient) -> None:
    answer = await http.post("/v1/render", content=b"a=1", headers={"Content-Type": "text/plain"})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == "Content-Type"


@pytest.mark.parametrize("side", ["0, 0", "9000, 9000"])
async def test_a_canvas_out_of_bounds_is_the_sketchs_fault(
    http: httpx.AsyncClient, side: str
) -> None:
    source = HONEST.replace("createCanvas(128, 128", f"createCanvas({side}")
    answer = await http.post("/v1/render", json={"sketch": source, "seed": 1})
    assert answer.status_code == 422
    told = schemas.SketchProblem.model_validate_json(answer.text)
    assert told.violation.code == "canvas_out_of_bounds"


async def test_an_unknown_path_or_method_is_a_problem_too(http: httpx.AsyncClient) -> None:
    missing, wrong = await http.get("/v2/render"), await http.put("/v1/drain")
    assert (missing.status_code, missing.json()["reason"]) == (404, "NotFound")
    assert (wrong.status_code, wrong.json()["reason"]) == (405, "MethodNotAllowed")
    assert wrong.headers["allow"] == "DELETE, POST"


def ask(url: str, job: dict[str, Any]) -> socket.socket:
    """A connection on which a render has been asked for."""
    host, port = url.removeprefix("http://").split(":")
    asker = socket.create_connection((host, int(port)))
    body = json.dumps(job).encode()
    head = (
        f"POST /v1/render HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    asker.sendall(head.encode() + body)
    return asker


async def until_load(http: httpx.AsyncClient, busy: int) -> None:
    await until_answer(http, "/v1/load", lambda answer: answer.json()["busy"] == busy)


async def test_who_hangs_up_frees_the_slot(server: Server, http: httpx.AsyncClient) -> None:
    gone = await metric(http, 'watercolour_render_requests_total{outcome="gone"}')
    asker = ask(server.url, LOOP)
    await until_load(http, 1)
    asker.close()
    # The sketch would go on for five minutes.
    await until_load(http, 0)
    assert (await http.post("/v1/render", json={**GOOD, "fresh": True})).status_code == 200
    assert await metric(http, 'watercolour_render_requests_total{outcome="gone"}') == gone + 1


async def test_a_shared_job_goes_on_while_another_waits_for_it(
    server: Server, http: httpx.AsyncClient
) -> None:
    job = {"sketch": SLOW, "seed": 41, "deadline_s": 60.0, "cpu_budget_s": 60.0}
    first = ask(server.url, job)
    await until_load(http, 1)
    second = asyncio.create_task(http.post("/v1/render", json=job))
    asked = 'watercolour_render_requests_total{outcome="gone"}'
    gone = await metric(http, asked)
    await asyncio.sleep(0)
    first.close()
    while await metric(http, asked) == gone:
        assert (await load(http))["busy"] == 1
    answer = await second
    assert (answer.status_code, answer.json()["cached"]) == (200, True)


async def test_a_slot_is_replaced_after_so_many_paintings_and_paints_the_same(
    tmp_path: Path,
) -> None:
    running = start(tmp_path, "--slots", "1", "--slot-renders", "2")
    try:
        async with httpx.AsyncClient(base_url=running.url, timeout=120) as http:
            paintings = {
                (await http.post("/v1/render", json={**GOOD, "fresh": True})).json()["painting"]
                for _ in range(5)
            }
            worn = 'watercolour_render_pages_recycled{cause="count"}'
            assert (await metric(http, worn), len(paintings)) == (2, 1)
            assert await metric(http, "watercolour_render_browser_launches") == 1
    finally:
        stop(running)


#: A renderer on a machine whose clock jumps by a day, there and back, whenever it is read.
CLOCK_STEPS = """#!/bin/sh
shift 2
exec {python} -c '
import itertools, sys, time
true, steps = time.time, itertools.cycle((0, 86400, -86400))
time.time = lambda: true() + next(steps)
from watercolour.render import service
sys.exit(service.main())
' "$@"
"""


def program(folder: Path, script: str) -> tuple[str, ...]:
    """A wrapper that runs the service by a script of the test's own."""
    path = folder / "program"
    path.write_text(script.format(python=PYTHON))
    path.chmod(0o755)
    return ("sh", "-c", f'shift; exec "{path}" "$@"', "sh")


async def test_it_starts_paints_and_ends_in_order_however_the_clock_jumps(tmp_path: Path) -> None:
    running = start(tmp_path, "--slots", "1", wrapper=program(tmp_path, CLOCK_STEPS))
    try:
        async with httpx.AsyncClient(base_url=running.url, timeout=120) as http:
            # A deadline that passes while the browser still starts is nobody's fault but ours.
            early = await http.post("/v1/render", json={**GOOD, "deadline_s": 0.02})
            assert (early.status_code, early.json()["reason"]) == (503, "RenderDeadline")
            unready = await http.get("/readyz")
            if unready.status_code == 503:
                told = schemas.UnreadyProblem.model_validate_json(unready.text)
                assert (told.details.status, told.reason) == ("unready", "RendererUnavailable")
            await until_answer(http, "/readyz", lambda answer: answer.status_code == 200)
            assert (await http.get("/readyz")).json()["warm"] == 1
            assert (await http.post("/v1/render", json=GOOD)).status_code == 200

            slow = {"sketch": SLOW, "seed": 1, "deadline_s": 60, "cpu_budget_s": 60}
            painting = asyncio.create_task(http.post("/v1/render", json=slow))
            await until_load(http, 1)
            running.process.send_signal(signal.SIGTERM)
            async with httpx.AsyncClient(base_url=running.url, timeout=60) as late:
                while not (await load(late))["draining"]:
                    pass
                refused = await late.post("/v1/render", json=GOOD)
            told = schemas.InfrastructureProblem.model_validate_json(refused.text)
            assert (refused.status_code, told.taken) == (503, False)
            assert (await painting).status_code == 200
        assert running.process.wait(2 + 30) == 0
    finally:
        stop(running)


#: A renderer whose pages do not paint what they have to.
WRONG_PAINTING = """#!/bin/sh
shift 2
exec {python} -c '
import sys
from pathlib import Path
from watercolour.render import service, warmup
warmup.PAINTING = Path("{wrong}")
sys.exit(service.main())
' "$@"
"""


async def test_a_slot_that_paints_wrongly_is_never_ready(tmp_path: Path) -> None:
    Image.new("RGB", (64, 64), "white").save(tmp_path / "wrong.png")
    script = WRONG_PAINTING.replace("{wrong}", str(tmp_path / "wrong.png"))
    running = start(tmp_path, "--slots", "1", wrapper=program(tmp_path, script))
    try:
        async with httpx.AsyncClient(base_url=running.url, timeout=120) as http:

            def told(answer: httpx.Response) -> bool:
                assert answer.status_code == 503
                return "warm-up" in answer.json()["detail"]

            await until_answer(http, "/readyz", told)
            refused = await http.post("/v1/render", json=GOOD)
        assert (refused.status_code, refused.json()["reason"]) == (503, "RendererUnavailable")
    finally:
        stop(running)
