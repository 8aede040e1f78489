"""The report in a real browser: it opens at once, reacts, and asks nobody for anything."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.unit.gallery import fake_run

from watercolour.gallery import record, report
from watercolour.local.processes import renderer_python

DRIVER = Path(__file__).with_name("report_driver.py")
STEPS, SIZE = 100, 16


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("runs") / "long"
    fake_run.make(folder, steps=STEPS, size=SIZE)
    page = report.write(record.read(folder))
    ran = subprocess.run(
        [renderer_python(), DRIVER, page], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_nothing_goes_wrong_and_nobody_is_asked(seen: dict[str, Any]) -> None:
    assert seen["errors"] == []
    assert seen["foreign"] == []


def test_most_of_a_thousand_paintings_wait_until_they_are_seen(seen: dict[str, Any]) -> None:
    assert seen["start"]["images"] > 1000
    assert seen["start"]["decoded"] < 200


def test_hovering_over_the_curve_tells_the_values(seen: dict[str, Any]) -> None:
    assert "step 0" in seen["tip"]
    assert "adjusted" in seen["tip"]


def test_a_click_shows_code_terms_and_votes(seen: dict[str, Any]) -> None:
    first = seen["first"]
    assert first["open"]
    assert first["lines"] == 14
    for word in ("step 99", "quality", "love_01", "createCanvas"):
        assert word in first["text"]


def test_arrow_keys_go_through_the_step_and_escape_closes(seen: dict[str, Any]) -> None:
    assert seen["second"]["open"]
    assert seen["second"]["text"] != seen["first"]["text"]
    assert not seen["closed"]["open"]


def test_a_subject_can_be_picked(seen: dict[str, Any]) -> None:
    assert seen["filtered"] == STEPS * SIZE // 4


def test_the_line_of_a_violation_is_marked(seen: dict[str, Any]) -> None:
    assert seen["refused"]["marked"] == 1
    assert "brush.splash" in seen["refused"]["text"]


@pytest.mark.parametrize("width", ["start", "phone"])
def test_no_page_is_wider_than_its_window(seen: dict[str, Any], width: str) -> None:
    assert seen[width]["overflow"] <= 0
