"""The terms by name: what each is, what it needs, and how it is read off a rollout.

A package adds terms of its own by entry points of the group ``watercolour.terms``, each the name of
a term and the place of a :class:`Term`:

    [project.entry-points."watercolour.terms"]
    symmetry = "my_package.terms:SYMMETRY"

A term is a pure function of :class:`watercolour.reward.facts.Facts` to a number from 0 to 1, or
None when there is nothing to say. None leaves the whole reward unscored, so it is for what could
not be found out and never for what is bad.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from typing import Literal, get_args

from watercolour.api.errors import InfrastructureError, InputError
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout
from watercolour.api.terms import MARK_PREFIX, MARKS
from watercolour.reward import likeness, terms
from watercolour.reward import pigment as pigments
from watercolour.reward.facts import Facts, described

#: The group of the entry points.
GROUP = "watercolour.terms"

#: What a term cannot do without: the painting, the scorer's mean, its marks, the judge's votes, the
#: paintings of the draw, the record of what was painted, or the other members of the group.
Need = Literal["painting", "scorer", "marks", "judge", "references", "replay", "group"]

#: Needs that only a painted sketch can meet.
OF_PAINTINGS: frozenset[Need] = frozenset(
    {"painting", "scorer", "marks", "judge", "references", "replay", "group"}
)


def _always(_rollout: Rollout) -> bool:
    return True


@dataclass(frozen=True)
class Term:
    """One scored part of the reward. Every term's value lies from 0 to 1.

    Attributes:
        name: small letters, digits and underscores.
        meaning: what it is, in a few words.
        unit: what the value is a share or a measure of.
        source: who came up with it, or from what its figures were found.
        needs: what must be there before it can have a value.
        value: reads it off a rollout; None when there is nothing to say.
        applies: whether a rollout can be asked for it at all, by its subject and the subject's
            hues; nothing else is known yet. Where it cannot, the other weights grow in proportion,
            for every member of the group.
    """

    name: str
    meaning: str
    unit: str
    source: str
    value: Callable[[Facts], float | None]
    needs: frozenset[Need] = frozenset()
    applies: Callable[[Rollout], bool] = _always


def evaluate(term: Term, facts: Facts) -> float | None:
    """A term's value, or None when there is none.

    Raises:
        InfrastructureError: it raised, or gave something else than a number from 0 to 1
            (TermFailed). The rollout is unscored then: a term's fault is no sketch's.
    """
    try:
        value = term.value(facts)
    # The boundary to code that others wrote: whatever it raises is a reason.
    except Exception as error:
        said = f"{type(error).__name__}: {error}".rstrip(": ")
        raise _failed(term, f"raised {said}") from error
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _failed(term, f"gave {value!r}, no number")
    if not math.isfinite(value) or not -1e-9 <= value <= 1 + 1e-9:
        raise _failed(term, f"gave {value:g}, not a number from 0 to 1")
    return min(1.0, max(0.0, float(value)))


def find(name: str, field: str = "spec.recipe.weights") -> Term:
    """The term of that name.

    Args:
        name: the term's.
        field: where it was named, for the message.

    Raises:
        InputError: there is none (UnknownTerm), or the package's one cannot be used (InvalidTerm).
    """
    if name in SHIPPED:
        return SHIPPED[name]
    entries = _entries()
    if name in entries:
        return _loaded(entries[name])
    known = names()
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    guess = f"Did you mean {' or '.join(near)}? " if near else ""
    raise InputError(
        Reason.UNKNOWN_TERM,
        f"{field}.{name}: no such term.",
        remedy=f"{guess}There are {', '.join(known)}.",
        field=f"{field}.{name}",
        value=name,
    )


def names() -> tuple[str, ...]:
    """The names of all terms: the shipped ones in the tables' order, then those of packages."""
    return (*SHIPPED, *sorted(_entries().keys() - SHIPPED.keys()))


def usable() -> tuple[tuple[Term, ...], Mapping[str, InputError]]:
    """All terms that can be used, in the order of :func:`names`; and why the others cannot."""
    found: list[Term] = []
    broken = {
        name: _invalid(entry, "a shipped term has that name and is taken instead")
        for name, entry in _entries().items()
        if name in SHIPPED
    }
    for name in names():
        try:
            found.append(find(name))
        except InputError as error:
            broken[name] = error
    return tuple(found), broken


def ordered(some: Iterable[str]) -> tuple[str, ...]:
    """Names of terms in the order in which tables show them."""
    places = {name: place for place, name in enumerate(SHIPPED)}
    return tuple(sorted(some, key=lambda name: (places.get(name, len(places)), name)))


@cache
def _entries() -> Mapping[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


@cache
def _loaded(entry: EntryPoint) -> Term:
    """A package's term.

    Raises:
        InputError: it cannot be imported, or is no term of that name (InvalidTerm).
    """
    try:
        found: object = entry.load()
    # Importing runs a package's own code, which may even want to end the process.
    except (Exception, SystemExit) as error:
        said = f"{type(error).__name__}: {error}".rstrip(": ")
        raise _invalid(entry, f"it cannot be imported: {said}") from error
    if not isinstance(found, Term):
        raise _invalid(entry, f"it is a {type(found).__name__}, no Term")
    if found.name != entry.name:
        raise _invalid(entry, f"the term calls itself {found.name}")
    known = get_args(Need)
    # A package's own code may be untyped, and a need that nobody knows would never be met.
    if not isinstance(found.needs, Set) or not found.needs <= set(known):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _invalid(entry, f"its needs are {found.needs!r}, must be a set of {', '.join(known)}")
    return found


def _invalid(entry: EntryPoint, why: str) -> InputError:
    package = f"{entry.dist.name} {entry.dist.version}" if entry.dist else "a package"
    return InputError(
        Reason.INVALID_TERM,
        f"the term {entry.name} of {package} ({entry.value}): {why}.",
        remedy=f"Correct the entry point in the group {GROUP}, or take its weight away.",
        field=f"spec.recipe.weights.{entry.name}",
        value=entry.value,
    )


def _failed(term: Term, why: str) -> InfrastructureError:
    return InfrastructureError(Reason.TERM_FAILED, f"the term {term.name} {why}")


# What the shipped terms read.


def _gate(facts: Facts) -> float | None:
    """1 for an admitted sketch, 0 for a refused one; None while the gate has not decided."""
    passed = facts.rollout.gate_passed
    return None if passed is None else float(passed)


def _length(facts: Facts) -> float | None:
    sketch = facts.rollout.sketch
    return None if sketch is None else terms.length(len(sketch))


def _fills(facts: Facts) -> float | None:
    return None if facts.sketch is None else terms.fills(facts.sketch.fills)


def _chance(facts: Facts) -> float | None:
    found = facts.rollout
    return terms.chance(found.seed, found.step, found.group, found.index)


def _brush(facts: Facts) -> float | None:
    return None if facts.sketch is None else terms.brush(facts.sketch.methods)


def _repetition(facts: Facts) -> float | None:
    return None if facts.sketch is None else terms.repetition(facts.sketch.shapes)


def _quality(facts: Facts) -> float | None:
    mu = facts.rollout.mu
    return None if mu is None else terms.quality(mu)


def _mark(name: str, facts: Facts) -> float | None:
    return facts.rollout.marks.get(name)


def _judge(facts: Facts) -> float | None:
    return terms.judge(facts.votes)


def _utility(facts: Facts) -> float | None:
    return terms.utility(facts.votes, facts.strengths)


def _pigment(facts: Facts) -> float | None:
    colours = pigments.colours(facts.rollout)
    if colours is None or facts.pixels is None:
        return None
    found = pigments.read(facts.pixels, colours)
    return terms.pigment(found.share, found.coverage)


def _area(facts: Facts) -> float | None:
    heaviest = facts.rollout.heaviest_shape
    return None if heaviest is None else terms.area(heaviest)


def _perceptual(facts: Facts) -> float | None:
    painting = facts.rollout.painting
    if painting is None or not facts.references:
        return None
    own = described(painting)
    return terms.perceptual(
        [likeness.handling_distance(own, described(other)) for other in facts.references]
    )


def _diversity(facts: Facts) -> float | None:
    others = _paintings(facts.others)
    if facts.rollout.painting is None or not others:
        return None
    own = described(facts.rollout.painting)
    return terms.diversity([likeness.look_distance(own, described(other)) for other in others])


def _paintings(rollouts: Iterable[Rollout]) -> list[bytes]:
    return [rollout.painting for rollout in rollouts if rollout.painting is not None]


def _has_hue(rollout: Rollout) -> bool:
    return pigments.colours(rollout) is not None


_PUBLISHED = "the published experiment of 2026"
_NARREDDI = "the nine signals of an early rubric of 2026; read from a vision-language model's marks"

_MARKED = {
    "adherence": "how far it shows what was asked for",
    "recognisability": "how surely a person would name what it shows",
    "aesthetics": "how well colour, light and placing go together",
    "technique": "how well it is painted as a watercolour",
    "depth": "how far it has depth: layers, overlaps, near and far",
}
assert tuple(_MARKED) == MARKS

_PAINTING: frozenset[Need] = frozenset({"painting"})


def _shipped() -> Iterable[Term]:
    yield Term(
        "gate",
        "1 for a sketch that the gate admits",
        "0 or 1",
        _PUBLISHED,
        _gate,
    )
    yield Term(
        "length",
        "how much of the wanted length it has: 0 below 150 tokens, 1 from 3,000",
        "share of the ramp, at 4 characters a token",
        _PUBLISHED,
        _length,
    )
    yield Term(
        "quality",
        "the scorer's mean on a scale of 0 to 1: 1 / (1 + exp(-mu / 4))",
        "logistic of mu / 4",
        _PUBLISHED,
        _quality,
        frozenset({"painting", "scorer"}),
    )
    yield Term(
        "judge",
        "the share of comparisons with references that it wins, a tie for half",
        "share of the references",
        _PUBLISHED,
        _judge,
        frozenset({"painting", "judge"}),
    )
    yield Term(
        "utility",
        "the wins that its Bradley-Terry strength expects against an average okay painting",
        "share of wins",
        "an article of 2026 on a hybrid reward; the prior is ours",
        _utility,
        frozenset({"painting", "judge"}),
    )
    yield Term(
        "pigment",
        "how far its paint has the subject's colours",
        "share of the paint, times coverage up to 5 % of the sheet",
        "ours; figures from the built-in pool",
        _pigment,
        _PAINTING,
        _has_hue,
    )
    yield Term(
        "area",
        "whether no single shape takes the sheet",
        "share of the sheet times opacity, of the heaviest shape",
        "ours; figures from the built-in pool",
        _area,
        frozenset({"painting", "replay"}),
    )
    yield Term(
        "repetition",
        "whether its shapes are no copies of one another",
        "share of the shapes as written",
        "ours",
        _repetition,
    )
    yield Term(
        "perceptual",
        "how far it is handled like the references of its draw",
        "distance between distributions of light, chroma and contrast",
        "ours; figures from the built-in pool",
        _perceptual,
        frozenset({"painting", "references"}),
    )
    yield Term(
        "diversity",
        "how unlike it looks to the others of its group",
        "mean distance of looks",
        "ours; figures from the built-in pool",
        _diversity,
        frozenset({"painting", "group"}),
    )
    yield Term(
        "brush",
        "how far it uses what p5.brush is for: fill, bleed, texture, outlines of its own",
        "share of the four",
        "the nine signals of an early rubric of 2026; the four are ours",
        _brush,
    )
    for mark, meaning in _MARKED.items():
        yield Term(
            f"{MARK_PREFIX}{mark}",
            f"a model's mark for {mark}: {meaning}",
            "mark, on a scale of 0 to 1",
            _NARREDDI,
            partial(_mark, mark),
            frozenset({"painting", "marks"}),
        )
    yield Term(
        "fills",
        f"how near it is to {terms.WANTED_FILLS} calls of brush.fill",
        "calls as written",
        "the control reward of the published experiment; the number is ours",
        _fills,
    )
    yield Term(
        "chance",
        "a number drawn by seed, step, group and place, whatever the sketch",
        "uniform",
        "ours",
        _chance,
    )


#: The terms that ship with the project, in the order in which tables show them.
SHIPPED: Mapping[str, Term] = {term.name: term for term in _shipped()}
