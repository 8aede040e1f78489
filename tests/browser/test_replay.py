"""What was painted, as data: recording it changes no pixel."""

from __future__ import annotations

import pytest
from tests.browser.sketches import sketch

from watercolour.render.dispatcher import Dispatcher
from watercolour.render.replay import Replay
from watercolour.render.result import Painted
from watercolour.sketch import grammar

RICH = sketch(
    tail="""
  brush.set("HB", "#223366", 1); brush.line(8, 8, 120, 12);
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
    assert len(replay.shapes) > painted.shapes
