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

FILE = Path(__file__).parents[2] / "charts" / "watercolour" / "files" / "chromium-seccomp.json"
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
#: Namespaces that an unprivileged clone may not make; containerd's own rule.
NEW_NAMESPACES = 0x7E020000

pytestmark = pytest.mark.skipif(
    RUNC is None or os.geteuid() != 0, reason="needs runc and root: apt-get install runc"
)
Run = Callable[[dict[str, Any]], subprocess.CompletedProcess[str]]


#: The machine's own root, as the container's. The mount is seen by these processes alone and goes
#: with them: were it ever left behind, whoever tidies the folder up would tidy up the machine.
MOUNTED = "mount --bind / rootfs && mount -o remount,bind,ro rootfs && exec "


@pytest.fixture
def contained(tmp_path: Path) -> Run:
    """Run Chromium in a container under a profile."""
    (tmp_path / "rootfs").mkdir()

    def run(profile: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        (tmp_path / "config.json").write_text(json.dumps(container(profile)))
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


def container(profile: dict[str, Any]) -> dict[str, Any]:
    """The container's description, as OCI wants it."""
    closed = ["nosuid", "nodev"]
    writable = [*closed, "mode=1777", "size=512m"]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 65532, "gid": 65532},
            "args": CHROMIUM,
            "env": ["PATH=/usr/bin:/bin", "HOME=/tmp", "XDG_RUNTIME_DIR=/tmp"],
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


def test_without_the_five_calls_there_is_no_sandbox(contained: Run) -> None:
    profile = json.loads(FILE.read_text())
    profile["syscalls"] = [rule for rule in profile["syscalls"] if "unshare" not in rule["names"]]
    masked = {"index": 0, "value": NEW_NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
    profile["syscalls"] += [
        {"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [masked]},
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
    ]
    done = contained(profile)
    assert done.returncode != 0
    assert "No usable sandbox" in done.stderr
