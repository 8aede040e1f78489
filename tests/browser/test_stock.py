from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.browser.conftest import PYTHON
from tests.browser.sketches import HONEST, sketch

SHAPES = sketch(
    tail="""brush.fillBleed(0.5, "in"); brush.fillTexture(0.8, 0.9, false);
  brush.fill("#2c4fa3", 200); brush.circle(40, 90, 26);
  brush.fillBleed(0); brush.fillTexture(0, 1); brush.fill("#111111", 255);
  brush.circle(100, 30, 18);
  rotate(0.6); scale(1.4, 0.7);
  brush.fillBleed(1); brush.fillTexture(0.5, 0.5); brush.fill("#f7f7f0", 120);
  brush.beginShape(0.5); for (const [x, y] of [[30, 20], [80, 10], [70, 60], [20, 50]])
    brush.vertex(x, y); brush.endShape(true);
  brush.wash("#88bb44", 90); brush.noFill(); brush.rect(10, 10, 30, 12);
  brush.set("marker", "#223366", 2); brush.line(5, 5, 90, 40);"""
)

#: p5.brush loses a wash that a stroke follows, once something has been filled: so must we.
IN_TURN = sketch(
    tail="""brush.noFill(); brush.wash("#3f7d3a", 150); brush.rect(8, 90, 60, 20); brush.noWash();
  brush.set("marker", "#223366", 2); brush.line(8, 120, 110, 8); brush.noStroke();
  fill(0, 120, 200); noStroke(); rect(90, 4, 20, 30);
  brush.fill("#22aa88", 160); brush.circle(84, 70, 24); brush.noFill();
  brush.wash("#aa7d3a", 150); brush.circle(20, 20, 12); brush.noWash();
  brush.fill("#c8322e", 140); brush.rect(60, 60, 30, 20);"""
)


WASH = 'brush.noFill(); brush.wash("#aa7d3a", 150); brush.circle(20, 20, 12); brush.noWash();'
STROKE = 'brush.set("marker", "#223366", 2); brush.line(8, 120, 110, 8); brush.noStroke();'
PLAIN = "fill(0, 120, 200); noStroke(); rect(90, 4, 20, 30);"
OTHER = "const own = createGraphics(60, 60, WEBGL); own.background(200, 90, 40); image(own, 9, 9);"
FILL = 'brush.fill("#22aa88", 160); brush.circle(84, 70, 24); brush.noFill();'

#: What comes after fills alone, which leave p5's own shader uncompiled.
AFTER_FILLS = tuple(
    sketch(tail=f"{then} {FILL} {WASH}")
    for then in (WASH, STROKE, f"{STROKE} {WASH}", f"{PLAIN} {WASH}", f"{OTHER} {STROKE} {WASH}")
)


#: Fills on a canvas whose corner is not where the sketch starts, with borders too weak to be seen.
MOVED = tuple(
    f"""function setup() {{ createCanvas(128, 128, WEBGL); }}
function draw() {{ background(255); {before} brush.noStroke(); brush.fill("#22aa88", 160);
  brush.circle(0, 0, 20); }}"""
    for before in ("", "brush.fillTexture(0.4, 0.2);", "translate(-4, 3); rotate(0.5); scale(0.8);")
)


def test_the_patch_paints_what_the_published_library_paints() -> None:
    """Largest difference 2 of 255 and PSNR at least 70 dB; a new page equals a warm one."""
    done = subprocess.run(
        [str(PYTHON), str(Path(__file__).parent / "stock_driver.py")],
        input=json.dumps([HONEST, SHAPES, IN_TURN, *AFTER_FILLS, *MOVED]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == 11
    for row in rows:
        assert row["fresh_page_equal"]
        assert row["largest"] <= 2
        assert row["psnr"] is None or row["psnr"] >= 70
