"""The algebra of a step: which rollout belongs to which group, subject and draw."""

from __future__ import annotations

from dataclasses import dataclass

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.spec import RunSpec
from watercolour.train.sampling import derive_seed

#: Draw seeds stay below this, so that JavaScript and JSON keep them exact.
SEEDS = 2**31


@dataclass(frozen=True)
class Batches:
    """How the rollouts of a step are split.

    ``groups · group_size = per_device · accumulation · processes`` rollouts are one optimizer
    step, and one generation serves ``reuse`` optimizer steps (TRL's ``num_iterations``).
    """

    groups: int
    group_size: int
    per_device: int
    accumulation: int
    reuse: int
    steps: int
    processes: int = 1

    @property
    def rollouts(self) -> int:
        """Rollouts of one generation."""
        return self.groups * self.group_size

    @property
    def rounds(self) -> int:
        """Generations of the whole run."""
        return -(-self.steps // self.reuse)


def plan(spec: RunSpec, *, whole: bool, processes: int = 1) -> Batches:
    """Split the rollouts of a step.

    Args:
        spec: the run.
        whole: TRL is given all rollouts at once, because the policy is small or because the
            trainer packs them itself; otherwise one at a time.
        processes: that share the step.

    Raises:
        InputError: a pass-through field does not divide the batch (InvalidSpec).
    """
    trainer = spec.trainer
    rollouts, size = trainer.rollouts_per_step // processes, trainer.group_size
    share = "" if processes == 1 else f" by {processes} processes"
    chosen = trainer.grpo.get("per_device_train_batch_size", rollouts if whole else 1)
    if not isinstance(chosen, int) or chosen < 1 or rollouts % chosen:
        raise InputError(
            Reason.INVALID_SPEC,
            f"spec.trainer.grpo.per_device_train_batch_size={chosen}: does not divide "
            f"rolloutsPerStep={trainer.rollouts_per_step}{share}.",
            remedy=f"Set it to a divisor of {rollouts}, such as {min(size, rollouts)}.",
            field="spec.trainer.grpo.per_device_train_batch_size",
            value=chosen,
        )
    return Batches(
        groups=trainer.rollouts_per_step // size,
        group_size=size,
        per_device=chosen,
        accumulation=rollouts // chosen,
        reuse=trainer.grpo.get("num_iterations", 1),
        steps=trainer.steps,
        processes=processes,
    )


def subject(subjects: tuple[str, ...], batches: Batches, step: int, group: int) -> str:
    """What a group paints: the subjects in turn, one a group, over all steps."""
    return subjects[(step // batches.reuse * batches.groups + group) % len(subjects)]


def draw_seed(seed: int, step: int, group: int) -> int:
    """The seed of a group's draw of references: one a group, the same when it is tried again."""
    return derive_seed(seed, "draw", step, group) % SEEDS


def row_seed(seed: int, step: int, attempt: int, row: int) -> int:
    """The seed of one row's sampling."""
    return derive_seed(seed, "row", step, attempt, row)
