"""Lines of those who wait: whose turn it is, by a model."""

from __future__ import annotations

from collections import Counter, deque

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from watercolour.render.turns import Turns

CLIENTS = "abc"

#: A client whose item comes, or the clients whose items do not fit when one is taken.
STEPS = st.lists(st.sampled_from(CLIENTS) | st.frozensets(st.sampled_from(CLIENTS)), max_size=60)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_nobody_is_served_twice_while_another_could_be(steps: list[str | frozenset[str]]) -> None:
    turns: Turns[tuple[str, int]] = Turns()
    lines = {client: deque[tuple[str, int]]() for client in CLIENTS}
    passed: dict[str, Counter[str]] = {client: Counter() for client in CLIENTS}
    for number, step in enumerate(steps):
        if isinstance(step, str):
            turns.add(step, (step, number))
            lines[step].append((step, number))
            continue
        able = [client for client, line in lines.items() if line and client not in step]
        taken = turns.take(lambda item, unfit=step: item[0] not in unfit)
        if taken is None:
            assert able == []
            continue
        client = taken[0]
        assert taken == lines[client].popleft()
        passed[client].clear()
        for other in able:
            if other != client:
                passed[other][client] += 1
                assert passed[other][client] == 1
    assert len(turns) == sum(map(len, lines.values()))


def test_an_item_can_come_first_leave_and_all_can_be_cleared() -> None:
    turns: Turns[int] = Turns()
    for item in (1, 2, 3):
        turns.add("a", item)
    turns.add("a", 0, first=True)
    turns.remove("a", 2)
    turns.remove("a", 2)
    turns.remove("b", 2)
    assert [turns.take(lambda item: True), turns.take(lambda item: item > 1)] == [0, 3]
    assert turns.clear() == [1]
    assert turns.take(lambda item: True) is None
