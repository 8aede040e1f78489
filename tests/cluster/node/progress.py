"""Lines that `up` shows while it waits for a node."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any


class Progress:
    """The file that they are written to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._start = time.monotonic()

    def say(self, text: str) -> None:
        """Add a line with the seconds since the start."""
        with self._path.open("a") as file:
            file.write(f"{time.monotonic() - self._start:5.1f} s  {text}\n")

    def close(self, text: str) -> None:
        """Add the last line."""
        with self._path.open("a") as file:
            file.write(f"{text}\n")


def note(log: Path, *lines: str) -> None:
    """Add lines with the time of day to a log."""
    with log.open("a") as file:
        for line in lines:
            print(f"{time.strftime('%H:%M:%S')} {line}", file=file)


def ready(node: dict[str, Any]) -> str | None:
    """When the node was last heard to be ready, RFC 3339; None while it is not."""
    for each in node.get("status", {}).get("conditions", ()):
        if each["type"] == "Ready" and each["status"] == "True":
            return str(each["lastHeartbeatTime"])
    return None
