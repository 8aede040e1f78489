"""Which servers a run brings along."""

from __future__ import annotations

from typing import Any

import pytest

from watercolour.api import load, servers, terms
from watercolour.api.spec import RunSpec
from watercolour.reward import catalogue
from watercolour.reward.recipes import RECIPES

JUDGED = {"step": 5, "weights": {"gate": 0.5, "utility": 0.5}}


def spec(**fields: Any) -> RunSpec:
    return load.from_dict({"metadata": {"name": "peonies"}, "spec": fields}).spec


def test_the_recipes_weights_say_the_same_as_the_names() -> None:
    for name, recipe in RECIPES.items():
        run = spec(recipe={"name": name})
        assert servers.needs(run.recipe, "quality") is bool(recipe.asks("scorer", "marks")), name
        assert servers.needs(run.recipe, "judge") is bool(recipe.asks("judge")), name


def test_what_a_shipped_term_asks_is_said_alike_in_both_places() -> None:
    assert set(catalogue.SHIPPED) == terms.SHIPPED
    for name, term in catalogue.SHIPPED.items():
        assert (name in terms.ASKS["scorer"]) is bool(term.needs & {"scorer", "marks"}), name
        assert (name in terms.ASKS["judge"]) is ("judge" in term.needs), name


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        # A term of a package may need anybody; only the process that has it knows.
        ({"name": "mine", "weights": {"symmetry": 1}}, (True, True)),
        ({"name": "mine", "weights": {"gate": 0.5, "fills": 0.5}}, (False, False)),
        ({"weights": {"mark_depth": 1}}, (True, False)),
        ({"name": "control", "schedule": {"stages": [JUDGED]}}, (False, True)),
    ],
)
def test_a_recipe_of_ones_own_brings_what_its_terms_ask(
    recipe: dict[str, Any], expected: tuple[bool, bool]
) -> None:
    run = spec(recipe=recipe)
    assert (servers.needs(run.recipe, "quality"), servers.needs(run.recipe, "judge")) == expected


DEPLOY = {"image": "a/b:1", "model": "o/n"}
ALL_JUDGE = {"name": "hps-led", "weights": {"gate": 0.1, "length": 0, "quality": 0, "judge": 0.9}}
#: Fields of the specification: does it run a scorer, a judge, and is the scorer the judge?
CASES: list[tuple[dict[str, Any], tuple[bool, bool, bool]]] = [
    ({}, (True, False, True)),
    ({"scorer": {"backend": "hpsv3"}}, (True, True, False)),
    ({"scorer": {"backend": "hpsv3"}, "recipe": {"name": "hps-only"}}, (True, False, False)),
    ({"scorer": {"endpoint": "http://a"}}, (False, True, False)),
    ({"recipe": ALL_JUDGE}, (True, False, True)),
    ({"recipe": ALL_JUDGE, "scorer": {"backend": "none"}}, (False, True, False)),
    ({"recipe": ALL_JUDGE, "scorer": {"backend": "hpsv3"}}, (False, True, False)),
    ({"judge": {"backend": "openai", "endpoint": "http://a"}}, (True, False, False)),
    ({"judge": {"backend": "openai", "deploy": DEPLOY}}, (True, True, False)),
    (
        {"judge": {"backend": "openai", "deploy": DEPLOY}, "recipe": {"name": "hps-only"}},
        (True, False, False),
    ),
    (
        {
            "judge": {"backend": "openai", "deploy": DEPLOY},
            "recipe": {"name": "hps-only"},
            "scorer": {"backend": "vlm-mark"},
        },
        (False, True, False),
    ),
    ({"judge": {"endpoint": "http://a"}}, (True, False, False)),
]


@pytest.mark.parametrize(("fields", "expected"), CASES)
def test_a_run_brings_the_servers_that_its_recipe_needs(
    fields: dict[str, Any], expected: tuple[bool, bool, bool]
) -> None:
    run = spec(**fields)
    found = (servers.runs_scorer(run), servers.runs_judge(run), servers.scorer_judges(run))
    assert found == expected
