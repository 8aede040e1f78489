from __future__ import annotations

import collections
import io
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.spec import Gate, TierShares
from watercolour.reward import pool as pools
from watercolour.reward import pool_build, pool_votes
from watercolour.reward.pool import Record
from watercolour.reward.ratings import TIERS
from watercolour.sketch import gate

FLOWERS = pools.load("builtin:flowers")
FOLDER = pools.locate("builtin:flowers")

CARD = "name: two\nwhat: a test\nmade: by hand\nlicence: Apache-2.0\ncanvas: 64\n"


SKETCH = """\
function setup() {{
  createCanvas(64, 64, WEBGL);
  brush.fill("{}", 200);
  brush.circle(0, 0, 20);
}}
"""


def png(side: int, color: str) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (side, side), color).save(out, "PNG")
    return out.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A whole pool of one painting a tier."""
    (tmp_path / "pool.yaml").write_text(CARD)
    records: list[Record] = []
    for tier, color in zip(TIERS, ("red", "green", "gray"), strict=True):
        name, painting, sketch = f"{tier}_one", png(64, color), SKETCH.format(color)
        for path, data in (
            (pools.painting_path(tmp_path, name), painting),
            (pools.sketch_path(tmp_path, name), sketch.encode()),
        ):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
        records.append(
            Record(
                name=name,
                subject="a rose",
                tier=tier,
                strength={"love": 3.0, "okay": 1.0, "meh": -2.0}[tier],
                sketch_sha256=pools.digest(sketch.encode()),
                painting_sha256=pools.digest(painting),
            )
        )
    pool_build.write_records(tmp_path, records)
    return tmp_path


def refusal(folder: Path | str) -> InputError:
    with pytest.raises(InputError) as caught:
        pools.load(folder)
    assert caught.value.reason is Reason.INVALID_POOL
    assert caught.value.remedy
    return caught.value


def test_a_whole_pool_loads_with_the_okay_tier_at_zero(folder: Path) -> None:
    pool = pools.load(folder)
    assert [(r.name, r.strength) for r in pool.references] == [
        ("love_one", 2.0),
        ("okay_one", 0.0),
        ("meh_one", -3.0),
    ]
    assert pool.references[0].sketch == SKETCH.format("red")
    assert pool.card.canvas == 64


def edit(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return change


def cut_painting(folder: Path) -> None:
    """Half a PNG whose checksum is the recorded one, as after a broken build."""
    path = pools.painting_path(folder, "okay_one")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    edit("paintings.json", pools.digest(whole), pools.digest(path.read_bytes()))(folder)


BROKEN: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "painting missing": (
        lambda f: pools.painting_path(f, "meh_one").unlink(),
        ("meh_one.png", "No such file"),
    ),
    "sketch missing": (
        lambda f: pools.sketch_path(f, "meh_one").unlink(),
        ("meh_one.js", "No such file"),
    ),
    "painting changed": (
        lambda f: pools.painting_path(f, "love_one").write_bytes(png(64, "blue")),
        ("love_one.png", "painting_sha256"),
    ),
    "sketch changed": (
        lambda f: pools.sketch_path(f, "love_one").write_text("other"),
        ("love_one.js", "sketch_sha256"),
    ),
    "painting cut": (cut_painting, ("okay_one.png", "not a whole PNG")),
    "never built": (
        edit("paintings.json", '"painting_sha256": "', '"painting_sha256": "", "rasterizer": "'),
        ("paintings.json",),
    ),
    "other canvas": (edit("pool.yaml", "64", "128"), ("64x64", "canvas=128")),
    "unknown tier": (edit("paintings.json", '"love"', '"adore"'), ("adore", "love_one")),
    "unknown field": (edit("paintings.json", '"tier"', '"teir"'), ("paintings.json", "teir")),
    "twice": (edit("paintings.json", "okay_one", "love_one"), ("love_one", "twice")),
    "not json": (edit("paintings.json", "[", "{["), ("paintings.json", "not JSON")),
    "no list": (lambda f: (f / "paintings.json").write_text("{}"), ("dict",)),
    "empty": (lambda f: (f / "paintings.json").write_text("[]"), ("no paintings",)),
    "no card": (lambda f: (f / "pool.yaml").unlink(), ("pool.yaml", "No such file")),
    "card without canvas": (edit("pool.yaml", "canvas: 64", ""), ("pool.yaml", "canvas")),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_pool_is_refused_and_the_message_names_file_and_value(
    case: str, folder: Path
) -> None:
    spoil, words = BROKEN[case]
    spoil(folder)
    message = str(refusal(folder))
    assert all(word in message for word in words), message


@pytest.mark.parametrize("source", ["builtin:vegetables", "/nowhere/at/all"])
def test_a_pool_that_is_not_there_is_refused_with_a_choice(source: str) -> None:
    error = refusal(source)
    assert error.field == "spec.references.pool"
    assert source in str(error)
    assert "builtin:flowers" in error.remedy


# Draws.

counts = st.integers(1, 12)
shares = st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 6)).filter(any)


def tier_shares(parts: tuple[int, int, int]) -> TierShares:
    total = sum(parts)
    return TierShares(**{t: p / total for t, p in zip(TIERS, parts, strict=True)})


@given(st.integers(0, 10**9), counts, shares)
def test_a_draw_is_seeded_whole_and_without_repeats(
    seed: int, count: int, parts: tuple[int, int, int]
) -> None:
    drawn = pools.draw(FLOWERS, seed, count, tier_shares(parts))
    assert drawn == pools.draw(FLOWERS, seed, count, tier_shares(parts))
    assert len(drawn) == count == len({r.name for r in drawn})


@given(counts, shares)
def test_every_tier_gets_its_share_to_within_one(count: int, parts: tuple[int, int, int]) -> None:
    asked = tier_shares(parts)
    given_ = pools.allocate(count, asked)
    assert sum(given_.values()) == count
    for tier in TIERS:
        wanted = count * getattr(asked, tier)
        assert math.floor(wanted + 1e-9) <= given_[tier] <= math.ceil(wanted - 1e-9)
    drawn = pools.draw(FLOWERS, 3, count, asked)
    got = collections.Counter(r.tier for r in drawn)
    assert all(got[tier] == given_[tier] for tier in TIERS)


def test_an_odd_reference_goes_to_the_stronger_tier() -> None:
    assert pools.allocate(3, TierShares()) == {"love": 2, "okay": 1, "meh": 0}


def test_draws_reach_the_whole_tier() -> None:
    seen = {r.name for seed in range(400) for r in pools.draw(FLOWERS, seed, 4, TierShares())}
    assert seen == {r.name for r in FLOWERS.references if r.tier != "meh"}


def test_a_tier_too_small_for_its_share_is_refused(folder: Path) -> None:
    with pytest.raises(InputError) as caught:
        pools.draw(pools.load(folder), 1, 4, TierShares())
    assert caught.value.field == "references.perRollout"
    assert caught.value.value == 4
    assert all(word in str(caught.value) for word in ("tierShares.love=0.5", "draws 2", "has 1"))


def test_an_okay_painting_expects_half_against_its_equals_and_less_against_love(
    folder: Path,
) -> None:
    love, okay, meh = pools.load(folder).references
    assert pools.draw_strength([okay]) == pytest.approx(0.5)
    assert pools.draw_strength([love]) == pytest.approx(1 / (1 + math.exp(2)))
    assert pools.draw_strength([love, meh]) == pytest.approx(
        (pools.draw_strength([love]) + pools.draw_strength([meh])) / 2
    )


def test_an_empty_draw_has_no_strength() -> None:
    with pytest.raises(ValueError, match="empty"):
        pools.draw_strength([])


# The shipped pool.


def test_the_shipped_pool_is_balanced_and_small() -> None:
    assert len(FLOWERS.references) >= 64
    by_tier = collections.Counter(r.tier for r in FLOWERS.references)
    assert max(by_tier.values()) <= 1.5 * min(by_tier.values())
    for tier in TIERS:
        by_subject = collections.Counter(r.subject for r in FLOWERS.tier(tier))
        assert len(by_subject) == 4
        assert min(by_subject.values()) >= 4
    size = sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file())
    assert size <= 25e6


def test_every_shipped_sketch_passes_the_gate_and_painted_enough() -> None:
    least = Gate().min_paint_fraction
    for record in pools.read_records(FOLDER):
        sketch = pools.sketch_path(FOLDER, record.name).read_text()
        assert not gate.check(sketch, Gate()), record.name
        assert record.paint_fraction >= least, record.name
        assert record.shapes > 0, record.name


def test_the_shipped_pool_was_painted_by_one_rasterizer() -> None:
    assert len({record.rasterizer for record in pools.read_records(FOLDER)}) == 1


def test_no_painting_of_the_shipped_pool_is_there_twice() -> None:
    sums = [record.painting_sha256 for record in pools.read_records(FOLDER)]
    assert len(set(sums)) == len(sums)


def test_the_shipped_pools_tiers_do_not_overlap_in_strength() -> None:
    love, okay, meh = ([r.strength for r in FLOWERS.tier(tier)] for tier in TIERS)
    assert min(love) > max(okay) > 0 > min(okay) > max(meh)


def test_names_say_the_tier() -> None:
    assert all(r.name.startswith(f"{r.tier}_") for r in FLOWERS.references)


# Votes.


def test_votes_are_kept_and_move_the_strengths(folder: Path) -> None:
    votes = np.full((2, 2), np.nan)
    votes[0, 1] = 0.0
    before = {r.name: r.strength for r in pools.read_records(folder)}
    pool_votes.write(folder, pool_votes.from_matrix(["love_one", "okay_one"], votes))
    pool_build.write_records(folder, pool_votes.fitted(folder, pools.read_records(folder)))
    after = {r.name: r.strength for r in pools.load(folder).references}
    assert after["love_one"] - after["okay_one"] < before["love_one"] - before["okay_one"]
    kept = pool_votes.read(folder)
    assert [(v.first, v.second, v.value) for v in kept] == [("love_one", "okay_one", 0.0)]


def test_a_vote_on_a_painting_outside_the_pool_is_refused(folder: Path) -> None:
    (folder / "votes.json").write_text('[{"first": "love_one", "second": "y", "value": 1}]')
    with pytest.raises(InputError, match="'y'"):
        pool_votes.fitted(folder, pools.read_records(folder))


def test_votes_that_are_no_votes_are_refused(folder: Path) -> None:
    (folder / "votes.json").write_text('[{"first": "love_one", "second": "x", "value": 2}]')
    with pytest.raises(InputError, match=r"votes\.json"):
        pool_votes.read(folder)


def test_check_names_the_line_that_the_gate_refuses(folder: Path) -> None:
    assert len(pool_build.check(folder).references) == 3
    path = pools.sketch_path(folder, "meh_one")
    whole = path.read_text()
    bad = whole.replace("  brush.circle(0", "  rect(0, 0, 9, 9);\n  brush.circle(0")
    path.write_text(bad)
    edit("paintings.json", pools.digest(whole.encode()), pools.digest(bad.encode()))(folder)
    with pytest.raises(InputError, match=r"meh_one\.js: the gate.* in line 4") as caught:
        pool_build.check(folder)
    assert caught.value.value == "bare_primitives"


def test_a_sheet_shows_every_painting() -> None:
    pictures = [(r.painting, r.name) for r in FLOWERS.tier("love")[:5]]
    sheet = pool_build.sheet(pictures, columns=2, side=32)
    with Image.open(io.BytesIO(sheet)) as image:
        assert image.size == (64, 3 * (32 + 14))
