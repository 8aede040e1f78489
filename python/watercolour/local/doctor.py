"""What a run needs of this machine: each need checked, each lack with the command that mends it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from watercolour.api.errors import WatercolourError
from watercolour.local.painting import Wish, painter
from watercolour.local.processes import renderer_python
from watercolour.render import chromium, vendor
from watercolour.render.result import SketchFault
from watercolour.reward import pool
from watercolour.score import weights

SETUP = "make setup"
PACKAGES = ("torch", "trl", "peft", "openenv", "onnxruntime", "tree_sitter", "fastapi", "pyarrow")
LEAST_DISK_GIB = 1.0
LEAST_MEMORY_GIB = 6.0
LEAST_CORES = 2
SKETCH = """
function setup() { createCanvas(96, 96, WEBGL); noLoop(); }
function draw() {
  background("#f8f3e6"); brush.noStroke(); brush.fill("#c0506a", 160); brush.circle(0, 0, 30);
}
"""


@dataclass(frozen=True)
class Finding:
    """One need and whether it is met.

    Attributes:
        name: what was looked at.
        ok: whether a run can do with it.
        detail: what was found.
        fix: the command, or the advice, that mends it; empty when all is well.
    """

    name: str
    ok: bool
    detail: str
    fix: str = ""

    def __str__(self) -> str:
        mark = "ok     " if self.ok else "missing"
        return f"{mark}  {self.name:14}  {self.detail}" + (f"  →  {self.fix}" if self.fix else "")

    def as_dict(self) -> dict[str, Any]:
        """The finding as plain data."""
        return asdict(self)


def examine(python: Path | None = None, *, allow_unsandboxed: bool = False) -> list[Finding]:
    """All findings, in the order in which they depend on one another.

    Args:
        python: interpreter of the renderer's environment, unless it is found by itself.
        allow_unsandboxed: whether a browser without its own sandbox will do.
    """
    return list(_examine(python, allow_unsandboxed))


def _examine(python: Path | None, allow_unsandboxed: bool) -> Iterator[Finding]:
    yield python_version()
    yield packages()
    renderer = _told("renderer", lambda: _renderer_environment(python))
    yield renderer
    browser = _told("Chromium", lambda: _version_of(chromium.find()))
    yield browser
    libraries = p5()
    yield libraries
    if renderer.ok and browser.ok and libraries.ok:
        yield _told("painting", lambda: _painting(python, allow_unsandboxed))
    yield scorer()
    yield _told("pool", _pool)
    yield disk(shutil.disk_usage(Path.cwd()).free / 2**30)
    yield memory(_available_gib())
    yield cores(len(os.sched_getaffinity(0)))


def _told(name: str, look: Callable[[], str]) -> Finding:
    """What ``look`` found, or the error that it raised."""
    try:
        return Finding(name, True, look())
    except WatercolourError as error:
        return Finding(name, False, error.message, error.remedy)


def python_version() -> Finding:
    """Which Python this is; one that is too old could not have read this file."""
    return Finding("Python", True, ".".join(map(str, sys.version_info[:3])))


def packages() -> Finding:
    """The packages of trainer, environment and scorer."""
    absent = [name for name in PACKAGES if find_spec(name) is None]
    if absent:
        return Finding("packages", False, f"missing: {', '.join(absent)}", SETUP)
    return Finding("packages", True, f"complete in {sys.prefix}")


def _renderer_environment(python: Path | None) -> str:
    from watercolour.api.errors import InfrastructureError
    from watercolour.api.reasons import Reason

    chosen = renderer_python(python)
    tried = subprocess.run(
        [chosen, "-c", "import pyppeteer, watercolour.render.service"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if tried.returncode:
        said = tried.stderr.strip().splitlines() or ["no word"]
        raise InfrastructureError(Reason.BROWSER_MISSING, f"{chosen}: {said[-1]}", remedy=SETUP)
    return f"complete at {chosen}"


def _version_of(browser: Path) -> str:
    tried = subprocess.run(
        [browser, "--version"], capture_output=True, text=True, timeout=60, check=False
    )
    return tried.stdout.strip() or str(browser)


def p5() -> Finding:
    """The vendored p5 and p5.brush."""
    if vendor.current():
        shown = ", ".join(f"{name} {version}" for name, version in vendor.VERSIONS.items())
        return Finding("p5, p5.brush", True, shown)
    return Finding(
        "p5, p5.brush",
        False,
        "not fetched, or for another version of the code",
        "python -m watercolour.render.vendor",
    )


def _painting(python: Path | None, allow_unsandboxed: bool) -> str:
    began = time.monotonic()
    try:
        with painter(python=python, allow_unsandboxed=allow_unsandboxed) as paint:
            painted = paint(SKETCH, Wish())
    except SketchFault as fault:
        # The sketch is a good one, so it is the renderer that is not.
        return f"unexpected: {fault}"
    return (
        f"a sketch painted in {time.monotonic() - began:.1f} s, start of the browser included "
        f"({painted.rasterizer})"
    )


def scorer() -> Finding:
    """The embedded scorer's backbone."""
    if weights.current():
        return Finding("scorer", True, weights.VERSION)
    return Finding(
        "scorer",
        False,
        "its weights are missing or of another version",
        "python -m watercolour.score.weights",
    )


def _pool() -> str:
    found = pool.load("builtin:flowers")
    return f"builtin:flowers, {len(found.references)} references"


def disk(free_gib: float) -> Finding:
    """Space for a run's files here."""
    detail = f"{free_gib:.1f} GiB free here"
    if free_gib >= LEAST_DISK_GIB:
        return Finding("disk", True, detail)
    return Finding(
        "disk", False, detail, f"free {LEAST_DISK_GIB:g} GiB, or set spec.artifacts.path"
    )


def memory(free_gib: float) -> Finding:
    """Memory for all processes of a run."""
    detail = f"{free_gib:.1f} GiB available"
    if free_gib >= LEAST_MEMORY_GIB:
        return Finding("memory", True, detail)
    return Finding("memory", False, detail, f"have {LEAST_MEMORY_GIB:g} GiB available")


def _available_gib() -> float:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) / 2**20
    return 0.0


def cores(count: int) -> Finding:
    """Cores that this process may use; fewer make a run slower, not impossible."""
    slow = "" if count >= LEAST_CORES else f"; with fewer than {LEAST_CORES} a run takes longer"
    return Finding("cores", True, f"{count}{slow}")
