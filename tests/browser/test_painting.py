from __future__ import annotations

import asyncio
import io

import httpx
import pytest
from PIL import Image
from tests.browser.conftest import Server
from tests.browser.sketches import HONEST, SIZE, sketch

from watercolour.api.reasons import ViolationCode
from watercolour.render.dispatcher import Dispatcher
from watercolour.render.paint import paint_fraction
from watercolour.render.result import SketchFault


async def test_equal_sketch_and_seed_give_equal_bytes(client: Dispatcher) -> None:
    paintings = {(await client.render(HONEST, seed=3, fresh=True)).painting for _ in range(4)}
    assert len(paintings) == 1


async def test_another_seed_gives_another_painting(client: Dispatcher) -> None:
    first = await client.render(HONEST, seed=3, fresh=True)
    second = await client.render(HONEST, seed=4, fresh=True)
    assert first.painting != second.painting


async def test_a_painting_says_how_it_came_about(client: Dispatcher) -> None:
    painted = await client.render(HONEST, seed=3, fresh=True)
    assert Image.open(io.BytesIO(painted.painting)).size == (SIZE, SIZE)
    assert painted.shapes == 3
    assert painted.js_errors == ()
    assert painted.cpu_seconds > 0
    assert painted.paint_fraction == pytest.approx(paint_fraction(painted.painting), abs=1e-5)
    assert painted.paint_fraction > 0.05
    assert "llvmpipe" in painted.rasterizer
    assert {"p5", "p5.brush", "patch", "harness", "browser"} <= painted.versions.keys()


async def test_an_equal_request_is_answered_from_the_cache(client: Dispatcher) -> None:
    first = await client.render(HONEST, seed=11)
    second = await client.render(HONEST, seed=11)
    assert (first.cached, second.cached) == (False, True)
    assert first.painting == second.painting


async def test_overlapping_equal_requests_are_painted_once(client: Dispatcher) -> None:
    both = await asyncio.gather(*(client.render(HONEST, seed=12) for _ in range(2)))
    assert sorted(painted.cached for painted in both) == [False, True]


async def test_the_sketchs_chance_comes_from_the_seed_alone(client: Dispatcher) -> None:
    wild = sketch(
        tail="""brush.fill(color(random(255), Math.random() * 255, noise(3) * 255), 150);
        brush.circle(20 + crypto.getRandomValues(new Uint8Array(1))[0] / 4, 30, 12);
        brush.circle(90, 20 + (Date.now() % 50) + millis() + hour(), 12);"""
    )
    first = await client.render(wild, seed=5, fresh=True)
    second = await client.render(wild, seed=5, fresh=True)
    assert first.shapes == 5
    assert first.painting == second.painting


async def test_the_output_is_resampled_to_the_asked_size(client: Dispatcher) -> None:
    painted = await client.render(HONEST, seed=3, size=64)
    assert Image.open(io.BytesIO(painted.painting)).size == (64, 64)


async def test_a_looping_draw_paints_one_frame(client: Dispatcher) -> None:
    quiet = await client.render(HONEST, seed=3, fresh=True)
    looping = sketch(tail="loop(); redraw();", setup="loop(); frameRate(60);")
    assert (await client.render(looping, seed=3, fresh=True)).shapes == quiet.shapes


async def test_pixel_density_stays_one(client: Dispatcher) -> None:
    painted = await client.render(sketch(setup="pixelDensity(3);"), seed=3)
    assert Image.open(io.BytesIO(painted.painting)).size == (SIZE, SIZE)


async def test_drawing_in_setup_alone_is_painted(client: Dispatcher) -> None:
    alone = """function setup() { createCanvas(96, 96, WEBGL); background(255); brush.noStroke();
      brush.fill("#3355aa", 150); brush.circle(0, 0, 30); }"""
    painted = await client.render(alone, seed=1)
    assert painted.shapes == 1
    assert painted.paint_fraction > 0.01


async def test_an_asynchronous_sketch_is_awaited(client: Dispatcher) -> None:
    waiting = HONEST.replace("function draw() {", "async function draw() { await 0;")
    waiting = waiting.replace("function setup() {", "async function setup() { await 0;")
    assert (await client.render(waiting, seed=3)).shapes == 3


async def test_strokes_are_composed_before_the_capture(client: Dispatcher) -> None:
    stroked = sketch(tail='brush.set("marker", "#223366", 3); brush.line(10, 10, 118, 118);')
    plain = await client.render(HONEST, seed=3)
    painted = await client.render(stroked, seed=3)
    assert painted.painting != plain.painting


async def test_an_error_in_draw_keeps_what_was_painted(client: Dispatcher) -> None:
    broken = sketch(tail="\n brush.vertex(1, 2);\n")
    painted = await client.render(broken, seed=3)
    assert painted.shapes == 3
    assert painted.paint_fraction > 0.05
    assert len(painted.js_errors) == 1
    assert "beginShape" in painted.js_errors[0]
    line = broken[: broken.index("brush.vertex")].count("\n") + 1
    assert f"line {line}" in painted.js_errors[0]


@pytest.mark.parametrize(
    ("source", "code", "line"),
    [
        ("function setup() {\n  createCanvas(96, 96, WEBGL);\n  oops();\n}", "render_failed", 3),
        ("function setup() {\n createCanvas(96, 96, WEBGL);\n let = ;\n}", "syntax_error", 3),
        ("function setup() { createCanvas(96, 96); }", "not_webgl", None),
        ("const nothing = 1;", "missing_entry_points", None),
        ("function setup() {\n createCanvas(2000, 96, WEBGL); }", "canvas_out_of_bounds", 2),
        ("function setup() { createCanvas(32, 32, WEBGL); }", "canvas_out_of_bounds", 1),
        (
            "function setup() { createCanvas(96, 96, WEBGL); resizeCanvas(5000, 96); }",
            "canvas_out_of_bounds",
            1,
        ),
        (
            "function setup() { createCanvas(96, 96, WEBGL); }\nfunction draw() { brush.noStroke();"
            ' brush.wash("red"); for (let i = 0; i < 500; i++) brush.rect(0, 0, 3, 3); }',
            "render_failed",
            None,
        ),
        ("async function setup() { await new Promise(() => {}); }", "render_failed", None),
    ],
)
async def test_a_broken_sketch_has_a_violation_with_its_place(
    client: Dispatcher, source: str, code: str, line: int | None
) -> None:
    with pytest.raises(SketchFault) as caught:
        await client.render(source, seed=1)
    assert caught.value.violation.code is ViolationCode(code)
    if line is not None:
        assert caught.value.violation.line == line


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"sketch": "x"},
        {"sketch": "x", "seed": "1"},
        {"sketch": "x", "seed": 1, "size": 9},
        {"sketch": "x", "seed": 1, "nonsense": 1},
        [],
    ],
)
async def test_a_malformed_request_is_400_with_a_reason(server: Server, body: object) -> None:
    async with httpx.AsyncClient() as http:
        answer = await http.post(f"{server.url}/v1/render", json=body)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["reason"] == "MalformedRequest"


async def test_a_full_renderer_says_busy_and_when_to_ask_again(server: Server) -> None:
    async with httpx.AsyncClient(timeout=60) as http:
        jobs = [{"sketch": HONEST, "seed": 100 + i, "fresh": True} for i in range(4)]
        answers = await asyncio.gather(
            *(http.post(f"{server.url}/v1/render", json=job) for job in jobs)
        )
    codes = sorted(answer.status_code for answer in answers)
    assert codes == [200, 429, 429, 429]
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.json()["reason"] == "Busy"


async def test_a_client_waits_until_a_slot_is_free(client: Dispatcher) -> None:
    painted = await asyncio.gather(
        *(client.render(HONEST, seed=200 + i, fresh=True) for i in range(3))
    )
    assert all(each.shapes == 3 for each in painted)


async def test_load_and_metrics_show_the_slots(server: Server) -> None:
    async with httpx.AsyncClient() as http:
        load = (await http.get(f"{server.url}/v1/load")).json()
        metrics = (await http.get(f"{server.url}/metrics")).text
        ready = await http.get(f"{server.url}/readyz")
        live = await http.get(f"{server.url}/livez")
    assert load == {"slots": 1, "busy": 0, "draining": False, "refuses": None}
    assert "watercolour_render_seconds_count" in metrics
    assert 'watercolour_render_requests_total{outcome="painted"}' in metrics
    assert (ready.status_code, live.status_code) == (200, 200)
