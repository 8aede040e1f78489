"""Pools are read whole or refused, and recolouring changes the pigment alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from watercolour.api.errors import InputError
from watercolour.score import examples

Png = Callable[..., bytes]


@pytest.fixture
def folder(tmp_path: Path, png: Png) -> Path:
    (tmp_path / "paintings").mkdir()
    rows = [
        {"name": f"p{i}", "subject": "a red poppy", "tier": ("meh", "love")[i % 2]}
        for i in range(4)
    ]
    for i, row in enumerate(rows):
        (tmp_path / "paintings" / f"{row['name']}.png").write_bytes(png(i))
    (tmp_path / "paintings.json").write_text(json.dumps(rows))
    return tmp_path


def test_a_pool_is_read_in_its_order(folder: Path, png: Png) -> None:
    found = examples.read(folder)
    assert found.names == ("p0", "p1", "p2", "p3")
    assert found.tiers == ("meh", "love", "meh", "love")
    assert found.pictures == tuple(png(i) for i in range(4))


def test_the_checksum_follows_every_picture_and_tier(folder: Path, png: Png) -> None:
    before = examples.read(folder).checksum
    (folder / "paintings" / "p2.png").write_bytes(png(9))
    assert examples.read(folder).checksum != before


def test_a_missing_painting_is_named(folder: Path) -> None:
    (folder / "paintings" / "p3.png").unlink()
    with pytest.raises(InputError, match=r"p3\.png"):
        examples.read(folder)


@pytest.mark.parametrize("text", ["", "[1, 2]", "{}x", '[{"name": "a"}]'])
def test_a_broken_index_is_refused(text: str, folder: Path) -> None:
    (folder / "paintings.json").write_text(text)
    with pytest.raises(InputError, match=r"paintings\.json"):
        examples.read(folder)


def test_a_broken_png_is_named(folder: Path, png: Png) -> None:
    (folder / "paintings" / "p1.png").write_bytes(png()[:60])
    with pytest.raises(InputError, match="p1"):
        examples.decode(examples.read(folder))


def test_an_unknown_tier_is_named() -> None:
    with pytest.raises(InputError, match="'superb' does not exist"):
        examples.rank(["meh", "superb"])


def test_recolouring_makes_a_red_flower_blue_and_leaves_paper_and_leaf() -> None:
    pixels = np.full((154, 154, 3), (251, 248, 238), np.uint8)
    pixels[40:80, 40:80] = (220, 50, 40)
    pixels[90:120, 40:80] = (110, 140, 100)
    twin = examples.recolour(pixels)
    assert np.abs(twin[0, 0].astype(int) - (251, 248, 238)).max() <= 1
    red, green, blue = twin[60, 60].astype(int)
    assert blue > 180 > 100 > red
    assert green == 50
    leaf = twin[100, 60].astype(int)
    assert leaf.argmax() == 1
