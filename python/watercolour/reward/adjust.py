"""The reward with the difficulty of the draw taken out, so that steps can be compared.

All members of a group meet the same references, so within a group the draw changes nothing; but
between steps it does: one painting was seen to win between 0.25 and 0.625 by the draw alone. The
references' Bradley-Terry strengths say how hard a draw is:

    adjusted = reward - slope * (draw_strength - mean_draw_strength)

``slope`` is what the whole way from no win to all wins is worth in the recipe: the judge's weight,
or twice that in a signed one. ``draw_strength`` is the share of wins that an average okay painting
expects against the draw (lower is harder), ``mean_draw_strength`` the same for the average draw of
the pool. So a reward won against an easy draw shrinks, one won against a hard draw grows, and the
mean over many draws stays. A refused sketch met no references and keeps its reward. It is shown
beside the raw curve and never trained on.
"""

from __future__ import annotations


def adjust(
    reward: float | None,
    *,
    gate_passed: bool | None,
    judge_slope: float,
    draw_strength: float | None,
    mean_draw_strength: float | None,
) -> float | None:
    """The reward as it would be against an average draw; None when there is no reward.

    Args:
        reward: the recipe's value.
        gate_passed: only admitted sketches are adjusted.
        judge_slope: how far the reward rises from no comparison won to all of them.
        draw_strength: of the rollout's references, 0 to 1; None when none were drawn.
        mean_draw_strength: over the pool's draws, 0 to 1; None when there is no pool.
    """
    if reward is None or not gate_passed:
        return reward
    if draw_strength is None or mean_draw_strength is None:
        return reward
    return reward - judge_slope * (draw_strength - mean_draw_strength)
