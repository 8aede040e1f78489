"""Where in a run a reply stands, and which references its group meets there. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from watercolour.api.spec import References, TierShares
from watercolour.reward import pool as pools
from watercolour.reward.pool import Pool, Reference
from watercolour.reward.recipe import Recipe


@dataclass(frozen=True)
class Place:
    """Where in its run a reply stands: optimizer step (-1 outside), group, place in the group."""

    step: int = -1
    group: int = 0
    index: int = 0


NOWHERE = Place()


@dataclass(frozen=True)
class Draw:
    """The references that a group meets.

    Attributes:
        references: from the pool; none when no term of the recipe compares with any.
        strength: share of wins that an average okay painting expects, 0 to 1; None without a draw.
        mean_strength: the same, expected over all draws of this size at the run's start.
    """

    references: tuple[Reference, ...] = ()
    strength: float | None = None
    mean_strength: float | None = None


def draw(
    pool: Pool | None, recipe: Recipe, wanted: References, seed: int, count: int, step: int
) -> Draw:
    """The references of a group; equal for equal arguments.

    Raises:
        InputError: a tier of the pool has too few paintings (InvalidPool).
    """
    if pool is None:
        return Draw()
    drawn = pools.draw(pool, seed, count, recipe.tier_shares(step, wanted.tier_shares))
    # Against the mean at the start, so that a curriculum's harder draws count as harder.
    mean = mean_draw_strength(pool, count, wanted.tier_shares)
    return Draw(drawn, pools.draw_strength(drawn), mean)


def require(pool: Pool, recipe: Recipe, wanted: References, seed: int) -> None:
    """See that the pool suffices for every draw of the run.

    Raises:
        InputError: a tier has too few paintings (InvalidPool).
    """
    for step in (0, *(start for start, _ in recipe.curriculum)):
        draw(pool, recipe, wanted, seed, wanted.per_rollout, step)


def mean_draw_strength(pool: Pool, count: int, shares: TierShares) -> float:
    """The expectation of ``draw_strength`` over the draws of so many references, 0 to 1.

    A draw's strength is a mean over its references, and within a tier every reference is drawn
    equally often, so the expectation is the tiers' own means, weighted by their places.
    """
    places = pools.allocate(count, shares)
    return (
        sum(
            number * pools.draw_strength(pool.tier(tier))
            for tier, number in places.items()
            if number
        )
        / count
    )
