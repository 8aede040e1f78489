"""Sketches for the renderer's tests: one honest, many hostile."""

SIZE = 128


def sketch(body: str = "", *, head: str = "", setup: str = "", tail: str = "") -> str:
    """A small sketch of three shapes with code of the test's own at four places."""
    return f"""{head}
function setup() {{
  createCanvas({SIZE}, {SIZE}, WEBGL);
  {setup}
}}
function draw() {{
  {body}
  background(248, 244, 236);
  translate(-width / 2, -height / 2);
  brush.noStroke();
  brush.fillBleed(0.2);
  brush.fillTexture(0.4, 0.4);
  brush.fill("#c8322e", 140);
  brush.circle(64, 60, 34);
  brush.fill("#3f7d3a", 120);
  brush.rect(58, 80, 8, 40);
  brush.fill("#f2c53d", 160);
  brush.circle(64, 60, 10);
  {tail}
}}
"""


HONEST = sketch()
