"""What commands share that reward stored rollouts by any recipe: where missing values come from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from watercolour.cli import root

if TYPE_CHECKING:
    from watercolour.api.rollout import Rollout
    from watercolour.gallery.rescored import Rescored
    from watercolour.gallery.stored import Stored
    from watercolour.reward.pool import Pool
    from watercolour.reward.recipe import Recipe

Given = ParamSpec("Given")
Done = TypeVar("Done")


@dataclass(frozen=True)
class Sources:
    """What may be asked for values that a run did not store.

    Attributes:
        pool: where the references are; None is the run's own.
        embedded: ask the embedded scorer and judge.
        repaint: paint sketches anew.
        renderer, python, allow_unsandboxed: by which renderer.
    """

    pool: str | None
    embedded: bool
    repaint: bool
    renderer: str | None
    python: Path | None
    allow_unsandboxed: bool

    @property
    def any(self) -> bool:
        """Whether more is wanted than what the run stored."""
        return self.pool is not None or self.embedded or self.repaint


def sources(command: Callable[..., Done]) -> Callable[..., Done]:
    """The options that make a command's ``ask``, a :class:`Sources`."""

    @click.option("--pool", metavar="POOL", help="Where the references are; unset: the run's own.")
    @click.option(
        "--embedded",
        is_flag=True,
        help="Ask the embedded scorer and judge where the run asked nobody.",
    )
    @click.option("--repaint", is_flag=True, help="Paint sketches anew for what was not recorded.")
    @root.running_renderer
    @root.renderer_options
    @wraps(command)
    def called(
        *words: Any,
        pool: str | None,
        embedded: bool,
        repaint: bool,
        renderer: str | None,
        renderer_python: Path | None,
        allow_unsandboxed: bool,
        **named: Any,
    ) -> Done:
        ask = Sources(pool, embedded, repaint, renderer, renderer_python, allow_unsandboxed)
        return command(*words, ask=ask, **named)

    return called


def rescored(
    found: Stored, recipe: Recipe, ask: Sources, places: Collection[int] | None = None
) -> tuple[list[Rescored], list[str]]:
    """Rollouts under a recipe, with every term that can still be had; and what to say of it.

    Args:
        found: the rollouts.
        recipe: any.
        ask: what may be asked besides.
        places: of the rollouts that are wanted; all of them by default.

    Raises:
        WatercolourError: a pool that was named cannot be used, or what was to be asked cannot be.
    """
    from watercolour.gallery import rescored as again

    wanted = set(range(len(found.rollouts)) if places is None else places)
    notes: list[str] = []
    asked = _unasked(found, recipe) if ask.embedded else frozenset[str]()
    found, pool = _drawn(found, recipe, ask, wanted, needed="judge" in asked, notes=notes)
    if pool is None and "judge" in asked:
        asked -= {"judge"}
        notes.append("the embedded judge was not asked, for want of references: --pool names them")
    if recipe.asks("replay"):
        found = again.with_replays(found)
        if ask.repaint:
            found = _repainted(found, wanted, ask)
    if asked and any(found.rollouts[place].gate_passed for place in wanted):
        found = _asked(found, wanted, asked, pool)
        who = " and ".join(sorted(asked, reverse=True))
        notes.append(f"the embedded {who} was asked now; the run had asked nobody")
    elif ask.embedded and not asked and not notes:
        notes.append(
            "--embedded has nothing to tell: the recipe asks neither scorer nor judge, or the run "
            "asked its own, with whose values others do not compare"
        )
    return list(again.again(found, recipe, pool, wanted)), notes


def _unasked(found: Stored, recipe: Recipe) -> frozenset[str]:
    """Who is wanted by the recipe and has told nothing of any rollout.

    Where a run asked its own, what that one failed at stays unknown: values of two scorers, or of
    two judges, do not compare.
    """
    wanted = {"scorer": recipe.asks("scorer"), "judge": recipe.asks("judge")}
    told = {
        "scorer": lambda one: one.mu is not None or one.terms.get("quality") is not None,
        "judge": lambda one: bool(one.votes) or one.terms.get("judge") is not None,
    }
    return frozenset(
        who for who, terms in wanted.items() if terms and not any(map(told[who], found.rollouts))
    )


def _drawn(
    found: Stored,
    recipe: Recipe,
    ask: Sources,
    places: Collection[int],
    *,
    needed: bool,
    notes: list[str],
) -> tuple[Stored, Pool | None]:
    """The rollouts with their draws, and the pool; None where nothing needs it or it is not here.

    Raises:
        InputError: the pool that was named cannot be used (InvalidPool).
    """
    from watercolour.api.errors import InputError
    from watercolour.api.spec import References
    from watercolour.gallery import rescored as again
    from watercolour.reward import pool as pools

    if not needed and not recipe.asks("references"):
        return found, None
    wanted = again.references_of(found)
    named = ask.pool
    if named is None and found.spec is not None:
        if wanted is None:
            notes.append("the run's pool is in its cluster: --pool names a copy of it")
            return found, None
        named = wanted.pool
    if named is None:
        return found, None
    try:
        pool = pools.load(named)
        found, count = again.with_draws(found, recipe, pool, wanted or References(), places)
    except InputError as error:
        if ask.pool is not None:
            raise
        notes.append(f"the run's pool cannot be used here; --pool names another: {error.message}")
        return found, None
    if count:
        notes.append(
            f"{count} had met no references, and meet those that their seeds draw from {named}"
        )
    return found, pool


def _repainted(found: Stored, wanted: Collection[int], ask: Sources) -> Stored:
    from contextlib import nullcontext

    from watercolour.local import repainting
    from watercolour.local.painting import Wish, own_renderer

    lacking = {
        place: one.sketch
        for place in wanted
        if (one := found.rollouts[place]).gate_passed
        and one.heaviest_shape is None
        and one.sketch is not None
    }
    if not lacking:
        return found
    spec = found.spec or {}
    seed, size = spec.get("seed"), (spec.get("renderers") or {}).get("size")
    wish = Wish(seed=1 if seed is None else seed, size=size)
    with (
        nullcontext(ask.renderer)
        if ask.renderer
        else own_renderer(ask.python, slots=2, allow_unsandboxed=ask.allow_unsandboxed)
    ) as url:
        shapes = asyncio.run(
            repainting.heaviest(lacking.values(), url, wish, progress("sketches painted anew"))
        )

    def known(place: int, rollout: Rollout) -> Rollout:
        heaviest = shapes.get(lacking.get(place, ""), rollout.heaviest_shape)
        return rollout.model_copy(update={"heaviest_shape": heaviest})

    return replace(found, rollouts=tuple(known(*pair) for pair in enumerate(found.rollouts)))


def _asked(
    found: Stored, wanted: Collection[int], who: Collection[str], pool: Pool | None
) -> Stored:
    """The rollouts with what the embedded scorer and judge say of their paintings."""
    from watercolour.reward.stand_in import StandIn
    from watercolour.score import embedded

    stand_in = StandIn(embedded.load())
    references = {} if pool is None else {one.name: one for one in pool.references}
    show = progress("paintings looked at")
    changed = list(found.rollouts)
    admitted = [place for place in sorted(wanted) if changed[place].gate_passed]
    for done, place in enumerate(admitted, start=1):
        rollout, painting = changed[place], found.painting(place)
        met = [references[name] for name in rollout.references if name in references]
        if painting is not None and "scorer" in who:
            rollout = stand_in.scored(rollout, painting)
        if painting is not None and "judge" in who and len(met) == len(rollout.references):
            rollout = stand_in.judged(rollout, painting, met)
        changed[place] = rollout
        show(done, len(admitted))
    return replace(found, rollouts=tuple(changed))


def progress(what: str) -> Callable[[int, int], None]:
    """A line on standard error now and then, for what takes longer than a person likes to wait."""

    def show(done: int, of: int) -> None:
        if of >= 50 and (done % 50 == 0 or done == of):
            click.echo(f"{done}/{of} {what}", err=True)

    return show
