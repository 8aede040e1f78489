from __future__ import annotations

import mmap
import os
import subprocess
import sys

from watercolour.render import procfs


def test_a_process_that_burns_shows_it() -> None:
    before = procfs.cpu_seconds(os.getpid())
    assert before is not None
    total = 0
    while (procfs.cpu_seconds(os.getpid()) or 0.0) < before + 0.05:
        total += sum(range(1000))
    assert total > 0


def test_memory_that_is_touched_is_resident() -> None:
    before = procfs.resident_bytes(os.getpid())
    assert before is not None
    # Not from the heap, which may have as much to spare.
    with mmap.mmap(-1, 40_000_000) as block:
        block.write(b"x" * 40_000_000)
        assert (procfs.resident_bytes(os.getpid()) or 0) > before + 30_000_000


def test_descendants_are_children_and_theirs_and_go_when_they_end() -> None:
    code = "import subprocess, sys; subprocess.run(['sleep', '60'])"
    child = subprocess.Popen([sys.executable, "-c", code])
    while len(below := procfs.descendants(child.pid)) < 1:
        assert child.poll() is None
    assert child.pid in procfs.descendants(os.getpid())
    for pid in [child.pid, *below]:
        os.kill(pid, 9)
    child.wait()
    assert child.pid not in procfs.descendants(os.getpid())


def test_a_process_that_has_gone_reads_as_absent() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert procfs.cpu_seconds(child.pid) is None
    assert procfs.resident_bytes(child.pid) is None
    assert procfs.kind(child.pid) == ""
