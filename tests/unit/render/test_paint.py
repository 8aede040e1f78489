from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from watercolour.render import paint


def canvas(colour: tuple[int, int, int] = (250, 246, 238)) -> paint.Pixels:
    return np.full((40, 50, 3), colour, np.uint8)


def test_an_empty_canvas_has_no_paint() -> None:
    assert paint.fraction(canvas()) == 0.0


def test_paint_is_what_lies_far_from_the_background() -> None:
    rgb = canvas()
    rgb[:10, :10] = (200, 50, 50)
    assert paint.fraction(rgb) == pytest.approx(100 / 2000)


def test_the_background_is_the_commonest_colour_whatever_it_is() -> None:
    rgb = canvas((20, 60, 20))
    rgb[:10, :10] = (250, 246, 238)
    assert paint.fraction(rgb) == pytest.approx(100 / 2000)


@pytest.mark.parametrize(("shade", "painted"), [(248 - 32, 0), (248 - 33, 1)])
def test_paint_begins_beyond_the_distance_from_the_cells_centre(shade: int, painted: int) -> None:
    rgb = canvas((248, 248, 248))
    rgb[0, 0, 0] = shade
    assert paint.fraction(rgb) == pytest.approx(painted / 2000)


@given(shade=st.integers(0, 15))
def test_a_shade_within_the_backgrounds_cell_is_no_paint(shade: int) -> None:
    rgb = canvas((240, 240, 240))
    rgb[0, 0] = 240 + shade
    assert paint.fraction(rgb) == 0.0


def test_a_png_counts_like_its_pixels_and_transparency_is_white() -> None:
    rgb = canvas((255, 255, 255))
    rgb[:20] = (10, 90, 160)
    assert paint.paint_fraction(paint.encode(rgb)) == paint.fraction(rgb) == 0.5


def test_equal_pixels_give_equal_bytes() -> None:
    assert paint.encode(canvas()) == paint.encode(canvas())


def test_the_framebuffer_is_turned_over_and_put_on_white() -> None:
    rgba = np.zeros((2, 1, 4), np.uint8)
    rgba[0, 0] = (100, 0, 0, 128)  # the bottom row comes first, colours premultiplied
    rgb = paint.from_framebuffer(rgba.tobytes(), 1, 2)
    assert rgb[1, 0].tolist() == [227, 127, 127]
    assert rgb[0, 0].tolist() == [255, 255, 255]


@pytest.mark.parametrize(("size", "shape"), [(None, (40, 50)), (50, (40, 50)), (25, (20, 25))])
def test_only_another_size_is_resampled(size: int | None, shape: tuple[int, int]) -> None:
    assert paint.resize(canvas(), size).shape[:2] == shape
