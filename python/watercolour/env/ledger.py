"""What a run has spent on its judge, kept where the run is kept.

An environment counts what it spends, and in a cluster it forgets that with its pod. Its client does
not: with every announcement it tells what it has last heard and hears what is spent now, and writes
that into the run's folder. So a restarted environment goes on counting, short of what it spent
after the last announcement, which is at most what one step spends.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from watercolour import disk, logs

log = logs.get(__name__)

#: The file in the run's folder.
FILE = "judge-spent.json"


class Ledger:
    """Calls and tokens; they never become less."""

    def __init__(self, folder: Path | None = None) -> None:
        """Read what the run's folder keeps; without a folder nothing outlives the process."""
        self._path = None if folder is None else folder / FILE
        self.spent: dict[str, int] = {"calls": 0, "tokens": 0}
        if self._path is not None and self._path.exists():
            try:
                self._add(json.loads(self._path.read_text(encoding="utf-8")))
            except (OSError, ValueError) as error:
                log.warning("%s cannot be read, so the judge's budget starts anew: %s", FILE, error)

    def note(self, told: Any) -> None:
        """Take in what an environment says that is spent; None where it has no judge."""
        if self._add(told) and self._path is not None:
            try:
                disk.write_bytes(self._path, json.dumps(self.spent).encode())
            except OSError as error:
                log.warning("%s cannot be written: %s", self._path, error)

    def _add(self, told: Any) -> bool:
        """Whether anything has become more."""
        before = dict(self.spent)
        for what in self.spent:
            found = told.get(what) if isinstance(told, dict) else None
            if isinstance(found, int):
                self.spent[what] = max(self.spent[what], found)
        return self.spent != before
