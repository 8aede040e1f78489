"""Features are the same whatever else is in the batch, and only of pictures."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from watercolour.score import features
from watercolour.score.examples import Paintings
from watercolour.score.features import Backbone
from watercolour.score.pictures import NotAPicture

Png = Callable[..., bytes]


def test_features_do_not_depend_on_the_batch_or_the_threads(
    backbone: Backbone, pool: Paintings
) -> None:
    pixels = [features.decode(p) for p in pool.pictures[:5]]
    together = backbone.features(pixels)
    one_thread = features.open_backbone(threads=1)
    for i, picture in enumerate(pixels):
        (alone,) = one_thread.features([picture])
        assert np.array_equal(alone.quality, together[i].quality)
        assert np.array_equal(alone.judge, together[i].judge)


def test_features_have_the_stated_sizes(backbone: Backbone, png: Png) -> None:
    (found,) = backbone.features([features.decode(png())])
    assert found.quality.shape == (768,)
    assert found.judge.shape == (1536,)


def test_transparency_is_white_paper() -> None:
    buffer = BytesIO()
    Image.new("RGBA", (80, 80), (10, 20, 30, 0)).save(buffer, "PNG")
    assert (features.decode(buffer.getvalue()) == 255).all()


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "1", "I;16"])
def test_every_kind_of_png_is_decoded(mode: str, png: Png) -> None:
    data = png(mode=mode) if mode != "I;16" else _sixteen_bit()
    assert features.decode(data).shape == (features.SIDE, features.SIDE, 3)


def _sixteen_bit() -> bytes:
    buffer = BytesIO()
    Image.fromarray(np.full((64, 64), 40_000, np.uint16)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize("keep", [0, 8, 40, 0.5])
def test_a_cut_picture_is_no_picture(keep: float, png: Png) -> None:
    whole = png(3)
    cut = whole[: int(keep if keep > 1 else keep * len(whole))]
    with pytest.raises(NotAPicture):
        features.decode(cut)


def test_html_is_no_picture() -> None:
    with pytest.raises(NotAPicture):
        features.decode(b"<html><body>502 Bad Gateway</body></html>")


def test_a_picture_above_the_largest_side_is_refused_by_its_header(png: Png) -> None:
    with pytest.raises(NotAPicture, match="5000×16"):
        features.decode(png(size=(5000, 16)))
