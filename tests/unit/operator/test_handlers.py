"""The event loop starts wherever the operator's image is run."""

from __future__ import annotations

import asyncio
import getpass
from typing import Any, cast

import pytest

from watercolour_operator import handlers
from watercolour_operator.cluster.api import Api
from watercolour_operator.cluster.store import Store
from watercolour_operator.settings import Settings


async def test_user_needs_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 1000680000")

    async def credentials(api: Api) -> Any:
        reached.set()
        await asyncio.Event().wait()

    reached = asyncio.Event()
    monkeypatch.setattr(getpass, "getuser", nameless)
    monkeypatch.setattr(handlers, "_credentials", credentials)
    nobody = cast(Any, None)
    watching = asyncio.ensure_future(handlers.watch_runs(nobody, Store(), Settings()))
    asked = asyncio.ensure_future(reached.wait())
    done, _ = await asyncio.wait({watching, asked}, return_when=asyncio.FIRST_COMPLETED, timeout=30)
    watching.cancel()
    assert asked in done, watching.exception() if watching in done else "it never asks"
    await asyncio.gather(watching, return_exceptions=True)
