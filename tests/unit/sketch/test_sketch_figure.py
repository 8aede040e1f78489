"""A subject by data alone: the grammar paints it, the gate admits it, mistakes are named."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from watercolour.api.errors import InputError
from watercolour.api.spec import Gate
from watercolour.sketch import figure, figure_paint, gate

FILE = Path(__file__).parents[3] / "examples" / "subjects" / "jellyfish.yaml"
JELLYFISH = figure.load(FILE)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from(get_args(figure_paint.Intent)),
    st.sampled_from((64, 192, 256, 600)),
)
def test_the_gate_admits_whatever_is_painted(
    seed: int, intent: figure_paint.Intent, canvas: int
) -> None:
    found = figure_paint.sketch(JELLYFISH, random.Random(seed), intent, canvas)
    assert gate.check(found.text, Gate()) == ()
    assert f"createCanvas({canvas}, {canvas}, WEBGL)" in found.text
    assert bool(found.flaw) == (intent == "ugly")


def test_equal_seeds_paint_equal_sketches() -> None:
    one, same, other = (
        figure_paint.sketch(JELLYFISH, random.Random(seed), "good", 256).text for seed in (1, 1, 2)
    )
    assert one == same != other


def test_every_flaw_is_painted() -> None:
    rng = random.Random(1)
    found = {figure_paint.sketch(JELLYFISH, rng, "ugly", 192).flaw for _ in range(200)}
    assert found == set(figure_paint.FLAWS)


def _outline(data: dict[str, Any]) -> None:
    data["parts"][0]["outline"] = "star"


def _colour(data: dict[str, Any]) -> None:
    data["parts"][1]["washes"][0]["colour"] = "gold"


def _hex(data: dict[str, Any]) -> None:
    data["colours"]["pale"] = ['"); fetch("//evil']


def _count(data: dict[str, Any]) -> None:
    data["parts"][1]["count"] = [9, 2]


def _far(data: dict[str, Any]) -> None:
    data["outlines"]["bell"] = [[0, 0], [9, 1], [1, 1]]


def _typo(data: dict[str, Any]) -> None:
    data["color"] = {}


def _no_parts(data: dict[str, Any]) -> None:
    data["parts"] = []


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (_outline, "the outline 'star' is none of bell, tentacle"),
        (_colour, "the colour 'gold' is none of water, pale"),
        (_hex, "colours.pale.0="),
        (_count, "count=(9, 2) of 'tentacles'"),
        (_far, "outlines.bell.1.0=9"),
        (_typo, "color="),
        (_no_parts, "parts=[]"),
    ],
)
def test_a_mistake_is_named(
    spoil: Callable[[dict[str, Any]], None], told: str, tmp_path: Path
) -> None:
    data = yaml.safe_load(FILE.read_text())
    spoil(data)
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    with pytest.raises(InputError) as caught:
        figure.load(path)
    assert told in caught.value.message
    assert str(path) in caught.value.message


@pytest.mark.parametrize("data", [b"[1, 2", b"\xff\xfe\x00", b"just words", b"#" * 300_000])
def test_what_is_no_description_is_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"mine\.yaml"):
        figure.load(path)
