"""Members of a group are compared with one another, so one judge has to judge them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout


def of_one_judge(group: Sequence[Rollout]) -> list[Rollout]:
    """The group with those unscored that another judge has judged than most.

    That happens where the judge went away, or came back, in the middle of a group for which the
    embedded judge stands in.
    """
    judges = Counter(
        rollout.versions["judge"] for rollout in group if rollout.votes and _judged(rollout)
    )
    if len(judges) < 2:
        return list(group)
    kept = judges.most_common(1)[0][0]
    return [
        rollout
        if not rollout.votes or not _judged(rollout) or rollout.versions["judge"] == kept
        else rollout.model_copy(
            update={
                "reward": None,
                "reward_adjusted": None,
                "unscored_reason": Reason.JUDGE_UNAVAILABLE,
                "unscored_detail": f"judged by {rollout.versions['judge']}, most of its group "
                f"by {kept}",
            }
        )
        for rollout in group
    ]


def _judged(rollout: Rollout) -> bool:
    return rollout.reward is not None and "judge" in rollout.versions
