from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watercolour.render import svg
from watercolour.render.replay import (
    MAX_POINTS,
    MAX_SHAPES,
    TOLERANCE,
    VERSION,
    Replay,
    Shape,
)

SVG = "{http://www.w3.org/2000/svg}"
INKSCAPE = "{http://www.inkscape.org/namespaces/inkscape}"

PAPER = Shape(kind="paper", call="background", paths=(), colour="#faf6ee", opacity=1)
SQUARE = (10.0, 10.0, 60.0, 10.0, 60.0, 60.0, 10.0, 60.0)


def fill(colour: str = "#c8322e", path: tuple[float, ...] = SQUARE, opacity: float = 0.5) -> Shape:
    return Shape(
        kind="fill", call="rect", paths=(path,), colour=colour, opacity=opacity, texture=0.4
    )


def stroke(*paths: tuple[float, ...], colour: str = "#223366", brush: str = "HB") -> Shape:
    return Shape(
        kind="stroke", call="line", paths=paths, colour=colour, opacity=1, brush=brush, weight=1,
        width=1.2,
    )  # fmt: skip


def replay(*shapes: Shape, truncated: bool = False) -> Replay:
    return Replay(width=200, height=100, seed=7, shapes=shapes, truncated=truncated, elsewhere=0)


def parsed(
    found: Replay, *, width_mm: float | None = None, outlines: bool = False
) -> ElementTree.Element:
    text = svg.export(found, title="iris", width_mm=width_mm, outlines=outlines)
    return ElementTree.fromstring(text)


def labels(root: ElementTree.Element) -> list[str]:
    layers = root.findall(f"{SVG}g")
    assert all(layer.get(f"{INKSCAPE}groupmode") == "layer" for layer in layers)
    return [layer.get(f"{INKSCAPE}label", "") for layer in layers]


def paths(root: ElementTree.Element) -> list[str]:
    return [path.get("d", "") for path in root.iter(f"{SVG}path")]


def test_the_file_says_what_it_is_and_is_not() -> None:
    root = parsed(replay(PAPER, fill(), fill()))
    assert root.findtext(f"{SVG}title") == "iris (without bleed)"
    about = root.findtext(f"{SVG}desc") or ""
    assert "2 shapes" in about
    assert "without bleed" in about
    assert "Seed 7" in about
    assert "more shapes" not in about


def test_a_truncated_replay_says_so() -> None:
    assert "more shapes" in (parsed(replay(fill(), truncated=True)).findtext(f"{SVG}desc") or "")


def test_areas_close_and_lines_do_not() -> None:
    root = parsed(replay(fill(), stroke((0, 0, 50, 5.5))))
    assert paths(root) == ["M10 10L60 10L60 60L10 60Z", "M0 0L50 5.5"]


def test_the_sheet_has_the_asked_width_and_the_paintings_shape() -> None:
    root = parsed(replay(fill()), width_mm=150)
    assert (root.get("width"), root.get("height")) == ("150mm", "75mm")
    assert root.get("viewBox") == "0 0 200 100"
    assert parsed(replay(fill())).get("width") == "200"


def test_a_print_keeps_the_order_of_painting_and_layers_runs_of_one_pigment() -> None:
    red, blue = "#c8322e", "#2c4fa3"
    root = parsed(replay(PAPER, fill(red), fill(red), fill(blue), fill(red), stroke((0, 0, 9, 9))))
    assert labels(root) == [
        "1 #faf6ee paper",
        "2 #c8322e fill",
        "3 #2c4fa3 fill",
        "4 #c8322e fill",
        "5 #223366 HB",
    ]


def test_a_plotters_file_has_one_layer_a_pen_no_fills_and_no_paper() -> None:
    red, blue = "#c8322e", "#2c4fa3"
    found = replay(PAPER, fill(red), fill(blue), fill(red), stroke((0, 0, 9, 9), colour=blue))
    root = parsed(found, outlines=True, width_mm=100)
    assert labels(root) == ["1 #c8322e", "2 #2c4fa3"]
    assert root.find(f".//{SVG}rect") is None
    for layer in root.findall(f"{SVG}g"):
        assert layer.get("fill") == "none"
        assert layer.get("stroke-width") == "0.6"  # 0.3 mm on a sheet of 2 pixels a millimetre
    assert all("fill" not in path.attrib for path in root.iter(f"{SVG}path"))
    assert len(paths(root)) == 4


def test_a_plotter_stays_on_the_sheet() -> None:
    wide = stroke((-50, 50, 250, 50), (300, 300, 400, 400), (190, 50, 210, 50, 210, 90, 190, 90))
    root = parsed(replay(wide, fill(path=(-20, 20, 30, 20, 30, 40, -20, 40))), outlines=True)
    assert paths(root) == [
        "M0 50L200 50",
        "M190 50L200 50",
        "M200 90L190 90",
        "M0 20L30 20L30 40L0 40",
    ]


@settings(deadline=None)  # a busy machine is no fault of the code
@given(
    st.lists(st.tuples(st.floats(-500, 500), st.floats(-500, 500)), min_size=2, max_size=12),
    st.booleans(),
)
def test_pieces_lie_on_the_sheet(points: list[tuple[float, float]], closed: bool) -> None:
    for piece, _ in svg.clipped(points, 200, 100, closed=closed):
        assert len(piece) >= 2
        assert all(-1e-6 <= x <= 200 + 1e-6 and -1e-6 <= y <= 100 + 1e-6 for x, y in piece)


def test_what_lies_on_the_sheet_is_kept_whole() -> None:
    points = [(10.0, 10.0), (60.0, 10.0), (60.0, 60.0)]
    assert list(svg.clipped(points, 200, 100, closed=True)) == [(points, True)]


def test_names_cannot_break_out_of_the_file() -> None:
    brush = '"><script>x</script>\x00&'
    text = svg.export(replay(stroke((0, 0, 9, 9), brush=brush)), title="</title>&\x07\udc80")
    root = ElementTree.fromstring(text)
    assert root.find(f".//{SVG}script") is None
    assert root.findtext(f"{SVG}title") == "</title>&\ufffd\ufffd (without bleed)"
    assert "<script>" in labels(root)[0]


def test_no_number_is_anything_but_a_number() -> None:
    text = svg.export(replay(fill(path=(-0.001, 0, 1e5, 3, 7.004, 9), opacity=0)), title="x")
    assert re.findall(r"nan|inf|e\+|-0\b", text.lower()) == []


def test_a_fill_hides_less_the_more_texture_it_has() -> None:
    plain = fill().model_copy(update={"texture": 0.0})
    rough = fill().model_copy(update={"texture": 1.0})
    assert 0 < svg.coverage(rough) < svg.coverage(plain) < 0.5
    wash = fill().model_copy(update={"kind": "wash"})
    assert svg.coverage(wash) == 0.5


def test_steps_grow_by_one_shape_each() -> None:
    found = replay(PAPER, fill(), stroke((0, 0, 9, 9)))
    drawn = list(svg.steps(found, title="x"))
    assert [len(paths(ElementTree.fromstring(text))) for text in drawn] == [0, 1, 2]
    assert drawn[-1] == svg.export(found, title="x")


@pytest.mark.parametrize(
    "change",
    [
        {"colour": "red"},
        {"paths": ((float("nan"), 1.0),)},
        {"opacity": 1.5},
        {"kind": "text"},
        {"brush": "x" * 65},
    ],
)
def test_a_replay_outside_its_format_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(change))):
        Shape.model_validate(fill().model_dump() | change)


def test_the_reference_describes_every_field() -> None:
    text = (Path(__file__).parents[3] / "docs" / "reference" / "replay.md").read_text("utf-8")
    for name in {*Replay.model_fields, *Shape.model_fields}:
        assert f"`{name}`" in text, name
    for number in (MAX_SHAPES, MAX_POINTS):
        assert f"{number:,}" in text
    assert f"Version {VERSION}" in text
    assert f"{TOLERANCE} pixels" in text
