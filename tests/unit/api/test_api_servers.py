"""Which servers a run brings along."""

from __future__ import annotations

from typing import Any

import pytest

from watercolour.api import load, servers
from watercolour.api.spec import RunSpec
from watercolour.reward.recipes import RECIPES


def spec(**fields: Any) -> RunSpec:
    return load.from_dict({"metadata": {"name": "peonies"}, "spec": fields}).spec


def test_the_recipes_weights_say_the_same_as_the_names() -> None:
    for name, recipe in RECIPES.items():
        run = spec(recipe={"name": name})
        assert servers.needs(run.recipe, "quality") is recipe.needs("quality"), name
        assert servers.needs(run.recipe, "judge") is recipe.needs("judge"), name


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
