"""The circuit breaker by a clock that the test moves."""

from __future__ import annotations

from watercolour.score.breaker import Breaker, State


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def opened(failures: int = 3) -> tuple[Breaker, Clock]:
    clock = Clock()
    breaker = Breaker(failures, 10.0, clock)
    for _ in range(failures):
        assert breaker.admits()
        breaker.failed()
    return breaker, clock


def test_it_opens_after_failures_in_a_row_and_not_before() -> None:
    breaker = Breaker(3, 10.0, Clock())
    for _ in range(5):
        breaker.failed()
        breaker.failed()
        breaker.succeeded()
    assert breaker.state is State.CLOSED
    assert opened()[0].state is State.OPEN


def test_an_open_one_admits_nobody_until_its_time_and_then_one() -> None:
    breaker, clock = opened()
    assert not breaker.admits()
    assert breaker.holds()
    assert breaker.seconds_left == 10.0
    clock.now = 10.0
    assert breaker.admits()
    assert breaker.state is State.HALF_OPEN
    assert not breaker.admits()


def test_a_probe_that_succeeds_closes_it_and_one_that_fails_doubles_the_wait() -> None:
    breaker, clock = opened()
    for wait in (10.0, 20.0, 40.0, 80.0, 100.0, 100.0):
        assert breaker.seconds_left == wait
        clock.now += wait
        assert breaker.admits()
        breaker.failed()
    clock.now += 100.0
    assert breaker.admits()
    breaker.succeeded()
    assert breaker.state is State.CLOSED
    for _ in range(3):
        breaker.failed()
    assert breaker.seconds_left == 10.0


def test_a_probe_that_was_cancelled_is_owed_again() -> None:
    breaker, clock = opened()
    clock.now = 10.0
    assert breaker.admits()
    breaker.abandoned()
    assert breaker.admits()


def test_stragglers_that_fail_while_it_is_open_do_not_prolong_the_wait() -> None:
    breaker, clock = opened()
    clock.now = 5.0
    breaker.failed()
    assert breaker.seconds_left == 5.0
    assert breaker.opened == 1
