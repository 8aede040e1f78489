"""The names of the shipped terms, and whose answer each is made of.

What a term is worth belongs to the reward (:mod:`watercolour.reward.catalogue`). Here stands what
others must know of it: the operator, which runs a scorer or a judge only for terms that ask one,
and the scorer, which gives marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

#: A server that terms may need.
Server = Literal["scorer", "judge"]

#: What a vision-language model marks a painting for, each 0 to 1. With compiling, the use of
#: p5.brush, length and quality they are the nine signals of an early rubric.
MARKS = ("adherence", "recognisability", "aesthetics", "technique", "depth")

#: The term that reads a mark begins so.
MARK_PREFIX = "mark_"

#: Terms that are made of a server's answer.
ASKS: Mapping[Server, tuple[str, ...]] = {
    "scorer": ("quality", *(f"{MARK_PREFIX}{mark}" for mark in MARKS)),
    "judge": ("judge", "utility"),
}

#: Terms that ask nobody.
ALONE = (
    "gate",
    "length",
    "fills",
    "chance",
    "brush",
    "pigment",
    "area",
    "repetition",
    "perceptual",
    "diversity",
)

#: Every shipped term. Others come with packages, by the entry points `watercolour.terms`.
SHIPPED = frozenset((*ALONE, *ASKS["scorer"], *ASKS["judge"]))


def asks(weights: Iterable[Mapping[str, float]], server: Server) -> bool:
    """Whether any of the weights is a term's that needs the server.

    Only the process that has a package's terms knows what those need; here they are taken to need
    both servers. Whoever knows better sets that server's backend to none.
    """
    return any(
        weight > 0 and (term in ASKS[server] or term not in SHIPPED)
        for one in weights
        for term, weight in one.items()
    )
