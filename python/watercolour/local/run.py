"""Run a specification on this machine, with the processes that a cluster would run as pods."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import httpx

from watercolour.api import dump, load, locality
from watercolour.api.errors import InfrastructureError, InputError, InterruptedRun
from watercolour.api.reasons import Reason
from watercolour.api.spec import RunSpec, WatercolourRun
from watercolour.api.status import Progress
from watercolour.env import inputs
from watercolour.local import files
from watercolour.local.memory import tree_mib
from watercolour.local.processes import Service, Supervisor, death, renderer_python
from watercolour.local.progress import Display
from watercolour.reward import recipes
from watercolour.reward.recipe import differences, plain

#: Exit status of the trainer after SIGTERM and a checkpoint.
CHECKPOINTED = 143
START_SECONDS = 180.0
LOOK_SECONDS = 0.5
MEMORY_SECONDS = 5.0
#: What may be restarted, how often in a run. A renderer is expected to die now and then.
RESTARTS = {"renderer": 20, "scorer": 5, "env": 5}
#: Parts of a specification that a resumed run must share with what it resumes.
IMMUTABLE = ("seed", "model", "prompts", "recipe", "references")


@dataclass(frozen=True)
class Finished:
    """A run that reached its last step."""

    folder: Path
    summary: dict[str, Any]


@dataclass
class Stops:
    """Counts requests to stop (SIGINT, SIGTERM).

    While ``gentle`` is set, the first request is only counted, so that the trainer can write its
    checkpoint; any other raises KeyboardInterrupt where the process happens to be.
    """

    gentle: bool = False
    count: int = 0
    previous: dict[int, Any] = field(default_factory=dict[int, Any])

    def handle(self, _signal: int, _frame: FrameType | None) -> None:
        """The signal handler."""
        self.count += 1
        if not self.gentle or self.count > 1:
            raise KeyboardInterrupt


@contextmanager
def stop_requests() -> Generator[Stops]:
    """Handle SIGINT and SIGTERM inside the block."""
    stops = Stops()
    for number in (signal.SIGINT, signal.SIGTERM):
        stops.previous[number] = signal.signal(number, stops.handle)
    try:
        yield stops
    finally:
        for number, handler in stops.previous.items():
            signal.signal(number, handler)


@dataclass(frozen=True)
class Programs:
    """How each component is started; their options are added."""

    renderer: tuple[str, ...]
    scorer: tuple[str, ...] = (sys.executable, "-m", "watercolour.score.service")
    env: tuple[str, ...] = (sys.executable, "-m", "watercolour.env.server")
    trainer: tuple[str, ...] = (sys.executable, "-m", "watercolour.train.run")


def programs(renderer: Path | None = None, *, paints: bool = True) -> Programs:
    """The real ones.

    Args:
        renderer: interpreter of the renderer's environment, unless it is found by itself.
        paints: whether the run's recipe has anything painted; otherwise none is looked for.

    Raises:
        InfrastructureError: the renderer's environment is missing (BrowserMissing).
    """
    if not paints:
        return Programs(())
    return Programs((str(renderer_python(renderer)), "-m", "watercolour.render.service"))


def run(
    wanted: WatercolourRun,
    display: Display,
    by: Programs,
    *,
    resume: bool = False,
    judge_key_file: Path | None = None,
    again: str = "",
) -> Finished:
    """Train until the last step, then return the summary.

    Args:
        wanted: the run.
        display: told of events and progress.
        by: how the components are started.
        resume: go on from the run's last checkpoint.
        judge_key_file: holds the bearer token of a hosted judge.
        again: the command that resumes this run, for messages.

    Raises:
        InputError: the folder holds a run already (RunExists), nothing can be resumed
            (CheckpointMissing), the specification changed what a resume must keep (InvalidSpec), or
            what :func:`watercolour.env.inputs.require` refuses.
        InterruptedRun: stopped by SIGINT or SIGTERM; ``remedy`` says how to go on.
        InfrastructureError: a component ended for good (ComponentDied), or what it said itself.
    """
    began = time.monotonic()
    locality.require_one_machine(wanted)
    # Before a browser starts that nobody will need.
    inputs.require(wanted.spec)
    files.read_key(judge_key_file)
    folder = Path(wanted.spec.artifacts.path) / wanted.metadata.name
    prepare(folder, wanted, resume=resume)
    with locked(folder), stop_requests() as stops:
        write_spec(folder, wanted)
        for path in locality.passed_over(wanted):
            display.say(f"{path} speaks of a cluster and is passed over here")
        peak = _Peak()
        try:
            with Supervisor(folder / "logs") as supervisor:
                _start(supervisor, folder, wanted.spec, by, judge_key_file, display)
                code = _train(supervisor, folder, by, resume, display, stops, peak)
                display.say("stopping")
                supervisor.stop(["env", "scorer", "renderer"])
                restarts = dict(supervisor.restarted)
        except KeyboardInterrupt:
            raise interrupted(folder, again) from None
        if code == CHECKPOINTED:
            raise interrupted(folder, again)
        wall = time.monotonic() - began
        summary = complete_summary(folder, peak.mib, restarts, wall)
    return Finished(folder, summary)


def prepare(folder: Path, wanted: WatercolourRun, *, resume: bool) -> None:
    """Make the run's folder, or refuse it.

    Raises:
        InputError: see :func:`run`.
    """
    name = wanted.metadata.name
    if resume:
        if not has_checkpoint(folder):
            raise InputError(
                Reason.CHECKPOINT_MISSING,
                f"--resume: {folder} holds no checkpoint.",
                remedy="Start the run without --resume.",
                field="resume",
                value=str(folder),
            )
        _require_same(folder, wanted)
    elif has_begun(folder):
        raise InputError(
            Reason.RUN_EXISTS,
            f"metadata.name={name}: {folder} holds a run of that name.",
            remedy="Go on with it by --resume, or choose another name with --name.",
            field="metadata.name",
            value=name,
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            Reason.INVALID_SPEC,
            f"spec.artifacts.path={wanted.spec.artifacts.path}: cannot be made into a folder "
            f"({error.strerror}).",
            remedy="Name a folder that this user may write to.",
            field="spec.artifacts.path",
            value=wanted.spec.artifacts.path,
        ) from error


def has_begun(folder: Path) -> bool:
    """Whether a run has left results there: a start that failed has not."""
    return (folder / "metrics.csv").exists() or has_checkpoint(folder)


def has_checkpoint(folder: Path) -> bool:
    """Whether there is a checkpoint to resume from."""
    return any(entry.is_dir() for entry in _entries(folder / "checkpoints"))


def _entries(folder: Path) -> Iterator[Path]:
    return folder.iterdir() if folder.is_dir() else iter(())


def _require_same(folder: Path, wanted: WatercolourRun) -> None:
    stored = folder / "run.yaml"
    if not stored.exists():
        return
    before, now = load.run(stored).spec, wanted.spec
    for part in IMMUTABLE:
        if getattr(before, part) != getattr(now, part):
            apart = _recipe_differences(before, now) if part == "recipe" else ""
            raise InputError(
                Reason.INVALID_SPEC,
                f"spec.{part}: differs from the run that is resumed ({stored}){apart}.",
                remedy=f"Put spec.{part} back, or start another run with --name.",
                field=f"spec.{part}",
                value=part,
            )


def _recipe_differences(before: RunSpec, now: RunSpec) -> str:
    """What two specifications' recipes differ in, each weight by name."""
    pair = [plain(recipes.get(spec.recipe)) for spec in (before, now)]
    found = differences(*pair)
    return f": {'; '.join(found)}" if found else ""


def write_spec(folder: Path, wanted: WatercolourRun) -> None:
    """Write the whole specification, defaults and all, as ``run.yaml``."""
    write_whole(folder / "run.yaml", dump.to_yaml(wanted, full=True))


def write_whole(path: Path, text: str) -> None:
    """Replace a file such that a reader sees the old or the new one."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Hold the run's folder; the kernel lets go of it when this process dies.

    Raises:
        InputError: another process holds it (RunExists).
    """
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(
                Reason.RUN_EXISTS,
                f"metadata.name={folder.name}: this run is going on in another process.",
                remedy="Wait for it, or choose another name with --name.",
                field="metadata.name",
                value=folder.name,
            ) from error
        yield


def _start(
    supervisor: Supervisor,
    folder: Path,
    spec: RunSpec,
    by: Programs,
    judge_key_file: Path | None,
    display: Display,
) -> None:
    """Bring renderer, scorer and env up, in the order in which they need one another."""
    paints = recipes.get(spec.recipe).paints
    display.say("starting the renderer and the scorer")
    if paints:
        supervisor.start(_renderer(by, spec))
    scorer = ""
    if needs_scorer(spec):
        supervisor.start(_service("scorer", by.scorer, "--backend", "embedded"))
        supervisor.wait_announced(["scorer"], START_SECONDS)
        scorer = supervisor.processes["scorer"].url
    if paints:
        supervisor.wait_announced(["renderer"], START_SECONDS)
    options = {
        "--spec": folder / "run.yaml",
        "--renderer": supervisor.processes["renderer"].url if paints else None,
        "--scorer": spec.scorer.endpoint or scorer,
        "--judge": spec.judge.endpoint or scorer,
        "--judge-key-file": judge_key_file,
        "--verdicts": folder / "verdicts.sqlite",
    }
    given = [word for name, value in options.items() if value for word in (name, str(value))]
    supervisor.start(_service("env", by.env, *given))
    display.say("waiting until they are ready")
    supervisor.wait_ready(list(supervisor.processes), START_SECONDS)


def _renderer(by: Programs, spec: RunSpec) -> Service:
    wanted = spec.renderers
    return renderer_service(by.renderer, wanted.slots, allow_unsandboxed=wanted.allow_unsandboxed)


def needs_scorer(spec: RunSpec) -> bool:
    """Whether the run wants the embedded scorer, which is the embedded judge as well."""
    recipe, scorer, judge = recipes.get(spec.recipe), spec.scorer, spec.judge
    return (
        scorer.backend == "embedded" and not scorer.endpoint and bool(recipe.asks("scorer"))
    ) or (judge.backend == "embedded" and not judge.endpoint and bool(recipe.asks("judge")))


def renderer_service(
    program: tuple[str, ...], slots: int, *, allow_unsandboxed: bool, max_scale: int = 1
) -> Service:
    """A renderer with that many slots."""
    options = ["--slots", str(slots)]
    options += ["--allow-unsandboxed"] * allow_unsandboxed
    options += ["--max-scale", str(max_scale)] if max_scale > 1 else []
    return _service("renderer", program, *options)


def _service(name: str, program: tuple[str, ...], *options: str) -> Service:
    # The trainer gets time to write a checkpoint.
    seconds = 120.0 if name == "trainer" else 15.0
    command = (*program, *options)
    return Service(name, command, restarts=RESTARTS.get(name, 0), stop_seconds=seconds)


@dataclass
class _Peak:
    """Greatest memory of this process and all below it, in MiB."""

    mib: float = 0.0
    next_at: float = 0.0

    def sample(self) -> None:
        if time.monotonic() >= self.next_at:
            self.mib = max(self.mib, tree_mib(os.getpid()))
            self.next_at = time.monotonic() + MEMORY_SECONDS


def _train(
    supervisor: Supervisor,
    folder: Path,
    by: Programs,
    resume: bool,
    display: Display,
    stops: Stops,
    peak: _Peak,
) -> int:
    """Run the trainer to its end; 0, or CHECKPOINTED after a request to stop."""
    options = ["--spec", str(folder / "run.yaml"), "--out", str(folder)]
    options += ["--env", supervisor.processes["env"].url, *(["--resume"] if resume else [])]
    trainer = supervisor.start(_service("trainer", by.trainer, *options))
    display.say("starting the trainer")
    supervisor.wait_announced(["trainer"], START_SECONDS)
    watched = [name for name in supervisor.processes if name != "trainer"]
    peak.sample()
    stops.gentle = True
    asked = False
    with httpx.Client(timeout=2.0, trust_env=False) as http:
        while (code := supervisor.poll(trainer)) is None:
            if stops.count and not asked:
                asked = True
                display.say("stopping after a checkpoint; Ctrl-C again stops at once")
                supervisor.terminate("trainer")
            for name in supervisor.restart_dead(watched):
                display.say(f"{name} ended and was started again")
            _show(http, trainer.url, supervisor.processes["env"].url, display)
            peak.sample()
            supervisor.wait(LOOK_SECONDS)
    if code not in (0, CHECKPOINTED):
        raise death(trainer)
    return code


def _show(http: httpx.Client, trainer: str, env: str, display: Display) -> None:
    """Show the trainer's progress with the environment's queue, if both answer now."""
    try:
        progress, queue = http.get(f"{trainer}/progress"), http.get(f"{env}/v1/demand")
    except httpx.TransportError:
        # Busy, ended or just being restarted; the next look tells.
        return
    if progress.status_code == 200 and queue.status_code == 200:
        display.update(Progress.model_validate({**progress.json(), "queue": queue.json()}))


def interrupted(folder: Path, again: str) -> InterruptedRun:
    """The error that says whether and how the run can be resumed."""
    if has_checkpoint(folder):
        return InterruptedRun(
            Reason.INTERRUPTED,
            f"{folder.name} was stopped after a checkpoint.",
            remedy=f"Go on with: {again}" if again else "Go on with --resume.",
        )
    return InterruptedRun(
        Reason.INTERRUPTED,
        f"{folder.name} was stopped before its first checkpoint.",
        remedy="Start it again.",
    )


def complete_summary(
    folder: Path, peak_mib: float, restarts: dict[str, int], wall_seconds: float
) -> dict[str, Any]:
    """Add to the trainer's summary.json what only the supervisor knows.

    Args:
        folder: the run's folder.
        peak_mib: memory of all processes; an earlier attempt's greater peak stays.
        restarts: of components, by name, in this attempt.
        wall_seconds: of this attempt, from the command to the last step.

    Raises:
        InfrastructureError: the trainer left none (ArtifactsDamaged).
    """
    path = folder / "summary.json"
    try:
        summary: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InfrastructureError(
            Reason.ARTIFACTS_DAMAGED,
            f"{path}: the trainer ended well but left no summary that can be read ({error}).",
            remedy="Go on with --resume, which writes it again.",
        ) from error
    earlier = summary.get("peak_memory_mib") or 0.0
    summary["peak_memory_mib"] = round(max(peak_mib, earlier), 1)
    summary["restarts"] = restarts
    summary["wall_seconds"] = round(wall_seconds, 1)
    write_whole(path, json.dumps(summary, indent=2) + "\n")
    return summary
