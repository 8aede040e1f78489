"""Chromium's own sandbox starts under the chart's seccomp profile, in a container without rights.

A container as the kubelet makes a renderer's: no capability, no new privileges, a read-only root,
no network, a user that is nobody. The second test shows that the five added calls are what does it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FILE = ROOT / "charts" / "watercolour" / "files" / "chromium-seccomp.json"
RUNC = shutil.which("runc", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
PAGE = (
    "data:text/html,<p id=p></p><script>"
    "p.textContent = document.createElement('canvas').getContext('webgl2') ? 'paints' : 'blank'"
    "</script>"
)
CHROMIUM = (
    "chromium",
    "--headless=new",
    "--no-first-run",
    "--user-data-dir=/tmp/profile",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--dump-dom",
    PAGE,
)
#: As the renderer does it, by an interpreter that everybody may run.
ENTERS = (
    "/usr/bin/python3",
    "-c",
    "import socket; from watercolour.render import netns; print(netns.enter()); "
    "print([name for _, name in socket.if_nameindex()])",
)
#: Where the container has our packages.
PACKAGES = "/tmp/python"
#: Namespaces that an unprivileged clone may not make; containerd's own rule.
NEW_NAMESPACES = 0x7E020000

pytestmark = pytest.mark.skipif(
    RUNC is None or os.geteuid() != 0, reason="needs runc and root: apt-get install runc"
)
Run = Callable[..., subprocess.CompletedProcess[str]]


#: The machine's own root, as the container's. The mount is seen by these processes alone and goes
#: with them: were it ever left behind, whoever tidies the folder up would tidy up the machine.
MOUNTED = "mount --bind / rootfs && mount -o remount,bind,ro rootfs && exec "


@pytest.fixture
def contained(tmp_path: Path) -> Run:
    """Run Chromium, or another command, in a container under a profile."""
    (tmp_path / "rootfs").mkdir()

    def run(
        profile: dict[str, Any], command: tuple[str, ...] = CHROMIUM
    ) -> subprocess.CompletedProcess[str]:
        (tmp_path / "config.json").write_text(json.dumps(container(profile, command)))
        start = f"{MOUNTED} {RUNC} run watercolour-{uuid.uuid4().hex[:12]}"
        return subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", start],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return run


def container(profile: dict[str, Any], command: tuple[str, ...]) -> dict[str, Any]:
    """The container's description, as OCI wants it."""
    closed = ["nosuid", "nodev"]
    writable = [*closed, "mode=1777", "size=512m"]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 65532, "gid": 65532},
            "args": command,
            "env": [
                *("PATH=/usr/bin:/bin", "HOME=/tmp", "XDG_RUNTIME_DIR=/tmp"),
                *(f"PYTHONPATH={PACKAGES}", "PYTHONDONTWRITEBYTECODE=1"),
            ],
            "cwd": "/",
            "capabilities": {},
            "noNewPrivileges": True,
        },
        "root": {"path": "rootfs", "readonly": True},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid"]},
            {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": writable},
            {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": [*closed, "ro"]},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": writable},
            # The checkout may lie where the mounts above hide it.
            {
                "destination": PACKAGES,
                "type": "bind",
                "source": str(ROOT / "python"),
                "options": ["rbind", "ro", *closed],
            },
        ],
        "linux": {
            "namespaces": [{"type": each} for each in ("pid", "ipc", "uts", "mount", "network")],
            "seccomp": profile,
        },
    }


def test_the_sandbox_starts_and_webgl_paints_under_the_profile(contained: Run) -> None:
    done = contained(json.loads(FILE.read_text()))
    assert done.returncode == 0, done.stderr
    assert '<p id="p">paints</p>' in done.stdout


def test_the_renderer_has_a_network_of_its_own_under_the_profile(contained: Run) -> None:
    done = contained(json.loads(FILE.read_text()), ENTERS)
    assert done.stdout.split("\n") == ["None", "['lo']", ""], done.stderr


def without_the_five_calls() -> dict[str, Any]:
    """The profile as container runtimes have it by default."""
    profile = json.loads(FILE.read_text())
    profile["syscalls"] = [rule for rule in profile["syscalls"] if "unshare" not in rule["names"]]
    masked = {"index": 0, "value": NEW_NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
    profile["syscalls"] += [
        {"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [masked]},
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
    ]
    return profile


def test_without_the_five_calls_there_is_no_sandbox(contained: Run) -> None:
    done = contained(without_the_five_calls())
    assert done.returncode != 0
    assert "No usable sandbox" in done.stderr


def test_without_the_five_calls_there_is_no_network_of_its_own(contained: Run) -> None:
    done = contained(without_the_five_calls(), ENTERS)
    assert done.stdout.split("\n")[0] == "Operation not permitted", done.stderr
