"""What a judge's votes say of the judge. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from watercolour.api.rollout import Vote


def tie_rate(votes: Iterable[Vote]) -> float | None:
    """Share of the resolved comparisons in which the two orders disagree; None without any.

    366 rollouts of the published runs had 0.22. Near 1 the judge has no opinion.
    """
    values = [vote.value for vote in _asked_twice(votes)]
    return sum(value == 0.5 for value in values) / len(values) if values else None


def place_bias(votes: Iterable[Vote]) -> float | None:
    """Share of the answers that name the place A, less one half: -0.5 to 0.5, and 0 without bias.

    Asked in both orders, a judge that looks at the pictures alone names A as often as B; what is
    left shows a liking for a place. None when no comparison was asked in both orders.
    """
    answers = [one for vote in _asked_twice(votes) for one in (vote.first, vote.second)]
    return sum(one == "A" for one in answers) / len(answers) - 0.5 if answers else None


def dropped(votes: Iterable[Vote]) -> float | None:
    """Share of the comparisons without a value, because a call failed; None without any."""
    values = [vote.value for vote in votes]
    return sum(value is None for value in values) / len(values) if values else None


def _asked_twice(votes: Iterable[Vote]) -> list[Vote]:
    return [vote for vote in votes if vote.first is not None and vote.second is not None]
