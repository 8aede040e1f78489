"""The subject's colours in a painting, on pictures that a person would judge alike."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw

from watercolour.render.paint import decode
from watercolour.reward import pigment, pool, terms
from watercolour.reward.pigment import Pixels
from watercolour.sketch.subjects import subjects

POPPY, IRIS = subjects()["a red poppy"], subjects()["a blue iris"]
HIBISCUS, DAISY = subjects()["a peach hibiscus"], subjects()["a yellow daisy"]
CREAM = "#faf5ea"


def flower(
    petals: str, *, paper: str = CREAM, stem: int = 4, heart: str = "#2c1a24", radius: int = 24
) -> Pixels:
    """Five round petals about a heart, on a green stem of so many pixels' width."""
    sheet = Image.new("RGB", (192, 192), paper)
    brush = ImageDraw.Draw(sheet)
    if stem:
        brush.rectangle((96 - stem, 96, 96 + stem, 190), fill="#6f9450")
    for turn in range(5):
        angle = turn * 2 * np.pi / 5
        x, y = 96 + 30 * np.cos(angle), 90 + 30 * np.sin(angle)
        brush.ellipse((x - radius, y - radius, x + radius, y + radius), fill=petals)
    brush.ellipse((88, 82, 104, 98), fill=heart)
    return np.asarray(sheet)


def wash(pixels: Pixels, strength: float) -> Pixels:
    """The same picture painted with so much water: the strength is that of the pigment."""
    paper = np.array([250, 245, 234], np.float64)
    return np.asarray(np.round(paper * (pixels / paper) ** strength), np.uint8)


def value(pixels: Pixels, subject: object = POPPY) -> float:
    found = pigment.read(pixels, subject)  # pyright: ignore[reportArgumentType]
    assert found is not None
    return terms.pigment(found.share, found.coverage)


def test_a_red_poppy_has_its_subjects_colours_and_a_peach_one_has_not() -> None:
    assert value(flower("#d43428")) == 1.0
    assert value(flower("#f2906e")) < 0.2
    assert value(flower("#f5c52e")) < 0.2
    assert value(flower("#5f78d8")) < 0.2


def test_a_red_hibiscus_is_not_a_peach_one_though_its_throat_may_be_red() -> None:
    assert value(flower("#d43428"), HIBISCUS) < 0.2
    assert value(flower("#f2906e", heart="#d4483f"), HIBISCUS) > 0.95


@pytest.mark.parametrize(
    ("subject", "petals"),
    [(HIBISCUS, "#f2906e"), (DAISY, "#f5c52e"), (IRIS, "#5f78d8"), (POPPY, "#e04a36")],
)
def test_stem_heart_and_paper_cost_a_flower_nothing(subject: object, petals: str) -> None:
    for paper in (CREAM, "#dde6ec", "#e6ddca"):
        assert value(flower(petals, paper=paper), subject) > 0.95, paper


def test_a_thin_wash_has_the_hue_of_the_full_one() -> None:
    full = pigment.read(flower("#e04a36"), POPPY)
    thin = pigment.read(wash(flower("#e04a36"), 0.35), POPPY)
    assert full is not None
    assert thin is not None
    assert thin.share == pytest.approx(full.share, abs=0.05)
    assert thin.coverage == pytest.approx(full.coverage, abs=0.01)


def test_cream_paper_is_no_yellow_daisy() -> None:
    blank = np.full((192, 192, 3), (250, 245, 234), np.uint8)
    assert value(blank, DAISY) == 0.0
    # Nor is the paper left between blue petals on a tinted sheet.
    assert value(flower("#5f78d8", paper="#e6ddca"), DAISY) < 0.05


def test_a_dab_in_the_right_colour_earns_little() -> None:
    dab = flower("#d43428", stem=0, radius=1)
    assert 0 < value(dab) < 0.2


def test_a_flood_earns_no_more_than_a_flower() -> None:
    flood = np.asarray(Image.new("RGB", (192, 192), CREAM)).copy()
    flood[8:184, 8:150] = (212, 52, 40)
    assert value(flood) <= value(flower("#d43428"))


def test_a_sheet_dyed_in_the_subjects_colour_is_a_ground_and_no_pigment() -> None:
    assert value(np.full((192, 192, 3), (212, 52, 40), np.uint8)) == 0.0


def test_foliage_beyond_the_petals_counts_against_them() -> None:
    thicket = flower("#d43428", stem=90, radius=16)
    assert value(thicket) < value(flower("#d43428", radius=16)) - 0.1
    green = flower("#3fa03a", heart="#d43428")
    assert value(green) < 0.2


def test_two_flowers_of_two_colours_share_the_value() -> None:
    half = np.concatenate([flower("#d43428"), flower("#f5c52e")])
    assert 0.4 < value(half) < 0.8


@pytest.mark.parametrize("seed", range(20))
def test_share_and_coverage_never_leave_0_to_1(seed: int) -> None:
    # Thousands of pixels of two hues and many strengths: where sums round.
    strength = np.random.default_rng(seed).uniform(0, 1, (96, 96, 1))
    pixels = np.asarray(255 - strength * (40, 200, 210), np.uint8)
    pixels[: seed + 1] = np.asarray(255 - strength[: seed + 1] * (150, 60, 170), np.uint8)
    pixels[-1] = 255
    found = pigment.read(pixels, POPPY)
    assert found is not None
    assert 0 <= found.share <= 1
    assert 0 <= found.coverage <= 1


def test_a_white_flower_has_no_value_instead_of_0() -> None:
    assert pigment.read(flower("#fdfbf4"), subjects()["a white lily"]) is None


def test_the_pools_loved_paintings_have_their_subjects_colours() -> None:
    for reference in pool.load("builtin:flowers").tier("love"):
        subject = subjects().get(reference.subject)
        if subject is None or subject.hue is None:
            continue
        found = pigment.read(decode(reference.painting), subject)
        assert found is not None
        assert terms.pigment(found.share, found.coverage) > 0.65, reference.name


def test_the_share_knows_hues_that_pass_through_red() -> None:
    hue = np.array([350.0, 5.0, 20.0, 180.0], np.float32)
    assert pigment.within(hue, (345.0, 13.0)).tolist() == [True, True, False, False]
