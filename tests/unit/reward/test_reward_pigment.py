"""The subject's colours in a painting, on pictures that a person would judge alike."""

from __future__ import annotations

import colorsys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw
from pydantic import ValidationError

from watercolour.api.rollout import Rollout
from watercolour.render.paint import decode
from watercolour.reward import pigment, pool, terms
from watercolour.reward.pigment import Colours, Pixels
from watercolour.sketch import figure
from watercolour.sketch.figure import Figure


def shipped(subject: str) -> Colours:
    found = pigment.shipped(subject)
    assert found is not None
    return found


POPPY, IRIS = shipped("a red poppy"), shipped("a blue iris")
HIBISCUS, DAISY = shipped("a peach hibiscus"), shipped("a yellow daisy")
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


def value(pixels: Pixels, colours: Colours = POPPY) -> float:
    found = pigment.read(pixels, colours)
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
def test_stem_heart_and_paper_cost_a_flower_nothing(subject: Colours, petals: str) -> None:
    for paper in (CREAM, "#dde6ec", "#e6ddca"):
        assert value(flower(petals, paper=paper), subject) > 0.95, paper


def test_a_thin_wash_has_the_hue_of_the_full_one() -> None:
    full = pigment.read(flower("#e04a36"), POPPY)
    thin = pigment.read(wash(flower("#e04a36"), 0.35), POPPY)
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
    assert 0 <= found.share <= 1
    assert 0 <= found.coverage <= 1


def test_a_white_flower_has_no_value_instead_of_0() -> None:
    assert pigment.shipped("a white lily") is None
    assert pigment.colours(Rollout(subject="a white lily")) is None


def test_the_pools_loved_paintings_have_their_subjects_colours() -> None:
    for reference in pool.load("builtin:flowers").tier("love"):
        own = pigment.shipped(reference.subject)
        if own is None:
            continue
        found = pigment.read(decode(reference.painting), own)
        assert terms.pigment(found.share, found.coverage) > 0.65, reference.name


def test_the_share_knows_hues_that_pass_through_red() -> None:
    hue = np.array([350.0, 5.0, 20.0, 180.0], np.float32)
    assert pigment.within(hue, (345.0, 13.0)).tolist() == [True, True, False, False]


# A subject of a pool's own.

JELLYFISH = figure.load(Path(__file__).parents[3] / "examples/subjects/jellyfish.yaml")


def described(**changes: object) -> Figure:
    """A figure of one blue and one green part."""
    wash = {"opacity": [120, 180]}
    plain: dict[str, object] = {
        "name": "a frog",
        "colours": {"body": ["#3a8f5a"], "eye": ["#4660b4"], "unused": ["#d43428"]},
        "parts": [
            {
                "what": "body",
                "outline": "round",
                "length": [1, 1],
                "width": [1, 1],
                "washes": [wash | {"colour": "body"}],
            },
            {
                "what": "eye",
                "outline": "round",
                "length": [1, 1],
                "width": [1, 1],
                "washes": [wash | {"colour": "eye"}],
            },
        ],
    }
    return Figure.model_validate(plain | changes)


def test_a_described_subjects_colours_are_those_of_its_parts() -> None:
    assert figure.hues(described()) == (
        (pytest.approx(122.6), pytest.approx(162.6)),
        (pytest.approx(205.8), pytest.approx(245.8)),
    )
    frog = Colours(figure.hues(described()), leaves=False)
    assert value(flower("#3a8f5a", stem=0, heart="#4660b4"), frog) > 0.95
    # What no part is painted with is not its own.
    assert value(flower("#d43428", stem=0), frog) < 0.05


def test_arcs_that_touch_are_one_also_through_red_and_greys_have_none() -> None:
    reds = described(colours={"body": ["#d42834", "#d43428"], "eye": ["#d42870", "#808080"]})
    assert figure.hues(reds) == ((pytest.approx(314.9), pytest.approx(24.2)),)
    assert figure.hues(described(colours={"body": ["#808080"], "eye": ["#f8f8f8"]})) == ()
    wheel = [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in _wheel()]
    assert figure.hues(described(colours={"body": wheel, "eye": ["#808080"]})) == ((0.0, 360.0),)


def _wheel() -> list[tuple[int, int, int]]:
    shades = (colorsys.hsv_to_rgb(turn / 12, 0.8, 0.8) for turn in range(12))
    return [(round(255 * r), round(255 * g), round(255 * b)) for r, g, b in shades]


def test_a_description_may_say_its_hues_itself() -> None:
    assert figure.hues(described(hue=[[200, 350]])) == ((200.0, 350.0),)
    with pytest.raises(ValidationError, match="less than or equal to 360"):
        described(hue=[[200, 400]])


def test_a_jellyfish_is_told_from_a_poppy_and_green_is_no_leaf_of_it() -> None:
    own = pigment.colours(Rollout(subject=JELLYFISH.name, hues=figure.hues(JELLYFISH)))
    assert own is not None
    for violet in ("#9a86d8", "#7f9ae0", "#df8fb4"):
        assert value(flower(violet, stem=0), own) > 0.95, violet
    assert value(flower("#d43428", stem=0), own) < 0.2
    assert value(flower("#6f9450", stem=0), own) < 0.2
    half = value(flower("#9a86d8", stem=24, radius=20), own)
    assert half < 0.8 < value(flower("#5f78d8", stem=24, radius=20), IRIS)


def test_the_pools_own_description_comes_before_the_shipped_subject() -> None:
    own = pigment.colours(Rollout(subject="a red poppy", hues=((200.0, 250.0),)))
    assert own == Colours(((200.0, 250.0),), leaves=False)
    assert pigment.colours(Rollout(subject="a red poppy")) == POPPY
    assert pigment.colours(Rollout(subject="a heron")) is None
