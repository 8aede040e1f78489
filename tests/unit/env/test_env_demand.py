"""Announced rollouts."""

from __future__ import annotations

from watercolour.env.demand import Announcements


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_announcements_of_clients_add_up_and_the_latest_of_each_counts() -> None:
    announcements = Announcements(Clock())
    announcements.announce("a", 16, 1_060)
    announcements.announce("b", 8, 1_060)
    announcements.announce("a", 4, 1_060)
    assert announcements.total == 12
    announcements.announce("b", 0, 1_060)
    assert announcements.total == 4


def test_an_announcement_lapses() -> None:
    clock = Clock()
    announcements = Announcements(clock)
    announcements.announce("a", 16, 1_060)
    clock.now = 1_060
    assert announcements.total == 0
    announcements.announce("a", 16, 1_000)
    assert announcements.total == 0


def test_a_rollout_that_arrived_is_announced_no_longer() -> None:
    announcements = Announcements(Clock())
    announcements.announce("a", 2, 1_060)
    announcements.arrived("b")
    announcements.arrived("a")
    assert announcements.total == 1
    announcements.arrived("a")
    announcements.arrived("a")
    assert announcements.total == 0


def test_the_first_that_is_due_counts_and_who_does_not_say_may_come_at_once() -> None:
    clock = Clock()
    announcements = Announcements(clock)
    assert announcements.due_seconds == 0
    announcements.announce("a", 2, 1_600, 90)
    announcements.announce("b", 2, 1_600, 40)
    assert announcements.due_seconds == 40
    clock.now += 30
    assert announcements.due_seconds == 10
    announcements.announce("b", 0, 1_600)
    assert announcements.due_seconds == 60
    announcements.announce("c", 1, 1_600)
    assert announcements.due_seconds == 0


def test_after_one_that_came_early_the_others_may_come_at_once() -> None:
    announcements = Announcements(Clock())
    announcements.announce("a", 2, 1_600, 90)
    announcements.arrived("a")
    assert (announcements.total, announcements.due_seconds) == (1, 0)
