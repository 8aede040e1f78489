"""Two hundred paintings in a row, one in ten hostile: nothing leaks, every job has its answer."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.browser.conftest import ROOT


def test_two_hundred_paintings_leak_nothing_and_are_all_accounted_for() -> None:
    command = [sys.executable, str(ROOT / "bench" / "soak.py"), "--renders", "200"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["conditions"]["accounted"] == 1
    assert not any(told["conditions"]["leaked"].values())
    assert told["conditions"]["answers"]["painted"] >= 180
    assert {"sketch_timeout", "gone", "MalformedRequest"} <= told["conditions"]["answers"].keys()
