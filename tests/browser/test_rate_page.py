"""The rating page in a real browser: an artist rates with real key presses, and nothing is lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from watercolour.gallery import rating
from watercolour.local.processes import renderer_python
from watercolour.reward import pool as pools
from watercolour.reward import pool_build, rating_log
from watercolour.reward.pool import Record

DRIVER = Path(__file__).with_name("rate_driver.py")
PAINTINGS = 9


def unrated(folder: Path) -> Path:
    """A pool of shipped paintings that nobody has rated."""
    flowers = pools.locate("builtin:flowers")
    kept = pools.read_records(flowers)[:: len(pools.read_records(flowers)) // PAINTINGS]
    records: list[Record] = []
    for number, record in enumerate(kept[:PAINTINGS], 1):
        name = f"flower_{number:03d}"
        for place in (pools.painting_path, pools.sketch_path):
            path = place(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(place(flowers, record.name), path)
        records.append(record.model_copy(update={"name": name, "tier": None, "strength": 0.0}))
    pool_build.write_records(folder, records)
    shutil.copy(flowers / "pool.yaml", folder)
    return folder


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unrated(tmp_path_factory.mktemp("pools") / "mine")


def visited(pool: Path, place: Path, *how: str) -> dict[str, Any]:
    """What the driver saw of the pool's page, where its pictures lie, and the page's address."""
    pictures = Path(os.environ.get("WATERCOLOUR_SCREENSHOTS", place))
    announced = place / "announced.json"
    command = [sys.executable, "-m", "watercolour.cli", "pool", "rate", str(pool)]
    options = ["--rater", "anna", "--no-open", "--announce", str(announced)]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as server:
        try:
            end = time.monotonic() + 120
            while not announced.exists():
                assert server.poll() is None
                assert time.monotonic() < end
                time.sleep(0.05)
            url = json.loads(announced.read_text())["url"]
            ran = subprocess.run(
                [renderer_python(), DRIVER, url, pictures, *how],
                capture_output=True,
                text=True,
                timeout=280,
                check=False,
            )
            assert ran.returncode == 0, ran.stderr
        finally:
            server.terminate()
    return {"url": url, "pictures": str(pictures), **json.loads(ran.stdout)}


@pytest.fixture(scope="module")
def seen(pool: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return visited(pool, tmp_path_factory.mktemp("rate"))


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Anna's page of a pool that Ben loves throughout and Clara in part."""
    folder = unrated(tmp_path_factory.mktemp("pools") / "ours")
    for number, record in enumerate(pools.read_records(folder)):
        rating.rate(folder, "ben", f"ben-{number:05d}", record.name, "love")
        if number % 2:
            rating.rate(folder, "clara", f"clara-{number:05d}", record.name, "meh")
    return visited(folder, tmp_path_factory.mktemp("together"), "several")


def test_nothing_goes_wrong_and_nobody_else_is_asked(seen: dict[str, Any]) -> None:
    origin = seen["url"].partition("/rate")[0]
    assert seen["errors"] == []
    assert [url for url in seen["requests"] if not url.startswith(origin)] == []


def test_the_token_does_not_stay_in_the_address(seen: dict[str, Any]) -> None:
    assert "token" in seen["url"]
    assert "token" not in seen["address"]


def test_each_key_press_rates_one_painting_and_is_saved(seen: dict[str, Any]) -> None:
    shown = [seen["start"], *seen["keys"]]
    assert [each["count"] for each in shown] == [f"{n} of {PAINTINGS}" for n in range(4)]
    assert len({each["painting"] for each in shown}) == 4
    assert [each["recent"] for each in shown] == [0, 1, 2, 3]
    assert {each["saved"] for each in seen["keys"]} == {"saved"}


def test_undo_brings_the_painting_back(seen: dict[str, Any]) -> None:
    before, keys = seen["start"], seen["keys"]
    assert seen["undone"]["painting"] == keys[1]["painting"]
    assert seen["undone twice"]["painting"] == keys[0]["painting"] != before["painting"]
    assert seen["undone twice"]["count"] == f"1 of {PAINTINGS}"
    assert [each["count"] for each in seen["again"]] == [f"{n} of {PAINTINGS}" for n in (2, 3)]


def test_it_goes_on_after_a_reload(seen: dict[str, Any]) -> None:
    assert seen["later"]["painting"] != seen["again"][1]["painting"]
    assert seen["reloaded"]["count"] == seen["later"]["count"]


def test_a_held_key_rates_one_painting_alone(seen: dict[str, Any]) -> None:
    assert seen["held"]["count"] == f"4 of {PAINTINGS}"


def test_no_key_rates_under_an_open_dialog(seen: dict[str, Any]) -> None:
    assert seen["help"]
    assert seen["after help"]["count"] == seen["aside"]["count"] == f"5 of {PAINTINGS}"


def test_the_painting_is_large_and_the_page_needs_no_scrolling(seen: dict[str, Any]) -> None:
    assert seen["start"]["side"] >= 520
    assert seen["phone"]["side"] >= 330
    for name in ("start", "phone", "pairs", "phone pairs"):
        assert seen[name]["wide"] <= 0, name
        assert seen[name]["tall"] <= 0, name


def test_everything_that_can_be_used_has_a_name(seen: dict[str, Any]) -> None:
    assert seen["unnamed"] == 0


def test_light_and_dark_differ(seen: dict[str, Any]) -> None:
    assert seen["start"]["theme"] == "light"
    assert seen["dark"]["theme"] == "dark"
    assert seen["dark"]["paper"] != seen["start"]["paper"]


def test_the_end_tells_the_tiers(seen: dict[str, Any]) -> None:
    assert f"All {PAINTINGS} are rated" in seen["all"]["done"]
    assert "calibrate" in seen["all"]["done"]


def test_pairs_are_compared_by_arrows_and_undone(seen: dict[str, Any]) -> None:
    shown = [seen["pairs"], *seen["compared"]]
    assert [each["count"].split()[0] for each in shown] == ["0", "1", "2", "3"]
    assert all(len(set(each["pair"])) == 2 for each in shown)
    sides = [frozenset(each["pair"]) for each in shown]
    assert len(set(sides)) == len(sides)
    # The strongest are shown once there is a comparison.
    assert [each["ladder"] for each in shown] == [0, 5, 5, 5]
    undone = seen["pair undone"]
    assert undone["count"].startswith("2 ")
    assert undone["pair"] == seen["compared"][1]["pair"]


def test_a_page_whose_server_has_gone_says_so(seen: dict[str, Any]) -> None:
    assert "Start it again" in seen["gone"]["trouble"]
    assert seen["gone"]["saved"] == "not saved"


def test_the_pool_holds_what_was_rated(seen: dict[str, Any], pool: Path) -> None:
    acts = rating_log.read_all(pool)["anna"]
    said = Counter(act.said for act in rating_log.tiers(acts).values())
    assert said["aside"] == 1
    assert said["love"] >= 1
    assert sum(said.values()) == PAINTINGS
    assert len(rating_log.compared(acts)) == 2
    records = pools.read_records(pool)
    assert Counter(record.tier for record in records if not record.aside) == {
        tier: count for tier, count in said.items() if tier != "aside"
    }
    assert len(pools.load(pool).references) == PAINTINGS - 1


def test_the_pictures_of_the_pages_are_whole(seen: dict[str, Any]) -> None:
    for name, width in (("one", 1280), ("dark", 1280), ("phone", 390), ("pairs", 1280)):
        with Image.open(Path(seen["pictures"]) / f"{name}.png") as picture:
            picture.load()
            assert picture.width == width


def test_several_raters_see_how_far_they_agree(together: dict[str, Any]) -> None:
    assert together["errors"] == []
    last = together["rated"][-1]
    assert "anna 5, ben 9, clara 4" in last["agreement"]
    assert "too low to rely on" in last["agreement"]
    assert together["differ"]["open"]
    assert -1 <= float(together["differ"]["alpha"]) < 0.667
    shared = int(last["agreement"].partition("Agreement on ")[2].partition(" ")[0])
    assert f"{shared} paintings have more than one rating" in together["differ"]["words"]


def test_the_line_on_raters_needs_no_scrolling(together: dict[str, Any]) -> None:
    for name in ("settled", "phone", "pairs"):
        assert together[name]["agreement"], name
        assert together[name]["wide"] <= 0, name
        assert together[name]["tall"] <= 0, name
    assert together["phone differ"]["wide"] <= 0


def test_nobody_learns_what_others_said_before_having_rated(together: dict[str, Any]) -> None:
    mine = [each["painting"] for each in together["rated"][:5]]
    tiles = together["differ"]["tiles"]
    # Ben loves every painting that Anna finds meh, so all of hers are disputed, and hers alone.
    assert set(tiles) == set(mine)
    assert all(words.startswith("anna meh, ben love") for words in tiles.values())
    # Clara and Ben differ on four paintings; of those that Anna has not seen there is the number.
    hidden = 4 - sum("clara" in words for words in tiles.values())
    assert f"{5 + hidden} disputed ones" in together["rated"][-1]["agreement"]
    assert (f"{hidden} more will be shown" in together["differ"]["words"]) is (hidden > 0)


def test_a_disputed_painting_is_rated_again(together: dict[str, Any]) -> None:
    assert together["key under it"]["open"]
    first = next(iter(together["differ"]["tiles"]))
    again, settled = together["again"], together["settled"]
    assert not together["closed"]["open"]
    assert again["painting"] == first
    assert again["pressed"] == "meh"
    assert settled["recent"] == 6
    assert settled["count"] == f"5 of {PAINTINGS}"
