"""When a slot's page is replaced although nothing went wrong."""

from __future__ import annotations

import pytest

from watercolour.render.wear import Wear

WEAR = Wear(renders=10, seconds=60, memory_bytes=1000)


@pytest.mark.parametrize(
    ("renders", "seconds", "memory", "cause"),
    [
        (9, 59, 999, None),
        (10, 0, 0, "count"),
        (1, 60, 0, "age"),
        (1, 0, 1000, "memory"),
    ],
)
def test_a_page_wears_by_count_age_and_memory(
    renders: int, seconds: float, memory: int, cause: str | None
) -> None:
    assert WEAR.cause(renders, seconds, memory) == cause
