"""A seeded painter: random p5.brush sketches of four flowers, good, plain, ugly and broken.

The corpus is meant for the supervised start of a very small policy. It is wide and mostly
mediocre on purpose: about a third fails the gate, about a fifth is really good, and every choice
that makes the difference (palette, opacity, bleed, number of washes, size, place, ground) is a few
tokens, so that a reward has something to shift.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from watercolour.sketch import compose, faults, plan, spoil
from watercolour.sketch.palettes import SUBJECTS

Intent = Literal["good", "plain", "ugly", "broken"]

#: Shares of the corpus.
INTENTS: dict[Intent, float] = {"good": 0.20, "plain": 0.22, "ugly": 0.26, "broken": 0.32}


@dataclass(frozen=True)
class Sample:
    """One sketch of the corpus.

    ``flaw`` names what is wrong with an ugly or a broken sketch and is empty for the others.
    """

    subject: str
    sketch: str
    intent: Intent
    composition: str
    flaw: str = ""


def corpus(n: int, seed: int) -> list[Sample]:
    """``n`` sketches; the same for the same arguments.

    Subjects alternate; intents are drawn by ``INTENTS``. The first k samples of a longer corpus
    are the corpus of length k.
    """
    rng = random.Random(seed)
    subjects = tuple(SUBJECTS)
    return [sample(subjects[i % len(subjects)], rng) for i in range(n)]


def sample(subject: str, rng: random.Random, intent: Intent | None = None) -> Sample:
    """One sketch of ``subject``; ``intent`` is drawn when it is not given."""
    intent = intent or rng.choices(list(INTENTS), list(INTENTS.values()))[0]
    if intent == "broken":
        whole = sample(subject, rng, rng.choice(("good", "plain", "ugly")))
        flaw, text = faults.break_sketch(whole.sketch, rng)
        return Sample(subject, text, "broken", whole.composition, flaw)
    choices = plan.good(subject, rng) if intent == "good" else plan.plain(subject, rng)
    flaw = ""
    if intent == "ugly":
        flaw = rng.choice(list(spoil.FLAWS))
        choices = spoil.FLAWS[flaw](choices, rng)
        if flaw in spoil.DAUBS:
            return Sample(subject, compose.daub(flaw, choices, rng), intent, "daub", flaw)
        if rng.random() < 0.4:
            choices = spoil.FLAWS[rng.choice(spoil.SECOND_FLAWS)](choices, rng)
    return Sample(subject, compose.write(choices, rng), intent, choices.composition, flaw)
