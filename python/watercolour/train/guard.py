"""The collapse guard: keep the best adapter, and go back to it when the reward breaks down.

GRPO without it was seen to fall to reward 0 with no spread inside the groups, and never to come
back. The judgement is pure; :func:`restore` is the only part that touches the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import torch
from torch import Tensor, nn

#: Weight of the newest step in the running mean.
NEWEST = 0.2
#: The running mean may fall to this share of its best, measured from the least reward there is.
LEAST_SHARE = 0.75
#: So many steps in a row without any spread inside a group are a collapse.
FLAT_STEPS = 3
#: Steps before a best is kept: the first means are noise.
SETTLING_STEPS = 5
#: The learning rate is multiplied by it at each restoration.
SLOWER = 0.5


class Verdict(StrEnum):
    """What a step means for the adapter that produced its rollouts."""

    GOOD = "good"
    BEST = "best"
    COLLAPSED = "collapsed"


@dataclass(frozen=True)
class Health:
    """What the guard remembers; all of it goes into a checkpoint."""

    mean: float | None = None
    best: float | None = None
    flat: int = 0
    seen: int = 0
    rollbacks: int = 0


def observe(
    health: Health, reward: float | None, *, flat: bool, least: float
) -> tuple[Health, Verdict]:
    """Judge one step.

    Args:
        health: before the step.
        reward: mean of the step's scored rollouts; None leaves everything as it was.
        flat: no group of the step had any spread.
        least: the least reward of the recipe.

    Returns:
        The health after the step, and whether the adapter that painted it is the best so far,
        good enough, or collapsed.
    """
    if reward is None:
        return health, Verdict.GOOD
    mean = reward if health.mean is None else (1 - NEWEST) * health.mean + NEWEST * reward
    now = replace(health, mean=mean, flat=health.flat + 1 if flat else 0, seen=health.seen + 1)
    if now.best is None:
        if now.seen > SETTLING_STEPS:
            return replace(now, best=mean), Verdict.BEST
        return now, Verdict.GOOD
    if mean - least < LEAST_SHARE * (now.best - least) or now.flat >= FLAT_STEPS:
        # Start again from what the restored adapter was worth.
        fallen = replace(now, mean=now.best, flat=0, rollbacks=now.rollbacks + 1)
        return fallen, Verdict.COLLAPSED
    if mean > now.best:
        return replace(now, best=mean), Verdict.BEST
    return now, Verdict.GOOD


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """The adapter's weights by name."""
    return {name: weight for name, weight in model.named_parameters() if weight.requires_grad}


def snapshot(model: nn.Module) -> dict[str, Tensor]:
    """A copy of the adapter's weights."""
    return {name: weight.detach().clone() for name, weight in trainable(model).items()}


@torch.no_grad()
def restore(model: nn.Module, saved: Mapping[str, Tensor], optimizer: Any, scheduler: Any) -> None:
    """Put the saved adapter back, forget the optimizer's momentum and halve the learning rate."""
    for name, weight in trainable(model).items():
        weight.copy_(saved[name])
    inner = getattr(optimizer, "optimizer", optimizer)
    inner.state.clear()
    schedule = getattr(scheduler, "scheduler", scheduler)
    schedule.base_lrs = [rate * SLOWER for rate in schedule.base_lrs]
    for group in inner.param_groups:
        group["lr"] *= SLOWER


def finite(weights: Iterable[nn.Parameter]) -> bool:
    """Whether every gradient there is is a number."""
    return all(
        bool(torch.isfinite(weight.grad).all()) for weight in weights if weight.grad is not None
    )
