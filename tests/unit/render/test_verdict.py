"""Whose fault a painting's end is: a sketch's only if nobody else can have been at fault."""

from __future__ import annotations

import pytest

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason, ViolationCode
from watercolour.render import verdict
from watercolour.render.cgroup import Memory
from watercolour.render.meter import Meter
from watercolour.render.result import SketchFault

MIB = 2**20
LIMIT = verdict.MEMORY_LIMIT
OOM = ViolationCode.SKETCH_OOM


def blamed(told: SketchFault | InfrastructureError | None) -> ViolationCode | Reason | None:
    """The violation of a sketch, or the reason of the infrastructure's error."""
    if isinstance(told, SketchFault):
        return told.violation.code
    return told.reason if told is not None else None


@pytest.mark.parametrize(
    ("own", "shared", "painting", "company", "said"),
    [
        (LIMIT, 0, 1, 0, None),
        (LIMIT + 1, 0, 1, 0, OOM),
        (LIMIT, 1, 1, 0, OOM),
        (LIMIT + 1, 0, 2, 1, OOM),
        (LIMIT, LIMIT, 2, 1, None),
        (LIMIT, LIMIT + 1, 2, 1, Reason.BROWSER_CRASHED),
        (1, LIMIT, 1, 1, Reason.BROWSER_CRASHED),
    ],
    ids=[
        "at its limit",
        "its page above it",
        "with what it causes elsewhere above it",
        "its page above it, whoever else paints",
        "two at their limits",
        "one of two above it",
        "another has been there and has gone",
    ],
)
def test_memory_is_a_sketchs_if_it_is_in_its_page_or_nobody_else_has_painted(
    own: int, shared: int, painting: int, company: int, said: object
) -> None:
    together = painting * LIMIT
    told = verdict.of_memory(own, shared, allowed=LIMIT, together=together, company=company)
    assert blamed(told) == said


LARGE, SMALL = 400 * MIB, 100 * MIB


@pytest.mark.parametrize(
    ("how", "grown", "said"),
    [
        ("oom", SMALL, OOM),
        ("crashed", LARGE, OOM),
        ("crashed", SMALL, ViolationCode.RENDER_FAILED),
        ("killed", SMALL, Reason.BROWSER_CRASHED),
        ("killed", LARGE, Reason.BROWSER_CRASHED),
        ("unknown", LARGE, Reason.BROWSER_CRASHED),
    ],
)
def test_a_kill_from_outside_is_nobodys_who_was_large(how: str, grown: int, said: object) -> None:
    assert blamed(verdict.of_death(how, grown, 200 * MIB + grown)) == said


def memory(used: int, kills: int = 0, full: int = 0, limit: int = 2048 * MIB) -> Memory:
    """Of a group."""
    return Memory(limit, used, kills, full)


BEFORE = memory(600 * MIB, kills=1, full=7)
FULL = memory(500 * MIB, kills=2, full=9)


@pytest.mark.parametrize(
    ("before", "after", "company", "said"),
    [
        (BEFORE, FULL, 0, OOM),
        (BEFORE, FULL, 1, Reason.BROWSER_CRASHED),
        (memory(1200 * MIB), FULL, 0, Reason.BROWSER_CRASHED),
        (BEFORE, memory(0, kills=2, full=7), 0, Reason.BROWSER_CRASHED),
        (BEFORE, memory(0, kills=1, full=9), 0, None),
        (None, None, 0, None),
        (BEFORE, None, 0, None),
    ],
    ids=[
        "it alone has filled the group",
        "somebody else painted as well",
        "the group was nearly full before",
        "the machine was full, not the group",
        "nobody was killed",
        "no group",
        "the group has gone",
    ],
)
def test_a_kill_for_memory_is_a_sketchs_if_it_alone_has_used_more_than_its_limit(
    before: Memory | None, after: Memory | None, company: int, said: object
) -> None:
    assert blamed(verdict.of_kernel(before, after, allowed=LIMIT, company=company)) == said


def test_a_sketch_is_told_the_least_that_it_has_used() -> None:
    told = verdict.of_kernel(BEFORE, FULL, allowed=LIMIT, company=0)
    assert "1448 MiB" in str(told)


def test_company_is_whoever_paints_between_a_beginning_and_now() -> None:
    meter = Meter(0)
    meter.open(1, LIMIT)
    began = meter.ended
    meter.open(2, LIMIT)
    assert (meter.company(began), len(meter.charges)) == (1, 2)
    meter.close(1)
    assert (meter.company(began), len(meter.charges)) == (1, 1)
    meter.open(3, LIMIT)
    meter.close(3)
    assert meter.company(began) == 2
    meter.close(2)
    began = meter.ended
    meter.open(4, LIMIT)
    assert meter.company(began) == 0


def test_a_print_may_use_more_beside_a_sketch_that_may_not() -> None:
    most = verdict.limit(2)
    assert most == verdict.limit(8) == LIMIT + verdict.PRINT_BYTES
    assert verdict.limit(1) == LIMIT
    meter = Meter(0)
    meter.open(1, most)
    meter.open(2, LIMIT)
    together = sum(meter.allowed.values())
    assert (
        blamed(verdict.of_memory(LIMIT + 1, 0, allowed=LIMIT, together=together, company=1)) == OOM
    )
    assert verdict.of_memory(most, LIMIT, allowed=most, together=together, company=1) is None
    meter.close(1)
    assert sum(meter.allowed.values()) == LIMIT
    used = memory(600 * MIB), memory(0, kills=1, full=1)
    assert blamed(verdict.of_kernel(*used, allowed=LIMIT, company=0)) == OOM
    assert blamed(verdict.of_kernel(*used, allowed=most, company=0)) == Reason.BROWSER_CRASHED
