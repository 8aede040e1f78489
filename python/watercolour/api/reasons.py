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
    INVALID_INPUT = "InvalidInput"
    """A file or an argument given to a command cannot be used."""
    INVALID_REQUEST = "InvalidRequest"
    """A request to one of the servers breaks its contract; the message says how."""
    UNKNOWN_RECIPE = "UnknownRecipe"
    """No recipe of that name exists."""
    INVALID_POOL = "InvalidPool"
    """A reference pool has a missing, broken or unrated painting."""
    INVALID_SKETCH = "InvalidSketch"
    """A sketch's file cannot be read as text."""
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
    """The completion holds no sketch: an answer in prose, another format, nothing."""
    TOO_LONG = "too_long"
    """The sketch has more characters than `recipe.gate.maxCharacters`."""
    SYNTAX_ERROR = "syntax_error"
    """The sketch is not JavaScript."""
    TRUNCATED = "truncated"
    """The sketch ends in the middle, as when the tokens ran out."""
    MISSING_ENTRY_POINTS = "missing_entry_points"
    """There is no `setup` function for p5 to call."""
    NOT_WEBGL = "not_webgl"
    """The canvas is not a WEBGL one, on which alone p5.brush paints."""
    EXTERNAL_ACCESS = "external_access"
    """It reaches for the network, files, media or the page around the canvas."""
    DYNAMIC_CODE = "dynamic_code"
    """It makes code out of text (`eval`, `Function`, dynamic import, computed names)."""
    HARNESS_TAMPERING = "harness_tampering"
    """It changes what measures it: prototypes, p5 itself, timers, the canvas handle."""
    TEXT_LABEL = "text_label"
    """It writes text on the canvas instead of painting."""
    BARE_PRIMITIVES = "bare_primitives"
    """It draws with p5's own shapes, which are not paint."""
    UNKNOWN_BRUSH_METHOD = "unknown_brush_method"
    """It calls a method that p5.brush does not have or `recipe.gate.allow` leaves out."""
    NO_PAINTING_CALLS = "no_painting_calls"
    """No call in it puts paint on the canvas."""

    RENDER_FAILED = "render_failed"
    """It failed before its first frame was painted."""
    SKETCH_TIMEOUT = "sketch_timeout"
    """Its browser used more CPU seconds than `recipe.gate.cpuBudgetSeconds`."""
    SKETCH_OOM = "sketch_oom"
    """Its browser used more memory than a sketch may."""
    CANVAS_OUT_OF_BOUNDS = "canvas_out_of_bounds"
    """A side of its canvas is shorter than 64 or longer than 1024 pixels."""
    BLANK_CANVAS = "blank_canvas"
    """Less of the canvas is painted than `recipe.gate.minPaintFraction`."""
