"""What a sketch may ask for, refused inside the page with the value, the bound and the place."""

from __future__ import annotations

import io

import pytest
from PIL import Image
from tests.browser.sketches import HONEST, SIZE, sketch

from watercolour.api.reasons import ViolationCode
from watercolour.render.dispatcher import Dispatcher
from watercolour.render.result import SketchFault

CANVAS = {
    "no size": ("createCanvas(0, 0, WEBGL)", "createCanvas(0, 0)", "64 to 1024"),
    "no number": ("createCanvas(NaN, 96, WEBGL)", "createCanvas(NaN, 96)", "64 to 1024"),
    "negative": ("createCanvas(-200, 96, WEBGL)", "createCanvas(-200, 96)", "64 to 1024"),
    "9000 pixels": ("createCanvas(9000, 9000, WEBGL)", "createCanvas(9000, 9000)", "64 to 1024"),
    "a number that changes": (
        "let n = 1; createCanvas({ valueOf: () => 128 * n++ ** 9 }, 128, WEBGL)",
        "createCanvas(NaN, 128)",
        "64 to 1024",
    ),
    "resized": ("resizeCanvas(20000, 20000)", "resizeCanvas(20000, 20000)", "64 to 1024"),
    "many canvases": (
        "for (let i = 0; i < 50; i++) createCanvas(96, 96, WEBGL)",
        "called 9 times",
        "at most 8",
    ),
    "a graphics": ("createGraphics(9000, 96)", "createGraphics(9000, 96)", "at most 2048"),
    "an empty graphics": ("createGraphics(0, 96)", "createGraphics(0, 96)", "above 0"),
    "a graphics resized": (
        "createGraphics(96, 96).resizeCanvas(9000, 9000)",
        "resizeCanvas(9000, 9000)",
        "at most 2048",
    ),
    "many graphics": (
        "for (let i = 0; i < 99; i++) createGraphics(2048, 2048)",
        "all buffers together hold",
        "at most 33554432",
    ),
    "a framebuffer": (
        "createFramebuffer({ width: 9000, height: 96 })",
        "createFramebuffer(9000, 96)",
        "at most 2048",
    ),
    "a picture": ("createImage(1e5, 1e5)", "createImage(100000, 100000)", "at most 2048"),
    "a canvas of its own": (
        'document.createElement("canvas").width = 20000',
        "width of 20000",
        "2048 pixels",
    ),
    "many contexts": (
        'for (let i = 0; i < 20; i++) new OffscreenCanvas(9, 9).getContext("webgl2")',
        "13 canvases",
        "at most 12",
    ),
}

DRAWN = {
    "5,000 circles": (
        'brush.wash("red"); for (let i = 0; i < 5000; i++) brush.circle(9, 9, 5)',
        "401 shapes",
        "at most 400",
    ),
    "a million vertices": (
        "brush.beginShape(); for (let i = 0; i < 1e6; i++) brush.vertex(i % 99, i % 98)",
        "5001 vertices",
        "at most 5000",
    ),
    "a polygon of a million": (
        "brush.polygon(Array.from({ length: 1e6 }, (_, i) => [i % 99, i % 98]))",
        "1000000 vertices",
        "at most 5000",
    ),
    "a spline of a million": (
        "brush.spline(Array.from({ length: 1e6 }, (_, i) => [i % 99, i % 98, 1]))",
        "1000000 vertices",
        "at most 5000",
    ),
    "a stroke of a million segments": (
        'brush.beginStroke("curve", 9, 9); for (let i = 0; i < 1e6; i++) brush.move(i, 3, 1)',
        "15001 segments",
        "at most 15000",
    ),
    "nested push": ("for (let i = 0; i < 1e6; i++) push()", "1001 deep", "at most 1000"),
    "a hatch without distance": (
        'brush.set("HB", "red"); brush.hatch(0, 45); brush.circle(50, 50, 30)',
        "hatch(0) asks for endlessly many lines",
        "at most 10000",
    ),
    "a backward hatch": (
        'brush.set("HB", "red"); brush.hatch(-3, 45); brush.circle(50, 50, 30)',
        "hatch(-3)",
        "at most 10000",
    ),
    "a fine hatch": (
        'brush.set("HB", "red"); brush.hatch(1e-4, 45); brush.circle(50, 50, 30)',
        "hatch(0.0001)",
        "at most 10000",
    ),
    "a long line": (
        'brush.set("HB", "red"); brush.line(0, 0, 1e9, 0)',
        "10000000000 stamps",
        "at most 2000000",
    ),
    "a long way through a field": (
        'brush.set("HB", "red"); brush.field("curved"); brush.flowLine(0, 0, 1e12, 0)',
        "stamps",
        "at most 2000000",
    ),
    "a long walk": ("new brush.Position(9, 9).moveTo(0, 1e12, 1)", "1000000000000 steps", "200000"),
    "a brush without spacing": (
        'brush.scaleBrushes(0); brush.set("HB", "red"); brush.line(0, 0, 50, 0)',
        "Infinity stamps",
        "at most 2000000",
    ),
    "a dense spray": (
        'brush.add("dust", { type: "spray", weight: 1, scatter: 9, sharpness: 1, grain: 1e9,'
        " opacity: 90, spacing: 1, pressure: [1, 1] });"
        ' brush.set("dust", "red"); brush.line(0, 0, 50, 0)',
        "stamps",
        "at most 2000000",
    ),
}


async def refused(client: Dispatcher, source: str, *, budget: float = 10) -> SketchFault:
    """The fault; a sketch that suffers first runs into its budget."""
    with pytest.raises(SketchFault) as caught:
        await client.render(source, seed=1, cpu_budget_s=budget, deadline_s=300)
    return caught.value


@pytest.mark.parametrize("name", CANVAS)
async def test_a_canvas_or_buffer_out_of_bounds_is_named(client: Dispatcher, name: str) -> None:
    statement, value, bound = CANVAS[name]
    source = f"function setup() {{\n  createCanvas(128, 128, WEBGL);\n  {statement};\n}}"
    violation = (await refused(client, source)).violation
    assert violation.code is ViolationCode.CANVAS_OUT_OF_BOUNDS
    assert value in violation.message
    assert bound in violation.message
    assert violation.line == 3
    assert violation.column is not None


@pytest.mark.parametrize("name", DRAWN)
async def test_too_much_is_refused_before_it_is_done(client: Dispatcher, name: str) -> None:
    statement, value, bound = DRAWN[name]
    source = sketch(f"translate(-64, -64);\n  {statement};")
    violation = (await refused(client, source)).violation
    assert violation.code is ViolationCode.RENDER_FAILED
    assert value in violation.message
    assert bound in violation.message
    assert violation.line == source[: source.index(statement)].count("\n") + 1
    assert violation.column is not None


async def test_a_caught_refusal_ends_the_sketch_all_the_same(client: Dispatcher) -> None:
    stubborn = sketch(
        setup="try { createCanvas(9000, 9000, WEBGL); } catch {}",
        tail="try { for (;;) brush.circle(9, 9, 5); } catch {}",
    )
    violation = (await refused(client, stubborn)).violation
    assert violation.code is ViolationCode.CANVAS_OUT_OF_BOUNDS
    assert "createCanvas(9000, 9000)" in violation.message


async def test_a_canvas_enlarged_behind_p5s_back_is_refused(client: Dispatcher) -> None:
    source = sketch(tail='document.querySelector("canvas").width = 2000;')
    violation = (await refused(client, source)).violation
    assert violation.code is ViolationCode.CANVAS_OUT_OF_BOUNDS
    assert "2000 by 128" in violation.message


HARMLESS = {
    "bleed without bound": "brush.fillBleed(1e9);",
    "bleed of no number": "brush.fillBleed(NaN);",
    "texture without bound": "brush.fillTexture(1e9, 1e9);",
    "a wild field": "brush.wiggle(1e9);",
}


@pytest.mark.parametrize("name", HARMLESS)
async def test_what_the_library_bounds_itself_is_painted(client: Dispatcher, name: str) -> None:
    source = sketch(
        tail=f"push(); {HARMLESS[name]} brush.fill('red', 150); brush.circle(64, 64, 20);"
    )
    painted = await client.render(source, seed=1, deadline_s=300)
    assert painted.shapes == 4


@pytest.mark.parametrize(
    "statement",
    [
        "pixelDensity(4)",
        "createGraphics(64, 64, WEBGL).pixelDensity(4)",
        "createFramebuffer({ density: 4 }).pixelDensity(4)",
    ],
)
async def test_the_density_is_one(client: Dispatcher, statement: str) -> None:
    painted = await client.render(sketch(setup=f"{statement};"), seed=1, fresh=True)
    assert Image.open(io.BytesIO(painted.painting)).size == (SIZE, SIZE)
    assert painted.painting == (await client.render(HONEST, seed=1)).painting


async def test_the_last_canvas_is_the_painting(client: Dispatcher) -> None:
    twice = sketch(setup="createCanvas(96, 80, WEBGL);")
    painted = await client.render(twice, seed=1)
    assert Image.open(io.BytesIO(painted.painting)).size == (96, 80)


HELD = {
    "a canvas put in its place": """const other = document.createElement("canvas");
      other.getContext("2d").fillText("FLOWER", 10, 50);
      document.querySelector("canvas").replaceWith(other);""",
    "an overwritten body": 'document.body.outerHTML = "<body><canvas></canvas></body>";',
    "the state of reading pixels": """const gl = drawingContext;
      gl.pixelStorei(gl.PACK_ROW_LENGTH, 999); gl.pixelStorei(gl.PACK_SKIP_PIXELS, 9);
      gl.bindBuffer(gl.PIXEL_PACK_BUFFER, gl.createBuffer()); gl.readBuffer(gl.NONE);""",
    "a context lost on purpose": """if (drawingContext.getExtension("WEBGL_lose_context"))
      throw new Error("found");""",
    "a false instance of a context": """Object.defineProperty(WebGL2RenderingContext,
      Symbol.hasInstance, { value: () => false });""",
}


@pytest.mark.parametrize("name", HELD)
async def test_the_picture_comes_from_the_canvas_held_before(client: Dispatcher, name: str) -> None:
    painted = await client.render(sketch(tail=HELD[name]), seed=1, fresh=True)
    assert painted.js_errors == ()
    assert painted.painting == (await client.render(HONEST, seed=1)).painting
