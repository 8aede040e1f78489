"""The embedded recipe against what a policy might paint instead of its subject."""

from __future__ import annotations

import io

import pytest
from PIL import Image, ImageDraw, ImageFilter

from watercolour.render.paint import decode
from watercolour.reward import pigment, pool, recipes, terms
from watercolour.reward.pool import Reference
from watercolour.score.embedded import Embedded
from watercolour.score.pictures import NotAPicture
from watercolour.sketch.subjects import Subject, subjects

ASKED = ("a peach hibiscus", "a blue iris", "a red poppy", "a yellow daisy")
WRONG = [(asked, painted) for asked in ASKED for painted in ASKED if asked != painted]
POOL = pool.load("builtin:flowers")
REFERENCES = (*POOL.tier("love")[::11], *POOL.tier("okay")[::11])


def worth(embedded: Embedded, painting: bytes, subject: Subject) -> float:
    """The reward of an admitted painting of usual length."""
    ours, *theirs = embedded.embed([painting, *(r.painting for r in REFERENCES)])
    assert not isinstance(ours, NotAPicture)
    votes: list[float] = []
    for other in theirs:
        assert not isinstance(other, NotAPicture)
        first, second = embedded.compare(ours, other)[0], embedded.compare(other, ours)[0]
        votes.append(terms.vote_value(first, second) or 0.0)
    own = pigment.shipped(subject.name)
    assert own is not None
    colour = pigment.read(decode(painting), own)
    value = recipes.RECIPES["embedded"].combine(
        {
            "length": 0.05,
            "quality": terms.quality(embedded.score(ours).mu),
            "judge": sum(votes) / len(votes),
            "pigment": terms.pigment(colour.share, colour.coverage),
        },
        gate_passed=True,
    )
    assert value is not None
    return value


def disc(colour: str, radius: float, blur: float) -> bytes:
    """One round wash on cream paper, with a soft edge."""
    sheet, wash = Image.new("RGB", (192, 192), "#faf5ea"), Image.new("L", (192, 192))
    ImageDraw.Draw(wash).circle((96, 96), radius, fill=190)
    sheet.paste(colour, mask=wash.filter(ImageFilter.GaussianBlur(blur)))
    file = io.BytesIO()
    sheet.save(file, "PNG")
    return file.getvalue()


def loved(subject: str) -> Reference:
    """A painting of the subject that a person rated high."""
    return next(r for r in POOL.tier("love") if r.subject == subject)


@pytest.mark.parametrize("name", ASKED)
def test_a_giant_disc_of_the_right_colour_loses_to_a_flower(embedded: Embedded, name: str) -> None:
    subject = subjects()[name]
    flower = worth(embedded, loved(name).painting, subject)
    for radius, blur in ((80, 1), (80, 12), (60, 4)):
        hack = disc(subject.petals[1], radius, blur)
        assert worth(embedded, hack, subject) < flower - 0.2


@pytest.mark.parametrize(("asked", "painted"), WRONG)
def test_a_good_flower_of_another_subject_loses_to_the_one_asked_for(
    embedded: Embedded, asked: str, painted: str
) -> None:
    subject = subjects()[asked]
    right = worth(embedded, loved(asked).painting, subject)
    assert worth(embedded, loved(painted).painting, subject) < right - 0.05
