"""What the renderer is asked and what it answers: one model each, published in /openapi.json."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema

from watercolour.api.reasons import Reason
from watercolour.api.rollout import Violation
from watercolour.render.replay import Replay

#: Longest sketch that is taken in, in characters.
MAX_SKETCH = 200_000

#: Largest drawing scale: the smallest canvas that is usual, 512, fills a print.
MAX_SCALE = 8

#: Longest side of a print in pixels: any machine's graphics paint it.
PRINT_SIDE = 4096

#: Longest deadline and largest CPU budget, in seconds.
MAX_SECONDS = 600

#: Prefix of every problem's ``type``; the reason follows.
PROBLEM = "urn:watercolour:problem:"

#: Longest echo of a field or value that was refused, in characters.
ECHO = 60


class Refusal(StrEnum):
    """Reasons that belong to the HTTP contract; those of the infrastructure are in ``Reason``."""

    MALFORMED_REQUEST = "MalformedRequest"
    """400: the request breaks the contract; ``errors`` has field, value and remedy."""
    SKETCH_FAULT = "SketchFault"
    """422: the sketch is at fault; ``violation`` says what and where."""
    BUSY = "Busy"
    """429: every slot paints; ``Retry-After`` says when to ask again."""
    NOT_FOUND = "NotFound"
    """404: there is nothing at this path."""
    METHOD_NOT_ALLOWED = "MethodNotAllowed"
    """405: the path does not know this method; ``Allow`` lists those that it knows."""


#: Reasons of a 503.
INFRASTRUCTURE_REASONS = (
    Reason.RENDERER_UNAVAILABLE,
    Reason.RENDER_DEADLINE,
    Reason.BROWSER_CRASHED,
    Reason.BROWSER_MISSING,
    Reason.SANDBOX_UNAVAILABLE,
    Reason.NETWORK_NAMESPACE_UNAVAILABLE,
    Reason.NETWORK_POLICY_NOT_ENFORCED,
    Reason.INTERNAL_ERROR,
)
InfrastructureReason = Annotated[
    Reason, WithJsonSchema({"type": "string", "enum": [*INFRASTRUCTURE_REASONS]})
]


def _examples(*examples: dict[str, Any]) -> ConfigDict:
    return ConfigDict(extra="forbid", json_schema_extra={"examples": list(examples)})


_SKETCH = (
    "function setup() { createCanvas(256, 256, WEBGL); noLoop(); }\n"
    "function draw() { background(250); brush.noStroke(); brush.fill('#c8322e', 140); "
    "brush.circle(0, 0, 60); }"
)


class RenderRequest(BaseModel):
    """Body of ``POST /v1/render``."""

    model_config = _examples({"sketch": _SKETCH, "seed": 1, "size": 256}) | {"strict": True}

    sketch: Annotated[str, Field(min_length=1, max_length=MAX_SKETCH)] = Field(
        description="The sketch: JavaScript for p5 and p5.brush."
    )
    seed: Annotated[int, Field(ge=0, lt=2**31)] = Field(
        description="Seeds every source of chance of the page."
    )
    size: Annotated[int, Field(ge=64, le=2048)] | None = Field(
        default=None,
        description="Longer side of the painting in pixels; null is the sketch's own canvas.",
    )
    scale: Annotated[int, Field(ge=1, le=MAX_SCALE)] = Field(
        default=1,
        description="Pixels for each of the sketch's canvas, along a side, up to "
        f"{PRINT_SIDE} in all; above 1 only from a renderer that was started for prints.",
    )
    deadline_s: Annotated[float, Field(gt=0, le=MAX_SECONDS, allow_inf_nan=False)] = Field(
        default=60.0,
        description="Wall-clock limit in seconds, waiting for a slot included. Passing it is the "
        "infrastructure's fault: 503, RenderDeadline.",
    )
    cpu_budget_s: Annotated[float, Field(gt=0, le=MAX_SECONDS, allow_inf_nan=False)] = Field(
        default=20.0,
        description="CPU seconds that the sketch may use. Passing it is the sketch's fault: 422, "
        "sketch_timeout.",
    )
    fresh: bool = Field(default=False, description="Paint again even if the answer is remembered.")
    replay: bool = Field(
        default=False, description="Record what is painted, in order; the painting is the same."
    )


#: What to do about a field that was refused.
REMEDIES = {
    "sketch": f"Send the sketch's JavaScript as text of 1 to {MAX_SKETCH} characters.",
    "seed": f"Send a whole number from 0 to {2**31 - 1}.",
    "size": "Send a whole number from 64 to 2048, or leave it out for the sketch's own canvas.",
    "scale": f"Send a whole number from 1 to {MAX_SCALE}, above 1 only to a renderer that was "
    "started with --max-scale.",
    "deadline_s": f"Send a number of seconds above 0 and up to {MAX_SECONDS}.",
    "cpu_budget_s": f"Send a number of seconds above 0 and up to {MAX_SECONDS}.",
    "fresh": "Send true or false.",
    "replay": "Send true or false.",
    "body": 'Send a JSON object in UTF-8 such as {"sketch": "…", "seed": 1}.',
}


class RenderAnswer(BaseModel):
    """A painting and how it came about."""

    model_config = _examples(
        {
            "painting": "iVBORw0KGgo=",
            "paint_fraction": 0.18,
            "shapes": 1,
            "js_errors": [],
            "timings": {"wait": 0.0, "load": 0.01, "setup": 0.05, "draw": 0.2, "wall": 0.3},
            "cpu_seconds": 0.35,
            "peak_memory_bytes": 181403648,
            "seed": 1,
            "rasterizer": "ANGLE (Mesa, llvmpipe); 2D on the CPU",
            "versions": {"p5": "2.3.4", "p5.brush": "2.2.2"},
            "cached": False,
        }
    )

    painting: str = Field(
        description="The PNG file, RGB on white, in base64.",
        json_schema_extra={"contentEncoding": "base64", "contentMediaType": "image/png"},
    )
    paint_fraction: float = Field(ge=0, le=1, description="Share of pixels that are paint.")
    shapes: int = Field(ge=0, description="Shapes that p5.brush filled or washed.")
    js_errors: tuple[str, ...] = Field(
        description="What the sketch's JavaScript reported, one line each, in order."
    )
    timings: dict[str, float] = Field(description="Seconds by phase.")
    cpu_seconds: float = Field(ge=0, description="CPU seconds that the sketch is charged with.")
    peak_memory_bytes: int | None = Field(
        ge=0, description="Highest resident memory of the page's process while it painted."
    )
    seed: int | None = Field(ge=0, description="The seed that was asked for.")
    rasterizer: str = Field(
        description="What turned shapes into pixels; never compare paintings across two."
    )
    versions: dict[str, str] = Field(
        description="Of libraries, patch, harness and browser: what a painting depends on."
    )
    cached: bool = Field(description="Whether the renderer had painted the same before.")
    replay: Replay | None = Field(
        default=None, description="What was painted, in order; null unless it was asked for."
    )


class Load(BaseModel):
    """How full the renderer is."""

    model_config = _examples({"slots": 2, "busy": 1, "draining": False, "refuses": None})

    slots: int = Field(ge=1, description="Sketches that may be painted at once.")
    busy: int = Field(ge=0, description="Sketches that are being painted.")
    draining: bool = Field(description="It finishes what it paints and takes no more.")
    refuses: InfrastructureReason | None = Field(
        description="Why it takes no work and will take none; null when it does."
    )


class Alive(BaseModel):
    """The process answers."""

    model_config = _examples({"status": "alive"})

    status: Literal["alive"] = "alive"


class Readiness(BaseModel):
    """What is ready, and on what it stands."""

    model_config = _examples(
        {
            "status": "ready",
            "slots": 2,
            "warm": 2,
            "busy": 0,
            "draining": False,
            "rasterizer": "ANGLE (Mesa, llvmpipe); 2D on the CPU",
            "versions": {"p5": "2.3.4", "p5.brush": "2.2.2"},
            "sandbox": True,
            "isolation": {
                "network": "own",
                "sandbox": "on",
                "limits": "cgroup",
                "remarks": {},
            },
        }
    )

    status: Literal["ready", "unready"] = Field(description="Whether work is taken.")
    slots: int = Field(ge=1, description="Sketches that may be painted at once.")
    warm: int = Field(
        ge=0, description="Slots that have painted the warm-up sketch and are not being replaced."
    )
    busy: int = Field(ge=0, description="Sketches that are being painted.")
    draining: bool = Field(description="It finishes what it paints and takes no more.")
    rasterizer: str | None = Field(description="Null until the browser has said it.")
    versions: dict[str, str] = Field(description="Empty until the browser runs.")
    sandbox: bool | None = Field(
        description="Whether Chromium's own sandbox is on; null until the browser runs."
    )
    isolation: dict[str, JsonValue] = Field(
        description="What keeps the browser apart from the machine: its network (`own` or "
        "`host`), its sandbox (`on`, `off` or `unknown`), its limits (`cgroup` or `rlimits`), and "
        "why any of them is weaker than it might be."
    )


class Problem(BaseModel):
    """Problem details (RFC 9457) with a stable reason."""

    model_config = ConfigDict(extra="forbid")

    type: str = Field(pattern=f"^{PROBLEM}", description="A stable URN: the prefix and the reason.")
    title: str = Field(description="The kind of problem, in a few words.")
    status: int = Field(ge=400, le=599, description="The answer's HTTP status.")
    detail: str = Field(description="One or two sentences for a person.")


class Mistake(BaseModel):
    """One thing that is wrong with a request."""

    model_config = ConfigDict(extra="forbid")

    field: str = Field(description="Where: a field's name, or body.")
    value: str | int | float | bool | None = Field(
        description=f"What was sent, cut at {ECHO} characters; null when nothing was."
    )
    problem: str = Field(description="What is wrong with it.")
    remedy: str = Field(description="What to send instead.")


class MalformedProblem(Problem):
    """400: the request is malformed."""

    model_config = _examples(
        {
            "type": f"{PROBLEM}MalformedRequest",
            "title": "The request is malformed",
            "status": 400,
            "reason": "MalformedRequest",
            "detail": f"size=9000: should be less than or equal to 2048. {REMEDIES['size']}",
            "errors": [
                {
                    "field": "size",
                    "value": 9000,
                    "problem": "should be less than or equal to 2048",
                    "remedy": REMEDIES["size"],
                }
            ],
        }
    )

    reason: Literal[Refusal.MALFORMED_REQUEST] = Refusal.MALFORMED_REQUEST
    errors: tuple[Mistake, ...] = Field(min_length=1, description="Everything that is wrong.")


class SketchProblem(Problem):
    """422: the sketch is at fault, and nothing else."""

    model_config = _examples(
        {
            "type": f"{PROBLEM}SketchFault",
            "title": "The sketch is at fault",
            "status": 422,
            "reason": "SketchFault",
            "detail": "ReferenceError: oops is not defined",
            "violation": {
                "code": "render_failed",
                "message": "ReferenceError: oops is not defined",
                "line": 3,
                "column": 5,
            },
            "js_errors": ["setup: ReferenceError: oops is not defined (line 3, column 5)"],
        }
    )

    reason: Literal[Refusal.SKETCH_FAULT] = Refusal.SKETCH_FAULT
    violation: Violation = Field(description="Code, message and place.")
    js_errors: tuple[str, ...] = Field(description="What its JavaScript reported before it ended.")


class BusyProblem(Problem):
    """429: every slot paints."""

    model_config = _examples(
        {
            "type": f"{PROBLEM}Busy",
            "title": "Every slot paints",
            "status": 429,
            "reason": "Busy",
            "detail": "All 2 slots paint.",
        }
    )

    reason: Literal[Refusal.BUSY] = Refusal.BUSY


class InfrastructureProblem(Problem):
    """503: the infrastructure is at fault; the sketch is not judged."""

    model_config = _examples(
        {
            "type": f"{PROBLEM}RenderDeadline",
            "title": "The infrastructure is at fault",
            "status": 503,
            "reason": "RenderDeadline",
            "detail": "the deadline of 60 s passed after 3.1 of 20 CPU seconds.",
            "taken": True,
        }
    )

    reason: InfrastructureReason = Field(description="Why.")
    taken: bool = Field(
        description="False when nothing of the job was begun, as when the renderer drains."
    )


class UnreadyProblem(InfrastructureProblem):
    """503 of ``/readyz``: no work is taken now."""

    model_config = _examples(
        {
            "type": f"{PROBLEM}RendererUnavailable",
            "title": "The infrastructure is at fault",
            "status": 503,
            "reason": "RendererUnavailable",
            "detail": "The browser is starting.",
            "taken": False,
            "details": {
                "status": "unready",
                "slots": 2,
                "warm": 0,
                "busy": 0,
                "draining": False,
                "rasterizer": None,
                "versions": {},
                "sandbox": None,
                "isolation": {},
            },
        }
    )

    details: Readiness = Field(description="What is ready and what is not.")


class PathProblem(Problem):
    """404 and 405: there is no such path or method."""

    reason: Literal[Refusal.NOT_FOUND, Refusal.METHOD_NOT_ALLOWED] = Field(description="Which.")
