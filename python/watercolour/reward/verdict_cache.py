"""Verdicts that outlive a process: a file of the run's own, or a Redis or Valkey server.

A cache is advice. What goes wrong with it is logged and costs a call, never a verdict.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from watercolour import logs
from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason

log = logs.get(__name__)

#: Changes whenever an old verdict must not stand for a new one.
VERSION = "verdict/1"

#: References whose digest is kept.
REFERENCES = 256

#: Seconds that a statement waits for another process to finish its own.
BUSY_SECONDS = 10.0

#: SQL and its parameters.
Statement = tuple[str, tuple[Any, ...]]

_TABLES = """
CREATE TABLE IF NOT EXISTS verdicts (
    id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, winner TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS spent (
    id INTEGER PRIMARY KEY CHECK (id = 1), calls INTEGER NOT NULL, tokens INTEGER NOT NULL);
INSERT OR IGNORE INTO spent VALUES (1, 0, 0);
"""


def key(sketch: str, reference: bytes, criteria: str, model: str, *, ours_first: bool) -> str:
    """What equal comparisons share, in hex.

    Args:
        sketch: what equal paintings share.
        reference: the reference's painting; two pools may have the same names.
        criteria: the system message.
        model: who judges.
        ours_first: the order.
    """
    shown = _digest_of_reference(reference)
    parts = [VERSION, sketch, shown, _digest(criteria.encode()), model, ours_first]
    return _digest(json.dumps(parts).encode())


@lru_cache(REFERENCES)
def _digest_of_reference(painting: bytes) -> str:
    """It is asked for again and again, and takes longer than the rest of the key."""
    return _digest(painting)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Verdicts(Protocol):
    """Where verdicts are kept."""

    async def find(self, keys: Sequence[str]) -> dict[str, str]:
        """The winners that are known, by key."""
        ...

    async def keep(self, key: str, winner: str) -> None:
        """Remember a winner, 'A' or 'B'."""
        ...

    async def aclose(self) -> None:
        """Let go of the file or the connections."""
        ...


@dataclass
class _Waiting:
    """What the next transaction writes."""

    winners: list[tuple[bytes, str]] = field(default_factory=list[tuple[bytes, str]])
    calls: int = 0
    tokens: int = 0


class VerdictFile:
    """An SQLite file with verdicts and with what was spent; several processes may share it.

    It uses SQLite's rollback journal, whose locks hold on network file systems too, where those of
    the write-ahead log do not.
    """

    def __init__(self, path: Path, most: int) -> None:
        """Open the file, or make it; one that is damaged is put aside as ``*.damaged``.

        Args:
            path: the file.
            most: verdicts kept; the oldest go first.

        Raises:
            InputError: it can be neither opened nor made.
        """
        self._most = most
        self._waiting = _Waiting()
        self._turn = asyncio.Lock()
        self._lock = threading.Lock()
        try:
            self._base = _opened(path)
        except sqlite3.OperationalError as error:
            raise InputError(
                Reason.INVALID_INPUT,
                f"{path}: verdicts cannot be kept there ({error}).",
                remedy="Name a file in a folder that can be written.",
                field="verdicts",
                value=str(path),
            ) from error
        except sqlite3.DatabaseError as error:
            log.warning("%s is damaged (%s); it is put aside and begun anew", path, error)
            path.replace(path.with_name(f"{path.name}.damaged"))
            self._base = _opened(path)

    async def aclose(self) -> None:
        """Close the file, once all is written."""
        await self._written()
        with self._lock:
            self._base.close()

    async def find(self, keys: Sequence[str]) -> dict[str, str]:
        """The winners that are known, by key."""
        marks = ",".join("?" * len(keys))
        rows = await self._run(
            (f"SELECT key, winner FROM verdicts WHERE key IN ({marks})", _blobs(keys))
        )
        return {bytes(found).hex(): str(winner) for found, winner in rows}

    async def keep(self, key: str, winner: str) -> None:
        """Remember a winner; what another process has remembered meanwhile stays."""
        self._waiting.winners.append((bytes.fromhex(key), winner))
        await self._written()

    async def spent(self) -> tuple[int, int]:
        """Calls and tokens that all processes have spent."""
        rows = await self._run(("SELECT calls, tokens FROM spent", ()))
        return (int(rows[0][0]), int(rows[0][1])) if rows else (0, 0)

    async def spend(self, calls: int, tokens: int) -> None:
        """Add to what was spent."""
        self._waiting.calls += calls
        self._waiting.tokens += tokens
        await self._written()

    async def _written(self) -> None:
        """Wait until what waits now is written.

        The answers of a step come together, and a transaction each would take longer than the
        judge: the first whose turn it is writes for all who wait.
        """
        batch = self._waiting
        async with self._turn:
            if batch is self._waiting:
                self._waiting = _Waiting()
                statements = self._statements(batch)
                if statements:
                    await self._run(*statements)

    def _statements(self, batch: _Waiting) -> list[Statement]:
        found: list[Statement] = []
        if batch.winners:
            insert = "INSERT OR IGNORE INTO verdicts (key, winner) VALUES (?, ?)"
            found += [(insert, one) for one in batch.winners]
            oldest = "DELETE FROM verdicts WHERE id <= (SELECT max(id) FROM verdicts) - ?"
            found.append((oldest, (self._most,)))
        if batch.calls or batch.tokens:
            add = "UPDATE spent SET calls = calls + ?, tokens = tokens + ?"
            found.append((add, (batch.calls, batch.tokens)))
        return found

    async def _run(self, *statements: Statement) -> list[Any]:
        """The rows of the first statement; all of them are one transaction."""
        try:
            return await asyncio.to_thread(self._run_here, statements)
        except sqlite3.Error as error:
            log.warning("the file of verdicts failed: %s", error)
            return []

    def _run_here(self, statements: Sequence[Statement]) -> list[Any]:
        with self._lock, self._base:
            if len(statements) > 1:
                self._base.execute("BEGIN IMMEDIATE")
            return next(iter([self._base.execute(*one).fetchall() for one in statements]))


def _opened(path: Path) -> sqlite3.Connection:
    base = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        base.executescript(_TABLES)
    except sqlite3.Error:
        base.close()
        raise
    return base


def _blobs(keys: Sequence[str]) -> tuple[bytes, ...]:
    return tuple(bytes.fromhex(one) for one in keys)
