"""Machines that lack something: no Chromium, no sandbox."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from tests.browser.conftest import PYTHON, patient, start, stop
from tests.browser.sketches import HONEST

#: A renderer's interpreter on a machine where Chromium was never installed.
WITHOUT_CHROMIUM = """#!/bin/sh
shift 2
PATH=/nonexistent exec {python} -c '
import sys
from pathlib import Path
from watercolour.render import chromium, service
chromium.DEBIANS = Path("/nonexistent/chromium")
sys.exit(service.main())
' "$@"
"""

#: Runs a command where no further user namespace can be made, which Chromium's sandbox needs.
WITHOUT_SANDBOX = (
    *("unshare", "--user", "--map-user=1000", "--map-group=1000", "--keep-caps"),
    *("sh", "-c", 'echo 0 >/proc/sys/user/max_user_namespaces || exit 77; exec "$@"', "sh"),
)


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """That interpreter."""
    script = tmp_path / "python"
    script.write_text(WITHOUT_CHROMIUM.format(python=PYTHON))
    script.chmod(0o755)
    return script


def test_a_renderer_without_chromium_says_what_installs_it(bare: Path) -> None:
    ended = subprocess.run(
        [bare, "-m", "watercolour.render.service"], capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 3
    assert ended.stderr.strip().splitlines()[-1] == (
        "watercolour: BrowserMissing: Chromium was not found. "
        "Install it with: apt-get install chromium"
    )


@pytest.mark.parametrize("command", ["render", "run"])
def test_a_command_that_needs_chromium_exits_with_3_and_the_remedy(
    bare: Path, tmp_path: Path, command: str
) -> None:
    (tmp_path / "sketch.js").write_text(HONEST)
    (tmp_path / "run.yaml").write_text(
        "apiVersion: watercolour.dev/v1alpha1\nkind: WatercolourRun\nmetadata: {name: none}\n"
    )
    inputs = {
        "render": ["sketch.js", "-o", "painting.png"],
        "run": ["run.yaml", "--set", "spec.trainer.steps=1"],
    }
    watercolour = (sys.executable, "-m", "watercolour.cli")
    ended = subprocess.run(
        [*watercolour, command, *inputs[command], "--renderer-python", str(bare)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 3, ended.stderr
    assert "Chromium was not found" in ended.stderr
    assert "apt-get install chromium" in ended.stderr
    assert "Traceback" not in ended.stderr


def arguments(pid: int) -> list[str]:
    """The command line of a process."""
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


def can_lose_the_sandbox() -> bool:
    """Whether this machine lets a test take user namespaces away from a process."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*WITHOUT_SANDBOX, "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not can_lose_the_sandbox(), reason="needs user namespaces of its own")
async def test_without_a_sandbox_a_renderer_paints_only_when_it_is_allowed_to(
    tmp_path: Path,
) -> None:
    refusing = start(tmp_path, "--slots", "1", wrapper=WITHOUT_SANDBOX)
    try:
        async with httpx.AsyncClient(timeout=60) as http:
            body = {"sketch": HONEST, "seed": 1}
            refused = await http.post(f"{refusing.url}/v1/render", json=body)
    finally:
        stop(refusing)
    assert refused.status_code == 503
    assert refused.json()["reason"] == "SandboxUnavailable"
    assert "--allow-unsandboxed" in refused.json()["detail"]

    (tmp_path / "allowed").mkdir()
    allowed = start(
        tmp_path / "allowed", "--slots", "1", "--allow-unsandboxed", wrapper=WITHOUT_SANDBOX
    )
    try:
        async with patient(allowed) as client:
            painted = await client.render(HONEST, seed=1)
        command = arguments(allowed.browser())
    finally:
        stop(allowed)
    assert painted.paint_fraction > 0
    assert "--no-sandbox" in command
