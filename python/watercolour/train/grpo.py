"""GRPO by TRL, put together: the trainer, where its completions come from, and its one reward."""

from __future__ import annotations

from typing import Any

from datasets import Dataset
from transformers import PrinterCallback
from trl.trainer.grpo_config import GRPOConfig

from watercolour.train import packing
from watercolour.train.batches import Batches
from watercolour.train.policy import Policy
from watercolour.train.rollouts import Painted
from watercolour.train.settings import packs
from watercolour.train.steps import Steps
from watercolour.train.trainer import Session, Trainer


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
    trainer.add_callback(Steps(trainer, session))
    return trainer


def micro_batch_tokens(batches: Batches, settings: GRPOConfig) -> int | None:
    """Tokens of a packed micro-batch; None where TRL's own splitting stays.

    That is on the CPU, where a small policy takes all rows at once; with a loss that does not add
    up; and when the specification asks for micro-batches of its own.
    """
    packed = batches.accumulation == 1 and not settings.use_cpu
    return packing.GPU_TOKENS if packed and packs(vars(settings)) else None


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
