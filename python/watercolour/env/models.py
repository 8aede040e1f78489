"""What goes over the environment's socket, in OpenEnv's types."""

from __future__ import annotations

from typing import Any

from openenv.core.env_server.types import Action, Observation, State
from pydantic import Field


class PaintAction(Action):
    """One reply of the policy; the sketch is extracted on the server."""

    response: str = Field(description="The policy's raw reply, code fence and all.")


class PaintObservation(Observation):
    """The task after reset; after step also everything that became of the reply.

    ``reward`` is None while nothing was submitted and when the rollout is unscored; then
    ``unscored_reason`` says why. Fields that share a name with the rollout record mean the same.
    """

    episode_id: str = Field(description="As given to reset, so that a reply has an address.")
    subject: str
    system_prompt: str
    prompt: str = Field(description="The user's message of the task.")
    finished: bool = Field(default=False, description="No revision is left.")
    revisions_left: int = 0
    critique: str = Field(
        default="", description="What may be told to the policy; holds no score or reference."
    )

    seed: int = 0
    hues: list[tuple[float, float]] = Field(default_factory=list)
    references: list[str] = Field(default_factory=list)
    reference_strengths: list[float] = Field(default_factory=list)
    draw_strength: float | None = None
    mean_draw_strength: float | None = None
    sketch: str | None = None
    violations: list[dict[str, Any]] = Field(default_factory=list)
    gate_passed: bool | None = None
    painting: str | None = Field(
        default=None, description="Base64 PNG, when reset asked for it with return_image."
    )
    paint_fraction: float | None = None
    pigment_share: float | None = None
    shapes: int | None = None
    heaviest_shape: float | None = None
    js_errors: list[str] = Field(default_factory=list)
    votes: list[dict[str, Any]] = Field(default_factory=list)
    terms: dict[str, float | None] = Field(default_factory=dict)
    weights: dict[str, float] = Field(default_factory=dict)
    mu: float | None = None
    marks: dict[str, float | None] = Field(default_factory=dict)
    reward_adjusted: float | None = None
    unscored_reason: str | None = None
    unscored_detail: str = ""
    attempts: int = 1
    timings: dict[str, float] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)


class PaintState(State):
    """Where an episode stands; ``episode_id`` and ``step_count`` come from OpenEnv."""

    subject: str = ""
    seed: int = 0
    submitted: int = Field(default=0, description="Replies that were evaluated.")
    revisions_left: int = 0
