"""The formulas of the terms: pure functions of numbers, each 0 to 1.

The figures of length, quality and judge are those of "Training a coding model to paint watercolours
with TRL and OpenEnv" (2026), where they were in use, measured and published. The others are ours;
each says how its figures were found. :mod:`watercolour.reward.catalogue` says what the terms are
read from.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence

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

#: Calls of ``brush.fill`` that earn all there is, and none. Sketches of the shipped policy have 4
#: or 5, and 8 fit into its replies.
WANTED_FILLS = 8

#: The four ways in which p5.brush makes a watercolour of an outline.
WATERCOLOUR = frozenset({"fill", "fillBleed", "fillTexture", "vertex"})

#: Share of the sheet, times opacity, that one shape may have, and at which nothing is left. Of the
#: pool's 44 loved sketches the heaviest shape has 0.03 to 0.27 (median 0.09); one petal as wide as
#: five sixths of the sheet, painted at opacity 200, has 0.42.
SHAPE_BOUND, SHAPE_LIMIT = 0.28, 0.42

#: Numbers of two shapes are the same within this many pixels, or this share of the number.
SAME_PIXELS, SAME_SHARE, SAME_LEAST = 2.0, 0.02, 0.02

#: Distance of looks at which two paintings are wholly different: the median between two paintings
#: of one subject in the built-in pool.
DIFFERENT = 0.37

#: Distances of handling that earn all there is, and none. From the pool's loved paintings, loved
#: ones have a median of 0.040, okay ones of 0.048 and poor ones of 0.079.
LIKE, UNLIKE = 0.035, 0.125

#: Deviation of a painting's strength before anybody has judged it, in log-odds: that of the pool.
PRIOR_DEVIATION = 2.0


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


def utility(votes: Iterable[Vote], strengths: Mapping[str, float]) -> float | None:
    """The share of wins that a painting would have against an average okay one; 0 to 1.

    Its Bradley-Terry strength t is the likeliest one, given whom it won against and lost to: it
    maximises the sum over the references of v log s(t - r) + (1 - v) log s(r - t), less
    t^2 / (2 * 2^2), with the vote v (1, 0.5, 0), the reference's strength r and the logistic s. The
    value is s(t). Unlike the share of wins it does not depend on how strong the draw was. The
    prior keeps it finite for one that won or lost throughout.

    Args:
        votes: one a reference; those without a value are left out.
        strengths: of the references, in log-odds, the okay tier's mean being 0.

    Returns:
        None when no reference with a strength could be resolved.
    """
    known = [
        (vote.value, strengths[vote.reference])
        for vote in votes
        if vote.value is not None and vote.reference in strengths
    ]
    if not known:
        return None
    strength = 0.0
    for _ in range(50):
        expected = [_logistic(strength - other) for _, other in known]
        slope = sum(value - chance for (value, _), chance in zip(known, expected, strict=True))
        slope -= strength / PRIOR_DEVIATION**2
        curve = sum(chance * (1 - chance) for chance in expected) + 1 / PRIOR_DEVIATION**2
        # Never further than is safe for Newton's method on this curve.
        strength += max(-1.0, min(1.0, slope / curve))
        if abs(slope) < 1e-9:
            break
    return _logistic(strength)


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def fills(count: int, wanted: int = WANTED_FILLS) -> float:
    """How near a sketch is to the wanted number of fill calls; 0 to 1.

    Rises evenly from 0 without one to 1 at ``wanted``, and falls to 0 at twice as many.
    """
    return max(0.0, 1.0 - abs(count - wanted) / wanted)


def chance(*parts: int) -> float:
    """A number from 0 to 1 that depends on nothing but the parts: SHA-256, uniformly spread."""
    digest = hashlib.sha256("/".join(map(str, ("chance", *parts))).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def brush(methods: Iterable[str]) -> float:
    """How far a sketch uses what p5.brush is for; 0 to 1.

    The share of the four ways by which it makes a watercolour: fill, bleed, texture, and outlines
    of the sketch's own.
    """
    return len(WATERCOLOUR.intersection(methods)) / len(WATERCOLOUR)


def area(heaviest: float) -> float:
    """Whether no single shape takes the sheet; 0 to 1.

    1 up to 0.28, then falling evenly to 0 at 0.42. A wash so pale that the paper shines through may
    be as wide as it likes.

    Args:
        heaviest: of all shapes the greatest share of the sheet times opacity, 0 to 1.
    """
    return max(0.0, min(1.0, (SHAPE_LIMIT - heaviest) / (SHAPE_LIMIT - SHAPE_BOUND)))


def repetition(shapes: Sequence[str]) -> float:
    """Whether a sketch's shapes are its own and not copies of one another; 0 to 1.

    1 when no shape repeats an earlier one, 0 when every second one does. A shape repeats another
    when both are written alike and none of their numbers differ by more than 2 pixels (of small
    numbers: by more than 2 % or 0.02), so that shifting a petal by a hair does not make it new.

    Args:
        shapes: as written, without blanks.
    """
    if not shapes:
        return 0.0
    seen: dict[str, list[tuple[float, ...]]] = {}
    repeated = 0
    for shape in shapes:
        numbers = tuple(float(found) for found in _NUMBER.findall(shape))
        earlier = seen.setdefault(_NUMBER.sub("#", shape), [])
        if any(_same(numbers, one) for one in earlier):
            repeated += 1
        else:
            earlier.append(numbers)
    return max(0.0, 1.0 - 2.0 * repeated / len(shapes))


_NUMBER = re.compile(r"(?<![\w.#])-?(?:\d+\.?\d*|\.\d+)(?![\w])")


def _same(one: Sequence[float], two: Sequence[float]) -> bool:
    return all(
        abs(a - b) <= max(SAME_LEAST, min(SAME_PIXELS, SAME_SHARE * max(abs(a), abs(b))))
        for a, b in zip(one, two, strict=True)
    )


def diversity(distances: Sequence[float]) -> float:
    """How unlike a painting is to the others of its group; 0 to 1.

    The mean distance of its look from theirs, as a share of the distance between two paintings of
    one subject in the built-in pool (0.37); 1 from there on.

    Args:
        distances: of looks, each 0 to 1; at least one.
    """
    return min(1.0, sum(distances) / len(distances) / DIFFERENT)


def perceptual(distances: Sequence[float]) -> float:
    """How far a painting is handled like good ones; 0 to 1.

    1 up to a mean distance of 0.035 from the references, falling evenly to 0 at 0.125.

    Args:
        distances: of handling, each 0 to 1; at least one.
    """
    mean = sum(distances) / len(distances)
    return max(0.0, min(1.0, (UNLIKE - mean) / (UNLIKE - LIKE)))
