from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from watercolour.train import guard
from watercolour.train.guard import Health, Verdict


def judged(
    rewards: Iterable[float | None], *, flat: bool = False, least: float = 0.0
) -> list[tuple[Health, Verdict]]:
    health, found = Health(), list[tuple[Health, Verdict]]()
    for reward in rewards:
        health, verdict = guard.observe(health, reward, flat=flat, least=least)
        found.append((health, verdict))
    return found


def test_a_rising_reward_is_best_at_every_step_after_settling() -> None:
    verdicts = [verdict for _, verdict in judged(step / 20 for step in range(10))]
    assert verdicts == [Verdict.GOOD] * 5 + [Verdict.BEST] * 5


def test_a_reward_that_breaks_down_is_a_collapse_once_and_starts_again_from_the_best() -> None:
    found = judged([0.5] * 8 + [0.0] * 2)
    assert [verdict for _, verdict in found[8:]] == [Verdict.GOOD, Verdict.COLLAPSED]
    health = found[-1][0]
    assert (health.mean, health.best, health.rollbacks) == (0.5, 0.5, 1)


def test_the_fall_is_measured_from_the_least_reward_of_the_recipe() -> None:
    # From 0.5 to 0.1 is most of the way to 0, and little of the way to -1.
    assert judged([0.5] * 8 + [0.1] * 9)[-1][0].rollbacks > 0
    assert judged([0.5] * 8 + [0.1] * 9, least=-1.0)[-1][0].rollbacks == 0


def test_three_steps_without_spread_are_a_collapse() -> None:
    health, _ = judged([0.5] * 8)[-1]
    verdicts = list[Verdict]()
    for _ in range(3):
        health, verdict = guard.observe(health, 0.5, flat=True, least=0.0)
        verdicts.append(verdict)
    assert verdicts == [Verdict.GOOD, Verdict.GOOD, Verdict.COLLAPSED]


def test_an_unscored_step_changes_nothing() -> None:
    (before, _), (after, verdict) = judged([0.5] * 8 + [None])[-2:]
    assert (before, verdict) == (after, Verdict.GOOD)


def test_restoring_brings_weights_back_without_momentum_at_half_the_rate() -> None:
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0)
    saved = guard.snapshot(model)
    for _ in range(2):
        model(torch.ones(3)).sum().backward()
        optimizer.step()
        schedule.step()
    guard.restore(model, saved, optimizer, schedule)
    assert all(torch.equal(weight, saved[name]) for name, weight in model.named_parameters())
    assert not optimizer.state
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] == 0.05


def test_a_gradient_that_is_no_number_is_seen() -> None:
    weight = nn.Parameter(torch.zeros(2))
    assert guard.finite([weight])
    weight.grad = torch.tensor([0.0, float("nan")])
    assert not guard.finite([weight])
