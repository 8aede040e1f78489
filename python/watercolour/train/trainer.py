"""GRPO by TRL, with what a run of ours adds: rollouts, guards, metrics and whole checkpoints.

:class:`Trainer` overrides where TRL saves and nothing of what it computes. All else hangs on its
two public hooks: ``rollout_func`` brings a step's completions with their rewards, and callbacks
see every step before and after its update.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import torch
from datasets import Dataset
from torch import Tensor, nn
from transformers import PrinterCallback, TrainerCallback, TrainerControl, TrainerState
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from watercolour import logs
from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import LASTING, Reason
from watercolour.api.spec import Kl
from watercolour.reward import alarms
from watercolour.reward.recipe import kl_at
from watercolour.train import bad_batch, checkpoint, correction, guard, metrics, packing, reload
from watercolour.train.artifacts import Artifacts
from watercolour.train.batches import Batches
from watercolour.train.checkpoint import Memory
from watercolour.train.correction import Correction
from watercolour.train.drift import Probes
from watercolour.train.guard import Verdict
from watercolour.train.policy import ADAPTER_FILE, Policy, require_whole
from watercolour.train.progress import Progress
from watercolour.train.ranks import Ranks
from watercolour.train.rollouts import Group, Painted, Painter

log = logs.get(__name__)

# TRL prints whole completions for each unscored row; metrics and rollouts hold them already.
logging.getLogger("trl.trainer.grpo_trainer").setLevel(logging.ERROR)


#: TRL computes what the KL term needs only while its weight is not 0.
LEAST_BETA = 1e-9


@dataclass(frozen=True)
class Limits:
    """The guards' settings."""

    collapse: bool
    max_rollbacks: int
    max_unscored_steps: int
    least_reward: float
    keep_checkpoints: int


@dataclass
class Session:
    """One attempt at a run: what its steps share."""

    batches: Batches
    painter: Painter
    groups_of: Callable[[int], list[Group]]
    artifacts: Artifacts
    progress: Progress
    limits: Limits
    stopping: Callable[[], bool]
    #: A step without spread teaches nothing, unless a KL or entropy term pulls as well.
    flat_steps_teach: bool
    #: The KL term's weight by step; None where it never changes.
    kl: Kl | None = None
    #: How the sampler's rounding is weighed out; None where it is only reported.
    correction: Correction | None = None
    ranks: Ranks = field(default_factory=Ranks)
    memory: Memory = field(default_factory=Memory)
    painted: Painted | None = None
    #: Paintings that are scored again and again; None where nobody can be asked.
    probes: Probes | None = None
    began: float = field(default_factory=time.monotonic)

    def seconds(self) -> float:
        """Spent in training, over all attempts."""
        return self.memory.seconds + time.monotonic() - self.began


class Trainer(GRPOTrainer):
    """GRPOTrainer whose checkpoints are whole or not there, and whose micro-batches are packed."""

    session: Session
    _saving_to: Path | None = None
    #: The checkpoint that the training goes on from.
    resumed: Path | None = None
    #: Tokens of one micro-batch, padding counted; None leaves the splitting to TRL.
    micro_batch_tokens: int | None = None
    _newest_logs: Tensor | None = None
    _corrected_inputs: Any = None

    def _compute_loss(self, model: Any, inputs: Any) -> Tensor:
        """The loss, by packed micro-batches where the loss is a sum over tokens.

        Each part goes backward at once; what is returned only carries the value. When the memory
        does not suffice, the step begins again with micro-batches of half the size, once for all.
        """
        if self.micro_batch_tokens is None or not model.training:
            loss, apart = self._observed_loss(model, inputs)
            self._tell_mismatch(apart)
            return loss
        while True:
            try:
                return self._packed_loss(model, inputs, self.micro_batch_tokens)
            except torch.OutOfMemoryError:
                longest = max(packing.lengths_of(inputs))
                # The other processes are in the middle of the step and cannot begin it again.
                if self.micro_batch_tokens <= longest or not self.session.ranks.alone:
                    raise
                self.micro_batch_tokens = max(longest, self.micro_batch_tokens // 2)
                log.warning(
                    "step %d: out of GPU memory; micro-batches have %d tokens from now on",
                    self.state.global_step,
                    self.micro_batch_tokens,
                )
            # Outside the handler, whose traceback would keep the failed attempt's tensors.
            model.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()

    def _packed_loss(self, model: Any, inputs: Any, tokens: int) -> Tensor:
        total = torch.zeros((), device=inputs["completion_ids"].device)
        apart: list[Tensor] = []
        parts = packing.micro_batches(packing.lengths_of(inputs), tokens)
        parts = packing.in_parts(parts, max(self.session.ranks.gather(len(parts))))
        for number, rows in enumerate(parts, 1):
            last = number == len(parts)
            with nullcontext() if last else self.accelerator.no_sync(model):
                loss, differences = self._observed_loss(model, packing.taken(inputs, rows))
                self.accelerator.backward(loss)
            total += loss.detach()
            apart.append(differences)
        self._tell_mismatch(torch.cat(apart))
        return total.requires_grad_()

    def _observed_loss(self, model: Any, inputs: Any) -> tuple[Tensor, Tensor]:
        """TRL's loss, and |Δ log p| between sampling and training of every scored token.

        Raises:
            InfrastructureError: the loss is no number; the batch is saved (LossNotFinite).
        """
        corrected = self.session.correction is not None
        self._corrected_inputs = inputs if corrected else None
        # TRL weighs a loss only where its own client of vLLM generates; here the loss alone does.
        self.use_vllm = self.vllm_importance_sampling_correction = corrected
        try:
            loss = super()._compute_loss(model, inputs)
        finally:
            self.use_vllm = False
            self._corrected_inputs = None
        if self.session.ranks.any(not torch.isfinite(loss)):
            self._stop_at(inputs, loss.item())
        newest, sampled = self._newest_logs, inputs.get("sampling_per_token_logps")
        if newest is None or sampled is None:
            return loss, loss.new_zeros(0)
        mask = inputs["completion_mask"].bool()
        return loss, (newest - sampled)[mask].abs()

    def _stop_at(self, inputs: Any, loss: float) -> NoReturn:
        step, folder = self.state.global_step, self.session.artifacts.folder
        rank = self.session.ranks.rank
        kept = bad_batch.save(folder, step, inputs, self.session.painted, rank)
        raise InfrastructureError(
            Reason.LOSS_NOT_FINITE,
            f"the loss of step {step} is {loss}; its batch is in {kept}.",
            remedy="Lower spec.trainer.learningRate, and go on from the checkpoint before.",
        )

    def _get_per_token_logps_and_entropies(self, *args: Any, **kwargs: Any) -> Any:
        found = super()._get_per_token_logps_and_entropies(*args, **kwargs)
        newest: Tensor = found[0].detach()
        self._newest_logs = newest
        if self._corrected_inputs is not None:
            self._weigh(self._corrected_inputs, newest)
        return found

    def _weigh(self, inputs: Any, newest: Tensor) -> None:
        """Add the importance weights, which TRL's loss takes from its inputs."""
        how = self.session.correction
        assert how is not None
        mask = inputs["completion_mask"] * inputs.get("tool_mask", 1)
        training = inputs.get("old_per_token_logps", newest)
        sampled = inputs["sampling_per_token_logps"]
        inputs["importance_sampling_ratio"] = correction.weights(how, training, sampled, mask)

    def _tell_mismatch(self, apart: Tensor) -> None:
        own = (float(apart.sum()), float(apart.max())) if len(apart) else (0.0, 0.0)
        found = self.session.ranks.gather((len(apart), *own))
        if tokens := sum(count for count, _, _ in found):
            self._metrics["train"]["mismatch_mean"].append(sum(t for _, t, _ in found) / tokens)
            self._metrics["train"]["mismatch_max"].append(max(most for _, _, most in found))

    @property
    def adapted(self) -> Any:
        """The policy with its adapter."""
        return self.model

    def given_advantages(self, rollouts: int) -> list[float]:
        """The advantages of the newest rollouts, in their order."""
        return list(self._logs["advantages"])[-rollouts:]

    def create_model_card(self, *_: Any, **__: Any) -> None:
        """Write none: the run's own files say more."""

    def _get_output_dir(self, trial: Any) -> str:
        return str(self._saving_to) if self._saving_to else super()._get_output_dir(trial)

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        """A periodic checkpoint; a full disk is said and survived."""
        try:
            self.save_whole()
        except InfrastructureError as error:
            if error.reason != Reason.DISK_FULL:
                raise
            log.error("%s: %s The run goes on.", error.reason, error.message)

    def save_whole(self) -> Path:
        """Write the checkpoint of the steps done.

        Raises:
            InfrastructureError: the disk is full (DiskFull).
        """
        step, session, ranks = self.state.global_step, self.session, self.session.ranks
        folder = session.artifacts.folder

        def fill(part: Path) -> None:
            with ranks.agreed():
                pass  # The folder is there.
            with ranks.agreed():
                self._save_in(part)
            inner = part / f"{checkpoint.PREFIX}{step}"
            for file in inner.iterdir():
                file.rename(part / file.name)
            inner.rmdir()
            require_whole(self.adapted, part / ADAPTER_FILE)
            if session.painted is not None and session.painted.rows:
                first = session.painted
                reload.store(part, self.adapted, (*first.prompts[0][-1:], *first.rows[0].tokens))

        written = folder / checkpoint.FOLDER / f"{checkpoint.PREFIX}{step}"
        session.progress.enter("saving")
        with ranks.agreed():
            if ranks.first:
                memory = replace(session.memory, seconds=session.seconds())
                checkpoint.write(folder, step, session.limits.keep_checkpoints, fill, memory)
            else:
                with ranks.agreed():
                    pass  # The first has made the folder.
                with ranks.agreed():
                    self._save_in(folder / checkpoint.PART)
        session.progress.saved(step, written)
        return written

    def _save_in(self, part: Path) -> None:
        """transformers' part of a checkpoint; of others than the first, its random state alone."""
        self._saving_to = part
        try:
            super()._save_checkpoint(self.adapted, None)
        finally:
            self._saving_to = None


def build(policy: Policy, settings: GRPOConfig, prompts: Dataset, session: Session) -> Trainer:
    """The trainer of a session."""

    def rollout_func(_prompts: list[Any], trainer: Any) -> dict[str, Any]:
        step = trainer.state.global_step
        groups = session.groups_of(step)
        session.progress.enter("generating")
        painted = session.painter.paint(step, groups, session.batches.group_size)
        session.progress.enter("updating")
        session.painted = painted
        return answer(
            painted.part(session.ranks), min(policy.ends, default=policy.tokenizer.pad_token_id)
        )

    trainer = Trainer(
        model=policy.model,
        reward_funcs=reward,
        args=settings,
        train_dataset=prompts,
        processing_class=policy.tokenizer,
        peft_config=policy.lora,
        rollout_func=rollout_func,
    )
    trainer.session = session
    trainer.micro_batch_tokens = micro_batch_tokens(session.batches, settings)
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(_Steps(trainer, session))
    return trainer


#: Tokens that go through the model at once on a GPU, until it says that they are too many. Of
#: Qwen3.5-35B-A3B with checkpointing they take 23 GiB besides the weights.
MICRO_BATCH_TOKENS = 32_768


def micro_batch_tokens(batches: Batches, settings: GRPOConfig) -> int | None:
    """Tokens of a packed micro-batch; None where TRL's own splitting stays.

    That is on the CPU, where a small policy takes all rows at once; with a loss that does not add
    up; and when the specification asks for micro-batches of its own.
    """
    additive = settings.loss_type in packing.ADDITIVE and not settings.entropy_coef
    packed = additive and batches.accumulation == 1 and not settings.use_cpu
    return MICRO_BATCH_TOKENS if packed and not settings.use_adaptive_entropy else None


def answer(painted: Painted, end: int) -> dict[str, Any]:
    """What TRL wants of a rollout function.

    A row without a value is masked, so that it neither weighs in the loss's denominator nor feels
    the KL term; its advantage is 0 in any case. A row without a token, which TRL cannot hold, gets
    the end token for it, masked: there is nothing in it to learn from, but its reward still tells
    the group's mean.
    """
    rewards = painted.rewards
    found: dict[str, Any] = {
        "prompt_ids": [list(prompt) for prompt in painted.prompts],
        "completion_ids": [list(row.tokens) or [end] for row in painted.rows],
        "logprobs": [list(row.log_probabilities) or [0.0] for row in painted.rows],
        "value": rewards,
    }
    if None in rewards or not all(row.tokens for row in painted.rows):
        found["env_mask"] = [
            [int(value is not None and bool(row.tokens))] * max(1, len(row.tokens))
            for value, row in zip(rewards, painted.rows, strict=True)
        ]
    return found


def reward(completions: list[Any], value: list[float | None], **_: Any) -> list[float | None]:
    """The one reward function: the environment's combined value, None where there is none."""
    return value


class _Steps(TrainerCallback):
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
        self.step_began = time.perf_counter()
        self.skipped = ""
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
        if self.session.ranks.any(self.session.stopping()):
            control.should_training_stop = True


_NOTHING = Painted(-1, 1, (), (), (), 0.0, 0.0, 0)


def _say(row: dict[str, metrics.Cell], steps: int) -> None:
    def shown(name: str, digits: int = 3) -> str:
        value = row[name]
        return "–" if value is None else f"{value:.{digits}f}"

    log.info(
        "step %s/%d  reward %s  adjusted %s  gate %s  unscored %s  tokens %s  %s s "
        "(generate %s, wait %s, update %s)",
        (row["step"] or 0) + 1,
        steps,
        *(shown(name) for name in ("reward", "reward_adjusted", "gate_pass", "unscored")),
        shown("completions/mean_length", 0),
        *(
            shown(name, 1)
            for name in ("step_time", "seconds_generate", "seconds_wait", "seconds_update")
        ),
    )
