"""What the service wants of a backend: something that loads, opens, and scores one painting."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

#: Units of mu in one unit of the logistic's argument.
MU_SCALE = 4.0


@dataclass(frozen=True)
class Scored:
    """One painting's quality.

    Attributes:
        mu: mean on HPSv3's scale, unbounded.
        sigma: deviation of mu; 0 where a backend has none.
        score: 0 to 1.
        marks: what a vision-language model marked it for, 0 to 1 each; those asked for.
    """

    mu: float
    sigma: float
    score: float
    marks: Mapping[str, float] = field(default_factory=dict[str, float])


class Unscored(Exception):
    """The backend has no value for a painting, by no fault of the painting's."""


class UnknownMarks(ValueError):
    """The backend gives none of the marks that were asked for."""


@dataclass(frozen=True)
class Batching:
    """How what waits is gathered.

    Attributes:
        max_batch: most pictures of one batch.
        window_s: seconds that the first picture of a batch waits for others.
        max_waiting: pictures that may wait before a caller is told to come again.
    """

    max_batch: int = 8
    window_s: float = 0.004
    max_waiting: int = 256


@dataclass(frozen=True)
class Observed:
    """Who is told what happens: the size and the seconds of each batch, and each remembered hit."""

    batch: Callable[[int, float], None] = lambda _size, _seconds: None
    hit: Callable[[], None] = lambda: None


class Open(Protocol):
    """A backend at work."""

    @property
    def waiting(self) -> int:
        """Pictures that wait."""
        ...

    async def score(self, painting: bytes, prompt: str, marks: Sequence[str]) -> Scored:
        """One painting's quality.

        Raises:
            NotAPicture: the bytes are no picture.
            Busy: too many wait.
            UnknownMarks: it gives no such marks.
            Unscored: no value could be had.
        """
        ...


@runtime_checkable
class Judging(Protocol):
    """A backend at work that also compares."""

    async def compare(self, a: bytes, b: bytes) -> tuple[str, str]:
        """The winner, 'A' or 'B', and why.

        Raises:
            NotAPicture: as its ``args[1]`` says, of A or of B.
            Busy: too many wait.
        """
        ...


class Backend(Protocol):
    """A backend, loaded."""

    @property
    def name(self) -> str:
        """As in ``spec.scorer.backend``."""
        ...

    @property
    def version(self) -> str:
        """What determines every score."""
        ...

    def open(self, batching: Batching, observed: Observed) -> AbstractAsyncContextManager[Open]:
        """Begin to work."""
        ...


#: Told what is being loaded, and what share of it, 0 to 1, is there.
Report = Callable[[str, float], None]
Load = Callable[[Report], Backend]


def logistic(mu: float) -> float:
    """The published score of a mean: 1 / (1 + exp(−mu / 4))."""
    return 1 / (1 + math.exp(-max(-700.0, min(700.0, mu / MU_SCALE))))


def no_marks(name: str, marks: Sequence[str]) -> None:
    """For a backend that looks at quality alone.

    Raises:
        UnknownMarks: marks were asked for.
    """
    if marks:
        raise UnknownMarks(
            f"asks for {', '.join(marks)}, which the backend {name} does not give. "
            "Ask a scorer with the backend vlm-mark"
        )
