"""One attempt at a run, from the policy to the summary, read from top to bottom."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from datasets import Dataset

from watercolour import logs
from watercolour.api.errors import (
    InputError,
    InterruptedRun,
    WatercolourError,
)
from watercolour.api.reasons import Reason
from watercolour.api.spec import RunSpec, Sft, WatercolourRun
from watercolour.reward import recipes
from watercolour.reward.recipe import Recipe, differences, plain
from watercolour.train import (
    artifacts,
    asking,
    batches,
    checkpoint,
    delta,
    engines,
    generation,
    gpu_memory,
    grpo,
    head,
    judgecheck,
    preflight,
    reckoning,
    residual,
    settings,
    summary,
    teaching,
)
from watercolour.train import policy as policies
from watercolour.train.drift import Probes
from watercolour.train.files import write_text
from watercolour.train.progress import Progress
from watercolour.train.ranks import Ranks, is_agreed
from watercolour.train.rollouts import LOOK_SECONDS, Environment, Group, Painter
from watercolour.train.trainer import Limits, Session, Trainer

log = logs.get(__name__)

ALONE = Ranks()


class Desk(Protocol):
    """What the trainer may ask of the environment about scorer and judge themselves."""

    def submit_self_check(self) -> Future[dict[str, Any] | None]:
        """Whether the judge can judge; None if nobody answers."""
        ...

    def submit_probes(self) -> Future[dict[str, Any] | None]:
        """Scores of the same few paintings; None if nobody answers."""
        ...


def run(
    wanted: WatercolourRun,
    out: Path,
    env: Environment,
    progress: Progress,
    stopping: Callable[[], bool],
    *,
    resume: bool,
    afresh: bool = False,
    desk: Desk | None = None,
    ranks: Ranks = ALONE,
) -> None:
    """Train until the last step and write the summary.

    Args:
        wanted: the run.
        out: its folder.
        env: where replies become rollouts.
        progress: is told how far it is.
        stopping: whether a stop was asked for.
        resume: go on from the newest whole checkpoint.
        afresh: without one, begin anew; what an attempt before the first checkpoint left in the
            folder is removed.
        desk: whom to ask about scorer and judge themselves; nobody if None.
        ranks: the processes that share the training, this one among them.

    Raises:
        InputError: the specification, the policy or what is to be resumed is at fault.
        InterruptedRun: ``stopping`` became true; there is a checkpoint if there was a step.
        InfrastructureError: the run cannot go on; there is a checkpoint if there was a step.
    """
    spec, name = wanted.spec, wanted.metadata.name
    ranks.limit_threads()
    # Before minutes are spent on reading the weights.
    settings.check(spec.trainer.grpo)
    parts = ranks.size if spec.trainer.fsdp else 1
    policy = policies.load(spec.model, spec.trainer.lora, parts)
    on_cpu = policy.model.device.type == "cpu"
    head.install()
    if not on_cpu:
        delta.install()
        residual.widen(policy.model)
    recipe = recipes.get(spec.recipe)
    whole = policy.small or (not on_cpu and settings.packs(spec.trainer.grpo))
    plan = batches.plan(spec, whole=whole, processes=ranks.size)
    config = settings.config(spec, plan, out, on_cpu=on_cpu)
    resumed = _resumed(spec, out, missing_ok=afresh) if resume else None
    ask = partial(asking.tokens_of, spec, policy)
    engine_for = partial(
        generation.engine_of, spec, policy, config.cache_implementation, out, ranks
    )
    painter = _painter(spec, name, policy, engine_for(policy.model), env, stopping, ranks)
    painter.generated = partial(progress.enter, "painting")
    painter.completed = partial(reckoning.completed, recipe)
    steps = checkpoint.step_of(resumed) if resumed else 0
    if resumed:
        progress.resumed(steps)
        progress.saved(steps, resumed)
    with ranks.agreed():
        # Only the first removes what lies behind the checkpoint, and only it writes.
        if resume and ranks.first:
            checkpoint.put_aside(out)
        files = artifacts.reopen(out, steps) if resume and ranks.first else artifacts.Artifacts(out)
    session = Session(
        batches=plan,
        painter=painter,
        groups_of=partial(groups_of, spec, plan, ask),
        artifacts=files,
        progress=progress,
        limits=_limits(spec),
        stopping=stopping,
        flat_steps_teach=config.beta != 0 or config.entropy_coef != 0,
        kl=settings.kl(spec),
        correction=settings.correction(spec, config),
        ranks=ranks,
        memory=_memory(resumed, recipe),
    )
    trainer = grpo.build(policy, config, dataset(spec, plan), session)
    # The trainer has wrapped the policy: generation must see the adapter.
    painter.engine = engine_for(trainer.adapted)
    # The answer comes while the policy learns its first sketches.
    asked = desk.submit_self_check() if desk and spec.judge.self_check != "Off" else None
    if desk is not None and spec.trainer.guards.drift_every:
        session.probes = Probes(desk.submit_probes, out, spec.trainer.guards.drift_every)
    if resumed is None and spec.sft is not None:
        _cold_start(spec, policy, trainer, painter, progress, out)
        if config.beta != 0:
            policies.keep_reference(trainer.adapted)
        session.memory = replace(session.memory, sft=_plain(spec.sft))
        trainer.save_if_room()
    elif resumed is not None and steps == 0:
        trainer.begin_from(resumed)
    with ranks.agreed():
        if asked is not None:
            while wait([asked], timeout=LOOK_SECONDS).not_done:
                painter.stop()
            judgecheck.require(asked.result(), spec.judge, out, progress)
    if steps == 0 and spec.trainer.guards.probes:
        _preflight(spec, painter, ask, progress, out)
    _train(trainer, session, resumed, steps)
    with ranks.agreed():
        if ranks.first:
            _write_summary(out, session, resumed is not None)
    # Last, so that a disk too full for the final checkpoint costs that alone.
    trainer.save_whole()
    progress.enter("done")


def _resumed(spec: RunSpec, out: Path, *, missing_ok: bool) -> Path | None:
    """What to go on from; None to begin anew, as after another cold start than is asked for.

    Raises:
        InputError: there is no whole checkpoint, and that may not be (CheckpointMissing).
    """
    found = checkpoint.latest(out, missing_ok=missing_ok)
    if found is None or checkpoint.step_of(found) > 0:
        return found
    if checkpoint.read_memory(found).sft == _plain(spec.sft):
        return found
    log.warning("%s was made by another spec.sft: the run begins anew.", found)
    return None


def _plain(sft: Sft | None) -> dict[str, Any] | None:
    return None if sft is None else sft.model_dump(mode="json")


def _memory(resumed: Path | None, recipe: Recipe) -> checkpoint.Memory:
    """What the trainer remembers, its recipe included.

    Raises:
        InputError: steps were rewarded by another recipe (InvalidSpec).
    """
    memory = checkpoint.read_memory(resumed) if resumed else checkpoint.Memory()
    now = plain(recipe)
    rewarded = resumed is not None and checkpoint.step_of(resumed) > 0
    changed = differences(memory.recipe, now) if rewarded and memory.recipe else []
    if changed:
        raise InputError(
            Reason.INVALID_SPEC,
            f"spec.recipe: is not the one of {resumed}: {'; '.join(changed)}.",
            remedy="Put these back, or start another run.",
            field="spec.recipe",
            value=recipe.name,
        )
    return replace(memory, recipe=now)


def _train(trainer: Trainer, session: Session, resumed: Path | None, steps: int) -> None:
    """Run the steps; whatever ends them early leaves a checkpoint of the last one behind."""
    trainer.resumed = resumed
    try:
        with gpu_memory.full_named(partial(_while_full, trainer, session.progress)):
            # Of no step there is nothing that transformers could go on from.
            trainer.train(resume_from_checkpoint=str(resumed) if steps else None)
        if trainer.state.global_step < session.batches.steps:
            raise InterruptedRun(
                Reason.INTERRUPTED,
                f"stopped after {trainer.state.global_step} steps.",
                remedy="Go on with --resume.",
            )
    except WatercolourError as error:
        # Where one process alone failed, the others cannot come to write their parts.
        full = error.reason is Reason.GPU_OUT_OF_MEMORY and not is_agreed(error.__cause__ or error)
        if (session.ranks.alone or not full) and trainer.state.global_step > steps:
            trainer.save_whole()
        raise


def _while_full(trainer: Trainer, progress: Progress) -> tuple[str, str]:
    """What was being done when the GPU was full, and the remedy."""
    rows = "" if progress.phase == "updating" else " or rolloutsPerStep"
    return (
        f"{progress.phase} in step {trainer.state.global_step}",
        f"Lower spec.trainer.sampling.maxCompletionTokens{rows}, or set spec.trainer.processes "
        "to more GPUs.",
    )


def _cold_start(
    spec: RunSpec,
    policy: policies.Policy,
    trainer: Trainer,
    painter: Painter,
    progress: Progress,
    out: Path,
) -> None:
    """Fine-tune the adapter on pairs of prompt and sketch, and say what came of it."""
    ranks = painter.ranks

    def tell(step: int, steps: int, loss: float, passing: float | None) -> None:
        figures = {"step": step, "steps": steps, "loss": loss, "gate_pass_rate": passing}
        progress.enter("sft", sft=figures)

    progress.enter("sft")
    outcome = teaching.teach(
        spec,
        policy,
        trainer.adapted,
        painter.engine,
        tell,
        ranks,
        stop=painter.stop,
        stop_together=painter.stop_together,
    )
    with ranks.agreed():
        if ranks.first:
            teaching.write(outcome, out)


def groups_of(
    spec: RunSpec, plan: batches.Batches, ask: Callable[[str], tuple[int, ...]], step: int
) -> list[Group]:
    """The groups of a step."""
    subjects = [
        batches.subject(spec.prompts.subjects, plan, step, number) for number in range(plan.groups)
    ]
    return [
        Group(number, subject, batches.draw_seed(spec.seed, step, number), ask(subject))
        for number, subject in enumerate(subjects)
    ]


def _preflight(
    spec: RunSpec,
    painter: Painter,
    ask: Callable[[str], tuple[int, ...]],
    progress: Progress,
    out: Path,
) -> None:
    """Paint a few sketches and keep what they showed, or refuse the run."""
    progress.enter("preflight")
    silent = not spec.prompts.thinking
    with gpu_memory.full_named(
        lambda: (
            "sketching probes",
            "Lower spec.trainer.sampling.maxCompletionTokens or spec.trainer.guards.probes.",
        )
    ):
        found = preflight.probe(painter, _probes(spec, ask), spec.trainer.guards, silent=silent)
    progress.enter("preflight", preflight=asdict(found))
    with painter.ranks.agreed():
        if painter.ranks.first:
            write_preflight(out, found)


def _probes(spec: RunSpec, ask: Callable[[str], tuple[int, ...]]) -> list[Group]:
    """One group a probe, the subjects in turn."""
    subjects = spec.prompts.subjects
    return [
        Group(
            number,
            subjects[number % len(subjects)],
            batches.draw_seed(spec.seed, preflight.STEP, number),
            ask(subjects[number % len(subjects)]),
        )
        for number in range(spec.trainer.guards.probes)
    ]


def _painter(
    spec: RunSpec,
    name: str,
    policy: policies.Policy,
    engine: engines.Engine,
    env: Environment,
    stopping: Callable[[], bool],
    ranks: Ranks,
) -> Painter:
    def stop() -> None:
        # One that left by itself would leave the others waiting for it.
        if ranks.alone and stopping():
            raise InterruptedRun(Reason.INTERRUPTED, "stopped while painting.")

    def stop_together() -> None:
        if not ranks.alone and ranks.any(stopping()):
            raise InterruptedRun(Reason.INTERRUPTED, "stopped after painting.")

    return Painter(
        engine=engine,
        decode=partial(policy.tokenizer.decode, skip_special_tokens=True),
        env=env,
        run=name,
        seed_of=partial(batches.row_seed, spec.seed),
        stop=stop,
        ranks=ranks,
        stop_together=stop_together,
        stopping=stopping,
    )


def _limits(spec: RunSpec) -> Limits:
    guards = spec.trainer.guards
    least, _ = recipes.get(spec.recipe).range
    return Limits(
        collapse=guards.collapse,
        max_rollbacks=guards.max_rollbacks,
        max_unscored_steps=guards.max_unscored_steps,
        least_reward=least,
        keep_checkpoints=spec.trainer.keep_checkpoints,
    )


def dataset(spec: RunSpec, plan: batches.Batches) -> Dataset:
    """One row a group, in the order of the steps; TRL repeats each for the group's members."""
    subjects = [
        batches.subject(spec.prompts.subjects, plan, step, group)
        for step in range(0, plan.rounds * plan.reuse, plan.reuse)
        for group in range(plan.groups)
    ]
    return Dataset.from_list(
        [{"prompt": asking.messages_of(spec, subject)} for subject in subjects]
    )


def write_preflight(out: Path, found: preflight.Findings) -> None:
    """Keep what the probes showed, for the summary and a resumed run."""
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / "preflight.json", json.dumps(asdict(found), indent=2) + "\n")


def _write_summary(out: Path, session: Session, resumed: bool) -> None:
    path = out / "preflight.json"
    own = {
        "seconds": round(session.seconds(), 1),
        "collapsed": session.memory.health.rollbacks > 0,
        "rollbacks": session.memory.health.rollbacks,
        "resumed": resumed,
        "preflight": json.loads(path.read_text(encoding="utf-8")) if path.exists() else None,
    }
    found = summary.summarise(out, session.artifacts.rows, own)
    write_text(out / "summary.json", json.dumps(found, indent=2) + "\n")
