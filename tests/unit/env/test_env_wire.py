"""The record over the wire and back, and what a policy is told."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason, ViolationCode
from watercolour.api.rollout import Rollout, Violation, Vote
from watercolour.env import wire
from watercolour.env.critique import critique

share = st.floats(min_value=0, max_value=1)
maybe = st.one_of(st.none(), share)
rollouts = st.builds(
    Rollout,
    subject=st.just("a red poppy"),
    seed=st.integers(0, 2**31),
    completion=st.text(),
    sketch=st.one_of(st.none(), st.text()),
    gate_passed=st.one_of(st.none(), st.booleans()),
    violations=st.lists(
        st.builds(Violation, code=st.sampled_from(ViolationCode), message=st.text()), max_size=3
    ).map(tuple),
    painting=st.one_of(st.none(), st.binary()),
    paint_fraction=maybe,
    references=st.lists(st.text(), max_size=3).map(tuple),
    draw_strength=maybe,
    votes=st.lists(
        st.builds(
            Vote,
            reference=st.text(),
            first=st.sampled_from([None, "A", "B"]),
            second=st.none(),
            value=maybe,
        ),
        max_size=2,
    ).map(tuple),
    terms=st.dictionaries(st.text(), maybe, max_size=3),
    mu=st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)),
    reward=maybe,
    reward_adjusted=maybe,
    unscored_reason=st.one_of(st.none(), st.sampled_from(Reason)),
    attempts=st.integers(1, 9),
)


@given(rollouts)
def test_what_the_server_knew_is_what_the_client_gets(rollout: Rollout) -> None:
    sent = json.loads(json.dumps(wire.fields(rollout, with_painting=True)))
    reward = sent.pop("reward")
    asked = Rollout(subject=rollout.subject, completion=rollout.completion, run="r", step=4)
    got = wire.fill(asked, sent, reward)
    assert got == rollout.model_copy(update={"run": "r", "step": 4})


def test_a_painting_nobody_asked_for_stays_behind() -> None:
    assert "painting" not in wire.fields(Rollout(painting=b"x"), with_painting=False)


@pytest.mark.parametrize(
    "observation", [{"painting": "?"}, {"terms": 3}, {"unscored_reason": "Whatever"}]
)
def test_an_observation_that_is_not_ours_is_an_infrastructure_error(
    observation: dict[str, object],
) -> None:
    with pytest.raises(InfrastructureError, match="cannot be read"):
        wire.fill(Rollout(), observation, None)


def test_a_refused_sketch_is_told_its_violations_with_their_lines() -> None:
    text = critique(
        Rollout(
            gate_passed=False,
            violations=(
                Violation(code=ViolationCode.TEXT_LABEL, message="text() writes", line=3),
                Violation(code=ViolationCode.NO_PAINTING_CALLS, message="no paint"),
            ),
        )
    )
    assert "text_label (line 3): text() writes" in text
    assert "no_painting_calls: no paint" in text


@given(rollouts)
def test_no_score_and_no_reference_is_ever_told(rollout: Rollout) -> None:
    bare = rollout.model_copy(
        update={
            "terms": {},
            "mu": None,
            "votes": (),
            "references": (),
            "draw_strength": None,
            "reward": None,
            "reward_adjusted": None,
            "unscored_reason": None,
        }
    )
    assert critique(rollout) == critique(bare)
