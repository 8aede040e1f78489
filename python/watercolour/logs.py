"""Structured log lines: JSON in a pod, readable at a terminal, with run, step and rollout ids."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

_bound: ContextVar[dict[str, object] | None] = ContextVar("watercolour_log_ids", default=None)


@contextmanager
def bind(**ids: object) -> Generator[None]:
    """Add ids (``run``, ``step``, ``rollout`` …) to every line logged inside the block."""
    token = _bound.set({**(_bound.get() or {}), **ids})
    try:
        yield
    finally:
        _bound.reset(token)


def note(**ids: object) -> None:
    """Add ids to every line from now on, until the block of :func:`bind` around it ends."""
    _bound.set({**(_bound.get() or {}), **ids})


def rollout(run: str, step: int, group: int, index: int) -> AbstractContextManager[None]:
    """Add a rollout's ids to every line of the block; its own is ``STEP.GROUP.INDEX``."""
    return bind(run=run, step=step, rollout=f"{step}.{group}.{index}")


class _Json(logging.Formatter):
    def __init__(self, component: str) -> None:
        super().__init__()
        self.component = component

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, object] = {
            "time": f"{stamp}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "component": self.component,
            "logger": record.name,
            "message": record.getMessage(),
            **(_bound.get() or {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


class _Plain(logging.Formatter):
    def __init__(self, component: str) -> None:
        super().__init__("%(asctime)s %(levelname)s ", datefmt="%H:%M:%S")
        self.component = component

    def format(self, record: logging.LogRecord) -> str:
        ids = " ".join(f"{key}={value}" for key, value in (_bound.get() or {}).items())
        head = f"{self.formatTime(record, '%H:%M:%S')} {record.levelname.lower():7} "
        text = f"{head}{self.component}: {record.getMessage()}{'  ' + ids if ids else ''}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


def setup(component: str, *, level: int = logging.INFO) -> None:
    """Send the process's log lines to stderr: plain text at a terminal, JSON otherwise."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Plain(component) if sys.stderr.isatty() else _Json(component))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    # One line a request tells nothing that the metrics do not.
    for chatty in ("httpx", "httpx2", "httpcore", "uvicorn.access", "websockets", "asyncio"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def get(name: str) -> logging.Logger:
    """The logger of a module."""
    return logging.getLogger(name)
