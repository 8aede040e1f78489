"""The pictures of the recipes: there for each one, small, and told by the rewards alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image
from scripts import recipe_pictures as pictures
from scripts.recipe_rollouts import Shown
from scripts.recipe_sheet import Band, Cell, Row, draw

from watercolour.api.reasons import ViolationCode
from watercolour.api.rollout import Rollout, Violation
from watercolour.reward import recipes

DOCS = Path(__file__).parents[3] / "docs"
TEXT = (DOCS / "recipes.md").read_text(encoding="utf-8")
SUBJECTS = ("a red poppy", "a blue iris")
LARGEST_BYTES = 150_000


@pytest.mark.parametrize("recipe", recipes.RECIPES)
def test_every_recipe_is_shown_and_named(recipe: str) -> None:
    assert f"**`{recipe}`**" in TEXT
    assert f"(img/recipe-{recipe}.webp)" in TEXT


def test_every_picture_of_the_page_is_there_and_small() -> None:
    names = re.findall(r"\(img/([\w.-]+)\)", TEXT)
    assert len(names) > len(recipes.RECIPES)
    for name in names:
        path = DOCS / "img" / name
        assert path.stat().st_size < LARGEST_BYTES, name
        with Image.open(path) as picture:
            picture.load()


def shown(number: int, quality: float, *, admitted: bool = True) -> Shown:
    """A rollout of hps-only."""
    recipe = recipes.RECIPES["hps-only"]
    found: dict[str, float | None] = {"gate": 1.0, "length": 0.0, "quality": quality}
    refusal = Violation(code=ViolationCode.TRUNCATED, message="it ends in the middle")
    rollout = Rollout(
        subject=SUBJECTS[number % 2],
        index=number,
        gate_passed=admitted,
        violations=() if admitted else (refusal,),
        terms=found if admitted else {"gate": 0.0},
        reward=recipe.combine(found, admitted),
    )
    return Shown(f"painter {number}", rollout)


#: Eight admitted ones of falling quality, the second and third alike; and a refused one.
OWN = {
    (0, n): shown(n, quality) for n, quality in enumerate((0.9, 0.8, 0.8, 0.6, 0.5, 0.4, 0.3, 0.2))
} | {(0, 8): shown(8, 0.99, admitted=False)}
#: The same in another order: the fourth comes first, and the fifth last.
OTHERS = {
    (0, n): shown(n, quality) for n, quality in enumerate((0.9, 0.8, 0.7, 0.95, 0.1, 0.5, 0.4, 0.3))
} | {(0, 8): shown(8, 0.99, admitted=False)}


def strip(name: str = "hps-only") -> list[Band]:
    painted = {place: b"PNG" if place != (0, 8) else None for place in OWN}
    return pictures.strip(recipes.RECIPES[name], OWN, OTHERS, "other", painted)


def test_equal_rewards_share_a_place() -> None:
    assert list(pictures.ranks(OWN).values()) == [1, 2, 2, 4, 5, 6, 7, 8, 9]


def test_best_and_poorest_and_those_that_another_recipe_places_otherwise() -> None:
    most, more, less, least = strip()
    assert [cell.note for cell in most.cells] == ["painter 0", "painter 1"]
    assert [cell.note for cell in more.cells] == ["place 5, not 8, of 8"]
    assert [cell.note for cell in less.cells] == ["place 4, not 1, of 8"]
    assert [cell.note for cell in least.cells] == ["painter 6", "painter 7"]


def test_what_stands_below_a_painting_makes_its_reward() -> None:
    for band in strip():
        for cell in band.cells:
            assert cell.reward is not None
            assert sum(row.adds or 0 for row in cell.rows) == pytest.approx(cell.reward)


def test_a_recipe_that_punishes_shows_a_refused_sketch_without_a_painting() -> None:
    poorest, last = strip("hybrid")[-1].cells
    assert poorest.note == "painter 7"
    assert last.painting is None
    assert last.said == ("refused", "truncated")
    assert last.reward == -1.0
    assert last.rows == ()


def test_a_term_without_a_value_has_no_bar_and_no_zero() -> None:
    def drawn(value: float | None) -> bytes:
        cell = Cell(None, "red poppy", rows=(Row("quality", value),))
        return draw([[Band("one", (cell,))]]).tobytes()

    assert len({drawn(None), drawn(0.0), drawn(1.0)}) == 3
