"""What the painter tells the environment ahead of a step."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.unit.train.conftest import Stage

from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout
from watercolour.train import metrics, rollouts
from watercolour.train.ranks import Ranks
from watercolour.train.rollouts import ANNOUNCED_SECONDS, Group, Painter
from watercolour.train.sampling import OnRow, Row, Stop


@dataclass
class Clock:
    now: float = 5_000.0

    def time(self) -> float:
        return self.now

    perf_counter = time


@dataclass
class Heard(Stage):
    """Keeps the announcements: how many, how long they hold, when the first is due."""

    clock: Clock = field(default_factory=Clock)
    announced: list[tuple[int, float, float]] = field(
        default_factory=list[tuple[int, float, float]]
    )

    def submit_announcement(
        self, rollouts: int, until: float, due_seconds: float = 0.0
    ) -> Future[bool]:
        self.announced.append((rollouts, until - self.clock.now, due_seconds))
        return super().submit_announcement(rollouts, until, due_seconds)


def test_a_step_is_announced_with_the_time_in_which_its_first_row_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    env = Heard()
    monkeypatch.setattr(rollouts, "time", env.clock)
    # Seconds in which the rows of a step end; the first step compiles.
    steps = [(90.0, 95.0), (30.0, 60.0), (20.0, 70.0), (40.0, 41.0), *[(25.0, 26.0)] * 4]
    pace = iter(steps)

    def engine(
        prompts: Sequence[Sequence[int]], seeds: Sequence[int], on_row: OnRow, stop: Stop
    ) -> list[Row]:
        row, begun = Row((1,), (0.0,), truncated=False), env.clock.now
        for number, seconds in enumerate(next(pace)):
            env.clock.now = begun + seconds
            on_row(number, row)
        return [row] * len(prompts)

    painter = Painter(engine, str, env, "run", lambda *_: 0, lambda: None)
    for step in range(len(steps)):
        painter.paint(step, [Group(0, "a poppy", 1, (1, 2))], 2)
    dues = [0.0, 0.0, 30.0, 20.0, 20.0, 20.0, 20.0, 25.0]
    assert env.announced == [(2, due + ANNOUNCED_SECONDS, due) for due in dues]


class OneOfTwo(Ranks):
    """The second of two processes; the first has done what it does."""

    def gather(self, value: Any) -> list[Any]:
        rows, found, spent = value
        half = len(rows)
        theirs = ({place - half: row for place, row in rows.items()} for rows in (rows, found))
        return [(*theirs, spent), value]

    @contextmanager
    def agreed(self) -> Generator[None]:
        yield


def test_every_process_announces_what_it_will_send_itself() -> None:
    env = Heard()

    def engine(
        prompts: Sequence[Sequence[int]], seeds: Sequence[int], on_row: OnRow, stop: Stop
    ) -> list[Row]:
        row = Row((1,), (0.0,), truncated=False)
        for number in range(len(prompts)):
            on_row(number, row)
        return [row] * len(prompts)

    ranks = OneOfTwo(rank=1, size=2)
    painter = Painter(engine, str, env, "run", lambda *_: 0, lambda: None, ranks=ranks)
    painter.paint(0, [Group(0, "a poppy", 1, (1, 2))], 4)
    assert [rollouts for rollouts, _, _ in env.announced] == [2]
    assert [one.index for one in env.seen] == [2, 3]


def drawn(
    prompts: Sequence[Sequence[int]], seeds: Sequence[int], on_row: OnRow, stop: Stop
) -> list[Row]:
    """An engine whose rows have as many tokens as their numbers, counted from 1."""
    found = [Row((1,) * number, (0.0,) * number, True) for number in range(1, len(prompts) + 1)]
    for number, row in enumerate(found):
        on_row(number, row)
    return found


def test_tokens_of_every_attempt_count_for_the_speed() -> None:
    env = Stage(away=lambda _step, group, _index: group == 0)
    painter = Painter(drawn, str, env, "run", lambda *_: 0, lambda: None)
    painted = painter.paint(0, [Group(number, "a poppy", 1, (1, 2)) for number in range(2)], 2)
    assert (painted.attempts, painted.tokens) == (2, 1 + 2 + 3 + 4 + 1 + 2)
    found = metrics.of_rollouts(painted)
    assert found["tokens"] == 1 + 2 + 3 + 4
    assert found["tokens_per_second"] == pytest.approx(13 / painted.seconds_generate)


def test_one_of_several_that_is_to_stop_waits_a_while_and_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Hanging(Stage):
        def submit(self, completion: str, **ids: Any) -> Future[Rollout]:
            return super().submit(completion, **ids) if ids["index"] else Future()

    monkeypatch.setattr(rollouts, "STOP_SECONDS", 0.1)
    met: list[str] = []
    painter = Painter(
        drawn,
        str,
        Hanging(),
        "run",
        lambda *_: 0,
        lambda: None,
        stop_together=lambda: met.append("all"),
        stopping=lambda: True,
    )
    hung, other = painter.paint(0, [Group(0, "a poppy", 1, (1, 2))], 2).rollouts
    assert met == ["all"]
    assert (hung.reward, hung.unscored_reason) == (None, Reason.INTERRUPTED)
    assert (hung.completion, hung.tokens, hung.truncated) == ("(1,)", 1, True)
    assert other.reward is not None
