"""Every stable word with which the project says why something happened.

Reasons (CamelCase) and violation codes (snake_case) are API: they are never renamed, and
docs/reference lists them. A reason belongs to the infrastructure or to a run; a violation
belongs to a sketch. The two are never mixed: a violation is worth what the recipe says a failed
gate is worth, a reason leaves the rollout unscored (``None``).
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a rollout is unscored, or why a command or a run could not go on."""

    # A rollout is unscored.
    RENDERER_UNAVAILABLE = "RendererUnavailable"
    """No renderer answered, or every attempt ended in 429 or 503."""
    RENDER_DEADLINE = "RenderDeadline"
    """The wall-clock deadline passed before the sketch had used up its CPU budget."""
    BROWSER_CRASHED = "BrowserCrashed"
    """The browser died while it painted, and the sketch was not over its own memory limit."""
    ENV_UNAVAILABLE = "EnvUnavailable"
    """The environment's socket was refused, closed or silent past its deadline."""
    SCORER_UNAVAILABLE = "ScorerUnavailable"
    """The scorer was away, loading or wrong after all attempts."""
    JUDGE_UNAVAILABLE = "JudgeUnavailable"
    """No reference could be resolved: for each one at least one of the two calls failed."""
    INTERNAL_ERROR = "InternalError"
    """A fault of ours; the log has the traceback."""

    # A command or a run cannot go on.
    INVALID_SPEC = "InvalidSpec"
    """The run's specification breaks a rule; the message names field, value and remedy."""
    UNKNOWN_RECIPE = "UnknownRecipe"
    """No recipe of that name exists."""
    INVALID_POOL = "InvalidPool"
    """A reference pool has a missing, broken or unrated painting."""
    INVALID_MODEL = "InvalidModel"
    """The policy, its tokenizer or its adapter cannot be loaded."""
    BROWSER_MISSING = "BrowserMissing"
    """No Chromium was found on this machine."""
    SANDBOX_UNAVAILABLE = "SandboxUnavailable"
    """Chromium's own sandbox cannot start here, and running without it was not allowed."""
    PORT_IN_USE = "PortInUse"
    """Another process listens on the wanted port."""
    DISK_FULL = "DiskFull"
    """A file could not be written for want of space; what was there before is kept."""
    ARTIFACTS_DAMAGED = "ArtifactsDamaged"
    """A file of an earlier attempt cannot be read back."""
    CHECKPOINT_MISSING = "CheckpointMissing"
    """A resume was asked for, and no whole checkpoint exists."""
    POLICY_TOO_WEAK = "PolicyTooWeak"
    """Too few of the untrained policy's probes pass the gate for GRPO to learn from."""
    POLICY_COLLAPSED = "PolicyCollapsed"
    """The reward collapsed more often than the guard may restore it."""
    INFRASTRUCTURE_DEGRADED = "InfrastructureDegraded"
    """Too many steps in a row were unscored for the run to go on."""
    COMPONENT_DIED = "ComponentDied"
    """A process of the run ended and could not be started again."""
    RUN_EXISTS = "RunExists"
    """A run of that name is already in the artifacts folder; resume it or choose another name."""
    INTERRUPTED = "Interrupted"
    """Stopped by a person or a signal after a checkpoint; the run can be resumed."""


class ViolationCode(StrEnum):
    """Why the gate refused a sketch. Static codes first, then those that need a render."""

    NO_SKETCH_IN_RESPONSE = "no_sketch_in_response"
    TOO_LONG = "too_long"
    SYNTAX_ERROR = "syntax_error"
    TRUNCATED = "truncated"
    MISSING_ENTRY_POINTS = "missing_entry_points"
    NOT_WEBGL = "not_webgl"
    EXTERNAL_ACCESS = "external_access"
    DYNAMIC_CODE = "dynamic_code"
    HARNESS_TAMPERING = "harness_tampering"
    TEXT_LABEL = "text_label"
    BARE_PRIMITIVES = "bare_primitives"
    UNKNOWN_BRUSH_METHOD = "unknown_brush_method"
    NO_PAINTING_CALLS = "no_painting_calls"

    RENDER_FAILED = "render_failed"
    SKETCH_TIMEOUT = "sketch_timeout"
    SKETCH_OOM = "sketch_oom"
    CANVAS_OUT_OF_BOUNDS = "canvas_out_of_bounds"
    BLANK_CANVAS = "blank_canvas"
