"""Every term, with a picture or a sketch that it likes and one that it does not."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watercolour.api.errors import InfrastructureError, InputError
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout, Vote
from watercolour.render.replay import Replay, Shape
from watercolour.reward import catalogue, pool, shapes, terms
from watercolour.reward.catalogue import Term
from watercolour.reward.facts import Facts
from watercolour.score import examples

POOL = pool.load("builtin:flowers")
LOVED = {one.name: one for one in POOL.references if one.tier == "love"}
IRIS = LOVED["love_iris_09"]
COUNTEREXAMPLES = Path(examples.__file__).parent / "data" / "counterexamples" / "paintings"


def value(term: str, others: tuple[Rollout, ...] = (), draw: int = 4, **fields: Any) -> float:
    whole: dict[str, Any] = {"gate_passed": True, "subject": "a blue iris", **fields}
    references = tuple(one.painting for one in list(LOVED.values())[:draw])
    found = catalogue.evaluate(
        catalogue.find(term), Facts(Rollout.model_validate(whole), others, references)
    )
    assert found is not None
    return found


def counterexample(name: str) -> bytes:
    return (COUNTEREXAMPLES / f"{name}.png").read_bytes()


def sketch(*lines: str) -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"function setup() {{\n}}\nfunction draw() {{\n{body}\n}}\n"


def votes(*values: float | None) -> dict[str, Any]:
    names = [f"r{number}" for number in range(len(values))]
    cast = [
        Vote(reference=name, first=None, second=None, value=one)
        for name, one in zip(names, values, strict=True)
    ]
    return {"votes": cast, "references": names}


DABS = [f"brush.circle({20 * n}, 96, {8 + 4 * n});" for n in range(6)]
FILLS = ['brush.fill("#ff0000", 200);'] * terms.WANTED_FILLS
WASH = ("fill", "fillBleed", "fillTexture", "beginShape", "vertex", "endShape")

#: What each term likes, and what it does not.
TASTES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "gate": ({}, {"gate_passed": False}),
    "length": ({"sketch": "x" * 14_000}, {"sketch": "x" * 500}),
    "quality": ({"mu": 6.0}, {"mu": -6.0}),
    "judge": (votes(1, 1, 0.5), votes(0, 0, 0.5)),
    "utility": (
        {**votes(1, 1), "reference_strengths": (1.5, 0.0)},
        {**votes(0, 0), "reference_strengths": (1.5, 0.0)},
    ),
    "pigment": ({"painting": IRIS.painting}, {"painting": counterexample("poppy-neon")}),
    "area": ({"heaviest_shape": 0.08}, {"heaviest_shape": 0.5}),
    "repetition": ({"sketch": sketch(*DABS)}, {"sketch": sketch(*DABS[:1] * 6)}),
    "perceptual": (
        {"painting": IRIS.painting},
        {"painting": counterexample("iris-speck")},
    ),
    "brush": ({"sketch": IRIS.sketch}, {"sketch": sketch("brush.circle(9, 9, 4);")}),
    "fills": (
        {"sketch": sketch(*FILLS, *DABS)},
        {"sketch": sketch(FILLS[0], *DABS)},
    ),
    **{
        f"mark_{mark}": ({"marks": {mark: 0.9}}, {"marks": {mark: 0.1}})
        for mark in ("adherence", "recognisability", "aesthetics", "technique", "depth")
    },
}


@pytest.mark.parametrize("term", TASTES)
def test_a_term_likes_one_and_not_the_other(term: str) -> None:
    liked, disliked = TASTES[term]
    assert value(term, **liked) > 0.7
    assert value(term, **disliked) < 0.35


def test_every_shipped_term_has_its_taste_tested() -> None:
    assert set(catalogue.SHIPPED) == {*TASTES, "diversity", "chance"}


def test_a_group_of_one_picture_has_no_diversity_and_one_of_several_has() -> None:
    paintings = [one.painting for one in list(LOVED.values())[::12]]
    same = tuple(Rollout(painting=paintings[0]) for _ in range(3))
    unlike = tuple(Rollout(painting=one) for one in paintings[1:])
    assert value("diversity", same, painting=paintings[0]) == 0.0
    assert value("diversity", unlike, painting=paintings[0]) > 0.6


def test_loved_paintings_are_handled_like_one_another_and_counterexamples_are_not() -> None:
    loved = [value("perceptual", painting=one.painting, draw=8) for one in LOVED.values()]
    names = ("cut_paper", "flat_wash", "speck", "stem_only", "wet_wash", "tangle")
    flawed = [
        value("perceptual", painting=counterexample(f"{flower}-{name}"), draw=8)
        for flower in ("iris", "poppy", "daisy", "hibiscus")
        for name in names
    ]
    # Of all pairs of the two kinds the loved one is ahead in nine of ten.
    ahead = sum(good > poor for good in loved for poor in flawed) / (len(loved) * len(flawed))
    assert ahead > 0.9


def test_chance_is_the_rollouts_place_and_nothing_else() -> None:
    one = value("chance", step=3, index=2, seed=9, sketch="a", painting=IRIS.painting)
    assert one == value("chance", step=3, index=2, seed=9, gate_passed=False)
    other = [value("chance", step=step, index=index) for step in range(30) for index in range(8)]
    assert len(set(other)) == len(other)
    assert 0.45 < sum(other) / len(other) < 0.55


# Each has a value or None, and never a stand-in.


@pytest.mark.parametrize("term", sorted({*catalogue.SHIPPED} - {"gate", "chance"}))
def test_what_could_not_be_found_out_is_none_and_not_zero(term: str) -> None:
    assert catalogue.evaluate(catalogue.find(term), Facts(Rollout(gate_passed=True))) is None


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=6), st.floats(-3, 3))
def test_utility_rises_with_every_win_and_with_the_strength_of_the_beaten(
    wins: list[float], shift: float
) -> None:
    def utility(values: list[float], strength: float) -> float:
        cast = [
            Vote(reference=f"r{n}", first=None, second=None, value=one)
            for n, one in enumerate(values)
        ]
        found = terms.utility(cast, {f"r{n}": strength for n in range(len(values))})
        assert found is not None
        return found

    own = utility(wins, shift)
    assert 0 < own < 1
    assert utility(wins, shift + 1) > own
    better = [min(1.0, one + 0.5) for one in wins]
    assert utility(better, shift) >= own


def test_a_tie_with_average_okay_paintings_is_a_half() -> None:
    tied: dict[str, Any] = {**votes(0.5, 0.5), "reference_strengths": (0.0, 0.0)}
    assert value("utility", **tied) == pytest.approx(0.5)


def test_a_petal_shifted_by_a_hair_is_a_copy_and_a_layer_is_none() -> None:
    petal = ["brush.circle(96, 96, 40);", "brush.circle(97, 95, 40);"]
    layered = ["brush.circle(96, 96, 40);", "brush.circle(96, 96, 28);", "brush.circle(96, 96, 9);"]
    assert value("repetition", sketch=sketch(*petal)) == 0.0
    assert value("repetition", sketch=sketch(*layered)) == 1.0
    assert value("repetition", sketch=IRIS.sketch) == 1.0


def test_no_loved_sketch_repeats_itself() -> None:
    assert min(value("repetition", sketch=one.sketch) for one in LOVED.values()) == 1.0


def fill(side: float, opacity: float, kind: Any = "fill") -> Shape:
    square = (0.0, 0.0, side, 0.0, side, side, 0.0, side)
    return Shape(kind=kind, call="endShape", paths=(square,), colour="#336699", opacity=opacity)


def painted(*made: Shape) -> Replay:
    return Replay(width=200, height=200, seed=1, shapes=made, truncated=False, elsewhere=0)


def test_the_heaviest_shape_is_told_by_its_share_of_the_sheet_and_its_opacity() -> None:
    assert shapes.heaviest(painted(fill(100, 0.8), fill(60, 1.0))) == pytest.approx(0.2, abs=0.01)
    # Beyond the sheet there is nothing, and paper is the sheet itself.
    assert shapes.heaviest(painted(fill(900, 0.5))) == pytest.approx(0.5, abs=0.01)
    assert shapes.heaviest(painted(fill(200, 1.0, "stroke"))) == 0.0
    assert shapes.heaviest(painted()) == 0.0
    # A pale wash over the whole sheet is no blob.
    assert terms.area(shapes.heaviest(painted(fill(200, 0.12)))) == 1.0


# Terms of packages.


def with_terms(monkeypatch: pytest.MonkeyPatch, **places: str) -> None:
    entries = [EntryPoint(name, place, catalogue.GROUP) for name, place in places.items()]
    monkeypatch.setattr(catalogue, "entry_points", lambda group: entries)
    catalogue._entries.cache_clear()  # pyright: ignore[reportPrivateUsage]
    catalogue._loaded.cache_clear()  # pyright: ignore[reportPrivateUsage]


@pytest.fixture(autouse=True)
def forgotten() -> Any:
    yield
    catalogue._entries.cache_clear()  # pyright: ignore[reportPrivateUsage]
    catalogue._loaded.cache_clear()  # pyright: ignore[reportPrivateUsage]


def _half(facts: Facts) -> float | None:
    return 0.5 if facts.rollout.sketch else None


def _broken(facts: Facts) -> float | None:
    raise KeyError("petals")


HALF = Term("half", "always a half", "share", "this test", _half)
NEEDY = Term("half", "always a half", "share", "this test", _half, frozenset({"moonlight"}))  # pyright: ignore[reportArgumentType]
MISNAMED = Term("other", "always a half", "share", "this test", _half)
BROKEN = Term("broken", "raises", "share", "this test", _broken)
TOO_MUCH = Term("too_much", "gives 2", "share", "this test", lambda _: 2.0)
NO_NUMBER = Term("no_number", "gives text", "share", "this test", lambda _: "high")  # pyright: ignore[reportArgumentType]


def test_a_packages_term_is_found_by_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    module = write(monkeypatch, "HALF")
    with_terms(monkeypatch, half=module)
    assert "half" in catalogue.names()
    assert value("half", sketch="x") == 0.5


def write(monkeypatch: pytest.MonkeyPatch, name: str) -> str:
    """An importable place of one of this module's terms."""
    import sys
    import types

    module = types.ModuleType("a_package_with_terms")
    module.__dict__.update(
        {key: one for key, one in globals().items() if isinstance(one, Term)} | {"number": 3}
    )
    monkeypatch.setitem(sys.modules, "a_package_with_terms", module)
    return f"a_package_with_terms:{name}"


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("MISNAMED", "the term calls itself other"),
        ("number", "it is a int, no Term"),
        ("NOWHERE", "it cannot be imported: AttributeError"),
        ("NEEDY", "moonlight.*must be a set of painting, scorer"),
    ],
)
def test_a_packages_term_that_is_none_is_refused(
    monkeypatch: pytest.MonkeyPatch, place: str, says: str
) -> None:
    with_terms(monkeypatch, half=write(monkeypatch, place))
    with pytest.raises(InputError, match=says) as caught:
        catalogue.find("half")
    assert caught.value.reason == Reason.INVALID_TERM


@pytest.mark.parametrize(
    ("term", "says"),
    [
        (BROKEN, "broken raised KeyError: 'petals'"),
        (TOO_MUCH, "too_much gave 2, not a number from 0 to 1"),
        (NO_NUMBER, "no_number gave 'high', no number"),
    ],
)
def test_a_terms_own_fault_is_a_reason_and_no_value(term: Term, says: str) -> None:
    with pytest.raises(InfrastructureError, match=says) as caught:
        catalogue.evaluate(term, Facts(Rollout()))
    assert caught.value.reason == Reason.TERM_FAILED


def test_an_unknown_term_is_named_with_its_nearest() -> None:
    with pytest.raises(InputError) as caught:
        catalogue.find("juge", "spec.recipe.weights")
    assert caught.value.reason == Reason.UNKNOWN_TERM
    assert "spec.recipe.weights.juge: no such term. Did you mean judge" in str(caught.value)
