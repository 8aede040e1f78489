"""`watercolour render` without a browser: what it reads, writes, shows and refuses."""

from __future__ import annotations

import io
import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from watchfiles import Change

from watercolour import cli
from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason, ViolationCode
from watercolour.api.rollout import Violation
from watercolour.local import painting, preview
from watercolour.render.result import Painted, SketchFault

SKETCH = """function setup() { createCanvas(192, 192, WEBGL); noLoop(); }
function draw() { background("#fff"); brush.fill("COLOUR", 160); brush.circle(0, 0, 40); }
"""
RED, BLUE = SKETCH.replace("COLOUR", "#cc0000"), SKETCH.replace("COLOUR", "#0000cc")


def png(colour: str) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (8, 8), colour).save(out, "PNG")
    return out.getvalue()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, painting.Wish]]:
    """What the renderer is asked; it paints a sketch's own colour, and throws what says so."""
    heard: list[tuple[str, painting.Wish]] = []

    def paint(sketch: str, wish: painting.Wish) -> Painted:
        heard.append((sketch, wish))
        if "awayaway" in sketch:
            raise InfrastructureError(Reason.RENDERER_UNAVAILABLE, "it is away.")
        if "throwsit" in sketch:
            code = ViolationCode.RENDER_FAILED
            raise SketchFault(Violation(code=code, message="no such colour", line=2))
        colour = "red" if "#cc0000" in sketch else "blue"
        return Painted(png(colour), 0.5, 1, ("a warning",), {"wall": 1.0}, 0.5, "r", {"p5": "2"})

    @contextmanager
    def painter(*_: Any, **__: Any) -> Generator[painting.Paint]:
        yield paint

    monkeypatch.setattr(painting, "painter", painter)
    return heard


def colour(path: Path) -> tuple[int, ...]:
    with Image.open(path) as image:
        found = image.convert("RGB").getpixel((3, 3))
    assert isinstance(found, tuple)
    return found


def test_the_painting_and_its_facts_lie_beside_the_sketch(
    asked: list[tuple[str, painting.Wish]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sketch = tmp_path / "poppy.js"
    sketch.write_text(RED)
    assert cli.status(["render", str(sketch), "--seed", "7", "--size", "2048"]) == 0
    assert colour(tmp_path / "poppy.png") == (255, 0, 0)
    facts = json.loads((tmp_path / "poppy.json").read_text())
    assert facts["sketch"] == str(sketch)
    assert facts["shapes"] == 1
    assert "painting" not in facts
    assert asked == [(RED, painting.Wish(seed=7, size=2048))]
    shown = capsys.readouterr()
    assert shown.out == f"{tmp_path / 'poppy.png'}: 1 shapes, 50.0% painted, 0.50 CPU s\n"
    assert shown.err == "JavaScript: a warning\n"


def test_a_folder_is_painted_whole_whatever_one_of_its_sketches_does(
    asked: list[tuple[str, painting.Wish]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = tmp_path / "sketches", tmp_path / "out"
    folder.mkdir()
    (folder / "a.js").write_text(RED)
    (folder / "b.js").write_text(RED + "// throwsit")
    (folder / "c.js").write_text(RED + "fetch('https://example.com')")
    (folder / "d.mjs").write_text(BLUE)
    (folder / "README.md").write_text("Sketches.")
    assert cli.status(["render", str(folder), "-o", str(out)]) == 1
    names = sorted(path.name for path in out.iterdir())
    assert names == ["a.json", "a.png", "contact-sheet.png", "d.json", "d.png"]
    with Image.open(out / "contact-sheet.png") as sheet:
        assert sheet.getpixel((10, 10)) == (255, 0, 0)
        assert sheet.getpixel((202, 10)) == (0, 0, 255)
        assert sheet.width == 384
    refusals = capsys.readouterr().err
    assert "b.js: render_failed  line 2: no such colour" in refusals
    assert "c.js: " in refusals
    assert len(asked) == 3  # The gate kept c.js back.


def test_json_tells_every_painting_and_refusal_of_a_folder(
    asked: list[tuple[str, painting.Wish]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.js").write_text(RED)
    (tmp_path / "b.js").write_text(RED + "// throwsit")
    assert cli.status(["render", str(tmp_path), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)["paintings"]
    assert [one.get("out") for one in told] == [str(tmp_path / "a.png"), None]
    assert told[1]["violations"][0]["code"] == "render_failed"


def test_a_renderer_that_fails_is_not_the_sketchs_fault(
    asked: list[tuple[str, painting.Wish]], tmp_path: Path
) -> None:
    (tmp_path / "a.js").write_text(RED + "// awayaway")
    assert cli.status(["render", str(tmp_path / "a.js")]) == 3
    assert list(tmp_path.glob("*.png")) == []


@pytest.mark.parametrize(
    ("words", "status", "needle"),
    [
        (["-"], 2, "Standard input needs -o"),
        (["-", "-o", "a.png", "--watch"], 2, "cannot be watched"),
        (["a.js", "--watch", "--json"], 2, "--json prints one object"),
        (["empty"], 1, "empty: no sketch in it"),
        (["twice"], 1, "a.js and a.mjs would be one painting"),
        (["away.js"], 1, "away.js: cannot be read"),
        (["a.js", "--size", "9000"], 2, "64<=x<=2048"),
    ],
)
def test_what_cannot_be_painted_is_named(
    asked: list[tuple[str, painting.Wish]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    status: int,
    needle: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.js").write_text(RED)
    for name in ("empty", "twice"):
        (tmp_path / name).mkdir()
    for ending in ("js", "mjs"):
        (tmp_path / "twice" / f"a.{ending}").write_text(RED)
    assert cli.status(["render", *words]) == status
    assert needle in capsys.readouterr().err
    assert asked == []


def test_a_watched_sketch_is_painted_whenever_it_is_saved(
    asked: list[tuple[str, painting.Wish]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    sketch, other = tmp_path / "poppy.js", tmp_path / "other.js"
    sketch.write_text(RED)
    other.write_text(RED)

    def changes(folder: Path, **_: Any) -> Iterator[set[tuple[Change, str]]]:
        assert folder == tmp_path
        yield {(Change.modified, str(other))}
        sketch.write_text(RED + "// throwsit")
        yield {(Change.modified, str(sketch))}
        assert colour(tmp_path / "poppy.png") == (255, 0, 0)
        sketch.write_text(BLUE)
        yield {(Change.added, str(sketch)), (Change.deleted, str(tmp_path / "poppy.js~"))}

    monkeypatch.setattr("watchfiles.watch", changes)
    assert cli.status(["render", str(sketch), "--watch"]) == 0
    assert colour(tmp_path / "poppy.png") == (0, 0, 255)
    assert len(asked) == 3
    assert "no such colour" in capsys.readouterr().err


def test_a_print_is_given_the_time_that_its_pixels_need(
    tmp_path: Path, asked: list[tuple[str, painting.Wish]]
) -> None:
    (tmp_path / "red.js").write_text(RED)
    for scale in ("1", "2", "8"):
        assert (
            cli.status(["render", str(tmp_path / "red.js"), "--scale", scale, "--size", "96"]) == 0
        )
    plain, double, largest = (wish for _, wish in asked)
    assert plain == painting.Wish(size=96)
    assert (double.scale, double.size, double.cpu_budget_s) == (2, 96, 4 * plain.cpu_budget_s)
    assert (largest.scale, largest.cpu_budget_s, largest.deadline_s) == (8, 600, 600)
    assert json.loads((tmp_path / "red.json").read_text())["scale"] == 8


@pytest.mark.parametrize("scale", ["0", "9", "1.5"])
def test_a_scale_that_no_print_has_is_refused(
    tmp_path: Path, scale: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "red.js").write_text(RED)
    assert cli.status(["render", str(tmp_path / "red.js"), "--scale", scale]) == 2
    assert "--scale" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["notaurl", "ftp://there", "http://", "http:// there"])
@pytest.mark.parametrize("command", ["render", "svg"])
def test_a_renderer_that_is_no_address_is_refused_before_it_is_asked(
    tmp_path: Path, command: str, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "red.js").write_text(RED)
    out = tmp_path / "out"
    assert cli.status([command, str(tmp_path / "red.js"), "-o", str(out), "--renderer", url]) == 2
    assert "--renderer" in (told := capsys.readouterr().err)
    assert url in told
    assert not out.exists()


def test_a_preview_has_the_pictures_colours_two_pixels_a_character() -> None:
    picture = Image.new("RGB", (4, 4), "red")
    picture.paste("blue", (0, 2, 4, 4))
    out = io.BytesIO()
    picture.save(out, "PNG")
    lines = preview.of(out.getvalue(), 4).splitlines()
    assert [line.count("▀") for line in lines] == [4, 4]
    assert lines[0].startswith("\x1b[38;2;255;0;0;48;2;")
    assert lines[1].endswith("\x1b[0m")


@pytest.mark.parametrize(
    ("tty", "env", "shown"),
    [
        (True, {"COLORTERM": "truecolor"}, True),
        (True, {}, False),
        (True, {"COLORTERM": "truecolor", "NO_COLOR": "1"}, False),
        (False, {"COLORTERM": "truecolor"}, False),
    ],
)
def test_a_preview_is_shown_where_the_terminal_says_it_can(
    tty: bool, env: dict[str, str], shown: bool
) -> None:
    stream = io.StringIO()
    stream.isatty = lambda: tty  # pyright: ignore[reportAttributeAccessIssue]
    assert preview.shows(stream, env) is shown
