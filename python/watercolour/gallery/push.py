"""Push a run's adapter and its model card to the hub: a process beside the trainer, or a command.

    python -m watercolour.gallery.push --spec run.yaml --out runs/NAME

It follows the run's checkpoints and pushes every so many, each as one commit, so that nobody ever
finds half of one. What fails is said and tried again with the next checkpoint, or by
``watercolour push RUN``. When its standard input ends it pushes the newest one and ends.

The token comes from WATERCOLOUR_PUSH_TOKEN, else it is the one that huggingface_hub finds.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import CommitOperationAdd, HfApi
from huggingface_hub.utils import disable_progress_bars

from watercolour import logs
from watercolour.api import load
from watercolour.api.errors import InfrastructureError, InputError, WatercolourError
from watercolour.api.lifecycle import Hub
from watercolour.api.reasons import Reason
from watercolour.api.spec import WatercolourRun
from watercolour.following import looks
from watercolour.gallery import model_card, pictures, record
from watercolour.reward.hub import told

log = logs.get(__name__)

TOKEN = "WATERCOLOUR_PUSH_TOKEN"
#: Of a checkpoint; and of the run's folder, as far as they are there.
ADAPTER, CONFIG = "adapter_model.safetensors", "adapter_config.json"
BESIDE = ("metrics.csv", "summary.json")
STRIP, CARD = "strip.png", "README.md"
#: In the run's folder: the step whose adapter the hub has.
PUSHED = ".pushed"
#: Seconds between two looks at the checkpoints; tries of a push, and seconds before the second
#: one, doubled for the third.
LOOK_SECONDS, TRIES, AGAIN_SECONDS = 2.0, 3, 5.0


@dataclass(frozen=True)
class Pushed:
    """A commit of the hub."""

    step: int
    url: str


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line of the process beside the trainer; always 0."""
    args = _parser().parse_args(arguments)
    logs.setup("pusher")
    # Standard error is a log of JSON lines.
    disable_progress_bars()
    wanted = load.run(args.spec)
    if args.anew:
        (args.out / PUSHED).unlink(missing_ok=True)
    tried: set[int] = set()
    with logs.bind(run=wanted.metadata.name):
        for more in looks(LOOK_SECONDS):
            _look(wanted, args.out, tried, last=not more)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Push a run's adapter to the hub.")
    parser.add_argument("--spec", type=Path, required=True, help="the run's specification")
    parser.add_argument("--out", type=Path, required=True, help="the run's folder")
    parser.add_argument("--anew", action="store_true", help="the run begins anew")
    return parser


def _look(wanted: WatercolourRun, out: Path, tried: set[int], *, last: bool) -> None:
    """Push the newest checkpoint if it is due, and say what came of it.

    One that failed is not tried again at each look: ``tried`` holds its step.
    """
    newest = checkpoints(out)[-1:]
    hub = wanted.spec.artifacts.hub
    if not newest or hub is None:
        return
    step = step_of(newest[0])
    number = step // wanted.spec.trainer.checkpoint_every
    due = last or (step > 0 and number % hub.every == 0 and step not in tried)
    if not due or step == pushed_step(out):
        return
    tried.add(step)
    try:
        found = push(wanted, out)
        log.info("step %d is on the hub: %s", found.step, found.url)
    except WatercolourError as error:
        log.warning("%s: %s Again by: watercolour push %s", error.reason, error, out)
    except Exception as error:
        # The boundary that keeps a push's fault from looking like the run's.
        log.warning("step %d was not pushed: %s: %s", step, type(error).__name__, error)


def checkpoints(out: Path) -> list[Path]:
    """The run's whole checkpoints, oldest first: one appears under its name when it is whole."""
    found = [path for path in (out / "checkpoints").glob("checkpoint-*") if path.is_dir()]
    return sorted((path for path in found if (path / "manifest.json").exists()), key=step_of)


def step_of(checkpoint: Path) -> int:
    """Optimizer steps done when the checkpoint was written."""
    return int(checkpoint.name.rpartition("-")[2])


def pushed_step(out: Path) -> int | None:
    """The step whose adapter the hub has; None for none."""
    path = out / PUSHED
    return int(path.read_text()) if path.exists() else None


def push(wanted: WatercolourRun, out: Path) -> Pushed:
    """Push the newest checkpoint's adapter as one commit; tried three times.

    Raises:
        InputError: the specification names no repository (InvalidSpec), there is no checkpoint
            (CheckpointMissing), or the hub refuses name or token (InvalidInput).
        InfrastructureError: the hub does not answer (HubUnavailable).
    """
    hub = wanted.spec.artifacts.hub
    if hub is None:
        raise InputError(
            Reason.INVALID_SPEC,
            "spec.artifacts.hub: names no repository.",
            remedy="Set spec.artifacts.hub.repo to owner/name.",
            field="spec.artifacts.hub",
        )
    newest = checkpoints(out)[-1:]
    if not newest:
        raise InputError(
            Reason.CHECKPOINT_MISSING,
            f"{out}: holds no whole checkpoint.",
            remedy="Push it once the run has written one.",
            field="run",
            value=str(out),
        )
    step = step_of(newest[0])
    with _linked(newest[0], out) as adapter:
        files = contents(wanted, out, adapter, step)
        for attempt in range(1, TRIES + 1):
            try:
                url = _commit(hub, files, f"Step {step} of {wanted.spec.trainer.steps}")
            except InfrastructureError:
                if attempt == TRIES:
                    raise
                time.sleep(AGAIN_SECONDS * 2 ** (attempt - 1))
                continue
            (out / PUSHED).write_text(str(step))
            return Pushed(step, url)
    raise AssertionError("unreachable")


@contextmanager
def _linked(checkpoint: Path, out: Path) -> Iterator[Path]:
    """The adapter's weights under a name of our own: the trainer deletes old checkpoints."""
    with tempfile.TemporaryDirectory(prefix=".push-", dir=out) as folder:
        target = Path(folder) / ADAPTER
        try:
            os.link(checkpoint / ADAPTER, target)
        except OSError:
            # A file system without links.
            shutil.copyfile(checkpoint / ADAPTER, target)
        shutil.copyfile(checkpoint / CONFIG, target.with_name(CONFIG))
        yield target.parent


def contents(
    wanted: WatercolourRun, out: Path, adapter: Path, step: int
) -> dict[str, bytes | Path]:
    """What the repository gets, by name."""
    files: dict[str, bytes | Path] = {name: out / name for name in BESIDE if (out / name).exists()}
    settings: dict[str, Any] = json.loads((adapter / CONFIG).read_text(encoding="utf-8"))
    # PEFT writes down where the model lay on this machine.
    settings["base_model_name_or_path"] = model_card.shown_model(wanted)
    files |= {ADAPTER: adapter / ADAPTER, CONFIG: (json.dumps(settings, indent=2) + "\n").encode()}
    rows: Sequence[model_card.Row] = ()
    try:
        found = record.read(out)
    except InputError:
        # No step has been painted yet.
        found = None
    if found is not None:
        rows = found.metrics
        picture = io.BytesIO()
        pictures.strip(found).save(picture, "PNG", optimize=True)
        files[STRIP] = picture.getvalue()
    strip = STRIP if STRIP in files else None
    return {**files, CARD: model_card.write(wanted, step, rows, strip).encode()}


def _commit(hub: Hub, files: dict[str, bytes | Path], message: str) -> str:
    what = f"spec.artifacts.hub.repo={hub.repo}"
    with told(what, "model", ", and spec.egress.trainer in a cluster"):
        api = HfApi(token=os.environ.get(TOKEN) or None)
        api.create_repo(hub.repo, private=hub.private, exist_ok=True)
        try:
            done = api.create_commit(
                hub.repo,
                [CommitOperationAdd(name, content) for name, content in files.items()],
                commit_message=message,
            )
        except ValueError as error:
            # A page instead of JSON, as from a proxy, or a card that the hub does not like.
            raise InfrastructureError(
                Reason.HUB_UNAVAILABLE,
                f"{what}: the hub's answer cannot be used ({str(error).splitlines()[0]}).",
                remedy="Check HF_ENDPOINT and what stands between.",
            ) from error
    return str(done.commit_url)


if __name__ == "__main__":
    sys.exit(main())
