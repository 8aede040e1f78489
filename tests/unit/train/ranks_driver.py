"""One process of a training that several share, as the launcher starts it; run by the tests.

Its command line is the trainer's. The environment is the tests' own stage, which writes down what
it is asked, a file a rank, beside one with the number of the base model's weights that it holds.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import torch
from tests.unit.train.conftest import Stage
from torch.distributed.tensor import DTensor

from watercolour.api import load
from watercolour.api.errors import InterruptedRun, WatercolourError
from watercolour.api.rollout import Rollout
from watercolour.train import last_words, launch, policy, ranks, rollouts, run, session
from watercolour.train.progress import Progress


def held(model: torch.nn.Module) -> int:
    """Weights of a model that lie in this process."""
    parts = [one.to_local() if isinstance(one, DTensor) else one for one in model.parameters()]
    return sum(part.numel() for part in parts)


def main() -> int:
    args = run._parser().parse_args()  # pyright: ignore[reportPrivateUsage]
    asked: dict[str, Any] = json.loads(os.environ.get("ASKED", "{}"))
    args_out: Path = args.out
    torch.set_num_threads(1)
    stopping = run.Stopping()
    signal.signal(signal.SIGTERM, stopping.handle)
    rollouts.STOP_SECONDS = 1.0
    wanted = load.run(args.spec)
    shown = Progress("test", wanted.spec.trainer.steps)
    away = [tuple(one) for one in asked.get("away", [])]
    stage = Stage(away=lambda *place: place in away)
    with ranks.joined() as own:
        if own.rank == asked.get("dies"):
            raise SystemExit(7)
        real = stage.submit

        def submit(completion: str, **ids: Any) -> Any:
            if [own.rank, ids["step"]] == asked.get("terminated"):
                # As a pod is told to go: one of them, in the middle of its work, and what paints
                # hangs, as when it goes too.
                os.kill(os.getpid(), signal.SIGTERM)
                return Future[Rollout]()
            return real(completion, **ids)

        stage.submit = submit  # pyright: ignore[reportAttributeAccessIssue]
        load_policy = policy.load

        def counted(*args: Any, **more: Any) -> policy.Policy:
            loaded = load_policy(*args, **more)
            (args_out / f"held-{own.rank}.json").write_text(json.dumps(held(loaded.model)))
            return loaded

        policy.load = counted
        try:
            session.run(
                wanted,
                args.out,
                stage,
                shown,
                stopping,
                resume=args.resume,
                ranks=own,
            )
        except InterruptedRun as error:
            last_words.write(args.termination_log, last_words.of_failure(error, shown))
            return stopping.exit_code if stopping() else 143
        except WatercolourError as error:
            last_words.write(args.termination_log, last_words.of_failure(error, shown))
            return error.exit_code
        finally:
            seen = [[one.step, one.group, one.index, one.reward] for one in stage.seen]
            (args.out / f"seen-{own.rank}.json").write_text(json.dumps(seen))
    last_words.write(args.termination_log, last_words.of_success(args.out, shown))
    return 0


if __name__ == "__main__":
    Path(sys.argv[sys.argv.index("--out") + 1]).mkdir(parents=True, exist_ok=True)
    launch.program(main)
