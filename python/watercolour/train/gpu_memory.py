"""A GPU that is full: the same again in smaller parts, and at last an error with a reason."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

import torch

from watercolour import logs
from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason

log = logs.get(__name__)

Value = TypeVar("Value")


def in_smaller_parts(
    attempt: Callable[[int], Value],
    undo: Callable[[], None],
    tokens: int,
    least: int,
    what: str,
) -> tuple[Value, int]:
    """What the attempt gives, and the size of micro-batches that it could do with.

    Args:
        attempt: computes in micro-batches of so many tokens.
        undo: takes back what a failed attempt has left behind.
        tokens: to begin with; halved each time that the memory does not suffice.
        least: tokens below which nothing is gained: those of the longest row.
        what: is computed, for the log.

    Raises:
        torch.OutOfMemoryError: not even ``least`` tokens fit.
    """
    while True:
        try:
            return attempt(tokens), tokens
        except torch.OutOfMemoryError:
            if tokens <= least:
                raise
            tokens = max(least, tokens // 2)
            log.warning(
                "%s: out of GPU memory; micro-batches have %d tokens from now on", what, tokens
            )
        # Outside the handler, whose traceback would keep the failed attempt's tensors.
        undo()
        torch.cuda.empty_cache()


@contextmanager
def full_named(told: Callable[[], tuple[str, str]]) -> Generator[None]:
    """Turn a GPU that is full into an error with a reason.

    Args:
        told: gives what was being done, and the remedy.

    Raises:
        InfrastructureError: it is (GpuOutOfMemory).
    """
    try:
        yield
    except torch.OutOfMemoryError as error:
        doing, remedy = told()
        raise InfrastructureError(
            Reason.GPU_OUT_OF_MEMORY, f"the GPU was full while {doing}.", remedy=remedy
        ) from error
