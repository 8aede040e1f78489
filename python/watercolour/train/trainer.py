"""TRL's GRPO trainer with whole checkpoints, packed micro-batches and a loss that is looked at.

What it computes is TRL's. The rest of a run hangs on TRL's two public hooks, which are in
:mod:`watercolour.train.grpo` (where completions come from) and :mod:`watercolour.train.steps`
(what happens before and after each update).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from trl.trainer.grpo_trainer import GRPOTrainer

from watercolour import logs
from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.api.spec import Kl
from watercolour.train import bad_batch, checkpoint, correction, gpu_memory, packing, reload
from watercolour.train.artifacts import Artifacts
from watercolour.train.batches import Batches
from watercolour.train.checkpoint import Memory
from watercolour.train.correction import Correction
from watercolour.train.drift import Probes
from watercolour.train.policy import ADAPTER_FILE, adapter_of, require_whole
from watercolour.train.progress import Progress
from watercolour.train.ranks import Ranks
from watercolour.train.rollouts import Group, Painted, Painter

log = logs.get(__name__)

# TRL prints whole completions for each unscored row; metrics and rollouts hold them already.
logging.getLogger("trl.trainer.grpo_trainer").setLevel(logging.ERROR)


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
        does not suffice, the step begins again with micro-batches of half the size, from then on.
        """
        if self.micro_batch_tokens is None or not model.training:
            loss, apart = self._observed_loss(model, inputs)
            self._tell_mismatch(apart)
            return loss
        # The other processes are in the middle of the step and cannot begin it again.
        again = self.session.ranks.alone
        tokens = self.micro_batch_tokens
        loss, self.micro_batch_tokens = gpu_memory.in_smaller_parts(
            partial(self._packed_loss, model, inputs),
            partial(model.zero_grad, set_to_none=True),
            tokens,
            max(packing.lengths_of(inputs)) if again else tokens,
            f"step {self.state.global_step}",
        )
        return loss

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
        # In a further step on the same rollouts the policy has moved: TRL kept what it said first.
        newest = inputs.get("old_per_token_logps", self._newest_logs)
        sampled = inputs.get("sampling_per_token_logps")
        if newest is None or sampled is None:
            return loss, loss.new_zeros(0)
        # A token that stands in for an empty row was never sampled.
        mask = (inputs["completion_mask"] * inputs.get("tool_mask", 1)).bool()
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
        """A periodic checkpoint."""
        self.save_if_room()

    def save_if_room(self) -> None:
        """Write the checkpoint of the steps done; a full disk is said and survived."""
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
        folder, probed = session.artifacts.folder, self._probed()
        found: dict[str, Any] | None = None
        if len(probed) > 1:
            # By all, because all may be needed to compute it.
            with ranks.agreed():
                found = reload.probe(self.adapted, probed)

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
            if found is not None:
                reload.store(part, found)

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

    def _probed(self) -> tuple[int, ...]:
        """Tokens for a probe, the same in all processes: of a rollout, else of a prompt.

        There is no probability of a first token, so a row without any tells nothing.
        """
        if (painted := self.session.painted) is not None:
            for prompt, row in zip(painted.prompts, painted.rows, strict=True):
                if row.tokens:
                    return (*prompt[-1:], *row.tokens)
        return self.session.groups_of(0)[0].prompt

    def begin_from(self, start: Path) -> None:
        """Take up a checkpoint of no step: weights, the KL term's reference, random state."""
        self._load_from_checkpoint(str(start))
        self._load_rng_state(str(start))

    def _save(
        self, output_dir: str | None = None, state_dict: dict[str, Tensor] | None = None
    ) -> None:
        """transformers' own, told where the adapter's weights are."""
        super()._save(output_dir, adapter_of(self.adapted) if state_dict is None else state_dict)

    def _save_in(self, part: Path) -> None:
        """transformers' part of a checkpoint; of others than the first, its random state alone."""
        self._saving_to = part
        try:
            if self.optimizer is None:
                # Before the first step there are no more than weights and random state.
                folder = str(part / f"{checkpoint.PREFIX}{self.state.global_step}")
                self.save_model(folder, _internal_call=True)
                self._save_rng_state(folder)
            else:
                super()._save_checkpoint(self.adapted, None)
        finally:
            self._saving_to = None
