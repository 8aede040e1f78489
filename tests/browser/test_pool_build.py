from __future__ import annotations

from pathlib import Path

import pytest
from tests.browser.conftest import Server

from watercolour.api.errors import InputError
from watercolour.reward import pool as pools
from watercolour.reward import pool_build
from watercolour.reward.pool import Record

CARD = "name: two\nwhat: a test\nmade: by hand\nlicence: Apache-2.0\ncanvas: 96\n"
SKETCH = """\
function setup() {{
  createCanvas(96, 96, WEBGL);
  noLoop();
}}
function draw() {{
  background("#faf5ea");
  brush.noStroke();
  brush.fill("{}", 200);
  brush.fillBleed(0.2);
  brush.circle(random(-9, 9), 0, {});
}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two sketches, rated and not yet painted."""
    (tmp_path / "pool.yaml").write_text(CARD)
    (tmp_path / "sketches").mkdir()
    records: list[Record] = []
    for name, tier, color in (("love_a", "love", "#d43428"), ("okay_b", "okay", "#4a5fc4")):
        pools.sketch_path(tmp_path, name).write_text(SKETCH.format(color, 30))
        records.append(Record.model_validate({"name": name, "subject": "a dot", "tier": tier}))
    pool_build.write_records(tmp_path, records)
    return tmp_path


async def test_a_built_pool_loads_and_a_second_build_changes_nothing(
    folder: Path, server: Server
) -> None:
    told: list[tuple[int, int]] = []
    built = await pool_build.build(folder, [server.url], progress=lambda *now: told.append(now))
    assert built.paintings == 2
    assert set(built.changed) == {"love_a", "okay_b"}
    assert told == [(1, 2), (2, 2)]

    pool = pools.load(folder)
    love, okay = pool.references
    assert love.strength > okay.strength == 0
    assert love.painting != okay.painting
    assert pool.card.versions["p5.brush"]
    first = pools.read_records(folder)[0]
    assert first.rasterizer == built.rasterizer
    assert first.shapes == 1
    assert 0.05 < first.paint_fraction < 0.9

    again = await pool_build.build(folder, [server.url])
    assert again.changed == ()
    assert pools.load(folder) == pool


async def test_a_record_seed_seeds_its_painting(folder: Path, server: Server) -> None:
    await pool_build.build(folder, [server.url])
    records = pools.read_records(folder)
    reseeded = records[0].model_copy(update={"seed": 2})
    pool_build.write_records(folder, [reseeded, records[1]])
    built = await pool_build.build(folder, [server.url])
    assert built.changed == ("love_a",)


@pytest.mark.parametrize(
    ("sketch", "word"),
    [
        (SKETCH.format("#d43428", 30).replace("brush.circle", "ellipse"), "bare_primitives"),
        (SKETCH.format("#faf5ea", 2), "blank_canvas"),
        (SKETCH.format("#d43428", 30).replace("random(-9, 9)", "nowhere.x"), "nowhere"),
    ],
)
async def test_a_refused_sketch_is_named_and_nothing_is_written(
    sketch: str, word: str, folder: Path, server: Server
) -> None:
    path = pools.sketch_path(folder, "okay_b")
    path.write_text(sketch)
    before = (folder / "paintings.json").read_bytes()
    with pytest.raises(InputError, match=word) as caught:
        await pool_build.build(folder, [server.url])
    assert str(path) in str(caught.value)
    assert (folder / "paintings.json").read_bytes() == before
    assert not (folder / "paintings").exists()
