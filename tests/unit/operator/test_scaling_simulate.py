"""The simulator's command, and what the rules come to on the shipped traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from watercolour_operator.scaling import simulate
from watercolour_operator.scaling.model import Render, World
from watercolour_operator.scaling.rules import Hpa, Keda
from watercolour_operator.scaling.simulate import Outcome, compare


@pytest.fixture(scope="module")
def outcomes() -> dict[tuple[str, str], Outcome]:
    return {(one.trace, one.rule): one for one in compare(simulate.shipped())}


def test_our_rule_kills_nothing_and_is_first_on_every_trace(
    outcomes: dict[tuple[str, str], Outcome],
) -> None:
    for trace in simulate.shipped():
        ours = outcomes[trace, "ours"]
        assert ours.busy_kills == 0
        for rival in ("HPA", "KEDA", "HPA, tuned", "KEDA, tuned"):
            assert ours.burst_seconds < outcomes[trace, rival].burst_seconds
            assert ours.p95_wait_seconds < outcomes[trace, rival].p95_wait_seconds


def test_the_rivals_defaults_cost_more_than_twice_ours_on_the_published_bursts(
    outcomes: dict[tuple[str, str], Outcome],
) -> None:
    for rival in ("HPA", "KEDA"):
        theirs = outcomes["published-8", rival].pod_seconds
        assert theirs > 2 * outcomes["published-8", "ours"].pod_seconds


def test_rivals_tuned_for_cost_kill_what_paints(
    outcomes: dict[tuple[str, str], Outcome],
) -> None:
    assert outcomes["long-tail", "HPA, tuned"].busy_kills > 0
    assert outcomes["long-tail", "KEDA, tuned"].busy_kills > 0


def test_an_announced_burst_does_not_wait_for_cold_pods() -> None:
    def ours(announce: float | None) -> Outcome:
        return compare(["published-8"], announce=announce)[0]

    assert ours(30).burst_seconds < ours(None).burst_seconds - 15


def test_an_early_announcement_costs_no_more_than_one_in_time() -> None:
    early, in_time = (compare(["published-8"], announce=seconds)[0] for seconds in (240, 30))
    assert (early.burst_seconds, early.busy_kills) == (in_time.burst_seconds, 0)
    # The first burst's pods start at once: how long they take is not known yet.
    assert early.pod_seconds <= in_time.pod_seconds + 8 * 240 / 6


def sizes(rule: Hpa | Keda, renders: list[Render], seconds: int) -> list[tuple[float, int]]:
    """When the number of pods changed, and to what."""
    world, found = World(renders), [(0.0, 0)]
    while world.now < seconds:
        rule(world)
        if world.wanted != found[-1][1]:
            found.append((world.now, world.wanted))
        world.step()
    return found[1:]


def test_hpa_grows_by_the_greater_of_double_and_four_and_waits_before_it_shrinks() -> None:
    found = sizes(Hpa(per_pod=1, most=64), [Render(1, 200) for _ in range(20)], 900)
    assert [size for _, size in found[:4]] == [4, 8, 16, 20]
    assert found[-1][1] == 0
    # All are there and painting 20 s after the last growth; the first are done 200 s after theirs.
    first_done = found[0][0] + 20 + 200
    assert min(at for at, _ in found[4:]) >= first_done + 300


def test_keda_starts_one_pod_at_a_poll_and_the_last_one_goes_after_its_cooldown() -> None:
    found = sizes(Keda(per_pod=1, most=8), [Render(1, 60) for _ in range(3)], 900)
    assert (found[0][0] % 30, found[0][1]) == (0, 1)
    assert found[1][1] == 3
    assert found[-1][1] == 0
    assert found[-1][0] % 30 == 0


def test_the_command_prints_a_line_for_each_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate.main(["published-8"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 5
    assert lines[1].split()[:2] == ["published-8", "ours"]
    assert simulate.main(["published-8", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["rule"] == "ours"


NOBODY = '{"made": "", "slots": 1, "max": 1, "cold_start": 1, "renders": []}'


@pytest.mark.parametrize("text", ["{", "[]", '{"renders": [[1]]}', '{"renders": []}', NOBODY])
def test_a_file_that_is_no_trace_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text)
    assert simulate.main([str(path)]) == 1
    assert str(path) in capsys.readouterr().err


def test_an_unknown_trace_is_told_which_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate.main(["nowhere"]) == 1
    assert "shipped are burst-64, fast, long-tail, published-8" in capsys.readouterr().err
