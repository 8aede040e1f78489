"""What a run will create, take and cost, before anything is started. Pure.

Times come from :mod:`watercolour.local.measured` alone. What was not measured is None, and a sum
with such a part is None as well; ``notes`` say which part it was.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from watercolour.api import sizes
from watercolour.api.policy import BUILTIN
from watercolour.api.rules import quantity
from watercolour.api.sizes import Pods
from watercolour.api.spec import RunSpec, WatercolourRun
from watercolour.local import measured
from watercolour.local.measured import Painting, Training
from watercolour.reward import recipes

#: Tokens of a sketch of the published policy, which has 2,000 to 3,000.
SKETCH_TOKENS = 2500
#: Rollouts of a step at the edge of what a slot can do: waiting grows without bound at 1.
BUSY = 0.7


@dataclass(frozen=True)
class Asked:
    """What the specification does not say."""

    gpu: str = "H200"
    """Kind of GPU that the trainer and the scorer get."""
    gpu_hour: float | None = None
    """Price of a GPU-hour, in whatever money."""
    tokens: int | None = None
    """Tokens of a completion; None is SKETCH_TOKENS, or what the specification allows if less."""
    sketch: str | None = None
    """A row of the table of paintings; None is `small` for builtin policies, else `large`."""


@dataclass(frozen=True)
class Step:
    """Seconds of a step, and of the whole run; None was not measured."""

    hardware: str
    tokens: int
    generate: float | None = None
    paint: float | None = None
    """From the last row's end to the last reward, if all rows end at once."""
    update: float | None = None
    step: float | None = None
    first: float | None = None
    """Of the first step, in which everything is compiled."""
    total: float | None = None
    memory_gib: float | None = None
    tokens_per_second: float | None = None
    sources: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Renderers:
    """Slots: what the run has, and what it needs."""

    sketch: str
    cpu_seconds: float
    slot_mib: float
    pod_mib: int
    slots: int
    """Of all pods together, at most."""
    to_keep_up: int | None
    """That paint as fast as one trainer's GPUs write."""
    for_a_step: int
    """That paint a whole step at once."""
    source: str


@dataclass(frozen=True)
class Volume:
    """A claim that the run mounts."""

    name: str
    made: bool
    size: str | None = None
    storage_class: str | None = None
    kept: bool = True


@dataclass(frozen=True)
class Money:
    """What the GPUs cost; None where the time was not measured."""

    gpu_hour: float
    gpu_hours: float | None
    total: float | None
    per_100_steps: float | None


@dataclass(frozen=True)
class Plan:
    """All of it."""

    run: str
    model: str
    steps: int
    rollouts_per_step: int
    pods: tuple[Pods, ...]
    volumes: tuple[Volume, ...]
    gpus: int
    time: Step
    renderers: Renderers | None
    scorer_share: float | None
    """Share of its time that a scorer on a GPU works for this run."""
    money: Money | None = None

    def plain(self) -> dict[str, Any]:
        """The plan as one JSON object."""
        found = asdict(self)
        found["pods"] = [{**asdict(pods), "gpus": pods.gpus} for pods in self.pods]
        return found


def make(run: WatercolourRun, asked: Asked) -> Plan:
    """The plan of a run.

    Raises:
        InputError: the recipe is unknown (UnknownRecipe).
    """
    spec = run.spec
    pods = tuple(sizes.of_run(spec))
    gpus = sum(one.most * one.gpus for one in pods)
    paints = recipes.get(spec.recipe).paints
    kind = asked.sketch or ("small" if _builtin(spec) else "large")
    painting = next(row for row in measured.table().painting if row.sketch == kind)
    time = _time(spec, asked, pods, painting if paints else None)
    return Plan(
        run=run.metadata.name,
        model=spec.model.id,
        steps=spec.trainer.steps,
        rollouts_per_step=spec.trainer.rollouts_per_step,
        pods=pods,
        volumes=tuple(_volumes(run)),
        gpus=gpus,
        time=time,
        renderers=_renderers(spec, time, painting) if paints else None,
        scorer_share=_scorer_share(spec, asked, pods, time),
        money=None if asked.gpu_hour is None else _money(spec, gpus, time, asked.gpu_hour),
    )


def _builtin(spec: RunSpec) -> bool:
    return spec.model.id.startswith(BUILTIN)


def _volumes(run: WatercolourRun) -> list[Volume]:
    spec, artifacts = run.spec, run.spec.artifacts
    storage = artifacts.storage
    found = [
        Volume(artifacts.claim, made=False)
        if artifacts.claim
        else Volume("the run's own", True, storage.size, storage.class_name or None, artifacts.keep)
    ]
    checkpoint = spec.scorer.checkpoint
    others = (spec.model.cache_claim, spec.references.claim, checkpoint and checkpoint.claim)
    return [*found, *(Volume(name, made=False) for name in others if name)]


def _training(spec: RunSpec, asked: Asked) -> tuple[Training | None, str]:
    """The row of the table that fits, or why none does."""
    hardware = "cpu" if _builtin(spec) else asked.gpu
    trainer = spec.trainer
    of_model = [row for row in measured.table().training if row.model == spec.model.id]
    if not of_model:
        return None, f"the model {spec.model.id} was not measured"
    found = measured.on(of_model, hardware)
    if not found:
        return None, f"{spec.model.id} was not measured on {hardware}"
    row = found[0]
    if trainer.processes * trainer.replicas > 1:
        return None, "training by several processes was not measured"
    if trainer.engine not in row.engines:
        return None, f"engine={trainer.engine} was not measured"
    if set(trainer.lora.targets) != set(row.targets):
        return None, f"lora.targets other than {', '.join(row.targets)} were not measured"
    return row, ""


def _time(spec: RunSpec, asked: Asked, pods: tuple[Pods, ...], painting: Painting | None) -> Step:
    trainer = spec.trainer
    tokens = min(asked.tokens or SKETCH_TOKENS, trainer.sampling.max_completion_tokens)
    hardware = "cpu" if _builtin(spec) else asked.gpu
    row, why = _training(spec, asked)
    if row is None:
        return Step(hardware, tokens, notes=(f"not measured: {why}.",))
    rollouts = trainer.rollouts_per_step
    if row.step_seconds is not None and row.rollouts is not None:
        seconds = row.step_seconds * rollouts / row.rollouts
        notes = ["a whole step on two cores, paintings and scores included."]
        if rollouts != row.rollouts:
            notes.append(f"scaled from {row.rollouts} rollouts a step.")
        return Step(
            hardware,
            tokens,
            step=seconds,
            total=seconds * trainer.steps,
            memory_gib=row.memory_gi_b,
            sources=(row.source,),
            notes=tuple(notes),
        )
    notes = ["loading the weights and the scorer's was not measured and is not counted."]
    speed = measured.between(row.tokens_per_second or {1: 1.0}, rollouts)
    if row.tokens_per_second is None or speed is None:
        known = sorted(row.tokens_per_second or {})
        return Step(
            hardware,
            tokens,
            memory_gib=row.memory_gi_b,
            notes=(f"not measured: {rollouts} rows at once, only {known[0]} to {known[-1]}.",),
        )
    generate = rollouts * tokens / speed
    update: float | None = rollouts * tokens / 1000 * (row.update_seconds_per_thousand or 0.0)
    if "per_device_train_batch_size" in trainer.grpo:
        update = None
        notes.append("an update in micro-batches of its own size was not measured.")
    paint, sources = 0.0, [row.decode_source, row.source]
    if painting is not None:
        paint = _paint_seconds(spec, pods, painting)
        sources.append(painting.source)
    if spec.judge.backend == "openai" and recipes.get(spec.recipe).asks("judge"):
        notes.append("the judge's calls were not measured and are not counted.")
    step = None if update is None else generate + paint + update
    first = row.first_step_seconds or 0.0
    return Step(
        hardware,
        tokens,
        generate=generate,
        paint=paint,
        update=update,
        step=step,
        first=row.first_step_seconds,
        total=None if step is None else step * (trainer.steps - 1) + max(step, first),
        memory_gib=row.memory_gi_b,
        tokens_per_second=speed,
        sources=tuple(sources),
        notes=tuple(notes),
    )


def _slots(spec: RunSpec, pods: tuple[Pods, ...]) -> tuple[int, float]:
    """Slots of all renderers together, and the cores of one slot."""
    renderers = next(one for one in pods if one.component == "renderers")
    cores = quantity(renderers.limits["cpu"]) / spec.renderers.slots
    return renderers.most * spec.renderers.slots, min(1.0, cores)


def _paint_seconds(spec: RunSpec, pods: tuple[Pods, ...], painting: Painting) -> float:
    """Seconds in which a step's paintings are made, if all are asked for at once."""
    slots, cores = _slots(spec, pods)
    rounds = math.ceil(spec.trainer.rollouts_per_step / max(1, slots))
    return rounds * painting.cpu_seconds / cores


def _renderers(spec: RunSpec, time: Step, painting: Painting) -> Renderers:
    pods = tuple(sizes.of_run(spec))
    slots, _ = _slots(spec, pods)
    keep_up = None
    if time.tokens_per_second is not None:
        a_second = time.tokens_per_second / time.tokens
        keep_up = max(1, math.ceil(a_second * painting.cpu_seconds / BUSY))
    renderers = next(one for one in pods if one.component == "renderers")
    return Renderers(
        sketch=painting.what,
        cpu_seconds=painting.cpu_seconds,
        slot_mib=painting.slot_mi_b,
        pod_mib=sizes.mebibytes(renderers.limits),
        slots=slots,
        to_keep_up=keep_up,
        for_a_step=spec.trainer.rollouts_per_step,
        source=painting.source,
    )


def _scorer_share(spec: RunSpec, asked: Asked, pods: tuple[Pods, ...], time: Step) -> float | None:
    found = [
        row
        for row in measured.on(measured.table().scorer, asked.gpu)
        if row.backend == spec.scorer.backend
    ]
    if not found or time.step is None or not any(one.component == "scorer" for one in pods):
        return None
    rollouts = spec.trainer.rollouts_per_step
    speed = measured.between(found[0].pictures_per_second, rollouts)
    return None if speed is None else rollouts / speed / time.step


def _money(spec: RunSpec, gpus: int, time: Step, price: float) -> Money:
    hours = None if time.total is None else gpus * time.total / 3600
    total = None if hours is None else hours * price
    each = None if total is None else total / spec.trainer.steps * 100
    return Money(price, hours, total, each)


def amounts(of: Mapping[str, str]) -> str:
    """Requests or limits in words: ``4 CPU, 16Gi, 1 GPU``."""
    words = {"cpu": "{} CPU", "memory": "{}", "nvidia.com/gpu": "{} GPU"}
    return ", ".join(text.format(of[name]) for name, text in words.items() if of.get(name))
