"""The cold start by itself: it makes an adapter, from which any number of runs can begin.

    watercolour sft -f run.yaml --out FOLDER

Where ``spec.trainer.processes`` asks for several, this module is what each of them runs.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from peft import get_peft_model

from watercolour import logs, service
from watercolour.api import dump, load
from watercolour.api.errors import InfrastructureError, InputError, WatercolourError
from watercolour.api.reasons import Reason
from watercolour.api.spec import RunSpec, WatercolourRun
from watercolour.train import delta, generation, head, last_words, launch, residual, teaching
from watercolour.train import policy as policies
from watercolour.train.coldstart import Outcome, Tell
from watercolour.train.files import disk_full_named
from watercolour.train.progress import Progress
from watercolour.train.ranks import Ranks, joined

log = logs.get(__name__)

PROGRAM = (sys.executable, "-m", "watercolour.train.coldrun")
#: Seconds between two lines about how far it is.
SAY_SECONDS = 5.0
ALONE = Ranks()


def adapter(spec: RunSpec, out: Path, tell: Tell, ranks: Ranks = ALONE) -> Outcome:
    """Make an adapter by the cold start alone, to be named in ``spec.model.adapter`` of runs.

    Args:
        spec: model, prompts, adapter and corpus.
        out: receives the adapter, in PEFT's form, and sft.json; empty or not there.
        tell: hears of each step.
        ranks: those that share the training.

    Raises:
        InputError: the policy, the engine or the corpus cannot be used, or the folder.
        InfrastructureError: the disk is full (DiskFull), or as of
            :func:`watercolour.train.teaching.teach`.
    """
    with ranks.agreed():
        if ranks.first:
            make_empty(out)
    ranks.limit_threads()
    policy = policies.load(spec.model, spec.trainer.lora)
    head.install()
    if policy.model.device.type != "cpu":
        delta.install()
        residual.widen(policy.model)
    torch.manual_seed(spec.seed)
    model: Any = policy.model
    adapted: Any = model if policy.lora is None else get_peft_model(model, policy.lora)
    engine = generation.engine_of(_alone(spec), policy, None, out, ranks, adapted)
    outcome = teaching.teach(spec, policy, adapted, engine, tell, ranks)
    with ranks.agreed():
        if ranks.first:
            save(adapted, outcome, out)
    return outcome


def _alone(spec: RunSpec) -> RunSpec:
    """Without a server: it looks for adapters in the folder of a run."""
    if spec.trainer.engine != "vllm":
        return spec
    auto = spec.trainer.model_copy(update={"engine": "auto", "vllm": None})
    return spec.model_copy(update={"trainer": auto})


def make_empty(out: Path) -> None:
    """Make the folder, before any time is spent, and never write over anything.

    Raises:
        InputError: it holds something, or cannot be made (InvalidInput).
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        taken = next(out.iterdir(), None)
    except OSError as error:
        raise _unusable(
            out, f"no folder can be made there ({error.strerror})", "Name another folder."
        ) from error
    if taken is not None:
        raise _unusable(
            out,
            "it holds an adapter" if (out / policies.ADAPTER_FILE).exists() else "it is not empty",
            "Name another folder, or remove this one first.",
        )


def _unusable(out: Path, fault: str, remedy: str) -> InputError:
    return InputError(
        Reason.INVALID_INPUT, f"--out={out}: {fault}.", remedy=remedy, field="out", value=str(out)
    )


def save(adapted: Any, outcome: Outcome, out: Path) -> None:
    """Write aside first, so that no half of an adapter is ever taken for one."""
    part = out / ".part"
    try:
        with disk_full_named(f"the adapter {out}"):
            adapted.save_pretrained(part)
            teaching.write(outcome, part)
        policies.require_whole(adapted, part / policies.ADAPTER_FILE)
        for file in part.iterdir():
            file.rename(out / file.name)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def shown(say: Callable[[str], None]) -> Tell:
    """Says now and then how far it is."""
    began = told = 0.0

    def tell(step: int, steps: int, loss: float, passing: float | None) -> None:
        nonlocal began, told
        now = time.monotonic()
        began = began or now
        if now - told < SAY_SECONDS and step < steps:
            return
        told = now
        gate = "" if passing is None else f"  gate {passing:.0%}"
        left = (now - began) / max(1, step - 1) * (steps - step)
        say(f"step {step}/{steps}  loss {loss:.3f}{gate}  at most {left:.0f} s left")

    return tell


def by_several(wanted: WatercolourRun, out: Path) -> Outcome:
    """As :func:`adapter`, by as many processes as ``spec.trainer.processes`` says, one a GPU.

    Raises:
        InputError: as there.
        InfrastructureError: as there, or one of them was killed (ComponentDied).
        KeyboardInterrupt: they were stopped by a signal.
    """
    make_empty(out)
    with tempfile.TemporaryDirectory(prefix="watercolour-") as folder:
        spec, words = Path(folder, "run.yaml"), Path(folder, "words.json")
        spec.write_text(dump.to_yaml(wanted, full=True), encoding="utf-8")
        arguments = ["--spec", str(spec), "--out", str(out)]
        status = launch.run(arguments, wanted.spec, words, PROGRAM)
        if status in (130, 143):
            raise KeyboardInterrupt
        if status:
            raise _failure(status, words)
    return Outcome(**json.loads((out / teaching.FILE).read_text(encoding="utf-8")))


def _failure(status: int, words: Path) -> WatercolourError:
    if not words.exists():
        return InfrastructureError(
            Reason.COMPONENT_DIED,
            f"a process of the cold start ended with status {status}.",
            remedy="Its own words are above.",
        )
    told = json.loads(words.read_text(encoding="utf-8"))
    kind = InputError if status == InputError.exit_code else InfrastructureError
    return kind(Reason(told["reason"]), told["message"])


def main(arguments: Sequence[str] | None = None) -> int:
    """One of several processes; the exit status."""
    parser = argparse.ArgumentParser(description="Make an adapter by the cold start.")
    parser.add_argument("--spec", type=Path, required=True, help="a run's specification")
    parser.add_argument("--out", type=Path, required=True, help="folder that gets the adapter")
    parser.add_argument("--termination-log", type=Path, help="receives the last words")
    # The launcher gives them to every process; nothing is served here.
    service.add_arguments(parser)
    args = parser.parse_args(arguments)
    logs.setup("sft")
    try:
        with joined() as own:
            tell = shown(log.info if own.first else lambda _line: None)
            adapter(load.run(args.spec).spec, args.out, tell, own)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        words = last_words.of_failure(error, Progress("", 0))
        last_words.write(args.termination_log, words)
        if not isinstance(error, WatercolourError):
            raise
        return error.exit_code
    return 0


if __name__ == "__main__":
    launch.program(main)
