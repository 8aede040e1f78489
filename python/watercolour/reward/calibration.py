"""Does a pool teach? What the untrained policy wins against its draw, and what to change.

GRPO learns from differences. A policy that never wins, or always does, sees none: the published
pool once gave 0 wins of 56. So the untrained policy should win between a quarter and three quarters
of its comparisons, before any time is spent on a GPU.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from watercolour.api.spec import TierShares
from watercolour.reward.ratings import TIERS, Tier

#: The share of comparisons that an untrained policy should win.
LEAST, MOST = 0.25, 0.75

#: The share that advice aims at: room to improve, and enough wins to begin with.
AIM = 0.4

#: Comparisons of a tier below which nothing is said about it.
FEW = 8

#: Shares are advised in steps of this.
STEP = 0.05

RESAMPLES = 2_000


@dataclass(frozen=True)
class Bout:
    """One painting of the policy against one reference.

    Attributes:
        painting: whose it is, for the bootstrap; comparisons of one painting belong together.
        tier: the reference's.
        value: 1 won, 0.5 no difference, 0 lost.
    """

    painting: str
    tier: Tier
    value: float


@dataclass(frozen=True)
class Calibration:
    """What was found and what to do.

    Attributes:
        wins: share of comparisons won against a draw of ``shares``, 0 to 1; None if a tier that is
            drawn was never met.
        low, high: 95 % interval of it, by bootstrap over paintings.
        by_tier: share won against each tier; None where it was never met.
        bouts: comparisons by tier.
        shares: how the draw is composed.
        fits: whether ``wins`` lies in LEAST ... MOST.
        sure: whether the whole interval does.
        better: shares with which it would fit; None when they fit already or none would.
        advice: sentences, the first one first.
    """

    wins: float | None
    low: float | None
    high: float | None
    by_tier: Mapping[Tier, float | None]
    bouts: Mapping[Tier, int]
    shares: TierShares
    fits: bool
    sure: bool
    better: TierShares | None
    advice: tuple[str, ...]


def calibrate(bouts: Sequence[Bout], shares: TierShares, *, seed: int = 1) -> Calibration:
    """Judge a pool by what the untrained policy won against it.

    Args:
        bouts: comparisons with references of every tier that matters, resolved ones only.
        shares: how a run would compose the draw.
        seed: of the bootstrap.
    """
    by_tier: dict[Tier, float | None] = {
        tier: _mean([b.value for b in bouts if b.tier == tier]) for tier in TIERS
    }
    counts: dict[Tier, int] = {tier: sum(b.tier == tier for b in bouts) for tier in TIERS}
    wins = expected(by_tier, shares)
    low, high = _interval(bouts, shares, seed)
    fits = wins is not None and LEAST <= wins <= MOST
    sure = fits and low is not None and high is not None and low >= LEAST and high <= MOST
    better = None if fits or wins is None else better_shares(by_tier, counts, shares)
    return Calibration(
        wins=wins,
        low=low,
        high=high,
        by_tier=by_tier,
        bouts=counts,
        shares=shares,
        fits=fits,
        sure=sure,
        better=better,
        advice=tuple(_advice(wins, by_tier, counts, shares, better, fits=fits, sure=sure)),
    )


def expected(by_tier: Mapping[Tier, float | None], shares: TierShares) -> float | None:
    """Share of wins against a draw of these shares; None if a tier of it was never met."""
    total = 0.0
    for tier in TIERS:
        share, won = getattr(shares, tier), by_tier[tier]
        if share == 0:
            continue
        if won is None:
            return None
        total += share * won
    return total


def better_shares(
    by_tier: Mapping[Tier, float | None], counts: Mapping[Tier, int], shares: TierShares
) -> TierShares | None:
    """Shares that would fit, as near to AIM as STEP allows and of those the nearest to ``shares``.

    None when none would fit. Tiers that were met less than :data:`FEW` times are left out.
    """
    known: dict[Tier, float] = {
        tier: won for tier in TIERS if (won := by_tier[tier]) is not None and counts[tier] >= FEW
    }
    best: tuple[float, float] | None = None
    found: TierShares | None = None
    steps = round(1 / STEP)
    for love in range(steps + 1):
        for okay in range(steps + 1 - love):
            parts: dict[Tier, int] = {"love": love, "okay": okay, "meh": steps - love - okay}
            if any(parts[tier] and tier not in known for tier in TIERS):
                continue
            won = sum(parts[tier] / steps * known[tier] for tier in known)
            if not LEAST <= won <= MOST:
                continue
            change = sum(abs(parts[tier] / steps - getattr(shares, tier)) for tier in TIERS)
            rank = (round(abs(won - AIM), 2), change)
            if best is None or rank < best:
                best = rank
                found = TierShares(**{tier: round(n / steps, 2) for tier, n in parts.items()})
    return found


def _advice(
    wins: float | None,
    by_tier: Mapping[Tier, float | None],
    counts: Mapping[Tier, int],
    shares: TierShares,
    better: TierShares | None,
    *,
    fits: bool,
    sure: bool,
) -> list[str]:
    lines: list[str] = []
    if wins is None:
        missing = [t for t in TIERS if getattr(shares, t) and by_tier[t] is None]
        lines.append(
            f"The draw takes {' and '.join(missing)} paintings, and none of them was compared: "
            f"the pool has none, or the judge resolved none. Rate paintings as {missing[0]}, or "
            f"set references.tierShares.{missing[0]} to 0."
        )
        return lines
    if fits:
        lines.append("The pool fits this policy: train with it.")
        if not sure:
            lines.append(
                "Chance alone could have put the figure there: compare more paintings "
                "(--paintings) before a long run."
            )
        return lines
    weak = wins < LEAST
    side = "too strong for it: it hardly ever wins" if weak else "too weak: it hardly ever loses"
    lines.append(f"The draw is {side}, so the judge has little to teach.")
    if better is not None:
        told = ", ".join(f"{tier}: {getattr(better, tier):g}" for tier in TIERS)
        won = expected(by_tier, better)
        lines.append(
            f"Set references.tierShares to {{{told}}}: the policy would win about {won:.0%}."
        )
        return lines
    if weak:
        lines.append(
            _about("meh", by_tier, counts, "no shares help")
            + " Add weaker paintings and rate them meh: watercolour pool generate FOLDER --intent "
            "ugly, or --from rollouts with a run's first steps."
        )
        lines.append("Or begin with a better policy: watercolour sft on the pool's sketches.")
    else:
        lines.append(
            _about("love", by_tier, counts, "no shares help")
            + " Add better paintings and rate them love: watercolour pool critique FOLDER, "
            "--from model with a stronger model, or import real ones."
        )
    return lines


def _about(
    tier: Tier, by_tier: Mapping[Tier, float | None], counts: Mapping[Tier, int], so: str
) -> str:
    won = by_tier[tier]
    if won is None or counts[tier] < FEW:
        return f"The pool has too few {tier} paintings to draw from ({counts[tier]} comparisons)."
    return f"Even against {tier} it wins {won:.0%}, so {so}."


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _interval(
    bouts: Sequence[Bout], shares: TierShares, seed: int
) -> tuple[float | None, float | None]:
    """95 % interval of the expected wins, by drawing paintings again and again."""
    groups: dict[str, list[Bout]] = {}
    for bout in bouts:
        groups.setdefault(bout.painting, []).append(bout)
    sums = [
        {
            tier: (sum(b.value for b in g if b.tier == tier), sum(b.tier == tier for b in g))
            for tier in TIERS
        }
        for g in groups.values()
    ]
    if len(sums) < 2:
        return None, None
    rng = random.Random(seed)
    found: list[float] = []
    for _ in range(RESAMPLES):
        drawn = rng.choices(sums, k=len(sums))
        rates: dict[Tier, float | None] = {}
        for tier in TIERS:
            met = sum(each[tier][1] for each in drawn)
            rates[tier] = sum(each[tier][0] for each in drawn) / met if met else None
        value = expected(rates, shares)
        if value is not None:
            found.append(value)
    if not found:
        return None, None
    found.sort()
    return found[int(0.025 * len(found))], found[min(len(found) - 1, int(0.975 * len(found)))]
