"""What a trainer says at its end, for whoever finds its pod: one line of JSON.

Kubernetes keeps the first 4096 bytes of the termination log with the pod; the operator copies them
into the run's status.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from watercolour import logs
from watercolour.api.errors import WatercolourError
from watercolour.api.reasons import Reason
from watercolour.train.progress import Progress

log = logs.get(__name__)

#: Where the kubelet looks, in every container.
TERMINATION_LOG = Path("/dev/termination-log")

#: Most bytes of the line, and most characters of the sentence within it.
LONGEST, LONGEST_MESSAGE = 4096, 1500

#: Fields of summary.json that go with a success.
FROM_SUMMARY = ("reward_first_fifth", "reward_last_fifth", "best_rollout")


def of_success(out: Path, shown: Progress) -> dict[str, Any]:
    """The words of a run whose steps are all done.

    Args:
        out: the run's folder, with its summary.
        shown: how far it came.
    """
    summary: dict[str, Any] = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    first, last = summary.get("reward_first_fifth"), summary.get("reward_last_fifth")
    reward = "" if first is None or last is None else f", reward {first:.2f} → {last:.2f}"
    steps = f"{shown.steps} step{'' if shown.steps == 1 else 's'}"
    words = _words(Reason.SUCCEEDED, f"{steps}{reward}.", shown)
    return words | {name: summary.get(name) for name in FROM_SUMMARY}


def of_failure(error: Exception, shown: Progress) -> dict[str, Any]:
    """The words of an attempt that an exception ended."""
    if isinstance(error, WatercolourError):
        return _words(error.reason, str(error), shown)
    return _words(Reason.INTERNAL_ERROR, f"{type(error).__name__}: {error}", shown)


def _words(reason: Reason, message: str, shown: Progress) -> dict[str, Any]:
    now = shown.reply()
    return {
        "reason": reason,
        "message": message[:LONGEST_MESSAGE],
        "phase": now["phase"],
        "step": now["step"],
        "steps": now["steps"] or None,
        "lastCheckpointStep": now["lastCheckpointStep"],
        "rewardMean": now["reward"]["mean"],
        "unscoredRate": now["unscoredRate"],
    }


def write(path: Path | None, words: dict[str, Any]) -> None:
    """Write the words; without a path, where the kubelet looks, if this is a pod.

    What cannot be written is logged: the end of a run must not hang on its last words.
    """
    place = path or (TERMINATION_LOG if TERMINATION_LOG.exists() else None)
    if place is None:
        return
    line = json.dumps(words, ensure_ascii=False)
    if len(line.encode()) >= LONGEST:
        line = json.dumps(words | {"message": words["message"][:200], "best_rollout": None})
    try:
        # In place: the kubelet has mounted this very file.
        place.write_text(line + "\n", encoding="utf-8")
    except OSError as error:
        log.warning("%s could not be written: %s", place, error)
