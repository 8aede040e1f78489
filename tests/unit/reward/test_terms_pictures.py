"""Every term that looks at a painting, with a painting that it likes and one that it does not.

Nothing is put in a term's mouth: the painting goes to the embedded scorer and judge over HTTP, or
to a model's endpoint that measures it, and the term reads what came back.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx
import pytest
from scripts import measuring_model
from tests.serving import listening

from watercolour.api.rollout import Rollout
from watercolour.api.terms import MARK_PREFIX, MARKS
from watercolour.env import measure
from watercolour.env.measure import Finding, Scoring
from watercolour.reward import catalogue, pool
from watercolour.reward.facts import Facts
from watercolour.reward.judge import Judge
from watercolour.reward.pool import Reference
from watercolour.score import embedded, examples
from watercolour.score.app import create_app
from watercolour.score.client import ScoreClient
from watercolour.score.completions import Completions
from watercolour.score.vlm_mark import VlmMark

FLOWERS = {one.name: one for one in pool.load("builtin:flowers").references}
DATA = Path(examples.__file__).parent / "data"

#: References of rising strength; no painting below is among them.
DRAW = tuple(FLOWERS[name] for name in ("okay_daisy_06", "okay_poppy_03", "love_daisy_03"))

#: Of each mark a painting that was to be a blue iris and earns a high one, and one that does not.
MARKED = {
    "adherence": ("love_iris_09", "love_poppy_02"),
    "recognisability": ("love_iris_09", "iris-speck"),
    "aesthetics": ("love_iris_09", "iris-wet_wash"),
    "technique": ("love_iris_09", "iris-cut_paper"),
    "depth": ("love_iris_09", "iris-wet_wash"),
}


def painting(name: str) -> bytes:
    """A painting of the pool, or a counterexample."""
    if name in FLOWERS:
        return FLOWERS[name].painting
    return (DATA / "counterexamples" / "paintings" / f"{name}.png").read_bytes()


def value(term: str, name: str, found: Finding, **fields: Any) -> float:
    """The term of a painting of which a room found this out."""
    assert found.reason is None, found.detail
    whole = {"gate_passed": True, "subject": "a blue iris", "painting": painting(name), **fields}
    rollout = Rollout.model_validate({**whole, **(found.record or {})})
    got = catalogue.evaluate(catalogue.find(term), Facts(rollout))
    assert got is not None
    return got


@pytest.fixture(scope="module")
def scorer() -> Generator[str]:
    """The embedded scorer, which judges as well."""
    with listening(create_app(lambda _report: embedded.load())) as url:
        until = time.monotonic() + 120
        while httpx.get(f"{url}/readyz").status_code != 200:
            assert time.monotonic() < until
            time.sleep(0.05)
        yield url


@pytest.fixture(scope="module")
def model() -> Generator[str]:
    """A model's endpoint that marks by what it measures in the picture."""
    with measuring_model.serving() as url:
        yield url


async def judged(url: str, name: str, draw: Sequence[Reference] = DRAW) -> Finding:
    completions = Completions(url)
    try:
        return await measure.judged(
            Judge(completions, model="embedded"), name, painting(name), draw
        )
    finally:
        await completions.aclose()


async def marked(url: str, name: str, asked: Sequence[str] = MARKS) -> Finding:
    client = VlmMark(Completions(url), model=measuring_model.NAME)
    try:
        scoring = Scoring(client, "a loose watercolour flower")
        return await scoring.quality(
            name, painting(name), marks=tuple(asked), subject="a blue iris"
        )
    finally:
        await client.aclose()


async def test_quality_likes_a_loved_painting_and_no_wash_without_a_flower(scorer: str) -> None:
    async def quality(name: str) -> float:
        async with aclosing(ScoreClient(scorer)) as client:
            found = await Scoring(client, "a loose watercolour flower").quality(
                name, painting(name)
            )
        return value("quality", name, found)

    assert await quality("love_iris_09") > 0.65
    assert await quality("iris-wet_wash") < 0.2


async def test_judge_and_utility_like_a_loved_painting_and_no_cut_paper(scorer: str) -> None:
    good, poor = "love_iris_09", "iris-cut_paper"
    strengths = {
        "references": [one.name for one in DRAW],
        "reference_strengths": [one.strength for one in DRAW],
    }
    liked, disliked = await judged(scorer, good), await judged(scorer, poor)
    for term, least, most in (("judge", 0.65, 0.1), ("utility", 0.7, 0.3)):
        assert value(term, good, liked, **strengths) > least, term
        assert value(term, poor, disliked, **strengths) < most, term


async def test_utility_tells_whom_a_painting_won_against_and_judge_does_not(scorer: str) -> None:
    """It wins throughout; against stronger references that is worth more."""
    name = "love_iris_09"
    won = await judged(scorer, name, DRAW[:2])
    assert value("judge", name, won) == 1.0

    def utility(shift: float) -> float:
        against = [one.strength + shift for one in DRAW[:2]]
        fields = {"references": [one.name for one in DRAW[:2]], "reference_strengths": against}
        return value("utility", name, won, **fields)

    assert utility(-2.0) < utility(0.0) < utility(2.0)


async def test_a_painting_ties_with_itself(scorer: str) -> None:
    own = FLOWERS["love_iris_09"]
    found = await judged(scorer, own.name, [own])
    assert value("judge", own.name, found) == 0.5


def test_every_mark_has_its_taste_tested() -> None:
    assert set(MARKED) == set(MARKS)


@pytest.mark.parametrize("mark", MARKED)
async def test_a_mark_likes_one_painting_and_not_the_other(model: str, mark: str) -> None:
    liked, disliked = MARKED[mark]
    term = f"{MARK_PREFIX}{mark}"
    assert value(term, liked, await marked(model, liked)) > 0.6
    assert value(term, disliked, await marked(model, disliked)) < 0.35


async def test_each_mark_is_its_own_signals_and_on_the_scale_of_the_request(model: str) -> None:
    name = "iris-tangle"
    found = await marked(model, name)
    assert found.record is not None
    given = {
        one: measuring_model.mark(one, painting(name), "a blue iris") for one in ("mark", *MARKS)
    }
    # Marks that are all alike would not tell a mix-up of names.
    assert len(set(given.values())) >= 4
    for mark in MARKS:
        expected = (given[mark] - 1) / 9
        assert value(f"{MARK_PREFIX}{mark}", name, found) == pytest.approx(expected)
    assert value("quality", name, found) == pytest.approx((given["mark"] - 1) / 9)


async def test_a_mark_that_nobody_asked_for_is_none_and_not_the_least_mark(model: str) -> None:
    found = await marked(model, "iris-speck", asked=("depth",))
    rollout = Rollout.model_validate({"gate_passed": True, **(found.record or {})})
    assert set(rollout.marks) == {"depth"}
    assert catalogue.evaluate(catalogue.find("mark_technique"), Facts(rollout)) is None
