"""The processes that share one training: who owns which rollout, and what all of them agree on.

A training by one process is the case of one rank: nothing is exchanged and nothing waited for.
Records go through gloo whatever the gradients go through, so they need no memory of a GPU.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, distributed

from watercolour import logs
from watercolour.api.errors import InfrastructureError, InputError, WatercolourError
from watercolour.api.reasons import Reason

log = logs.get(__name__)

Value = TypeVar("Value")

#: How long one process waits for the others: a step whose paintings are late is no fault.
PATIENCE = timedelta(hours=2)
#: More threads than this slow a small policy down: their barriers cost more than they bring.
CPU_THREADS = 2
_MARK = "agreed"
_VISIBLE = "CUDA_VISIBLE_DEVICES"


class _Told(NamedTuple):
    """An error as the other processes hear of it."""

    reason: Reason
    message: str
    remedy: str
    exit_code: int


@dataclass(frozen=True)
class Ranks:
    """This process among those that share the training; alone by default."""

    rank: int = 0
    size: int = 1
    _group: Any = field(default=None, repr=False)

    @property
    def first(self) -> bool:
        """Whether this process writes the run's files."""
        return self.rank == 0

    @property
    def alone(self) -> bool:
        """Whether there is no other."""
        return self.size == 1

    def owns(self, place: int, total: int) -> bool:
        """Whether the place among ``total`` is this process's: each has a run of neighbours."""
        return place * self.size // total == self.rank

    def limit_threads(self) -> None:
        """Take this process's share of the machine's threads."""
        torch.set_num_threads(max(1, min(CPU_THREADS, torch.get_num_threads() // self.size)))

    def gather(self, value: Value) -> list[Value]:
        """The values of all processes, by rank; every process must ask."""
        if self.alone:
            return [value]
        found: list[Any] = [None] * self.size
        distributed.all_gather_object(found, value, group=self._group)
        return found

    def any(self, flag: bool) -> bool:
        """Whether any process says so."""
        return any(self.gather(flag))

    @contextmanager
    def agreed(self) -> Generator[None]:
        """What one process raises inside the block all raise at its end."""
        if self.alone:
            yield
            return
        own: Exception | None = None
        try:
            yield
        except Exception as error:
            if is_agreed(error):
                # An inner block has told the others.
                raise
            own = error
        told = self.gather(None if own is None else _told(own))
        if own is not None:
            raise _marked(own)
        for heard in filter(None, told):
            raise _made(heard)

    def sum_gradients(self, weights: Iterable[Tensor]) -> None:
        """Add every process's gradients up, in place; a weight without one counts as 0."""
        if self.alone:
            return
        for weight in weights:
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)
            distributed.all_reduce(weight.grad)


def _told(error: Exception) -> _Told:
    if isinstance(error, WatercolourError):
        return _Told(error.reason, error.message, error.remedy, error.exit_code)
    full = isinstance(error, torch.OutOfMemoryError)
    reason = Reason.GPU_OUT_OF_MEMORY if full else Reason.INTERNAL_ERROR
    return _Told(reason, f"another process failed ({type(error).__name__}: {error}).", "", 3)


def _made(told: _Told) -> Exception:
    kind = InputError if told.exit_code == InputError.exit_code else InfrastructureError
    return _marked(kind(told.reason, told.message, remedy=told.remedy))


def _marked(error: Exception) -> Exception:
    error.__dict__[_MARK] = True
    return error


def is_agreed(error: BaseException) -> bool:
    """Whether all processes have been told of an error and raise one like it."""
    return error.__dict__.get(_MARK, False)


def keep_one_gpu() -> None:
    """Hide all GPUs from this process but the first; has to come before CUDA starts.

    With several in sight transformers would spread each batch over all of them, which TRL refuses.
    """
    if (count := torch.cuda.device_count()) > 1:
        os.environ[_VISIBLE] = os.environ.get(_VISIBLE, "0").split(",")[0]
        log.warning("one of %d GPUs is used; spec.trainer.processes: %d uses all", count, count)


@contextmanager
def joined(env: Mapping[str, str] = os.environ) -> Generator[Ranks]:
    """The ranks that :mod:`watercolour.train.launch` has started this process as one of."""
    size, rank = int(env.get("WORLD_SIZE", "1")), int(env.get("RANK", "0"))
    if size == 1:
        keep_one_gpu()
        yield Ranks()
        return
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.set_device(int(env["LOCAL_RANK"]))
    distributed.init_process_group("nccl" if on_gpu else "gloo", timeout=PATIENCE)
    try:
        group = distributed.new_group(backend="gloo", timeout=PATIENCE)
        yield Ranks(rank, size, group)
    finally:
        distributed.destroy_process_group()
