"""The one module that imports pyppeteer, and the rules for calling it.

pyppeteer 2.0 has traps: a cancelled call breaks the connection's receive loop, so calls are
abandoned instead of cancelled; a crashed page without an ``error`` listener breaks it too; a call
on a crashed page never answers, so every call has a time-out of its own; and ``close()`` leaves
processes behind, so processes are killed by id (see :mod:`watercolour.render.chromium`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, cast

# pyppeteer lives in the renderer's own environment, whose pins no other one shares.
import pyppeteer  # pyright: ignore[reportMissingImports]
from pyppeteer.errors import PyppeteerError  # pyright: ignore[reportMissingImports]

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason

#: Seconds that any single call of the driver gets, painting excepted.
CALL_SECONDS = 60

_FAILURES: tuple[type[Exception], ...] = (
    cast("type[Exception]", PyppeteerError),
    ConnectionError,
    OSError,
)


#: Domains of the protocol that are not listened to: a sketch can make events of them without end.
MUTED = ("Runtime", "Log", "Network", "Performance")


class Session(Protocol):
    """What we use of pyppeteer's session with a page."""

    def send(self, method: str) -> Awaitable[Any]:
        """Call a method of the protocol."""
        ...


class Tab(Protocol):
    """What we use of pyppeteer's page."""

    target: Target

    def on(self, event: str, listener: Callable[..., None]) -> object:
        """Listen."""
        ...

    _client: Session

    def evaluateOnNewDocument(self, function: str) -> Awaitable[Any]:  # noqa: N802 - pyppeteer's name
        """Run a script first in every frame, whoever makes it."""
        ...

    def goto(self, url: str, options: dict[str, Any]) -> Awaitable[Any]:
        """Navigate and wait for the load event."""
        ...

    def evaluate(self, function: str, *args: object) -> Awaitable[Any]:
        """Run a function in the page and wait for its promise."""
        ...

    def close(self) -> Awaitable[Any]:
        """Close the page."""
        ...


class Events(Protocol):
    """What we use of pyppeteer's connection itself."""

    def on(self, event: str, listener: Callable[[dict[str, Any]], None]) -> object:
        """Listen."""
        ...


class Target(Protocol):
    """What we use of what the browser knows a page by."""

    _targetId: str  # noqa: N815 - pyppeteer's name


class Connection(Protocol):
    """What we use of pyppeteer's browser."""

    def newPage(self) -> Awaitable[Tab]:  # noqa: N802 - pyppeteer's name
        """Open a page."""
        ...

    _connection: Events

    def version(self) -> Awaitable[str]:
        """Name and version of the browser."""
        ...


def swallow(task: asyncio.Future[Any]) -> None:
    """Done-callback of an abandoned call: nobody waits for its outcome any more."""
    if not task.cancelled():
        task.exception()


def outcome(task: asyncio.Future[Any], what: str) -> Any:
    """The result of a call that is done.

    Raises:
        InfrastructureError: the driver failed (BrowserCrashed).
    """
    try:
        return task.result()
    except _FAILURES as error:
        raise InfrastructureError(Reason.BROWSER_CRASHED, f"{what}: {error}.") from error


async def call(awaitable: Awaitable[Any], what: str, *, seconds: float = CALL_SECONDS) -> Any:
    """Await one call of the driver for a limited time; never cancels it.

    Raises:
        InfrastructureError: no answer in time, or the driver failed (BrowserCrashed).
    """
    task = asyncio.ensure_future(awaitable)
    task.add_done_callback(swallow)
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if not done:
        raise InfrastructureError(Reason.BROWSER_CRASHED, f"{what}: no answer in {seconds:g} s.")
    return outcome(task, what)


async def connect(endpoint: str) -> Connection:
    """A connection to the debugging port of a running browser.

    Raises:
        InfrastructureError: no answer in time, or the driver failed (BrowserCrashed).
    """
    opening = cast(
        "Awaitable[Connection]",
        pyppeteer.connect(browserWSEndpoint=endpoint, defaultViewport=None),
    )
    return await call(opening, "connecting to the browser")


async def open_tab(connection: Connection, url: str, first: str) -> Tab:
    """A new page at ``url`` whose crash, dialog or words cannot hurt the connection.

    Args:
        connection: to the browser.
        url: where it goes.
        first: script that runs first in every frame of the page.

    Raises:
        InfrastructureError: no answer in time, or the driver failed (BrowserCrashed).
    """
    tab: Tab = await call(connection.newPage(), "opening a page")
    tab.on("error", lambda *_: None)
    tab.on("dialog", _dismiss)
    script = f"() => {{ {first} }}"
    await call(tab.evaluateOnNewDocument(script), "preparing the page's frames")
    # Without a limit of its own, which is 30 seconds: ours bounds the call.
    await call(tab.goto(url, {"timeout": 0}), "loading the page")
    for domain in MUTED:
        # A call of the page's own functions needs none of them once the page is loaded.
        session = tab._client  # pyright: ignore[reportPrivateUsage]  # a new one mutes itself alone
        await call(session.send(f"{domain}.disable"), "muting the page")
    return tab


def deaths(connection: Connection) -> dict[str, str]:
    """How pages' processes ended, by the pages' ids; filled as it happens.

    ``crashed`` or ``oom`` is the doing of what ran in them, ``killed`` somebody else's.
    """
    found: dict[str, str] = {}

    def died(event: dict[str, Any]) -> None:
        found[str(event.get("targetId"))] = str(event.get("status"))

    events = connection._connection  # pyright: ignore[reportPrivateUsage]  # tells only pages apart
    events.on("Target.targetCrashed", died)
    return found


def identity(tab: Tab) -> str:
    """The page's id in :func:`deaths`."""
    return tab.target._targetId  # pyright: ignore[reportPrivateUsage]  # has no public name


def _dismiss(dialog: Any) -> None:
    asyncio.ensure_future(dialog.dismiss()).add_done_callback(swallow)
