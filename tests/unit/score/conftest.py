"""Paintings of the shipped pool, and the backbone, loaded once."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from watercolour.score import examples, features, heads
from watercolour.score.embedded import Embedded
from watercolour.score.examples import Paintings
from watercolour.score.features import Backbone


@pytest.fixture(scope="session")
def backbone() -> Backbone:
    return features.open_backbone(threads=2)


@pytest.fixture(scope="session")
def embedded(backbone: Backbone) -> Embedded:
    return Embedded(backbone, heads.load())


@pytest.fixture(scope="session")
def pool() -> Paintings:
    return examples.read(examples.BUILTIN)


@pytest.fixture
def png() -> Callable[..., bytes]:
    """A small picture of one colour with a block of another; different for different seeds."""

    def make(seed: int = 0, size: tuple[int, int] = (64, 64), mode: str = "RGB") -> bytes:
        rng = np.random.default_rng(seed)
        image = Image.new("RGB", size, "#fbf8ee")
        x, y = (int(rng.integers(0, side // 2)) for side in size)
        color = tuple(int(c) for c in rng.integers(0, 256, 3))
        image.paste(color, (x, y, x + size[0] // 3, y + size[1] // 3))
        buffer = BytesIO()
        image.convert(mode).save(buffer, "PNG")
        return buffer.getvalue()

    return make
