"""What was painted, as data: it changes no pixel, and it is what was painted."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from tests.browser.sketches import HONEST, sketch

from watercolour.render import chromium, svg
from watercolour.render.dispatcher import Dispatcher
from watercolour.render.replay import Replay
from watercolour.render.result import Painted
from watercolour.sketch import grammar

RICH = sketch(
    tail="""
  brush.noFill(); brush.set("HB", "#223366", 1); brush.line(8, 8, 120, 12);
  brush.set("marker", "#cc2222", 2); brush.spline([[8, 20, 1], [40, 40, 1], [90, 16, 1]], 0.6);
  brush.field("curved"); brush.flowLine(8, 50, 100, 0); brush.wiggle(2);
  brush.line(8, 60, 100, 70); brush.noField();
  brush.set("2H", "#006644", 1); brush.hatch(5, 30, { rand: 0.1 }); brush.noFill();
  brush.circle(100, 80, 16, true); brush.noHatch(); brush.noStroke();
  brush.mass("crayon", "#885500", { precision: 0.6 }); brush.rect(10, 90, 30, 24); brush.noMass();
  brush.wash("#88bb44", 120); brush.rect(50, 100, 20, 20); brush.noWash();
  push(); translate(100, 30); rotate(0.5); scale(1.2, 0.8); brush.fill("#2c4fa3", 200);
  brush.beginShape(0.5); for (const [x, y] of [[-20, -10], [20, -10], [15, 20], [-15, 20]])
    brush.vertex(x, y); brush.endShape(true); pop();
  brush.set("spray", "#111111", 1); brush.arc(64, 64, 30, 0, 200);
  brush.beginStroke("curve", 20, 120); brush.move(0, 50, 1); brush.move(30, 40, 1);
  brush.endStroke(0, 1);"""
)
GENERATED = [sample.sketch for sample in grammar.corpus(3, seed=11)]


async def recorded(client: Dispatcher, source: str, seed: int = 3) -> tuple[Painted, Replay]:
    """The painting and its replay."""
    painted = await client.render(source, seed=seed, replay=True, deadline_s=300)
    assert painted.replay is not None
    return painted, painted.replay


@pytest.mark.parametrize(
    "source", [RICH, *GENERATED], ids=["rich", *(f"generated {i}" for i in range(len(GENERATED)))]
)
async def test_recording_changes_no_pixel(client: Dispatcher, source: str) -> None:
    plain = await client.render(source, seed=3, fresh=True, deadline_s=300)
    painted, replay = await recorded(client, source)
    assert plain.replay is None
    assert painted.painting == plain.painting
    assert painted.js_errors == plain.js_errors == ()
    assert sum(shape.kind in ("fill", "wash") for shape in replay.shapes) == painted.shapes


async def test_a_remembered_painting_without_replay_does_not_answer_for_one_with(
    client: Dispatcher,
) -> None:
    await client.render(HONEST, seed=21)
    painted, replay = await recorded(client, HONEST, seed=21)
    assert not painted.cached
    assert replay.seed == 21


async def test_shapes_come_in_order_with_kind_call_and_pigment(client: Dispatcher) -> None:
    _, replay = await recorded(client, RICH)
    found = [(shape.kind, shape.call) for shape in replay.shapes]
    assert found == [
        ("paper", "background"),
        ("fill", "circle"),
        ("fill", "rect"),
        ("fill", "circle"),
        ("stroke", "line"),
        ("stroke", "spline"),
        ("stroke", "flowLine"),
        ("stroke", "line"),
        ("hatch", "circle"),
        ("stroke", "circle"),
        ("mass", "rect"),
        ("wash", "rect"),
        ("fill", "endShape"),
        ("stroke", "arc"),
        ("stroke", "endStroke"),
    ]
    assert (replay.width, replay.height, replay.seed) == (128, 128, 3)
    assert (replay.truncated, replay.elsewhere) == (False, 0)
    paper, petal, *_ = replay.shapes
    assert (paper.colour, paper.opacity) == ("#f8f4ec", 1)
    assert petal.colour == "#c8322e"
    assert petal.opacity == pytest.approx(140 / 255, abs=0.001)
    assert (petal.bleed, petal.direction) == (0.2, "out")
    assert (petal.texture, petal.border) == (0.4, 0.4)
    line = replay.shapes[4]
    assert (line.brush, line.weight, line.colour) == ("HB", 1, "#223366")
    assert len(replay.shapes[8].paths) > 4


async def test_outlines_are_in_pixels_of_the_canvas(client: Dispatcher) -> None:
    source = sketch(
        tail="""brush.fill("red", 90); push(); translate(64, 64); rotate(HALF_PI); scale(2, 1);
      brush.polygon([[0, 0], [20, 0], [20, 10], [10, 10.1], [0, 10]]); pop();
      brush.set("HB", "blue", 1); brush.line(10, 20, 110, 20);"""
    )
    _, replay = await recorded(client, source)
    polygon, line = replay.shapes[4:6]
    corners = np.array(polygon.paths[0]).reshape(-1, 2)
    assert np.abs(corners - [[64, 64], [64, 104], [54, 104], [54, 64]]).max() <= 0.01
    way = np.array(line.paths[0]).reshape(-1, 2)
    assert np.abs(way - [[10, 20], [110, 20]]).max() <= 0.15


async def test_paths_are_within_a_quarter_pixel_and_short(client: Dispatcher) -> None:
    source = sketch(
        tail='brush.noFill(); brush.set("HB", "blue", 1); brush.arc(64, 64, 50, 0, 350);'
    )
    _, replay = await recorded(client, source)
    points = np.array(replay.shapes[-1].paths[0]).reshape(-1, 2)
    assert 20 < len(points) < 80
    # Between two points the way is straight: the middle of each is where it strays most.
    middles = (points[:-1] + points[1:]) / 2
    ends = points[[0, -1]]
    centre = np.array([64, 64])
    radii = np.hypot(*(np.concatenate([points, middles, ends]) - centre).T)
    assert np.abs(radii - 50).max() < 0.6


async def test_buffers_are_left_out_and_counted(client: Dispatcher) -> None:
    source = sketch(
        tail="""const pg = createGraphics(96, 96, WEBGL); brush.load(pg); brush.fill("blue", 99);
      brush.circle(0, 0, 20); brush.load(); brush.circle(20, 20, 9);"""
    )
    painted, replay = await recorded(client, source)
    assert painted.js_errors == ()
    assert replay.elsewhere == 1
    assert len(replay.shapes) == 5


async def test_a_long_list_is_cut_and_says_so(client: Dispatcher) -> None:
    source = sketch(
        tail="""brush.set("marker", "blue", 1);
      for (let i = 0; i < 6000; i++) brush.line(20, 20, 21, 22);"""
    )
    painted, replay = await recorded(client, source)
    assert painted.js_errors == ()
    assert replay.truncated
    assert len(replay.shapes) == 5000


async def test_a_sketch_cannot_reach_into_what_records_it(client: Dispatcher) -> None:
    hostile = sketch(
        head="""Number.prototype.toString = () => "<svg onload=x>";
      String.prototype.padStart = () => "</svg>";"""
    )
    painted = await client.render(hostile, seed=3, replay=True, fresh=True)
    assert painted.replay is not None
    assert {shape.colour for shape in painted.replay.shapes} >= {"#c8322e", "#3f7d3a"}


def rasterised(text: str, folder: Path, side: int) -> np.ndarray:
    """RGB of an SVG as Chromium shows it."""
    source, picture = folder / "drawing.svg", folder / "drawing.png"
    source.write_text(text, "utf-8")
    # No sketch runs here: the file holds paths alone.
    command = [str(chromium.find()), "--headless", "--no-sandbox", "--hide-scrollbars"]
    command += [f"--user-data-dir={folder / 'profile'}", f"--window-size={side},{side}"]
    command += [f"--screenshot={picture}", source.as_uri()]
    subprocess.run(command, capture_output=True, timeout=300, check=True)
    return np.asarray(Image.open(picture).convert("RGB"))


async def test_the_svg_looks_like_the_painting_without_its_bleed(
    client: Dispatcher, tmp_path: Path
) -> None:
    painted, replay = await recorded(client, GENERATED[0])
    text = svg.export(replay, title="flower")
    assert ElementTree.fromstring(text).tag.endswith("svg")
    drawn = rasterised(text, tmp_path, max(replay.width, replay.height))
    picture = Image.open(io.BytesIO(painted.painting)).convert("RGB")
    drawing = Image.fromarray(drawn[: replay.height, : replay.width])
    # Compared from afar: 12 by 12 fields.
    far = [np.asarray(image.resize((12, 12)), np.float64) for image in (picture, drawing)]
    paper = np.asarray(picture.resize((12, 12)), np.float64)[0, 0]
    ink = [np.abs(image - paper).sum(axis=2).ravel() for image in far]
    assert np.corrcoef(*ink)[0, 1] > 0.8
    assert np.abs(far[0] - far[1]).mean() < 20
