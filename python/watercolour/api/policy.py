"""The policy, what it is asked to paint, and the cold start before reinforcement learning."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from watercolour.api.part import (
    CLUSTER,
    Above0,
    Flag,
    Fraction,
    Line,
    Name,
    Part,
    Positive,
    SecretRef,
)

#: Begins the id of a policy that ships with the project.
BUILTIN = "builtin:"


class Model(Part):
    """The policy to be trained."""

    id: Line = Field(
        default="builtin:tiny",
        description="`builtin:tiny`, a folder (begin it with `./` or `/`), or `owner/name` on the "
        "hub.",
    )
    revision: Line | None = Field(
        default=None, description="Commit or tag on the hub; unset is the newest."
    )
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        default="auto",
        description="Weights' type. `auto` is what the checkpoint says, never float32 by accident.",
    )
    tokenizer: Line | None = Field(
        default=None, description="Tokenizer's id or folder; the model's own if unset."
    )
    chat_template_kwargs: dict[str, Any] = Field(
        default_factory=dict, description="Extra arguments of the tokenizer's chat template."
    )
    adapter: Line | None = Field(
        default=None, description="Folder or hub id of a LoRA adapter to start from."
    )
    cache_claim: Annotated[Name | None, CLUSTER] = Field(
        default=None, description="PersistentVolumeClaim that caches hub downloads between runs."
    )
    token_secret_ref: Annotated[SecretRef | None, CLUSTER] = Field(
        default=None,
        description="The hub's access token, for models that need one. One machine uses the token "
        "of its own login.",
    )


class PromptDataset(Part):
    """A data set that holds the subjects."""

    id: Line = Field(description="A folder, a file (.txt one a line, .jsonl, .parquet) or hub id.")
    revision: Line | None = Field(default=None, description="Commit or tag on the hub.")
    split: Line = Field(default="train", description="Split of a hub data set.")
    column: Line = Field(default="subject", description="Column that holds the subject.")


class Prompts(Part):
    """What the policy is asked to paint."""

    subjects: tuple[Line, ...] = Field(
        default=("a peach hibiscus", "a blue iris", "a red poppy", "a yellow daisy"),
        min_length=1,
        max_length=1000,
        description="Subjects, in turn, one a group.",
    )
    dataset: Annotated[PromptDataset | None, CLUSTER] = Field(
        default=None, description="A data set that holds the subjects, instead of `subjects`."
    )
    system: Line = Field(
        default="auto",
        description="System prompt preset (`tiny`, `ten-methods`, `none`), or `auto`: `tiny` for "
        "builtin policies and `ten-methods` for others.",
    )
    thinking: Flag = Field(
        default=False, description="Let the model think aloud; it eats the completion's tokens."
    )


class Sft(Part):
    """Supervised fine-tuning before the first GRPO step, until the policy passes the gate."""

    corpus: Line = Field(
        default="builtin:grammar",
        description="Pairs of subject and sketch: `builtin:grammar`; a folder with pairs.jsonl; "
        "the folder of a run, whose best rollouts are taken; or a dataset on the hub.",
    )
    examples: Positive = Field(default=1000, description="Pairs drawn from the corpus.")
    epochs: Positive = Field(default=1, description="Passes over those pairs.")
    batch_size: Positive = Field(default=16, description="Pairs per optimizer step.")
    learning_rate: Above0 = Field(default=1e-4, description="Peak learning rate.")
    target_gate_pass_rate: Fraction = Field(
        default=0.8, description="Stop early once this share of probes passes the gate."
    )
