"""Train a policy: the process that a run's trainer is, here as in a cluster.

    python -m watercolour.train.run --spec run.yaml --env URL --out runs/NAME [--resume]

Where ``spec.trainer.processes`` asks for several, the same command starts them and waits for them.

In a pod its last words go to the termination log, as one line of JSON: what the operator shows of
an attempt that has ended.

Exit status: 0 all steps done, 143 stopped by SIGTERM after a checkpoint, 130 by SIGINT after a
checkpoint, 1 the input is at fault, 3 the infrastructure is.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from watercolour import disk, logs, service
from watercolour.api import dump, load
from watercolour.api.errors import InputError, InterruptedRun, WatercolourError
from watercolour.api.reasons import Reason
from watercolour.api.spec import WatercolourRun
from watercolour.train import companions, last_words, launch, progress

log = logs.get(__name__)


class Stopping:
    """Remembers the signal that asked to stop; the training looks at it every token."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.signal = signal.SIGTERM

    def handle(self, number: int, _frame: FrameType | None) -> None:
        """The signal handler."""
        self.signal = signal.Signals(number)
        self.event.set()

    def __call__(self) -> bool:
        """Whether a stop was asked for."""
        return self.event.is_set()

    @property
    def exit_code(self) -> int:
        """128 and the signal's number, as a shell says it."""
        return 128 + self.signal


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    args = _parser().parse_args(words)
    logs.setup("trainer")
    stopping = Stopping()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stopping.handle)
    shown = progress.Progress("", 0)
    try:
        wanted = load.run(args.spec)
        if launch.needed(wanted.spec, os.environ):
            return launch.run(words, wanted.spec, args.termination_log)
        attempt(wanted, args, shown, stopping)
    except InterruptedRun as stopped:
        log.info("%s: %s", stopped.reason, stopped)
        last_words.write(args.termination_log, last_words.of_failure(stopped, shown))
        return stopping.exit_code
    except WatercolourError as error:
        log.error("%s: %s", error.reason, error)
        last_words.write(args.termination_log, last_words.of_failure(error, shown))
        return error.exit_code
    except Exception as error:
        last_words.write(args.termination_log, last_words.of_failure(error, shown))
        raise
    last_words.write(args.termination_log, last_words.of_success(args.out, shown))
    return 0


def attempt(
    wanted: WatercolourRun, args: argparse.Namespace, shown: progress.Progress, stopping: Stopping
) -> None:
    """One attempt at the run, its progress served meanwhile."""
    shown.run, shown.steps = wanted.metadata.name, wanted.spec.trainer.steps
    # Of the processes that share a training the first looks after the folder.
    if os.environ.get("RANK", "0") == "0":
        refuse_begun(args.out, resume=args.resume or args.resume_if_any or args.anew)
        if args.anew:
            forget_checkpoints(args.out)
        keep_spec(wanted, args.spec, args.out)
    served = progress.served(shown, args.host, args.port, args.announce)
    with logs.bind(run=wanted.metadata.name), served:
        train(wanted, args, shown, stopping)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Train a policy by GRPO against an environment.")
    parser.add_argument("--spec", type=Path, required=True, help="the run's specification")
    parser.add_argument("--env", required=True, help="base URL of the environment")
    parser.add_argument("--out", type=Path, required=True, help="the run's folder")
    resume = parser.add_mutually_exclusive_group()
    resume.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    resume.add_argument(
        "--resume-if-any",
        action="store_true",
        help="go on from the last checkpoint or, without one, begin anew in the same folder",
    )
    resume.add_argument(
        "--anew",
        action="store_true",
        help="remove what an attempt before has left in the folder, and begin",
    )
    parser.add_argument(
        "--report", action="store_true", help="leave report.html in the run's folder at the end"
    )
    parser.add_argument(
        "--termination-log",
        type=Path,
        metavar="FILE",
        help=f"receives the last words, one line of JSON (default: {last_words.TERMINATION_LOG}, "
        "where that exists)",
    )
    service.add_arguments(parser)
    return parser


def refuse_begun(out: Path, *, resume: bool) -> None:
    """Never write over a run.

    Raises:
        InputError: the folder holds one and no resume was asked for (RunExists).
    """
    begun = (out / "metrics.csv").exists() or any(out.glob("checkpoints/*"))
    if begun and not resume:
        raise InputError(
            Reason.RUN_EXISTS,
            f"--out={out}: holds a run already.",
            remedy="Go on with --resume, or name another folder.",
            field="out",
            value=str(out),
        )


def keep_spec(wanted: WatercolourRun, source: Path, out: Path) -> None:
    """Leave the specification beside what comes of it; in a cluster it lies on another volume.

    Raises:
        InfrastructureError: the folder cannot be written (DiskFull).
    """
    kept = out / "run.yaml"
    if source.resolve() != kept.resolve():
        with disk.full_named(kept, "Make room there, or expand the claim."):
            out.mkdir(parents=True, exist_ok=True)
            disk.write_text(kept, dump.to_yaml(wanted, full=True))


def forget_checkpoints(out: Path) -> None:
    """Remove the folder's checkpoints, so that nothing can be gone on from."""
    checkpoints = out / "checkpoints"
    if checkpoints.exists():
        shutil.rmtree(checkpoints)


def train(
    wanted: WatercolourRun, args: argparse.Namespace, shown: progress.Progress, stopping: Stopping
) -> None:
    """Load the heavy libraries and train."""
    shown.enter("loading")
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from watercolour.env.client import EnvClient
    from watercolour.env.ledger import Ledger
    from watercolour.train import ranks, session

    spec, resumes = wanted.spec, args.resume or args.resume_if_any
    with ranks.joined() as own, ExitStack() as beside:
        if own.first:
            beside.enter_context(
                companions.beside(spec, args.spec, args.out, anew=not resumes, report=args.report)
            )
        # The environment counts the sessions of all together.
        most = max(spec.trainer.rollouts_per_step, spec.trainer.guards.probes)
        sessions = -(-most // own.size)
        with EnvClient(
            args.env,
            sessions=sessions,
            timeout_s=spec.env.message_timeout_seconds,
            ledger=Ledger(args.out) if own.first else None,
        ) as env:
            session.run(
                wanted,
                args.out,
                env,
                shown,
                stopping,
                resume=resumes or args.anew,
                afresh=args.resume_if_any or args.anew,
                # One asks about scorer and judge themselves, for all.
                desk=env if own.first else None,
                ranks=own,
            )


if __name__ == "__main__":
    launch.program(main)
