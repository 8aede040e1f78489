"""How a process follows another's work: it looks now and then, until its standard input ends."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator


def looks(seconds: float) -> Iterator[bool]:
    """True at each look that others will follow, and False at the last.

    Args:
        seconds: between two looks.
    """
    while True:
        ready, _, _ = select.select([sys.stdin], [], [], seconds)
        ended = bool(ready) and not os.read(sys.stdin.fileno(), 1024)
        yield not ended
        if ended:
            return
