"""What a recipe makes of stored rollouts, those of a run by another recipe among them.

What the run did not ask for is read off what it stored: the sketch, the painting, the others of the
group, the votes, and the pool from which its seed drew. A scorer, a judge and a renderer are asked
only by whoever calls this (:mod:`watercolour.cli.rescoring`), and what stays unknown is told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import ValidationError

from watercolour.api.rollout import Rollout
from watercolour.api.spec import References
from watercolour.env import draws
from watercolour.env.draws import Draw
from watercolour.gallery.stored import Stored
from watercolour.render.replay import Replay
from watercolour.reward import explain, shapes
from watercolour.reward.explain import Lack
from watercolour.reward.facts import Facts
from watercolour.reward.pool import Pool
from watercolour.reward.recipe import Recipe


@dataclass(frozen=True)
class Rescored:
    """A stored rollout under a recipe.

    Attributes:
        rollout: with the terms that were found, without the painting's bytes.
        recipe: as it is at the rollout's step, for its subject and its group; None where nobody
            says which one it is, and the reward is the stored one.
        reward: what it makes of the terms; None unscored.
        adjusted: the same with the draw's difficulty taken out; None where that cannot be told.
        lacks: the terms for want of which there is no reward.
    """

    rollout: Rollout
    recipe: Recipe | None
    reward: float | None
    adjusted: float | None
    lacks: tuple[Lack, ...] = ()


def as_stored(found: Stored, recipe: Recipe | None) -> list[Rescored]:
    """The rollouts under the recipe of their own run, from the values that it stored."""
    done: list[Rescored] = []
    for place, rollout in enumerate(found.rollouts):
        own = None if recipe is None else explain.of_rollout(recipe, rollout)
        reward = found.kept.get(place)
        if reward is None and own is not None:
            reward = explain.reward(own, rollout)
        done.append(_rescored(rollout, own, reward))
    return done


def again(
    found: Stored, recipe: Recipe, pool: Pool | None, places: Collection[int] | None = None
) -> Iterator[Rescored]:
    """The rollouts under a recipe, with what can be read off what is stored.

    Args:
        found: the rollouts.
        recipe: any.
        pool: where the references are, for a term that looks at them.
        places: of the rollouts that are wanted; all of them by default. In order of place.
    """
    by_name = {} if pool is None else {one.name: one.painting for one in pool.references}
    for members in groups(found):
        wanted = [place for place in members if places is None or place in places]
        if not wanted:
            continue
        paintings = _paintings(found, recipe, members)
        for place in wanted:
            stored = found.rollouts[place]
            own = explain.of_rollout(recipe, stored, len(paintings))
            rollout = stored.model_copy(update={"painting": paintings.get(place)})
            others = tuple(
                found.rollouts[other].model_copy(update={"painting": painting})
                for other, painting in paintings.items()
                if other != place and painting is not None
            )
            references = tuple(by_name[name] for name in rollout.references if name in by_name)
            if len(references) < len(rollout.references):
                references = ()
            filled, lacks = explain.filled(own, Facts(rollout, others, references))
            filled = filled.model_copy(update={"painting": None})
            yield _rescored(filled, own, explain.reward(own, filled), lacks)


def groups(found: Stored) -> list[list[int]]:
    """The places of the members of every group, in order."""
    members: dict[tuple[int, int], list[int]] = {}
    for place, rollout in enumerate(found.rollouts):
        members.setdefault((rollout.step, rollout.group), []).append(place)
    return list(members.values())


def _paintings(found: Stored, recipe: Recipe, members: Sequence[int]) -> Mapping[int, bytes | None]:
    """The paintings of a group's admitted members, where a term looks at any; None: not stored."""
    looked_at = bool(recipe.asks("painting"))
    return {
        place: found.painting(place) if looked_at else None
        for place in members
        if found.rollouts[place].gate_passed
    }


def _rescored(
    rollout: Rollout, own: Recipe | None, reward: float | None, lacks: tuple[Lack, ...] = ()
) -> Rescored:
    adjusted = None if own is None else explain.adjusted(own, rollout, reward)
    return Rescored(rollout, own, reward, adjusted, lacks)


# What else may be known, before the terms are read.


def references_of(found: Stored) -> References | None:
    """How the run drew its references; None where its pool lies in the cluster.

    Rollouts of no run draw as a run does that says nothing of it.
    """
    wanted = (found.spec or {}).get("references") or {}
    try:
        own = References.model_validate({k: v for k, v in wanted.items() if v is not None})
    except ValidationError:
        # Of another version.
        return None
    return None if own.dataset or own.claim or own.config_map else own


def with_draws(
    found: Stored, recipe: Recipe, pool: Pool, wanted: References, places: Collection[int]
) -> tuple[Stored, int]:
    """Rollouts that met no references with those that their seed draws; and how many there are.

    A run of that recipe would have drawn the same: a draw follows from seed and step alone.

    Args:
        found: the rollouts.
        recipe: with its curriculum.
        pool: to draw from.
        wanted: how.
        places: of the rollouts that are wanted.

    Raises:
        InputError: a tier of the pool has too few paintings (InvalidPool).
    """
    drawn: dict[tuple[int, int], Draw] = {}
    changed: list[Rollout] = []
    count = 0
    for place, rollout in enumerate(found.rollouts):
        if place not in places or rollout.references or not rollout.gate_passed:
            changed.append(rollout)
            continue
        key = (rollout.seed, rollout.step)
        if key not in drawn:
            seed, step = key
            drawn[key] = draws.draw(pool, recipe, wanted, seed, wanted.per_rollout, step)
        draw = drawn[key]
        met = {
            "references": tuple(one.name for one in draw.references),
            "reference_strengths": tuple(one.strength for one in draw.references),
            "draw_strength": draw.strength,
            "mean_draw_strength": draw.mean_strength,
        }
        changed.append(rollout.model_copy(update=met))
        count += 1
    return replace(found, rollouts=tuple(changed)), count


def with_replays(found: Stored) -> Stored:
    """With the heaviest shape of rollouts whose replay lies beside their painting."""

    def known(place: int, rollout: Rollout) -> Rollout:
        path = found.paintings.get(place)
        beside = None if path is None else path.with_suffix(".json")
        if rollout.heaviest_shape is not None or beside is None or not beside.is_file():
            return rollout
        try:
            replay = Replay.model_validate_json(beside.read_bytes())
        except (OSError, ValidationError):
            return rollout
        return rollout.model_copy(update={"heaviest_shape": shapes.heaviest(replay)})

    return replace(found, rollouts=tuple(known(*pair) for pair in enumerate(found.rollouts)))
