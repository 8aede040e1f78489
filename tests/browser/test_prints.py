"""A larger drawing scale: the same painting in finer detail, within bounds of its own."""

from __future__ import annotations

import io
from collections.abc import Iterator

import httpx
import numpy as np
import pytest
from PIL import Image
from tests.browser.conftest import Server, patient, start, stop
from tests.browser.sketches import HONEST, SIZE, sketch

from watercolour.api.reasons import ViolationCode
from watercolour.render.paint import likeness
from watercolour.render.result import Painted, SketchFault

STROKES = sketch(
    setup="pixelDensity(1);",
    tail="""brush.set("marker", "#223366", 2); brush.line(8, 120, 110, 8);
  brush.noFill(); brush.wash("#3f7d3a", 150); brush.rect(8, 90, 60, 20);""",
)


#: Brushes whose stamps are smaller than a pixel.
FINE = """function setup() { createCanvas(128, 128, WEBGL); }
function draw() { background(248, 244, 236); translate(-64, -64);
  for (const [i, name] of ["2B", "HB", "spray", "charcoal", "pen"].entries()) {
    brush.set(name, "#223366", 1);
    for (let k = 0; k < 3; k++) brush.line(8, 10 + 24 * i + 5 * k, 120, 14 + 24 * i + 5 * k);
  } }"""


@pytest.fixture(scope="module")
def printer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A renderer for prints."""
    running = start(tmp_path_factory.mktemp("printer"), "--slots", "1", "--max-scale", "8")
    yield running
    stop(running)


def picture(painted: Painted, side: int | None = None) -> np.ndarray:
    with Image.open(io.BytesIO(painted.painting)) as image:
        rgb = image.convert("RGB")
    return np.asarray(rgb if side is None else rgb.resize((side, side), Image.Resampling.BOX))


@pytest.mark.parametrize("text", [HONEST, STROKES])
async def test_a_print_shows_the_same_painting_in_finer_detail(printer: Server, text: str) -> None:
    async with patient(printer) as client:
        plain = await client.render(text, seed=3, replay=True)
        large = await client.render(text, seed=3, scale=4, replay=True, deadline_s=120)
        again = await client.render(text, seed=3, replay=True, fresh=True)
    assert not large.js_errors
    assert picture(large).shape == (4 * SIZE, 4 * SIZE, 3)
    assert likeness(picture(large, SIZE), picture(plain)) > 26
    # Enlarged afterwards it would have no detail that the small one lacks.
    enlarged = np.kron(picture(plain), np.ones((4, 4, 1), np.uint8))
    assert likeness(picture(large), enlarged) < likeness(picture(large, SIZE), picture(plain))
    assert large.replay == plain.replay, "what was painted does not depend on the scale"
    assert again.painting == plain.painting


async def test_fine_brushes_cover_as_much_of_a_print(printer: Server) -> None:
    async with patient(printer) as client:
        plain = await client.render(FINE, seed=3)
        large = await client.render(FINE, seed=3, scale=3)
    assert not large.js_errors
    dark = [255 - picture(one).mean() for one in (plain, large)]
    assert dark[1] == pytest.approx(dark[0], rel=0.1)


async def test_a_print_of_4096_pixels_is_painted(printer: Server) -> None:
    text = HONEST.replace(f"createCanvas({SIZE}, {SIZE}", "createCanvas(512, 512")
    async with patient(printer) as client:
        large = await client.render(text, seed=3, scale=8, deadline_s=300, cpu_budget_s=300)
    assert picture(large).shape == (4096, 4096, 3)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (HONEST.replace(f"{SIZE}, {SIZE}", "600, 600"), "64 to 512 pixels at a drawing scale of 8"),
        (sketch(setup="resizeCanvas(128, 520);"), "resizeCanvas(128, 520)"),
        (
            sketch(
                setup="for (let i = 0; i < 9; i++) createFramebuffer({width: 512, height: 512});"
            ),
            "all buffers together hold",
        ),
        (
            sketch(setup='document.createElement("canvas").width = 8200;'),
            "a canvas' width of 8200 is above 8192",
        ),
    ],
)
async def test_what_does_not_fit_a_print_is_refused(printer: Server, text: str, told: str) -> None:
    async with patient(printer) as client:
        with pytest.raises(SketchFault, match="canvas_out_of_bounds") as refused:
            await client.render(text, seed=1, scale=8, deadline_s=300, cpu_budget_s=300)
    assert refused.value.violation.code is ViolationCode.CANVAS_OUT_OF_BOUNDS
    assert told in refused.value.violation.message


async def test_a_sketch_has_coarser_graphics_of_its_own_if_it_asks(printer: Server) -> None:
    tell = """const own = createGraphics(40, 30); const before = own.pixelDensity();
  own.pixelDensity(1); own.pixelDensity(9);
  throw new Error(`${pixelDensity()} ${before} ${own.pixelDensity()}`);"""
    async with patient(printer) as client:
        large = await client.render(sketch(tail=tell), seed=1, scale=3)
        plain = await client.render(sketch(tail=tell), seed=1)
    assert "3 3 1" in large.js_errors[0]
    assert "1 1 1" in plain.js_errors[0]


async def test_a_renderer_that_is_not_for_prints_takes_none(server: Server) -> None:
    async with patient(server) as client:
        await client.render(HONEST, seed=1)
    async with httpx.AsyncClient(base_url=server.url) as http:
        refused = await http.post("/v1/render", json={"sketch": HONEST, "seed": 1, "scale": 2})
        document = (await http.get("/openapi.json")).json()
    assert refused.status_code == 400
    (mistake,) = refused.json()["errors"]
    assert mistake["field"] == "scale"
    assert mistake["value"] == 2
    assert "--max-scale" in mistake["remedy"]
    asked = document["paths"]["/v1/render"]["post"]["requestBody"]["content"]["application/json"]
    assert asked["schema"]["properties"]["scale"]["maximum"] == 1
