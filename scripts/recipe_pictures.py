"""Write docs/img/recipe-*.webp: what each shipped recipe likes, in real paintings and real figures.

    .venv/bin/python -m scripts.recipe_pictures                # some five minutes
    .venv/bin/python -m scripts.recipe_pictures --keep FOLDER  # keeps the rollouts as well

Each figure is the installed version's own. The kept rollouts are one file of JSON lines a recipe,
of which `watercolour recipe explain --rollout FOLDER/hybrid-0.jsonl --id 0/1/3` says the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from scripts import recipe_rollouts
from scripts.recipe_rollouts import Shown
from scripts.recipe_sheet import Band, Cell, Row, draw

from watercolour.api.rollout import Rollout
from watercolour.reward import catalogue, explain, pool, recipes
from watercolour.reward.facts import Facts
from watercolour.reward.recipe import Recipe
from watercolour.score import embedded, examples

OUT = Path("docs/img")
DATA = Path(examples.__file__).parent / "data" / "counterexamples" / "paintings"
POOL = {one.name: one for one in pool.load("builtin:flowers").references}
DRAW = [one for one in POOL.values() if one.tier == "love"][::7]

#: With which other recipe each is compared.
BESIDE = {
    "hps-only": "judge-led",
    "hps-led": "hps-only",
    "judge-led": "hps-led",
    "embedded": "hps-led",
    "hybrid": "hps-led",
    "nine-signal": "hps-only",
    "control": "hps-only",
    "random": "hps-only",
}

#: The recipe whose draws get harder, and the steps that are shown of it.
CURRICULUM, EARLY, LATE = "judge-led-curriculum", 0, 90

#: Name, subject of each painting shown for scorer, pigment and handling.
SHOWN = (
    ("love_iris_09", "a blue iris"),
    ("love_poppy_02", "a red poppy"),
    ("okay_daisy_06", "a yellow daisy"),
    ("meh_poppy_05", "a red poppy"),
    ("iris-wet_wash", "a blue iris"),
    ("poppy-neon", "a red poppy"),
    ("hibiscus-speck", "a peach hibiscus"),
)

#: A group that looks alike and one that does not.
ALIKE = ("love_hibiscus_01", "love_hibiscus_02", "love_hibiscus_03", "love_hibiscus_04")
UNLIKE = ("love_hibiscus_01", "love_iris_09", "love_poppy_02", "love_daisy_03")

#: A rollout's place: group, position in the group.
Id = tuple[int, int]


def main() -> None:
    """Write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="folder for the rollouts")
    keep: Path | None = parser.parse_args().keep
    _terms()
    _diversity()
    wanted = [*((name, EARLY) for name in (*BESIDE, CURRICULUM)), (CURRICULUM, LATE)]
    found = recipe_rollouts.rewarded(wanted)
    if keep is not None:
        for (name, step), groups in found.items():
            _kept(keep / f"{name}-{step}.jsonl", groups)
    whole = {key: by_id(groups) for key, groups in found.items()}
    painted = {place: one.rollout.painting for place, one in whole["hps-only", EARLY].items()}
    for name, other in BESIDE.items():
        own, others = whole[name, EARLY], whole[other, EARLY]
        _save([strip(recipes.RECIPES[name], own, others, other, painted)], f"recipe-{name}")
    harder = curriculum(whole[CURRICULUM, EARLY], whole[CURRICULUM, LATE])
    _save([harder], f"recipe-{CURRICULUM}")


def by_id(groups: Iterable[Iterable[Shown]]) -> dict[Id, Shown]:
    """The rollouts by their places."""
    return {(one.rollout.group, one.rollout.index): one for group in groups for one in group}


def strip(
    recipe: Recipe,
    own: Mapping[Id, Shown],
    others: Mapping[Id, Shown],
    other: str,
    painted: Mapping[Id, bytes | None],
) -> list[Band]:
    """What a recipe likes most and least, and what it likes otherwise than another one does.

    Args:
        recipe: the one that is shown.
        own: its rollouts.
        others: the same sketches' rollouts by the other recipe.
        other: that one's name.
        painted: the paintings, which not every recipe has made.
    """
    both = {
        place
        for place, one in own.items()
        if painted[place] is not None
        and one.rollout.gate_passed
        and others[place].rollout.gate_passed
    }
    places = ranks({place: own[place] for place in own if place in both})
    beside = ranks({place: others[place] for place in own if place in both})
    order = sorted(places, key=lambda place: places[place])
    rise = sorted(order, key=lambda place: places[place] - beside[place])
    most = _unlike(order, own, 2)
    least = _unlike(order[::-1], own, 2)[::-1]
    between = [place for place in rise if place not in {*most, *least}]
    differing = [between[0], between[-1]]

    def cell(place: Id, note: str = "") -> Cell:
        return _cell(recipe, own[place], painted[place], note)

    def told(place: Id) -> Cell:
        return cell(place, f"place {places[place]}, not {beside[place]}, of {len(places)}")

    last = [cell(place) for place in least]
    if recipe.failed_gate < 0:
        # The static gate's: there never was a painting.
        refused = next(
            one for one in own.values() if one.rollout.violations and not one.rollout.painting
        )
        last = [last[-1], _cell(recipe, refused, None, "")]
    return [
        Band("likes most", tuple(cell(place) for place in most)),
        Band(f"more than {other}", (told(differing[0]),)),
        Band(f"less than {other}", (told(differing[1]),)),
        Band("likes least", tuple(last)),
    ]


def curriculum(early: Mapping[Id, Shown], late: Mapping[Id, Shown]) -> list[Band]:
    """Three paintings, each at the run's start and when only loved references are drawn."""
    recipe = recipes.RECIPES[CURRICULUM]
    own = {place: one for place, one in early.items() if one.rollout.gate_passed}
    rewards = {place: one.rollout.reward or 0.0 for place, one in own.items()}
    after = {place: late[place].rollout.reward or 0.0 for place in own}
    keeps = max(own, key=lambda place: after[place])
    subject = own[keeps].rollout.subject
    rest = [place for place in own if own[place].rollout.subject != subject]
    falls = min(rest, key=lambda place: after[place] - rewards[place])
    bands: list[Band] = []
    for heading, place in (("holds its own", keeps), ("falls behind", falls)):
        for step, found in ((EARLY, early), (LATE, late)):
            shown = found[place]
            won = _won(shown.rollout)
            cell = _cell(recipe, shown, shown.rollout.painting, won)
            bands.append(
                Band(f"{heading}: step {step}" if step == EARLY else f"step {step}", (cell,))
            )
    return bands


def _won(rollout: Rollout) -> str:
    tiers = [name.partition("_")[0] for name in rollout.references]
    drawn = ", ".join(f"{tiers.count(tier)} {tier}" for tier in dict.fromkeys(tiers))
    return f"meets {drawn}"


def ranks(found: Mapping[Id, Shown]) -> dict[Id, int]:
    """The place of each by its reward, from 1; the same for equal rewards."""
    rewards = {place: one.rollout.reward for place, one in found.items()}
    known = {place: reward for place, reward in rewards.items() if reward is not None}
    return {
        place: 1 + sum(other > reward + 1e-9 for other in known.values())
        for place, reward in known.items()
    }


def _unlike(order: Iterable[Id], own: Mapping[Id, Shown], count: int) -> list[Id]:
    """The first so many of other subjects and other origins than those before."""
    chosen: list[Id] = []
    for place in order:
        if len(chosen) == count:
            break
        if all(
            own[place].rollout.subject != own[one].rollout.subject
            and own[place].origin != own[one].origin
            for one in chosen
        ):
            chosen.append(place)
    return chosen


def _cell(recipe: Recipe, shown: Shown, painting: bytes | None, note: str) -> Cell:
    """A rollout as `watercolour recipe explain` has it."""
    rollout = shown.rollout
    said: tuple[str, ...] = ()
    rows: list[Row] = []
    if rollout.gate_passed or not recipe.gated:
        rows = [
            Row(part.term, part.value, part.adds)
            for part in explain.parts(recipe, rollout)
            if part.weight
        ]
    else:
        said = ("refused", rollout.violations[0].code.value.replace("_", " "))
    title = rollout.subject.partition(" ")[2]
    reward = explain.reward(recipe, rollout)
    return Cell(painting, title, note or shown.origin, reward, tuple(rows), said)


def _terms() -> None:
    """What three terms make of paintings that ship."""
    scorer = embedded.load()
    names = [name for name, _ in SHOWN]
    seen = scorer.embed([painting(name) for name in names])
    mus = [scorer.score(one).mu for one in seen if not isinstance(one, Exception)]
    cells: list[Cell] = []
    for (name, subject), mu in zip(SHOWN, mus, strict=True):
        rollout = Rollout(gate_passed=True, subject=subject, painting=painting(name), mu=mu)
        facts = Facts(rollout, references=tuple(one.painting for one in DRAW))
        shown = tuple(
            Row(term, value(term, facts)) for term in ("quality", "pigment", "perceptual")
        )
        cells.append(Cell(painting(name), f"for {subject}", rows=shown))
    bands = [
        Band("paintings of the pool", tuple(cells[:4])),
        Band("counterexamples", tuple(cells[4:])),
    ]
    _save([bands], "recipes-terms")


def _diversity() -> None:
    """A group that looks alike and one that does not."""
    bands: list[Band] = []
    for heading, group in (("a group that looks alike", ALIKE), ("one that does not", UNLIKE)):
        members = [Rollout(gate_passed=True, painting=painting(name)) for name in group]
        cells: list[Cell] = []
        for name, member in zip(group, members, strict=True):
            others = tuple(one for one in members if one is not member)
            row = Row("diversity", value("diversity", Facts(member, others)))
            cells.append(Cell(painting(name), POOL[name].subject.partition(" ")[2], rows=(row,)))
        bands.append(Band(heading, tuple(cells)))
    _save([bands], "recipes-diversity")


def value(term: str, facts: Facts) -> float | None:
    """A term's value."""
    return catalogue.evaluate(catalogue.find(term), facts)


def painting(name: str) -> bytes:
    """A painting of the pool, or a counterexample."""
    return POOL[name].painting if name in POOL else (DATA / f"{name}.png").read_bytes()


def _kept(path: Path, groups: Iterable[Iterable[Shown]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [one.rollout.model_dump_json(exclude={"painting"}) for group in groups for one in group]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _save(lines: Sequence[Sequence[Band]], name: str) -> None:
    draw(lines).save(OUT / f"{name}.webp", quality=84, method=6)


if __name__ == "__main__":
    main()
