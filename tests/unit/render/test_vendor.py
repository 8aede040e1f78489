from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from watercolour.api.errors import InfrastructureError
from watercolour.render import vendor


def test_what_is_vendored_is_current_and_licensed() -> None:
    assert vendor.current()
    assert not vendor.ensure()
    for name in ("LICENSE.p5", "LICENSE.p5.brush"):
        assert len(vendor.library(name)) > 500


def test_a_folder_of_another_patch_is_not_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vendor, "VERSIONS", {**vendor.VERSIONS, "patch": "other"})
    assert not vendor.current()
    with pytest.raises(InfrastructureError, match=r"watercolour\.render\.vendor"):
        vendor.library("p5.min.js")


def test_the_client_needs_no_browser_driver() -> None:
    code = "import sys, watercolour.render.dispatcher; print('pyppeteer' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_tarball_with_another_checksum_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "npm"
    fake.write_text("#!/bin/sh\necho other > p5-2.3.4.tgz\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(vendor, "MANIFEST", tmp_path / "none.json")
    monkeypatch.setattr(vendor, "VENDOR", tmp_path / "vendor")
    with pytest.raises(InfrastructureError, match="sha256"):
        vendor.ensure()
    assert not (tmp_path / "vendor").exists()
