"""What a term may look at: one rollout, read no further than a term asks.

A term is a pure function of this record. Nothing in it can be changed, and whatever takes time
(parsing the sketch, decoding the painting) is done when first asked for, and once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from watercolour.api.rollout import Rollout, Vote
from watercolour.render.paint import Pixels, decode
from watercolour.reward import likeness
from watercolour.reward.likeness import Likeness
from watercolour.sketch import facts
from watercolour.sketch.facts import SketchFacts

#: Pictures whose description is remembered: references come again and again.
DESCRIBED = 512


@dataclass(frozen=True)
class Facts:
    """A rollout, seen from a term.

    Attributes:
        rollout: the record: completion, sketch, subject, seed, painting, and what renderer,
            scorer and judge said of it. What has no value is None there.
        others: the other members of the group that have a painting, for a term about the group.
        references: the paintings of the draw (PNG), for a term that compares with them.
    """

    rollout: Rollout
    others: tuple[Rollout, ...] = ()
    references: tuple[bytes, ...] = ()

    @cached_property
    def sketch(self) -> SketchFacts | None:
        """The sketch, counted; None when none could be extracted."""
        return None if self.rollout.sketch is None else facts.read(self.rollout.sketch)

    @cached_property
    def pixels(self) -> Pixels | None:
        """The painting as RGB of shape (h, w, 3); None without a painting.

        Raises:
            PIL.UnidentifiedImageError: the renderer sent no picture.
        """
        return None if self.rollout.painting is None else decode(self.rollout.painting)

    @property
    def strengths(self) -> Mapping[str, float]:
        """The Bradley-Terry strengths of the draw by name, the okay tier's mean being 0."""
        found = self.rollout
        return dict(zip(found.references, found.reference_strengths, strict=False))

    @property
    def votes(self) -> tuple[Vote, ...]:
        """What the judge said, one a reference."""
        return self.rollout.votes


@lru_cache(DESCRIBED)
def described(painting: bytes) -> Likeness:
    """What a painting (PNG) looks like, in numbers."""
    return likeness.describe(decode(painting))
