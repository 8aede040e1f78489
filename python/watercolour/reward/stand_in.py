"""The embedded scorer and judge, asked about stored paintings that nobody was asked about then."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout, Vote
from watercolour.reward import terms
from watercolour.reward.pool import Reference
from watercolour.score.embedded import Embedded
from watercolour.score.features import Features
from watercolour.score.pictures import NotAPicture

#: Paintings and references whose features are remembered, at 9 kB each.
REMEMBERED = 4_096


class StandIn:
    """Both heads over one backbone; each picture goes through it once."""

    def __init__(self, model: Embedded) -> None:
        self._model = model
        self._features = lru_cache(REMEMBERED)(self._embedded)

    def scored(self, rollout: Rollout, painting: bytes) -> Rollout:
        """With the scorer's mean; unscored (ScorerUnavailable) where the bytes are no picture."""
        found = self._features(painting)
        if found is None:
            return rollout.model_copy(update={"unscored_reason": Reason.SCORER_UNAVAILABLE})
        return rollout.model_copy(update={"mu": self._model.score(found).mu})

    def judged(self, rollout: Rollout, painting: bytes, references: Sequence[Reference]) -> Rollout:
        """With a vote on each reference, asked in both orders."""
        return rollout.model_copy(
            update={"votes": tuple(self._vote(painting, one) for one in references)}
        )

    def _vote(self, painting: bytes, reference: Reference) -> Vote:
        own, other = self._features(painting), self._features(reference.painting)
        if own is None or other is None:
            return Vote(reference=reference.name, first=None, second=None, value=None)
        first = self._model.compare(own, other)[0]
        second = self._model.compare(other, own)[0]
        value = terms.vote_value(first, second)
        return Vote(reference=reference.name, first=first, second=second, value=value)

    def _embedded(self, painting: bytes) -> Features | None:
        (found,) = self._model.embed([painting])
        return None if isinstance(found, NotAPicture) else found
