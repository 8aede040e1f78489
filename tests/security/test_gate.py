"""The gate refuses every hostile sketch, but for those that it rightly admits."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.security.attack import HONEST, Attack
from tests.security.catalogue import ATTACKS, label

from watercolour.api.spec import Gate
from watercolour.sketch import gate

REFUSED = [attack for attack in ATTACKS if attack.gate]
ADMITTED = [attack for attack in ATTACKS if not attack.gate]


def codes(sketch: str) -> set[str]:
    return {violation.code.value for violation in gate.check(sketch, Gate())}


def test_the_frame_of_the_attacks_is_admitted() -> None:
    assert codes(HONEST) == set()


@pytest.mark.parametrize("attack", REFUSED, ids=label)
def test_it_is_refused_with_its_code(attack: Attack) -> None:
    assert attack.gate in codes(attack.for_gate())


@pytest.mark.parametrize("attack", ADMITTED, ids=label)
def test_what_is_admitted_is_admitted_for_a_reason(attack: Attack) -> None:
    assert attack.admitted
    assert codes(attack.for_gate()) == set()


def test_there_are_attacks_of_every_kind_and_no_two_of_a_name() -> None:
    kinds = Counter(attack.kind for attack in ATTACKS)
    assert kinds["network"] >= 15
    assert min(kinds.values()) >= 3
    assert len({label(attack) for attack in ATTACKS}) == len(ATTACKS) >= 60
