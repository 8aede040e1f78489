"""Start Chromium in a process group of its own, unprivileged and sandboxed, and end it for good."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from watercolour import logs
from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.render import cgroup, homes, isolation, keeper, procfs, verdict

log = logs.get(__name__)

#: Where Debian's package puts the browser itself.
DEBIANS = Path("/usr/lib/chromium/chromium")

#: Seconds from start to the address of the debugging port.
START_SECONDS = 120

#: WebGL on llvmpipe, 2D canvas on the CPU: the fastest combination measured without a GPU.
FAST_FLAGS = (
    "--use-gl=angle",
    "--use-angle=gl-egl",
    "--ignore-gpu-blocklist",
    "--disable-accelerated-2d-canvas",
)

#: What the published experiment used; only benchmarks run it.
PUBLISHED_FLAGS = (
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-gpu-sandbox",
)

#: No network but this host's loopback, no background work, no throttling of hidden pages.
COMMON_FLAGS = (
    "--headless",
    "--remote-debugging-port=0",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--disable-extensions",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-hang-monitor",
    "--disable-domain-reliability",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
    "--disable-ipc-flooding-protection",
    "--disable-features=IsolateSandboxedIframes,SpareRendererForSitePerProcess,Translate,"
    "MediaRouter,OptimizationHints,AutofillServerCommunication,CalculateNativeWinOcclusion,"
    "PreloadTopChromeWebUI,InitialWebUI,WebUIReloadButton,WebUITabStrip",
    "--disable-dev-shm-usage",
    "--force-device-scale-factor=1",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    "--mute-audio",
    "--metrics-recording-only",
    "--password-store=basic",
    "--use-mock-keychain",
    "--no-pings",
    "--proxy-server=http://127.0.0.1:9",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)

_LISTENING = re.compile(r"DevTools listening on (ws://\S+)")
_NO_SANDBOX = re.compile(r"No usable sandbox|setuid sandbox|credentials.*Check failed|userns")


@dataclass(frozen=True)
class Launch:
    """How to start the browser.

    Attributes:
        flags: the rasteriser's flags.
        allow_unsandboxed: go on without Chromium's own sandbox when the kernel lacks it.
        limits: what it may use; None bounds neither its memory nor its processes.
    """

    flags: tuple[str, ...] = FAST_FLAGS
    allow_unsandboxed: bool = False
    limits: isolation.Limits | None = None


@dataclass
class Process:
    """A running Chromium.

    Attributes:
        pid: the browser process, which leads the group; 0 if it never came to be.
        endpoint: WebSocket address of its debugging port; empty if it did not start.
        sandboxed: whether Chromium's own sandbox is on.
        exited: done once it has ended and nothing of it is left.
        group: its control group, if it has one.
        said: the last lines that it wrote to stderr.
    """

    pid: int
    endpoint: str
    sandboxed: bool
    exited: asyncio.Task[int]
    group: cgroup.Group | None = None
    said: deque[str] = field(default_factory=lambda: deque[str](maxlen=40))


def find() -> Path:
    """Chromium's own binary, not Debian's wrapper, which adds flags of its own.

    Raises:
        InfrastructureError: there is none (BrowserMissing).
    """
    for candidate in (DEBIANS, shutil.which("chromium")):
        if candidate and Path(candidate).exists():
            return Path(candidate)
    raise InfrastructureError(
        Reason.BROWSER_MISSING,
        "Chromium was not found.",
        remedy="Install it with: apt-get install chromium",
    )


def kill_tree(pid: int) -> None:
    """SIGKILL the process group that ``pid`` leads and everything below it. Safe to repeat."""
    below = procfs.descendants(pid)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    for child in below:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def _order(
    launch: Launch, home: Path, group: cgroup.Group | None, *, sandboxed: bool
) -> keeper.Order:
    command = [
        str(find()),
        *COMMON_FLAGS,
        *launch.flags,
        f"--js-flags=--max-old-space-size={verdict.HEAP_MIB}",
        f"--user-data-dir={home / 'profile'}",
        *([] if sandboxed else ["--no-sandbox"]),
        "about:blank",
    ]
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "TMPDIR": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
    }
    bounded = launch.limits is not None and launch.limits.own_users
    return keeper.Order(
        command,
        environment,
        str(home),
        user=_user(),
        version=group.version if group else 2,
        folders=list(map(str, group.folders)) if group else [],
        processes=launch.limits.processes if launch.limits and bounded else None,
    )


def _user() -> int | None:
    """Who the browser runs as, None for whom this process does."""
    return isolation.UNPRIVILEGED if os.geteuid() == 0 else None


async def _listen(
    process: asyncio.subprocess.Process, said: deque[str], found: asyncio.Future[str]
) -> None:
    """Read the browser's stderr to its end, so that it never blocks on a full pipe."""
    assert process.stderr is not None
    async for raw in process.stderr:
        line = raw.decode(errors="replace").rstrip()
        said.append(line)
        if not found.done() and (match := _LISTENING.search(line)):
            found.set_result(match[1])
    if not found.done():
        found.set_result("")


@asynccontextmanager
async def running(launch: Launch) -> AsyncIterator[Process]:
    """A browser for the length of the block; its processes and its files are gone after it.

    Raises:
        InfrastructureError: no Chromium (BrowserMissing), no sandbox (SandboxUnavailable) or it
            did not start (RendererUnavailable).
    """
    with homes.claimed(_user()) as home, _grouped(launch.limits, home.name) as group:
        async with AsyncExitStack() as stack:
            browser = await stack.enter_async_context(_kept(launch, home, group, sandboxed=True))
            if not browser.endpoint and any(map(_NO_SANDBOX.search, browser.said)):
                if not launch.allow_unsandboxed:
                    raise InfrastructureError(
                        Reason.SANDBOX_UNAVAILABLE,
                        "Chromium's own sandbox cannot start on this kernel: "
                        + _last(browser.said),
                        remedy="Enable unprivileged user namespaces (sysctl "
                        "kernel.unprivileged_userns_clone=1), or allow a renderer without it "
                        "(--allow-unsandboxed) if every sketch is trusted.",
                    )
                log.warning("the kernel lacks what Chromium's sandbox needs; painting without it")
                browser = await stack.enter_async_context(
                    _kept(launch, home, group, sandboxed=False)
                )
            if not browser.endpoint:
                raise InfrastructureError(
                    Reason.RENDERER_UNAVAILABLE, f"Chromium did not start: {_last(browser.said)}"
                )
            yield browser


@contextlib.contextmanager
def _grouped(limits: isolation.Limits | None, name: str) -> Iterator[cgroup.Group | None]:
    """The browser's control group for the length of the block, if it is to have one."""
    with contextlib.ExitStack() as stack:
        group = None
        if limits is not None and limits.parent is not None:
            made = cgroup.made(
                limits.parent,
                name,
                memory_bytes=limits.memory_bytes,
                processes=limits.processes,
            )
            try:
                group = stack.enter_context(made)
            except OSError as error:
                log.warning("no control group for this browser: %s", error)
        yield group


@asynccontextmanager
async def _kept(
    launch: Launch, home: Path, group: cgroup.Group | None, *, sandboxed: bool
) -> AsyncIterator[Process]:
    """A browser and its keeper for the length of the block, started or failed to start."""
    order = _order(launch, home, group, sandboxed=sandboxed)
    kept = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-m", keeper.__name__, order.encoded()),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert kept.stdin is not None
    assert kept.stdout is not None
    browser = Process(0, "", sandboxed, asyncio.create_task(kept.wait()), group)
    found: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    listening = asyncio.create_task(_listen(kept, browser.said, found))
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                browser.pid = int(await kept.stdout.readline() or b"0")
                browser.endpoint = await found
        yield browser
    finally:
        # The keeper then ends the browser, and ends itself once nothing of it is left.
        kept.stdin.close()
        if await browser.exited < 0:
            await _bury()
        listening.cancel()


async def _bury() -> None:
    """Kill and reap the processes of a browser whose keeper was killed.

    They are children of this process if it is a subreaper, and otherwise not its to reap.
    """
    while orphans := [pid for pid in procfs.children(os.getpid()) if "chrom" in procfs.name(pid)]:
        for pid in orphans:
            _kill_and_reap(pid)
        await asyncio.sleep(0.01)


def _kill_and_reap(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _last(said: deque[str]) -> str:
    return said[-1] if said else "it said nothing"
