"""The short way of a fill onto the canvas: taken where it may be, and the long one elsewhere."""

from __future__ import annotations

import pytest
from tests.browser.conftest import Server, patient
from tests.browser.sketches import sketch

#: Counts the triangles of the short way; the last thing that the sketch does is to tell.
COUNT = """let short = 0;
const plainly = WebGL2RenderingContext.prototype.drawArrays;
WebGL2RenderingContext.prototype.drawArrays = function (mode, first, count) {
  if (mode === this.TRIANGLES && first === 0 && count === 3) short++;
  return plainly.apply(this, arguments);
};"""


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("", 12),  # three shapes of four blends
        ("blendMode(MULTIPLY);", 0),
        ("resizeCanvas(150, 110);", 0),
    ],
)
async def test_a_plain_fill_takes_the_short_way_and_no_other_does(
    server: Server, before: str, expected: int
) -> None:
    counted = sketch(before, head=COUNT, tail="throw new Error(`short: ${short};`);")
    async with patient(server) as client:
        painted = await client.render(counted, seed=3, fresh=True)
    assert len(painted.js_errors) == 1
    assert f"short: {expected};" in painted.js_errors[0]


async def test_a_fill_after_the_context_was_made_anew_fails_as_the_library_says(
    server: Server,
) -> None:
    again = 'noSmooth(); brush.fill("#22aa88", 160); brush.circle(84, 70, 24);'
    async with patient(server) as client:
        painted = await client.render(sketch(tail=again), seed=3, fresh=True)
    assert "attached to a different context" in painted.js_errors[0]
