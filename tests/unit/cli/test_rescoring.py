"""Stored rollouts under a recipe of another run: what is computed, and what is told to lack."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from tests.serving import listening
from tests.unit.cli.conftest import Call
from tests.unit.gallery import fake_run

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout, Vote
from watercolour.api.spec import References, TierShares
from watercolour.env import draws
from watercolour.gallery import record, stored
from watercolour.render.replay import Replay, Shape
from watercolour.reward import pool as pools
from watercolour.reward import recipes, reckon, terms
from watercolour.reward.facts import Facts

POOL = pools.load("builtin:flowers")
LOVED = [one for one in POOL.references if one.tier == "love"][:2]
HYBRID = recipes.RECIPES["hybrid"]


def met(rollout: Rollout) -> Rollout:
    """The same rollout, had it met references of the shipped pool."""
    if not rollout.gate_passed:
        return rollout
    votes = tuple(
        Vote(reference=one.name, first="A", second=second, value=value)
        for one, second, value in zip(LOVED, "AB", (1.0, 0.5), strict=True)
    )
    return rollout.model_copy(
        update={
            "references": tuple(one.name for one in LOVED),
            "reference_strengths": tuple(one.strength for one in LOVED),
            "votes": votes,
            "mean_draw_strength": 0.4,
        }
    )


def unjudged(rollout: Rollout) -> Rollout:
    """The same, had its run asked no judge: no draw, no votes."""
    kept = {name: one for name, one in rollout.terms.items() if name != "judge"}
    nothing: dict[str, Any] = {"references": (), "votes": (), "draw_strength": None}
    return rollout.model_copy(update={**nothing, "terms": kept})


def whole(path: Path) -> list[Rollout]:
    """The rollouts of a run with their paintings."""
    found = stored.read(path)
    return [
        one.model_copy(update={"painting": found.painting(place)})
        for place, one in enumerate(found.rollouts)
    ]


def test_another_recipe_s_terms_are_read_off_what_the_run_stored(
    call: Call, tmp_path: Path
) -> None:
    folder = fake_run.make(tmp_path / "dawn", steps=4, change=met)
    got = call("recompute", folder, "--recipe", "hybrid", "--json").json
    assert (got["scored"], got["missing"]) == (got["rollouts"], [])
    # As the trainer would have reckoned it: over the group, by the one rule.
    rollouts = whole(folder)
    group = [one for one in rollouts if (one.step, one.group) == (3, 1)]
    references = tuple(one.painting for one in LOVED)
    ready = [
        one.model_copy(
            update={
                "terms": one.terms
                | reckon.values(("utility", "perceptual"), Facts(one, references=references))
            }
        )
        if one.gate_passed
        else one
        for one in group
    ]
    for wanted in reckon.completed(HYBRID, ready):
        place = f"3/1/{wanted.index}"
        words = ("--rollout", folder, "--id", place, "--recipe", "hybrid", "--json")
        told = call("recipe", "explain", *words).json
        reward = HYBRID.failed_gate if not wanted.gate_passed else wanted.reward
        assert told["reward"] == pytest.approx(reward)
        assert told["missing"] == []


def test_a_lone_painting_of_its_group_is_asked_for_no_diversity(call: Call, tmp_path: Path) -> None:
    def lone(rollout: Rollout) -> Rollout:
        if rollout.index:
            return rollout.model_copy(update={"gate_passed": False, "terms": {"gate": 0.0}})
        return met(rollout.model_copy(update={"gate_passed": True, "terms": {"quality": 0.5}}))

    folder = fake_run.make(tmp_path / "dawn", steps=2, change=lone)
    got = call("recompute", folder, "--recipe", "hybrid", "--json").json
    assert (got["scored"], got["missing"]) == (16, [])
    words = ("--rollout", folder, "--id", "0/0/0", "--recipe", "hybrid", "--json")
    parts = {one["term"]: one for one in call("recipe", "explain", *words).json["terms"]}
    assert parts["quality"]["weight"] == pytest.approx(0.5 / 0.95)


def test_a_run_without_references_meets_those_that_its_seeds_draw(
    call: Call, tmp_path: Path
) -> None:
    folder = fake_run.make(tmp_path / "dawn", steps=3, change=unjudged)
    recipe = tmp_path / "like.yaml"
    recipe.write_text("name: like\nweights: {gate: 0.2, perceptual: 0.8}\n")
    got = call("recompute", folder, "--recipe", recipe, "--json").json
    assert (got["scored"], got["missing"]) == (24, [])
    assert "seeds draw from builtin:flowers" in got["notes"][0]
    one = next(one for one in whole(folder) if one.gate_passed)
    drawn = draws.draw(POOL, HYBRID, References(), one.seed, 4, one.step)
    facts = Facts(one, references=tuple(each.painting for each in drawn.references))
    value = reckon.values(["perceptual"], facts)["perceptual"]
    words = ("--rollout", folder, "--id", f"{one.step}/{one.group}/{one.index}")
    told = call("recipe", "explain", *words, "--recipe", recipe, "--json").json
    parts = {part["term"]: part["value"] for part in told["terms"]}
    assert parts["perceptual"] == pytest.approx(value)
    assert told["notes"] == [got["notes"][0].replace(str(got_paintings(folder)), "1", 1)]


def got_paintings(folder: Path) -> int:
    return sum(bool(one.gate_passed) for one in stored.read(folder).rollouts)


def test_what_a_judge_never_said_stays_unscored_and_is_named_with_its_remedy(
    call: Call, tmp_path: Path
) -> None:
    folder = fake_run.make(tmp_path / "dawn", steps=4, change=unjudged)
    recipe = tmp_path / "all.yaml"
    recipe.write_text(
        "name: all\nweights: {quality: 0.2, judge: 0.3, area: 0.3, mark_depth: 0.2}\n"
    )
    got = call("recompute", folder, "--recipe", recipe, "--json").json
    admitted = got_paintings(folder)
    missing = {one["terms"][0]: one for one in got["missing"]}
    assert set(missing) == {"judge", "area", "mark_depth"}
    assert all(one["rollouts"] == admitted for one in missing.values())
    assert got["scored"] == got["rollouts"] - admitted
    out = call("recompute", folder, "--recipe", recipe).out
    assert f"{admitted} lack judge: no judge was asked. --embedded asks" in out
    assert f"{admitted} lack area: what its sketch paints was not recorded. --repaint" in out
    assert "spec.scorer.backend: vlm-mark" in out
    assert "Neither fifth can be told." in out
    one = next(one for one in stored.read(folder).rollouts if one.gate_passed)
    place = f"{one.step}/{one.group}/{one.index}"
    told = call("recipe", "explain", "--rollout", folder, "--id", place, "--recipe", recipe)
    assert "it lacks judge: no judge was asked" in told.out


def test_what_the_run_s_own_scorer_failed_at_is_nobody_else_s_to_say(
    call: Call, tmp_path: Path
) -> None:
    def failed(rollout: Rollout) -> Rollout:
        if rollout.index != 1 or not rollout.gate_passed:
            return rollout
        terms_ = rollout.terms | {"quality": None}
        why = {"unscored_reason": Reason.SCORER_UNAVAILABLE, "reward": None, "mu": None}
        return rollout.model_copy(update={**why, "terms": terms_})

    folder = fake_run.make(tmp_path / "dawn", steps=4, change=failed)
    got = call("recompute", folder, "--recipe", "hps-only", "--embedded", "--json").json
    (lack,) = got["missing"]
    assert (lack["terms"], lack["cause"]) == (["quality"], "the scorer failed")
    assert "others do not compare" in got["notes"][0]
    assert got["scored"] == got["rollouts"] - lack["rollouts"]


def test_the_embedded_judge_says_what_nobody_was_asked(call: Call, tmp_path: Path) -> None:
    folder = fake_run.make(tmp_path / "dawn", steps=2, change=unjudged)
    ranked = sorted(POOL.references, key=lambda one: one.strength)
    loved, poor = ranked[-1], ranked[0]
    spec = yaml.safe_load((folder / "run.yaml").read_text())
    spec["spec"]["references"] = {"tierShares": {"love": 0, "okay": 1, "meh": 0}}
    (folder / "run.yaml").write_text(yaml.safe_dump(spec))
    entries = [one for one in record.read(folder).entries if one.painting]
    for entry, reference in zip(entries, (loved, poor), strict=False):
        (folder / str(entry.painting)).write_bytes(reference.painting)
    rewards: list[float] = []
    for entry in entries[:2]:
        words = (folder / str(entry.painting), "--recipe", "judge-led", "--embedded", "--json")
        told = call("recipe", "explain", *words).json
        parts = {part["term"]: part for part in told["terms"]}
        assert parts["judge"]["words"].count("okay_") == 4
        assert told["notes"][-1] == "the embedded judge was asked now; the run had asked nobody"
        # The draw that it met then has a strength, which the raw reward is adjusted by.
        wanted = draws.draw(POOL, HYBRID, shares(0, 1), entry.rollout.seed, 4, entry.rollout.step)
        assert wanted.strength is not None
        assert wanted.mean_strength is not None
        slope = 0.6 * (wanted.strength - wanted.mean_strength)
        assert told["reward_adjusted"] == pytest.approx(told["reward"] - slope)
        rewards.append(parts["judge"]["value"])
    assert rewards[0] > rewards[1]


def shares(love: float, okay: float) -> References:
    return References(tier_shares=TierShares(love=love, okay=okay, meh=0))


# Area: the shapes that a sketch painted.


def replay(side: float) -> Replay:
    half = 96 - side / 2
    path = (half, half, half + side, half, half + side, half + side, half, half + side)
    one = Shape(kind="fill", call="circle", paths=(path,), colour="#102030", opacity=1.0)
    return Replay(width=192, height=192, seed=1, shapes=(one,), truncated=False, elsewhere=0)


AREA = "name: open\nweights: {gate: 0.2, area: 0.8}\n"


def test_a_replay_beside_a_painting_tells_its_area(call: Call, tmp_path: Path) -> None:
    folder = fake_run.make(tmp_path / "dawn", steps=2)
    recipe = tmp_path / "open.yaml"
    recipe.write_text(AREA)
    entry = next(one for one in record.read(folder).entries if one.painting)
    painting = folder / str(entry.painting)
    painting.with_suffix(".json").write_text(replay(115).model_dump_json())
    told = call("recipe", "explain", painting, "--recipe", recipe, "--json").json
    parts = {part["term"]: part["value"] for part in told["terms"]}
    assert parts["area"] == pytest.approx(terms.area((115 / 192) ** 2), abs=0.1)
    assert 0 < parts["area"] < 1
    # What is no replay is none, and says nothing.
    painting.with_suffix(".json").write_text('{"shapes": 5}')
    told = call("recipe", "explain", painting, "--recipe", recipe, "--json").json
    assert told["reward"] is None
    assert told["missing"][0]["term"] == "area"


def renderer(asked: list[dict[str, Any]], refuse: Callable[[str], bool]) -> FastAPI:
    """What answers as a renderer does, with a replay of one square."""
    app = FastAPI()

    @app.get("/livez")
    async def alive() -> dict[str, bool]:
        return {"ok": True}

    @app.get("/readyz")
    async def load() -> dict[str, Any]:
        return {"slots": 2, "busy": 0, "draining": False}

    @app.post("/v1/render")
    async def render(body: dict[str, Any]) -> JSONResponse:
        asked.append(body)
        if refuse(body["sketch"]):
            fault = {"code": "sketch_timeout", "message": "too slow"}
            return JSONResponse({"violation": fault}, 422)
        told = {"paint_fraction": 0.2, "shapes": 1, "js_errors": [], "cpu_seconds": 0.1}
        told |= {"timings": {"render": 0.1}, "rasterizer": "r", "versions": {}, "painting": ""}
        return JSONResponse(told | {"replay": replay(60).model_dump(mode="json")})

    return app


def test_sketches_are_painted_anew_for_what_was_not_recorded(call: Call, tmp_path: Path) -> None:
    folder = fake_run.make(tmp_path / "dawn", steps=3, seed=7)
    recipe = tmp_path / "open.yaml"
    recipe.write_text(AREA)
    asked: list[dict[str, Any]] = []
    admitted = [one for one in stored.read(folder).rollouts if one.gate_passed]
    slow = admitted[0].sketch
    with listening(renderer(asked, lambda sketch: sketch == slow)) as url:
        words = ("--recipe", recipe, "--repaint", "--renderer", url)
        got = call("recompute", folder, *words, "--json").json
    # Each sketch once, as its run had painted it.
    assert sorted(one["sketch"] for one in asked) == sorted({str(one.sketch) for one in admitted})
    assert all(one["seed"] == 7 and one["replay"] is True for one in asked)
    same = sum(one.sketch == slow for one in admitted)
    (lack,) = got["missing"]
    assert (lack["terms"], lack["rollouts"]) == (["area"], same)
    assert got["scored"] == got["rollouts"] - same


# Published tables.


def table(path: Path, **more: Any) -> Path:
    """A table in the published columns with the pictures inside, as the hub writes it."""
    rows: list[dict[str, Any]] = [
        {
            "step": step,
            "position_in_group": index,
            "reward": 0.5,
            "code": fake_run.SKETCH % index,
            "judge_weight": 0.6,
            "hpsv3_weight": 0.3,
            "subject": "a red poppy",
            "image": {"bytes": painting, "path": "x.png"},
            **more,
        }
        for step in range(2)
        for index in range(4)
        for painting in [POOL.references[7 * index + step].painting]
    ]
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=3)
    return path


def test_a_published_table_is_rescored_by_any_recipe(call: Call, tmp_path: Path) -> None:
    file = table(tmp_path / "train.parquet")
    got = call("recompute", file, "--recipe", "hybrid", "--json").json
    assert got["scored"] == 0
    assert {name for one in got["missing"] for name in one["terms"]} == {
        "quality",
        "utility",
        "perceptual",
    }
    words = ("--recipe", "hybrid", "--embedded", "--pool", "builtin:flowers")
    got = call("recompute", file, *words, "--json").json
    assert (got["scored"], got["missing"]) == (8, [])
    assert "the embedded scorer and judge was asked now" in got["notes"][-1]
    # The pictures are each row's own: pigment of the one that lies in it, whatever the row group.
    colour = tmp_path / "colour.yaml"
    colour.write_text("name: colour\nweights: {gate: 0.5, pigment: 0.5}\n")
    for step, index in ((0, 3), (1, 2)):
        own = Rollout(subject="a red poppy", painting=POOL.references[7 * index + step].painting)
        value = reckon.values(["pigment"], Facts(own))["pigment"]
        at = ("--rollout", file, "--id", f"{step}/0/{index}", "--recipe", colour, "--json")
        parts = {one["term"]: one["value"] for one in call("recipe", "explain", *at).json["terms"]}
        assert parts["pigment"] == pytest.approx(value)


def test_a_pool_that_is_named_and_is_none_is_refused(call: Call, tmp_path: Path) -> None:
    file = table(tmp_path / "train.parquet")
    refused = call("recompute", file, "--recipe", "hybrid", "--pool", tmp_path / "nowhere")
    assert refused.status == 1
    assert "no such pool" in refused.err
    # A run's own pool may be elsewhere; the other terms are told all the same.
    folder = fake_run.make(tmp_path / "dawn", steps=2, change=unjudged)
    spec = yaml.safe_load((folder / "run.yaml").read_text())
    for references, note in (
        ({"pool": str(tmp_path / "gone")}, "the run's pool cannot be used here"),
        ({"claim": "pools"}, "the run's pool is in its cluster"),
    ):
        spec["spec"]["references"] = references
        (folder / "run.yaml").write_text(yaml.safe_dump(spec))
        got = call("recompute", folder, "--recipe", "hybrid", "--json").json
        assert note in got["notes"][0]
        assert "perceptual" in [name for one in got["missing"] for name in one["terms"]]


# The draw, and what is unscored.


def test_the_gain_is_told_raw_and_adjusted_for_the_draw(call: Call, tmp_path: Path) -> None:
    folder = fake_run.make(tmp_path / "dawn", steps=10, change=met)
    got = call("recompute", folder, "--recipe", "judge-led", "--json").json
    before, after = ([], [])
    for one in stored.read(folder).rollouts:
        luck = (one.draw_strength or 0) - 0.4 if one.gate_passed else 0.0
        if one.step < 2 or one.step >= 8:
            (before if one.step < 2 else after).append(0.6 * luck)
    luck = sum(after) / len(after) - sum(before) / len(before)
    assert abs(luck) > 0.001
    assert got["adjusted_gain"]["gain"] == pytest.approx(got["gain"]["gain"] - luck)
    low, high = got["adjusted_gain_interval"]
    assert low < got["adjusted_gain"]["gain"] < high
    assert got["adjusted_gain_interval"] != got["gain_interval"]
    assert "adjusted for the draw   +" in call("recompute", folder, "--recipe", "judge-led").out


@pytest.mark.parametrize(
    ("recipe", "why"),
    [
        ("judge-led", "paintings store no strength of their draw"),
        ("hps-only", "the recipe weighs no wins"),
    ],
)
def test_what_cannot_be_adjusted_says_why(
    call: Call, tmp_path: Path, recipe: str, why: str
) -> None:
    # The fake run's rollouts do not tell the mean draw.
    folder = fake_run.make(tmp_path / "dawn", steps=6)
    got = call("recompute", folder, "--recipe", recipe, "--json").json
    assert got["adjusted_gain"] is None
    assert why in got["not_adjusted"]
    assert (
        f"not adjusted            {got['not_adjusted']}"
        in call("recompute", folder, "--recipe", recipe).out
    )
    one = next(one for one in stored.read(folder).rollouts if one.gate_passed)
    at = ("--rollout", folder, "--id", f"{one.step}/{one.group}/{one.index}", "--recipe", recipe)
    told = call("recipe", "explain", *at, "--json").json
    assert told["reward_adjusted"] == (None if recipe == "judge-led" else told["reward"])
    assert told["not_adjusted"] in call("recipe", "explain", *at).out


@pytest.mark.parametrize(("lost", "doubtful"), [(1, False), (3, True)])
def test_a_mean_over_what_is_left_says_how_much_that_is(
    call: Call, tmp_path: Path, lost: int, doubtful: bool
) -> None:
    def change(rollout: Rollout) -> Rollout:
        away = rollout.step == 0 and rollout.group == 0 and rollout.index < lost
        return fake_run.unscored(rollout) if away else rollout

    folder = fake_run.make(tmp_path / "dawn", steps=10, change=change)
    out = call("recompute", folder, "--recipe", "hps-led").out
    assert f"{lost} unscored in the run: RendererUnavailable" in out
    assert f"unscored                {lost} of 16 → 0 of 16   in 1 groups some members" in out
    assert ("More than 10% of a fifth are unscored" in out) is doubtful


def test_an_advantage_over_what_is_left_of_a_group_says_so(call: Call, tmp_path: Path) -> None:
    def change(rollout: Rollout) -> Rollout:
        if rollout.index == 1:
            return fake_run.unscored(rollout)
        quality = {"gate": 1.0, "quality": 0.5}
        return rollout.model_copy(update={"gate_passed": True, "terms": quality, "reward": 0.5})

    folder = fake_run.make(tmp_path / "dawn", steps=1, change=change)
    recipe = tmp_path / "quality.yaml"
    recipe.write_text("name: own\nweights: {quality: 1}\n")
    words = ("--rollout", folder, "--id", "0/0/0", "--recipe", recipe)
    assert "over the mean of 3 members, as 1 are unscored" in call("recipe", "explain", *words).out


def test_rollouts_of_no_known_recipe_cannot_be_asked_about(call: Call, tmp_path: Path) -> None:
    file = table(tmp_path / "train.parquet", judge_weight=0.5)
    assert call("recompute", file).status == 0
    refused = call("recompute", file, "--embedded")
    assert refused.status == 2
    assert "--recipe" in refused.err


def test_a_table_whose_pictures_cannot_be_read_is_refused(tmp_path: Path) -> None:
    file = table(tmp_path / "train.parquet")
    found = stored.read(file)
    file.write_bytes(b"PAR1")
    with pytest.raises(InputError, match="no rollouts can be read from it"):
        found.painting(0)
