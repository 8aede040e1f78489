"""The embedded backend: quality and judge on this machine's cores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from watercolour.score import features, heads
from watercolour.score.features import Backbone, Features, NotAPicture
from watercolour.score.heads import Heads

NAME = "embedded"


@dataclass(frozen=True)
class Score:
    """One painting's quality.

    Attributes:
        mu: mean on HPSv3's scale, unbounded in principle, in −12…10 here.
        sigma: deviation of mu.
        score: logistic of mu/4, 0 to 1.
    """

    mu: float
    sigma: float
    score: float


@dataclass(frozen=True)
class Embedded:
    """Backbone and heads, loaded."""

    backbone: Backbone
    heads: Heads

    @property
    def version(self) -> str:
        """What determines every score: features, heads, and the pool they were fitted on."""
        return f"{features.VERSION} {heads.VERSION} pool {self.heads.provenance['pool'][:12]}"

    def embed(self, paintings: Sequence[bytes]) -> list[Features | NotAPicture]:
        """Features of each painting, or why it has none; what can be decoded is one batch."""
        decoded = [_decoded(painting) for painting in paintings]
        pixels = [d for d in decoded if not isinstance(d, NotAPicture)]
        whole = iter(self.backbone.features(pixels) if pixels else ())
        return [d if isinstance(d, NotAPicture) else next(whole) for d in decoded]

    def score(self, found: Features) -> Score:
        """Quality of one painting."""
        mu, sigma = self.heads.mu(found.quality[None])
        return Score(
            round(float(mu[0]), 4),
            round(float(sigma[0]), 4),
            1 / (1 + math.exp(-float(mu[0]) / 4)),
        )

    def compare(self, a: Features, b: Features) -> tuple[str, str]:
        """The winner, 'A' or 'B', and why.

        Without a preference (margin below the tie) the answer is 'A' whichever painting that is:
        asked in both orders the judge then contradicts itself, which is how the position bias of
        a vision-language judge shows, and counts as half a win. Otherwise the answer follows the
        painting, not its place.
        """
        margin = self.heads.margin(a.judge, b.judge)
        if abs(margin) < self.heads.tie:
            return "A", f"No clear preference (margin {margin:+.2f})."
        winner = "A" if margin > 0 else "B"
        return (
            winner,
            f"{winner}'s washes are closer to the pool's best (margin {abs(margin):.2f}).",
        )


def _decoded(painting: bytes) -> features.Pixels | NotAPicture:
    try:
        return features.decode(painting)
    except NotAPicture as error:
        return error


def load(threads: int = 1) -> Embedded:
    """Heads and backbone from the disk, in about half a second.

    Raises:
        InfrastructureError: heads or weights are missing, damaged or of another version.
    """
    fitted = heads.load()
    return Embedded(features.open_backbone(threads), fitted)
