"""A full disk, told apart from other faults whoever wrote; files that are whole or not there."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.disk import FULL, write_bytes, write_text

__all__ = ["disk_full_named", "is_full", "write_bytes", "write_text"]

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
