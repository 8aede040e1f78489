"""A pod's own words are read where they can be, shortened, and never repeat a secret."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watercolour.api.reasons import Reason
from watercolour_operator.lifecycle import words


def test_a_summary_is_read_in_either_spelling() -> None:
    said = words.of(
        json.dumps(
            {
                "reason": "DiskFull",
                "message": "no space",
                "step": 41,
                "steps": 600,
                "last_checkpoint_step": 40,
                "reward_first_fifth": 0.31,
                "rewardLastFifth": 0.52,
                "best_rollout": {"step": 39, "reward": 0.9, "painting": "paintings/a.png"},
            }
        )
    )
    assert (said.reason, said.text) == (Reason.DISK_FULL, "no space")
    assert (said.step, said.steps, said.last_checkpoint_step) == (41, 600, 40)
    assert (said.reward_first, said.reward_last) == (0.31, 0.52)
    assert said.best is not None
    assert said.best.painting == "paintings/a.png"


def test_a_summary_after_lines_of_log_is_found() -> None:
    said = words.of('{"level": "info"}\nlog\n{"reason": "DiskFull", "step": 4}\n')
    assert (said.reason, said.step) == (Reason.DISK_FULL, 4)


@pytest.mark.parametrize(
    "said", ["", "Traceback", "{", "[1]", '{"step": "4"}', '{"step": -1}', '{"step": true}']
)
def test_what_is_no_summary_gives_no_figures(said: str) -> None:
    assert words.of(said).step is None


def test_an_unknown_reason_is_none() -> None:
    assert words.of('{"reason": "Tired"}').reason is None
    assert words.of('{"reason": ["DiskFull"]}').reason is None


SECRETS = [
    "hf_AbCdEfGhIjKlMnOpQrSt",
    "sk-proj-AbCdEfGhIjKlMnOp",
    "ghp_AbCdEfGhIjKlMnOpQrSt",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("around", ["{}", "401 for {}.", "url?token={}&x=1", '"api_key": "{}"'])
def test_tokens_are_not_repeated(secret: str, around: str) -> None:
    assert secret not in words.tail(around.format(secret))


@pytest.mark.parametrize(
    "text",
    [
        "password=hunter2hunter2",
        "Authorization: Bearer abc.def.ghi",
        "JUDGE_API_KEY: swordfish",
        "https://me:swordfish@hub.example/x",
    ],
)
def test_credentials_are_not_repeated(text: str) -> None:
    shown = words.tail(text)
    assert "***" in shown
    for secret in ("hunter2", "abc.def", "swordfish"):
        assert secret not in shown


def test_ordinary_words_stay_as_they_are() -> None:
    text = "ValueError: 512 tokens are too few; asked for sk 3, bearer of news at http://env:8000/x"
    assert words.tail(text) == text


@given(st.text(max_size=6000))
def test_any_message_is_read_and_short(text: str) -> None:
    said = words.of(text)
    assert len(said.text) <= words.LONGEST
    assert len(words.last_line(text)) <= 300
