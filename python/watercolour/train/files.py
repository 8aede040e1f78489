"""Whole files or none: write aside, then rename; a full disk is told apart from other faults."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason

#: No space, over quota, or over the process's own limit on file sizes.
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
#: How libraries that swallow the number say it: safetensors, then torch's own file writer, which
#: only knows that a write came up short.
FULL_WORDS = (
    *(f"os error {number}" for number in sorted(FULL)),
    "iostream error",
    "unexpected pos",
    "PytorchStreamWriter failed",
)


def is_full(error: BaseException) -> bool:
    """Whether an exception, or one that it came from, says that the disk is full."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in FULL:
            return True
        if any(words in str(seen) for words in FULL_WORDS):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


@contextmanager
def disk_full_named(what: str) -> Generator[None]:
    """Turn a full disk into an error with a reason; every other fault passes.

    Raises:
        InfrastructureError: the disk is full (DiskFull).
    """
    try:
        yield
    except Exception as error:
        if not is_full(error):
            raise
        raise InfrastructureError(
            Reason.DISK_FULL,
            f"{what} could not be written: no space is left.",
            remedy="Make room, then go on with --resume.",
        ) from error


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
