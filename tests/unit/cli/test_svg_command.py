from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest

from watercolour import cli
from watercolour.cli.prints import Width
from watercolour.render.replay import Replay, Shape

SAVED = Replay(
    width=128,
    height=64,
    seed=5,
    shapes=(
        Shape(kind="paper", call="background", paths=(), colour="#ffffff", opacity=1),
        Shape(
            kind="fill", call="circle", paths=((1, 2, 30, 4, 5, 60),), colour="#c8322e", opacity=1
        ),
        Shape(kind="wash", call="rect", paths=((1, 2, 30, 4, 5, 60),), colour="#2c4fa3", opacity=1),
    ),
    truncated=False,
    elsewhere=0,
)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "iris.json"
    path.write_text(SAVED.model_dump_json(exclude_none=True))
    return path


def test_saved_shapes_are_drawn_without_a_browser(saved: Path, tmp_path: Path) -> None:
    out = tmp_path / "iris.svg"
    assert cli.status(["svg", str(saved), "-o", str(out), "--width", "20cm"]) == 0
    root = ElementTree.parse(out).getroot()
    assert root.get("width") == "200mm"
    assert (root[0].text or "").startswith("iris ")
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) == 2


def test_json_tells_what_was_drawn(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "iris.svg"
    assert cli.status(["svg", str(saved), "-o", str(out), "--shapes", "2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {
        "width": 128, "height": 64, "seed": 5, "truncated": False, "elsewhere": 0, "shapes": 2,
        "out": str(out),
    }  # fmt: skip
    assert "#2c4fa3" not in out.read_text()


def test_saved_shapes_come_back_as_they_were(saved: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.json"
    words = ["svg", str(saved), "-o", str(tmp_path / "x.svg"), "--replay", str(again)]
    assert cli.status(words) == 0
    assert Replay.model_validate_json(again.read_text()) == SAVED


@pytest.mark.parametrize("content", ["{", "[]", '{"version": 2}', '{"width": 1}'])
def test_a_file_that_holds_no_replay_is_the_inputs_fault(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content)
    assert cli.status(["svg", str(path), "-o", str(tmp_path / "x.svg")]) == 1
    assert "holds no replay" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "millimetres"), [("200mm", 200), ("21.5cm", 215), ("8in", 203.2)])
def test_a_width_has_a_unit(text: str, millimetres: float) -> None:
    assert Width().convert(text, None, None) == pytest.approx(millimetres)


@pytest.mark.parametrize("text", ["200", "-5mm", "0mm", "9999cm", "nanmm", "20 mm", "1e3mm"])
def test_what_is_no_width_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Width().convert(text, None, None)
