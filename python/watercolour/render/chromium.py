"""Start Chromium in a process group of its own, unprivileged and sandboxed, and end it for good."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import re
import shutil
import signal
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from watercolour import logs
from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.render import homes, procfs

log = logs.get(__name__)

#: Where Debian's package puts the browser itself.
DEBIANS = Path("/usr/lib/chromium/chromium")

#: Who the browser runs as when this process is root: `nobody`.
UNPRIVILEGED = 65534

#: Seconds from start to the address of the debugging port.
START_SECONDS = 30

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

#: Upper bound of V8's heap, in MiB; typed arrays lie outside it.
HEAP_MIB = 512

_LISTENING = re.compile(r"DevTools listening on (ws://\S+)")
_NO_SANDBOX = re.compile(r"No usable sandbox|setuid sandbox|credentials.*Check failed|userns")


@dataclass(frozen=True)
class Launch:
    """How to start the browser.

    Attributes:
        flags: the rasteriser's flags.
        allow_unsandboxed: go on without Chromium's own sandbox when the kernel lacks it.
    """

    flags: tuple[str, ...] = FAST_FLAGS
    allow_unsandboxed: bool = False


@dataclass
class Process:
    """A running Chromium.

    Attributes:
        endpoint: WebSocket address of its debugging port.
        sandboxed: whether Chromium's own sandbox is on.
        exited: done once the browser process has ended.
    """

    process: asyncio.subprocess.Process
    endpoint: str
    sandboxed: bool
    exited: asyncio.Task[int]
    said: deque[str] = field(default_factory=lambda: deque[str](maxlen=40))

    @property
    def pid(self) -> int:
        """The browser process, which leads the group."""
        return self.process.pid


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


def _die_with_parent() -> None:
    """In the child, after the change of user: SIGKILL when the process that started it ends."""
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0)


def kill_tree(pid: int) -> None:
    """SIGKILL the process group that ``pid`` leads and everything below it. Safe to repeat."""
    below = procfs.descendants(pid)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    for child in below:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


async def _start(launch: Launch, home: Path, *, sandboxed: bool) -> Process:
    command = [
        str(find()),
        *COMMON_FLAGS,
        *launch.flags,
        f"--js-flags=--max-old-space-size={HEAP_MIB}",
        f"--user-data-dir={home / 'profile'}",
        *([] if sandboxed else ["--no-sandbox"]),
        "about:blank",
    ]
    drop = os.geteuid() == 0
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "TMPDIR": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
    }
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
        cwd=home,
        process_group=0,
        preexec_fn=_die_with_parent,
        user=UNPRIVILEGED if drop else None,
        group=UNPRIVILEGED if drop else None,
        extra_groups=[] if drop else None,
    )
    exited = asyncio.create_task(process.wait())
    running = Process(process, "", sandboxed, exited)
    found: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    running_reader = asyncio.create_task(_listen(process, running.said, found))
    exited.add_done_callback(lambda _: running_reader)
    try:
        running.endpoint = await asyncio.wait_for(found, START_SECONDS)
    except TimeoutError:
        found.cancel()
    if not running.endpoint:
        kill_tree(process.pid)
        await exited
    return running


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
    with homes.claimed(UNPRIVILEGED if os.geteuid() == 0 else None) as home:
        async with _running(launch, home) as browser:
            yield browser


@asynccontextmanager
async def _running(launch: Launch, home: Path) -> AsyncIterator[Process]:
    """See :func:`running`."""
    browser: Process | None = None
    try:
        browser = await _start(launch, home, sandboxed=True)
        if not browser.endpoint and any(map(_NO_SANDBOX.search, browser.said)):
            if not launch.allow_unsandboxed:
                raise InfrastructureError(
                    Reason.SANDBOX_UNAVAILABLE,
                    "Chromium's own sandbox cannot start on this kernel: " + _last(browser.said),
                    remedy="Enable unprivileged user namespaces (sysctl "
                    "kernel.unprivileged_userns_clone=1), or allow a renderer without it "
                    "(--allow-unsandboxed) if every sketch is trusted.",
                )
            log.warning("the kernel lacks what Chromium's sandbox needs; painting without it")
            browser = await _start(launch, home, sandboxed=False)
        if not browser.endpoint:
            raise InfrastructureError(
                Reason.RENDERER_UNAVAILABLE, f"Chromium did not start: {_last(browser.said)}"
            )
        yield browser
    finally:
        if browser is not None:
            kill_tree(browser.pid)
            await browser.exited


def _last(said: deque[str]) -> str:
    return said[-1] if said else "it said nothing"
