"""A trackio server as people host one; prints its address and serves until its input ends."""

from __future__ import annotations

import sys
from typing import Any

import trackio

shown: Any = trackio.show(open_browser=False, block_thread=False, host="127.0.0.1")
print(shown[1].rstrip("/"), flush=True)
sys.stdin.read()
