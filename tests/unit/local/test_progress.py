from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from watercolour.api.status import Progress
from watercolour.local import progress as shown
from watercolour.local.progress import History, PlainDisplay


def at(step: int, reward: float | None = 0.5, **more: object) -> Progress:
    whole = {"step": step, "steps": 10, "reward": {"mean": reward, "best": 0.9}, **more}
    return Progress.model_validate(whole)


def history(*steps: tuple[int, float]) -> History:
    """Seen steps and the seconds at which each was seen."""
    seen = History()
    for step, now in steps:
        seen.add(at(step, step / 10), now)
    return seen


def test_the_time_left_follows_the_median_step_and_ignores_the_first() -> None:
    # The first step took 100 s of warm-up, the others 2 s, one of them 50 s.
    seen = history((1, 100), (2, 102), (3, 104), (4, 154), (5, 156))
    assert seen.eta_seconds(at(5)) == 2 * 5


def test_the_time_left_is_unknown_after_one_step() -> None:
    assert history((1, 5)).eta_seconds(at(1)) is None


def test_steps_that_were_missed_between_two_looks_share_their_time() -> None:
    assert history((1, 0), (4, 30)).eta_seconds(at(4)) == 10 * 6


def test_the_trainers_own_estimate_wins() -> None:
    assert history((1, 0), (2, 50)).eta_seconds(at(2, etaSeconds=7)) == 7


@pytest.mark.parametrize(
    ("values", "bars"),
    [([0.0, 0.5, 1.0], "▁▅█"), ([0.2, None, 0.4], "▁ █"), ([0.3], "▁"), ([None], ""), ([], "")],
)
def test_the_sparkline_spans_least_to_greatest_and_leaves_unscored_blank(
    values: list[float | None], bars: str
) -> None:
    assert shown.sparkline(values) == bars


def test_unknown_values_are_dashes_and_never_zero() -> None:
    line = shown.plain("x", at(1, None), History())
    assert "reward –" in line
    assert "gate –" in line
    assert "unscored –" in line
    assert "left –" in line
    assert "queue –" in line


def test_plain_lines_come_now_and_then_and_at_the_end() -> None:
    lines: list[str] = []
    clock = iter([0.0, 1.0, 16.0, 16.5, 17.0])
    display = PlainDisplay("x", lines.append, lambda: next(clock))
    for step in (1, 2, 3, 3, 10):
        display.update(at(step))
    assert [line.split()[2] for line in lines] == ["1/10", "3/10", "10/10"]
    assert all("\x1b" not in line and "\n" not in line for line in lines)


def test_the_panel_shows_the_figures_on_two_lines() -> None:
    out = StringIO()
    now = at(
        4,
        unscoredRate=0.004,
        gatePassRate=0.8,
        etaSeconds=65,
        queue={"queued": 2, "inflight": 1, "announced": 0},
    )
    console = Console(file=out, width=110)
    console.print(shown.panel("dawn", now, history((3, 1), (4, 2))))
    first, second = out.getvalue().splitlines()
    for part in ("dawn", "step 4/10", "40%", "1:05 left"):
        assert part in first
    for part in ("reward 0.500", "best 0.900", "gate 80 %", "unscored <1 %", "queue 3", "█"):
        assert part in second


def test_the_line_says_how_fast_it_goes_and_leaves_out_what_does_not_exist() -> None:
    more = {
        "lastStepSeconds": 24.53,
        "secondsGenerate": 17.9,
        "secondsWait": 0.0,
        "secondsUpdate": None,
        "tokensPerSecond": 1113.4,
        "gpuMemoryBytes": None,
    }
    line = shown.plain("x", at(1, **more), History())
    assert line.endswith("24.5 s/step (generate 17.9, wait 0.0)  1,113 tokens/s")
    full = at(1, **{**more, "gpuMemoryBytes": 85 * 2**30, "secondsUpdate": 4.5})
    assert shown.speed(full).endswith("update 4.5)  1,113 tokens/s  GPU 85.0 GiB")
    assert shown.speed(at(0)) == ""
    out = StringIO()
    Console(file=out, width=110).print(shown.panel("dawn", full, History()))
    assert "1,113 tokens/s" in out.getvalue().splitlines()[2]


def test_before_the_first_step_the_panel_names_the_phase() -> None:
    out = StringIO()
    console = Console(file=out, width=110)
    console.print(shown.panel("dawn", at(0, None, phase="preflight"), History()))
    assert "preflight" in out.getvalue()


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "–"), (5, "0:05"), (65, "1:05"), (3725, "1:02:05")]
)
def test_durations_are_clock_times(seconds: float | None, text: str) -> None:
    assert shown.duration(seconds) == text


def test_the_preflight_is_told_once() -> None:
    lines: list[str] = []
    display = PlainDisplay("x", lines.append, lambda: 0.0)
    found = {"probes": 16, "gate_pass_rate": 0.875, "wins": None}
    for _ in range(2):
        display.update(at(0, None, preflight=found))
    told = "the starting policy passes the gate in 88 % of 16 probes and wins – of its comparisons"
    assert lines == [told]
