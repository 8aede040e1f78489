"""`watercolour pool` on the pool that ships."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.unit.cli.conftest import Call

from watercolour.reward import pool as pools


def test_the_builtin_pool_is_whole(call: Call) -> None:
    got = call("pool", "check", "--json").json
    assert got["references"] == sum(got["tiers"].values())
    assert set(got["tiers"]) == {"love", "okay", "meh"}


def test_a_pool_with_a_broken_painting_names_the_file(call: Call, tmp_path: Path) -> None:
    shutil.copytree(pools.locate("builtin:flowers"), tmp_path / "pool")
    broken = sorted((tmp_path / "pool" / "paintings").iterdir())[0]
    broken.write_bytes(broken.read_bytes()[:100])
    got = call("pool", "check", tmp_path / "pool", "--json")
    assert got.status == 1
    assert got.json["error"]["reason"] == "InvalidPool"
    assert broken.name in got.err


def test_pool_show_lists_the_strongest_first(call: Call) -> None:
    rows = call("pool", "show", "--json").json["references"]
    strengths = [row["strength"] for row in rows]
    assert strengths == sorted(strengths, reverse=True)


# errors
