"""What the policy is told."""

from __future__ import annotations

import colorsys
import re
from importlib.resources import files

import pytest
from tests.unit.sketch.sketches import codes

from watercolour.api.errors import InputError
from watercolour.api.spec import Prompts
from watercolour.sketch import extract, prompt
from watercolour.sketch.exports import TEN
from watercolour.sketch.subjects import subjects


def hue(color: str) -> float:
    red, green, blue = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return 360 * colorsys.rgb_to_hsv(red, green, blue)[0]


def test_the_tiny_prompt_is_one_short_sentence() -> None:
    system, user = prompt.messages("a peach hibiscus", "tiny")
    assert system == {"role": "system", "content": "Write a p5.brush watercolour sketch."}
    assert user == {"role": "user", "content": "Paint a peach hibiscus in loose watercolour."}


def test_none_leaves_the_system_prompt_out() -> None:
    assert [m["role"] for m in prompt.messages("a peach hibiscus", "none")] == ["user"]


def test_the_long_prompt_teaches_the_ten_methods_and_no_other() -> None:
    text = prompt.messages("a peach hibiscus", "ten-methods")[0]["content"]
    assert set(re.findall(r"brush\.(\w+)\(", text)) == TEN


def test_the_long_prompts_skeleton_passes_the_gate_once_it_paints() -> None:
    text = prompt.messages("a peach hibiscus", "ten-methods")[0]["content"]
    skeleton = extract.extract(text)
    assert skeleton is not None
    assert codes(skeleton, allow=["ten"]) == ["no_painting_calls"]
    painting = skeleton.replace("// the painting", "brush.circle(300, 300, 90, true);")
    assert codes(painting, allow=["ten"]) == []


def test_auto_depends_on_the_model() -> None:
    assert prompt.preset("auto", "builtin:tiny") == "tiny"
    assert prompt.preset("auto", "Qwen/Qwen3-4B") == "ten-methods"
    assert prompt.preset("none", "builtin:tiny") == "none"


@pytest.mark.parametrize("system", ["eleven-methods", "auto", ""])
def test_an_unknown_preset_is_an_input_error(system: str) -> None:
    with pytest.raises(InputError, match=r"tiny, ten-methods, none") as raised:
        prompt.messages("a peach hibiscus", system)
    assert raised.value.field == "spec.prompts.system"
    assert raised.value.value == system


def test_an_empty_subject_is_an_input_error() -> None:
    with pytest.raises(InputError) as raised:
        prompt.messages(" ", "tiny")
    assert raised.value.field == "spec.prompts.subjects"


def test_the_default_subjects_ship_with_a_dozen_more() -> None:
    assert set(Prompts().subjects) <= set(subjects())
    assert len(subjects()) >= 16


def test_every_wash_but_the_deepest_lies_in_the_petals_hue_range() -> None:
    for subject in subjects().values():
        if subject.hue is None:
            continue
        for color in subject.petals[:-1]:
            assert subject.has_hue(hue(color)), (subject.name, color, hue(color))


def test_colours_are_six_hexadecimal_digits() -> None:
    for subject in subjects().values():
        assert len(subject.petals) >= 3
        assert subject.heart
        for color in (*subject.petals, *subject.heart):
            assert re.fullmatch(r"#[0-9a-f]{6}", color)


def test_a_hue_range_may_pass_through_red() -> None:
    poppy = subjects()["a red poppy"]
    assert [poppy.has_hue(degrees) for degrees in (350, 0, 12, 30, 340)] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_white_petals_have_no_hue() -> None:
    assert not subjects()["a white lily"].has_hue(60)


def test_every_preset_has_its_file() -> None:
    folder = files("watercolour.sketch").joinpath("data/prompts")
    assert {f"{name}.txt" for name in prompt.PRESETS if name != "none"} == {
        entry.name for entry in folder.iterdir()
    }
