"""Whether scorer and judge still say the same: a few paintings, scored every so many steps.

A hosted model may be exchanged behind its name, and a scorer restarted with other weights. Then
the curve moves without the policy. The answers come while the policy goes on painting; a step's row
has what has arrived by its end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from statistics import fmean
from typing import Any

from watercolour.train.files import write_text

FILE = "probes.json"

#: A painting's name, and its quality and share of wins; None where nobody could say.
Scores = Sequence[Mapping[str, Any]]


def apart(first: Scores, now: Scores) -> dict[str, float | None]:
    """How far two scorings of the same paintings lie apart: the columns of metrics.csv. Pure.

    The mean of the absolute differences, of the quality (0 to 1) and of the share of wins; None
    where no painting has both values.
    """
    before = {one["name"]: one for one in first}
    found: dict[str, float | None] = {}
    for column, field in (("drift_quality", "quality"), ("drift_judge", "wins")):
        moved = [
            abs(one[field] - before[one["name"]][field])
            for one in now
            if one["name"] in before
            and one[field] is not None
            and before[one["name"]][field] is not None
        ]
        found[column] = fmean(moved) if moved else None
    return found


class Probes:
    """Asks now and then, remembers the first answer, and tells how far each later one is."""

    def __init__(
        self, ask: Callable[[], Future[dict[str, Any] | None]], folder: Path, every: int
    ) -> None:
        """Read what an earlier attempt was answered.

        Args:
            ask: has the probes scored.
            folder: the run's, where ``probes.json`` keeps every answer.
            every: steps between two askings; 0 never asks.
        """
        self._ask = ask
        self._path = folder / FILE
        self._every = every
        self._asked: tuple[int, Future[dict[str, Any] | None]] | None = None
        kept = json.loads(self._path.read_text(encoding="utf-8")) if self._path.exists() else []
        self.answers: list[dict[str, Any]] = kept

    def begin(self, step: int) -> None:
        """A step begins: ask if it is time."""
        if self._every and step % self._every == 0 and self._asked is None:
            self._asked = step, self._ask()

    def collect(self) -> dict[str, float | None]:
        """The columns of an answer that has arrived; none otherwise."""
        if self._asked is None or not self._asked[1].done():
            return {}
        step, future = self._asked
        self._asked = None
        reply = future.result()
        if reply is None:
            return {}
        self.answers.append({"step": step, "paintings": reply["paintings"]})
        write_text(self._path, json.dumps(self.answers, indent=1) + "\n")
        return apart(self.answers[0]["paintings"], reply["paintings"])
