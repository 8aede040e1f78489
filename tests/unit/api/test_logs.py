"""Log lines carry the ids of what they speak of."""

from __future__ import annotations

import json
import logging
from collections.abc import Generator

import pytest

from watercolour import logs

log = logging.getLogger("test.logs")


@pytest.fixture(autouse=True)
def kept() -> Generator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_lines_are_json_with_run_step_and_rollout(capsys: pytest.CaptureFixture[str]) -> None:
    logs.setup("trainer")
    with logs.bind(run="poppies"):
        logs.note(step=3)
        log.info("one")
        with logs.rollout("poppies", 3, 0, 2):
            log.warning("two")
        log.info("three")
    log.info("four")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    ids = [tuple(line.get(name) for name in ("run", "step", "rollout")) for line in lines]
    assert ids == [
        ("poppies", 3, None),
        ("poppies", 3, "3.0.2"),
        ("poppies", 3, None),
        (None, None, None),
    ]
    assert {line["component"] for line in lines} == {"trainer"}
    assert lines[1]["level"] == "warning"
