"""Whole files or none: write aside, then rename. A full disk is told apart from other faults."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason

#: No space, over quota, or over the process's own limit on file sizes.
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def write_bytes(path: Path, data: bytes) -> None:
    """Replace a file such that a reader, or a crash, sees the old or the new one."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """As :func:`write_bytes`, in UTF-8."""
    write_bytes(path, text.encode())


@contextmanager
def full_named(what: object, remedy: str) -> Generator[None]:
    """Turn a full disk into an error with a reason; every other fault passes.

    Raises:
        InfrastructureError: the disk is full (DiskFull).
    """
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise InfrastructureError(
            Reason.DISK_FULL, f"{what} could not be written: no space is left.", remedy=remedy
        ) from error


@contextmanager
def locked(path: Path) -> Generator[int]:
    """Hold a file for oneself, among threads and processes alike; the file is made if missing.

    Gives the descriptor, which reads and appends.
    """
    held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield held
    finally:
        os.close(held)
