"""The environment's surroundings, a set a test."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack

import pytest
from tests.unit.env import edges
from tests.unit.env.edges import serving
from tests.unit.env.world import World

from watercolour.env import corridor, presence
from watercolour.render import fleet
from watercolour.score import client as scoring
from watercolour.score import completions


@pytest.fixture
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every retry come at once."""
    for name in ("AWAY_SECONDS", "AWAY_SECONDS_MOST", "REST_SECONDS", "REST_SECONDS_MOST"):
        monkeypatch.setattr(fleet, name, 0.01)
    monkeypatch.setattr(presence, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(corridor, "BACKOFF_SECONDS", 0.001)
    monkeypatch.setattr(completions, "BACKOFF_SECONDS", 0.001)
    monkeypatch.setattr(scoring, "BACKOFF_SECONDS", 0.001)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(edges.write_pool(tmp_path_factory.mktemp("pool") / "pool"))


@pytest.fixture
def world(pool: str) -> Generator[World]:
    with ExitStack() as stack:
        yield World(
            pool,
            *(
                stack.enter_context(serving(edge))
                for edge in (edges.renderer(), edges.scorer(), edges.judge())
            ),
        )
