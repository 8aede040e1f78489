from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watercolour.gallery import chart
from watercolour.gallery.chart import Axes, Line, Span

AXES = Axes([0, 1, 2, 3], 0.0, 1.0, 300.0)


def test_a_step_without_a_value_breaks_the_curve() -> None:
    drawn = chart.path(AXES, [0.1, 0.2, None, 0.4])
    assert drawn.count("M") == 2
    assert drawn.count("L") == 1


def test_a_lone_value_is_still_seen() -> None:
    assert "h0.01" in chart.path(AXES, [None, 0.5, None, None])


def test_the_band_is_drawn_in_gapless_pieces() -> None:
    low, high = [0.1, 0.1, None, 0.3], [0.2, 0.2, None, 0.4]
    assert chart.band(AXES, low, high).count("Z") == 1


@given(st.floats(-5, 5), st.floats(0.001, 20))
def test_ticks_cover_the_range_and_are_few(low: float, span: float) -> None:
    marks = chart.ticks(low, low + span)
    assert marks[0] <= low + 1e-6
    assert marks[-1] >= low + span - 1e-6
    assert 2 <= len(marks) <= 9


def test_the_drawing_is_well_formed_whatever_it_tells() -> None:
    text = chart.draw(
        [0, 1],
        [Line("raw", [0.2, None])],
        told=["<b> & \"'", "x"],
        title='"quoted" <title>',
        spans=[Span(0, 0, 0.2, "0.2")],
    )
    ElementTree.fromstring(text)
    assert "<b>" not in text


@pytest.mark.parametrize("values", [[None], [0.5], [0.0], [-1.0]])
def test_one_step_is_drawn_too(values: list[float | None]) -> None:
    ElementTree.fromstring(chart.draw([7], [Line("raw", values)], told=["x"], title="t"))


def test_higher_values_are_drawn_higher() -> None:
    assert AXES.y(0.9) < AXES.y(0.1)
    assert AXES.x(3) > AXES.x(0)
