"""The embedded backend: quality and judge on this machine's cores."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from watercolour.score import features, heads
from watercolour.score.backend import Batching, Observed, Scored, logistic, no_marks
from watercolour.score.batching import Batcher
from watercolour.score.features import Backbone, Features
from watercolour.score.heads import Heads
from watercolour.score.pictures import NotAPicture

NAME = "embedded"


@dataclass(frozen=True)
class Embedded:
    """Backbone and heads, loaded."""

    backbone: Backbone
    heads: Heads

    @property
    def name(self) -> str:
        """As in ``spec.scorer.backend``."""
        return NAME

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

    def score(self, found: Features) -> Scored:
        """Quality of one painting; mu lies in −12…10 here."""
        mu, sigma = self.heads.mu(found.quality[None])
        return Scored(round(float(mu[0]), 4), round(float(sigma[0]), 4), logistic(float(mu[0])))

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

    @asynccontextmanager
    async def open(self, batching: Batching, observed: Observed) -> AsyncGenerator[EmbeddedOpen]:
        """Begin to work: what waits shares a pass through the backbone."""
        async with Batcher(self.embed, batching, observed=observed) as batcher:
            yield EmbeddedOpen(self, batcher)


@dataclass(frozen=True)
class EmbeddedOpen:
    """The embedded backend at work. Features are kept (9 kB each), whoever asked for them."""

    model: Embedded
    batcher: Batcher[bytes, Features]

    @property
    def waiting(self) -> int:
        """Pictures that wait."""
        return self.batcher.waiting

    async def score(self, painting: bytes, prompt: str, marks: Sequence[str]) -> Scored:
        """Quality; the heads know one prompt, "a loose watercolour flower", so it is not used.

        Raises:
            NotAPicture: the bytes are no picture.
            Busy: too many wait.
            UnknownMarks: marks were asked for.
        """
        del prompt
        no_marks(NAME, marks)
        return self.model.score(await self._features(painting))

    async def compare(self, a: bytes, b: bytes) -> tuple[str, str]:
        """The winner, 'A' or 'B', and why.

        Raises:
            NotAPicture: with the painting's letter as a second argument.
            Busy: too many wait.
        """
        first, second = await asyncio.gather(self._features(a, "A"), self._features(b, "B"))
        return self.model.compare(first, second)

    async def _features(self, painting: bytes, letter: str = "") -> Features:
        key = hashlib.sha256(painting).digest()
        try:
            return await self.batcher.ask(key, lambda: painting)
        except NotAPicture as error:
            raise NotAPicture(str(error.args[0]), letter) from error


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
