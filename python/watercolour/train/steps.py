"""What happens around each update: guards before it; metrics, rollouts and progress after it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from transformers import TrainerCallback, TrainerControl, TrainerState

from watercolour import logs
from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import LASTING, Reason
from watercolour.reward import alarms
from watercolour.reward.recipe import kl_at
from watercolour.train import guard, metrics, reload
from watercolour.train.guard import Verdict
from watercolour.train.rollouts import Painted
from watercolour.train.trainer import Session, Trainer

log = logs.get(__name__)

#: TRL computes what the KL term needs only while its weight is not 0.
LEAST_BETA = 1e-9


class Steps(TrainerCallback):
    """Guards before each update; metrics, rollouts and progress after it."""

    def __init__(self, trainer: Trainer, session: Session) -> None:
        self.trainer = trainer
        self.session = session
        self.step_began = 0.0
        self.skipped = ""

    def on_train_begin(
        self, args: Any, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """What was resumed is in the model by now."""
        if self.trainer.resumed is not None:
            reload.require_same(self.trainer.resumed, self.trainer.adapted)

    def on_step_begin(
        self, args: Any, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Set the step's KL weight, and have the probes scored meanwhile."""
        self.step_began = time.perf_counter()
        self.skipped = ""
        logs.note(step=state.global_step)
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()
        if self.session.kl is not None:
            self.trainer.beta = max(LEAST_BETA, kl_at(self.session.kl, state.global_step))
        if self.session.probes is not None:
            self.session.probes.begin(state.global_step)

    def on_pre_optimizer_step(
        self, args: Any, state: TrainerState, control: TrainerControl, **parts: Any
    ) -> None:
        """Decide whether the gradients are used; without gradients AdamW moves nothing."""
        model: nn.Module = parts["model"]
        painted = self._fresh(state.global_step)
        self.skipped = self._why_not(model, painted)
        if painted is not None and self.session.limits.collapse:
            self._guard(painted, parts)
        if self.skipped:
            log.warning("step %d: no update, %s", state.global_step, self.skipped)
            model.zero_grad(set_to_none=True)

    def _fresh(self, step: int) -> Painted | None:
        """The step's own rollouts, or None when it uses those of an earlier one."""
        painted = self.session.painted
        return painted if painted is not None and painted.step == step else None

    def _why_not(self, model: nn.Module, painted: Painted | None) -> str:
        session = self.session
        last = painted or session.painted
        if painted is not None:
            streak = session.memory.unscored_steps + 1 if painted.unscored else 0
            session.memory = replace(session.memory, unscored_steps=streak)
        if last is not None and last.unscored:
            return "every rollout is unscored"
        if last is not None and last.flat and not session.flat_steps_teach:
            return "no group has any spread"
        if not guard.finite(model.parameters()):
            return "a gradient is not a number"
        return ""

    def _guard(self, painted: Painted, parts: dict[str, Any]) -> None:
        session, model = self.session, parts["model"]
        columns = metrics.of_rollouts(painted)
        value = columns["reward_adjusted"]
        health, verdict = guard.observe(
            session.memory.health,
            value if value is not None else columns["reward"],
            flat=painted.flat,
            least=session.limits.least_reward,
        )
        session.memory = replace(session.memory, health=health)
        if verdict is Verdict.BEST:
            # Before the update: these weights painted what was just rewarded.
            session.memory = replace(session.memory, best=guard.snapshot(model))
        best = session.memory.best
        if verdict is Verdict.COLLAPSED and best is not None:
            if health.rollbacks > session.limits.max_rollbacks:
                raise InfrastructureError(
                    Reason.POLICY_COLLAPSED,
                    f"the reward collapsed {health.rollbacks} times; the last at step "
                    f"{painted.step}.",
                    remedy="Lower spec.trainer.learningRate, or set spec.trainer.beta to 0.02.",
                )
            guard.restore(model, best, parts["optimizer"], parts["lr_scheduler"])
            self.skipped = f"the reward collapsed (rollback {health.rollbacks})"

    def on_log(
        self,
        args: Any,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Write the step's row and rollouts; end a run whose infrastructure is gone."""
        if logs is None or "loss" not in logs:
            return
        session, step = self.session, state.global_step - 1
        painted = self._fresh(step)
        spent = time.perf_counter() - self.step_began
        painting = painted.seconds_generate + painted.seconds_wait if painted else 0.0
        with session.ranks.agreed():
            if painted is not None and session.ranks.first:
                session.artifacts.add_rollouts(step, self._with_advantages(painted))
        own: dict[str, metrics.Cell] = {
            "step_time": spent,
            "skipped": int(bool(self.skipped)),
            "rollbacks": session.memory.health.rollbacks,
            "seconds_update": spent - painting,
            "seconds_write": time.perf_counter() - self.step_began - spent,
            "gpu_memory_bytes": self._gpu_memory(),
            **(session.probes.collect() if session.probes is not None else {}),
        }
        row = metrics.row(step, painted, logs, own)
        with session.ranks.agreed():
            if session.ranks.first:
                session.artifacts.add_row(row)
        session.progress.alarmed(alarms.raised(session.artifacts.rows))
        session.progress.step_done(row, len(painted.rollouts) if painted else 0)
        if session.ranks.first:
            _say(row, session.batches.steps)
        self._require_infrastructure(step)

    def _gpu_memory(self) -> int | None:
        """The most bytes that a process of the training held in its GPU in this step."""
        own = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else None
        known = [held for held in self.session.ranks.gather(own) if held is not None]
        return max(known, default=None)

    def _with_advantages(self, painted: Painted) -> list[Any]:
        """The rollouts with the advantages that TRL gave them; none where there is no value."""
        given = self.trainer.given_advantages(len(painted.rollouts))
        return [
            rollout.model_copy(update={"advantage": advantage})
            if rollout.reward is not None
            else rollout
            for rollout, advantage in zip(painted.rollouts, given, strict=True)
        ]

    def _require_infrastructure(self, step: int) -> None:
        painted = self._fresh(step)
        lasting = (
            [one for one in painted.rollouts if one.unscored_reason in LASTING] if painted else []
        )
        if painted is not None and painted.unscored and lasting:
            raise InfrastructureError(
                lasting[0].unscored_reason or Reason.JUDGE_BUDGET_SPENT,
                f"no rollout of step {step} has a value ({lasting[0].unscored_detail}).",
                remedy="Raise spec.judge.budget, then go on with --resume.",
            )
        streak = self.session.memory.unscored_steps
        if streak >= self.session.limits.max_unscored_steps:
            reasons = sorted(
                {
                    rollout.unscored_reason.value
                    for rollout in (self.session.painted or _NOTHING).rollouts
                    if rollout.unscored_reason is not None
                }
            )
            raise InfrastructureError(
                Reason.INFRASTRUCTURE_DEGRADED,
                f"{streak} steps in a row were wholly unscored, the last at step {step} "
                f"({', '.join(reasons)}).",
                remedy="Bring that service back, then go on with --resume.",
            )

    def on_step_end(
        self, args: Any, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Ask for a checkpoint when one is due; stop when any process has been asked to."""
        # Between the steps of one generation a run that goes on would have to generate anew.
        if state.global_step % self.session.batches.reuse:
            return
        if state.global_step % state.save_steps == 0:
            control.should_save = True
        if self.session.ranks.any(self.session.stopping()):
            control.should_training_stop = True


_NOTHING = Painted(-1, 1, (), (), (), 0.0, 0.0, 0, 0)


def _say(row: dict[str, metrics.Cell], steps: int) -> None:
    def shown(name: str, digits: int = 3) -> str:
        value = row[name]
        return "–" if value is None else f"{value:.{digits}f}"

    log.info(
        "step %s/%d  reward %s  adjusted %s  gate %s  unscored %s  tokens %s at %s/s  %s s "
        "(generate %s, wait %s, update %s)",
        (row["step"] or 0) + 1,
        steps,
        *(shown(name) for name in ("reward", "reward_adjusted", "gate_pass", "unscored")),
        shown("completions/mean_length", 0),
        shown("tokens_per_second", 0),
        *(
            shown(name, 1)
            for name in ("step_time", "seconds_generate", "seconds_wait", "seconds_update")
        ),
    )
