"""The renderers and the environment: who paints, and who keeps the sessions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from watercolour.api.part import (
    CLUSTER,
    WHOLE,
    Flag,
    Image,
    Name,
    Natural,
    Part,
    Positive,
    Resources,
    Seconds,
)

Side = Annotated[int, Field(strict=True, ge=64, le=1024), WHOLE]


class Scaling(Part):
    """How many renderer pods there are, and who decides."""

    mode: Literal["Queue", "HPA", "KEDA", "Fixed", "External"] = Field(
        default="Queue",
        description="`Queue`: the operator follows the environment's queue. `Fixed`: always `max`. "
        "`HPA`, `KEDA`: those decide. `External`: whoever writes renderers.replicas.",
    )
    min: Natural = Field(default=0, description="Least pods; 0 lets them all go when idle.")
    max: Positive = Field(default=8, description="Most pods.")
    per_pod: Positive | None = Field(
        default=None, description="Queued renders that one pod answers for; unset is its slots."
    )
    # About as long as a renderer takes to start: bursts are announced, so keeping one longer costs
    # more than starting it anew.
    idle_seconds: Seconds = Field(
        default=10.0, description="Seconds without work after which a pod is let go."
    )


class Canvas(Part):
    """Canvas sizes that a sketch may ask for; others are `canvas_out_of_bounds`."""

    min_side: Side = Field(default=64, description="Shortest side, in pixels.")
    max_side: Side = Field(default=1024, description="Longest side, in pixels.")


class Renderers(Part):
    """The stateless workers that turn a sketch into a painting."""

    slots: Positive = Field(default=2, description="Sketches that one renderer paints at once.")
    size: Side | None = Field(
        default=None, description="Painting's side in pixels; unset is the sketch's own canvas."
    )
    canvas: Annotated[Canvas, CLUSTER] = Field(
        default_factory=Canvas, description="Canvas sizes that a sketch may ask for."
    )
    deadline_seconds: Seconds = Field(
        default=60.0, description="Wall-clock limit of one render, in seconds."
    )
    allow_unsandboxed: Flag = Field(
        default=False, description="Go on without Chromium's own sandbox where the kernel lacks it."
    )
    image: Annotated[Image | None, CLUSTER] = Field(
        default=None, description="Container image; unset is the operator's."
    )
    resources: Annotated[Resources, CLUSTER] = Field(
        default_factory=Resources, description="Requests and limits of one renderer pod."
    )
    scaling: Annotated[Scaling, CLUSTER] = Field(
        default_factory=Scaling, description="How many renderer pods there are, and who decides."
    )
    replicas: Annotated[Natural | None, CLUSTER] = Field(
        default=None, description="Renderer pods wanted, in scaling mode `External` alone."
    )
    network_canary: Annotated[Literal["Required", "Warn", "Off"], CLUSTER] = Field(
        default="Required",
        description="What a renderer does that can reach the network: refuse to become ready, "
        "warn, or not look. Quote `Off` in YAML.",
    )
    runtime_class_name: Annotated[Name | None, CLUSTER] = Field(
        default=None, description="RuntimeClass of the renderer pods, such as one of gVisor."
    )


class Env(Part):
    """The OpenEnv server, which keeps sessions, gate, render queue and reward."""

    sessions: Positive = Field(
        default=32, description="Concurrent sessions; at least trainer.rolloutsPerStep."
    )
    message_timeout_seconds: Seconds = Field(
        default=300.0,
        description="How long a client waits for a reply; above renderers.deadlineSeconds.",
    )
    attempts: Positive = Field(default=3, description="Tries of a rollout that ends unscored.")
    idle_seconds: Seconds = Field(
        default=900.0, description="Seconds without a message after which a session is closed."
    )
    image: Annotated[Image | None, CLUSTER] = Field(
        default=None, description="Container image; unset is the operator's."
    )
    resources: Annotated[Resources, CLUSTER] = Field(
        default_factory=Resources, description="Requests and limits of the environment's pod."
    )
