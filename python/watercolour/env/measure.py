"""What looks at a painting: the rooms of scorer and judge, and the reading of its pigment."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PIL import UnidentifiedImageError

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.render.paint import decode
from watercolour.reward import pigment as pigments
from watercolour.reward import terms
from watercolour.reward.judge import Judge
from watercolour.reward.once import Once
from watercolour.reward.pigment import Colours
from watercolour.reward.pool import Reference
from watercolour.score.client import Score, ScoreClient
from watercolour.score.vlm_mark import VlmMark

#: Scores remembered, at some 200 bytes each.
SCORES = 65_536


@dataclass(frozen=True)
class Finding:
    """What a room found out about a painting.

    Attributes:
        value: the term, 0 to 1; None when the room was not asked or could not say.
        record: fields of the rollout that this room fills.
        timings: seconds by room; none when nothing new was asked.
        versions: of whoever answered.
        reason: why there is no value although there should be one.
        detail: a sentence on it.
    """

    value: float | None = None
    record: dict[str, Any] | None = None
    timings: dict[str, float] | None = None
    versions: dict[str, str] | None = None
    reason: Reason | None = None
    detail: str = ""


#: A room whose term has no weight.
NOT_ASKED = Finding()


class Scoring:
    """Asks the scorer once for every painting."""

    def __init__(self, scorer: ScoreClient | VlmMark, prompt: str) -> None:
        """Send ``prompt`` for quality, never a rollout's subject: naming it inverts the low end."""
        self._scorer = scorer
        self._prompt = prompt
        self._scores: Once[Score] = Once(SCORES)

    async def quality(
        self, key: str, painting: bytes, *, marks: tuple[str, ...] = (), subject: str = ""
    ) -> Finding:
        """The term quality; mu and marks for the record.

        Args:
            key: what equal paintings share.
            painting: PNG.
            marks: single marks that are asked for besides.
            subject: what was to be painted. Whoever gives marks must know it: some are for how far
                the painting shows that.
        """
        prompt = f"a loose watercolour of {subject}" if marks else self._prompt
        began = time.perf_counter()
        asked = False

        async def ask() -> Score:
            nonlocal asked
            asked = True
            return await self._scorer.score(painting, prompt, marks)

        try:
            score = await self._scores.get(f"{key} {prompt} {marks}", ask)
            value = terms.quality(score.mu)
        except InfrastructureError as error:
            return Finding(reason=Reason.SCORER_UNAVAILABLE, detail=error.message)
        except ValueError as error:
            return Finding(reason=Reason.SCORER_UNAVAILABLE, detail=f"the scorer sent {error}")
        return Finding(
            value=value,
            record={"mu": score.mu, "marks": dict(score.marks)},
            timings={"score": time.perf_counter() - began} if asked else None,
            versions={"scorer": f"{score.backend}/{score.version}"},
        )


def pigment(painting: bytes, colours: Colours) -> Finding:
    """The term pigment, and the share for the record.

    Args:
        painting: PNG.
        colours: the subject's.
    """
    try:
        pixels = decode(painting)
    except (UnidentifiedImageError, OSError) as error:
        return Finding(reason=Reason.RENDERER_UNAVAILABLE, detail=f"it sent no picture: {error}")
    found = pigments.read(pixels, colours)
    return Finding(
        value=terms.pigment(found.share, found.coverage), record={"pigment_share": found.share}
    )


async def judged(
    judge: Judge, key: str, painting: bytes, references: Sequence[Reference]
) -> Finding:
    """The term judge, and the votes for the record.

    Args:
        judge: the judge.
        key: what equal paintings share.
        painting: PNG.
        references: the draw.
    """
    began = time.perf_counter()
    comparison = await judge.compare(painting, references, key=key)
    value = terms.judge(comparison.votes)
    why = "; ".join(comparison.failures) or "the draw is empty"
    return Finding(
        value=value,
        record={"votes": comparison.votes},
        timings={"judge": time.perf_counter() - began},
        versions={"judge": comparison.model},
        reason=comparison.reason if value is None else None,
        detail=f"no reference could be resolved: {why}" if value is None else "",
    )
