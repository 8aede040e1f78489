"""The terms of the reward: pure functions, each 0 to 1.

The figures, save for the pigment's, are those of "Training a coding model to paint watercolours
with TRL and OpenEnv" (2026), where they were in use, measured and published.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from watercolour.api.rollout import Vote

#: A token of a sketch, in characters: the published measure, which needs no tokenizer.
CHARACTERS_PER_TOKEN = 4.0

#: Tokens at which the length ramp starts, reaches 1, and drops back to 0.
RAMP_START, RAMP_FULL, RAMP_END = 150.0, 3_000.0, 6_000.0

#: Units of the scorer's mean in one unit of the logistic's argument.
QUALITY_SCALE = 4.0

#: Share and coverage at which the subject's pigment earns all there is. The pool's loved paintings
#: have a median share of 0.80 (hibiscus, for their red throats) to 1, by subject, and cover 0.09 of
#: the sheet or more.
FULL_SHARE, FULL_COVERAGE = 0.85, 0.05


def length(characters: int) -> float:
    """How much of the wanted length a sketch has; 0 to 1.

    With t = characters / 4 tokens: 0 below 150, linear from 150 to 3,000, 1 from 3,000 to 6,000,
    0 above. Published (600 tokens give 0.16); it keeps sketches from collapsing to a few calls.

    Args:
        characters: length of the extracted sketch, in characters.
    """
    tokens = characters / CHARACTERS_PER_TOKEN
    if tokens < RAMP_START or tokens > RAMP_END:
        return 0.0
    return min(1.0, (tokens - RAMP_START) / (RAMP_FULL - RAMP_START))


def quality(mu: float) -> float:
    """The scorer's mean on a scale of 0 to 1: ``1 / (1 + exp(-mu / 4))``, as published.

    Args:
        mu: the scorer's raw mean, unbounded (blank about -10, good paintings +4 to +8).

    Raises:
        ValueError: mu is not finite; such a score is a scorer's fault and never a value.
    """
    if not math.isfinite(mu):
        raise ValueError(f"mu={mu} is not finite")
    # Two forms of the same curve: neither overflows, however far out mu is.
    if mu >= 0:
        return 1.0 / (1.0 + math.exp(-mu / QUALITY_SCALE))
    grown = math.exp(mu / QUALITY_SCALE)
    return grown / (1.0 + grown)


def pigment(share: float, coverage: float) -> float:
    """How far a painting has its subject's colours; 0 to 1.

    ``min(1, share / 0.85) * min(1, coverage / 0.05)``: a flower's heart may have a colour of its
    own, and a dab in the right colour is no flower. More paint earns no more, so that a flood of
    the right colour has no advantage over a flower.

    Args:
        share: of the coloured pigment, that in the subject's colours, 0 to 1.
        coverage: share of the sheet in the subject's colours, 0 to 1.
    """
    return min(1.0, share / FULL_SHARE) * min(1.0, coverage / FULL_COVERAGE)


def vote_value(first: str | None, second: str | None) -> float | None:
    """What the two calls about one reference are worth.

    The painting is shown as A in the first call and as B in the second. It won if both calls
    preferred it (1), lost if both preferred the reference (0); calls that disagree show a
    preference for a place, not for a picture, and are a tie (0.5). If either call failed there
    is no value, because one order alone is biased.

    Args:
        first: winner of the first call, 'A' or 'B'; None when it failed.
        second: winner of the second call, 'A' or 'B'; None when it failed.
    """
    if first is None or second is None:
        return None
    return ((first == "A") + (second == "B")) / 2


def judge(votes: Iterable[Vote]) -> float | None:
    """The share of comparisons won, 0 to 1; None when no reference could be resolved."""
    values = [vote.value for vote in votes if vote.value is not None]
    return sum(values) / len(values) if values else None
