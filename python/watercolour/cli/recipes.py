"""Commands on recipes: list, show, terms, explain."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from watercolour.cli import root

if TYPE_CHECKING:
    from watercolour.api.rollout import Rollout
    from watercolour.gallery.record import Entry, RunRecord
    from watercolour.reward.recipe import Recipe

#: Files that hold a recipe, by their ends.
FILES = (".yaml", ".yml", ".json")


@root.cli.group()
def recipe() -> None:
    """Recipes: how terms become a reward, and how one came about."""


@recipe.command("list")
@root.as_json
def recipe_list(json_: bool) -> None:
    """List the recipes and their weights."""
    from watercolour.reward.recipes import RECIPES

    if json_:
        root.print_json({"recipes": {name: dict(one.weights) for name, one in RECIPES.items()}})
        return
    click.echo(f"{'':21}{'failed gate':>12}  weights")
    for name, one in RECIPES.items():
        worth = f"{one.failed_gate:g}" if one.gated else "-"
        click.echo(f"{name:21}{worth:>12}  {_weights(one.weights)}")


@recipe.command("terms")
@root.as_json
def recipe_terms(json_: bool) -> None:
    """List the terms that a recipe may weigh: the shipped ones, and those of packages."""
    from watercolour.reward import catalogue

    found = [catalogue.find(name) for name in catalogue.names()]
    if json_:
        told = ("name", "meaning", "unit", "source")
        root.print_json(
            {
                "terms": [
                    {name: getattr(term, name) for name in told} | {"needs": sorted(term.needs)}
                    for term in found
                ]
            }
        )
        return
    for term in found:
        needs = ", ".join(sorted(term.needs)) or "the sketch alone"
        click.echo(f"{term.name}, 0 to 1: {term.meaning}")
        click.echo(f"    unit {term.unit}; needs {needs}; source: {term.source}\n")


@recipe.command("show")
@click.argument("name")
@root.as_json
def recipe_show(name: str, json_: bool) -> None:
    """Say what the terms of a recipe are, and what each weighs, step by step.

    NAME is a shipped recipe, or a YAML file with the fields of spec.recipe.

    \b
    watercolour recipe show hybrid
    watercolour recipe show my-recipe.yaml
    """
    from watercolour.reward.recipe import plain

    found = resolved(name)
    least, most = found.range
    if json_:
        told = {"name": found.name, "weights": dict(found.weights), "range": [least, most]}
        root.print_json({**told, "about": found.about, "all": plain(found)})
        return
    refused = f"a refused sketch earns {least:g}" if found.gated else "the gate decides nothing"
    click.echo(f"{found.name}: a reward from {least:g} to {most:g}; {refused}.")
    for line in _said(found):
        click.echo(line)
    click.echo()
    _show_terms(found)
    _show_steps(found)


def _said(found: Recipe) -> list[str]:
    """What holds for the whole recipe, in sentences."""
    said = [found.about] if found.about else []
    if found.signed:
        said.append("All terms but the gate count from -1 to 1.")
    if not found.paints:
        said.append("Nothing is painted: the static gate alone admits a sketch.")
    else:
        memory = f" and {found.memory_mib} MiB of memory" if found.memory_mib else ""
        said.append(f"A sketch may use {found.cpu_budget_seconds:g} CPU seconds{memory}.")
    return said


def _show_terms(found: Recipe) -> None:
    from watercolour.reward import catalogue

    for term in found.terms:
        weight = f"{found.weight(term):g}" if found.weight(term) else "later"
        click.echo(f"  {term:20} {weight:>5}  {catalogue.find(term).meaning}")


def _show_steps(found: Recipe) -> None:
    """Schedule, curriculum and KL term, a line a stage."""
    if found.schedule.stages:
        way = "hold until the next stage" if found.schedule.between == "hold" else "move evenly"
        click.echo(f"\nSchedule; between stages the weights {way}:")
        for start, weights in ((0, found.weights), *found.schedule.stages):
            click.echo(f"  from step {start:<5} {_weights(weights)}")
    if found.curriculum:
        click.echo("\nCurriculum; shares of the references' tiers:")
        for start, shares in found.curriculum:
            tiers = ", ".join(f"{tier} {one:g}" for tier, one in shares.model_dump().items() if one)
            click.echo(f"  from step {start:<5} {tiers}")
    if found.kl is not None:
        click.echo(
            f"\nKL term: weight {found.kl.start:g} to {found.kl.end:g} over {found.kl.steps} steps "
            f"({found.kl.shape})."
        )


def _weights(weights: Any) -> str:
    return ", ".join(f"{term} {weight:g}" for term, weight in weights.items() if weight)


def fields(named: str) -> dict[str, Any]:
    """The fields of ``spec.recipe`` for a shipped recipe's name, or those in a file."""
    from watercolour.api import load

    path = Path(named)
    return load.recipe(path) if path.suffix in FILES or path.is_file() else {"name": named}


def resolved(named: str) -> Recipe:
    """The recipe of a name or of a file.

    Raises:
        InputError: there is none, or the file breaks a rule.
    """
    from watercolour.api import spec
    from watercolour.reward import recipes

    return recipes.get(spec.Recipe.model_validate(fields(named)))


@recipe.command("explain")
@click.argument("painting", type=click.Path(path_type=Path))
@click.option("--recipe", "name", help="Another recipe, or its file; the run's own if unset.")
@root.as_json
def recipe_explain(painting: Path, name: str | None, json_: bool) -> None:
    """Say term by term how the reward of a PAINTING (or sketch) of a run came about.

    \b
    watercolour recipe explain runs/peony/paintings/00042/3.png
    watercolour recipe explain runs/peony/paintings/00042/3.js --recipe judge-led
    """
    from dataclasses import asdict

    from watercolour.gallery import record
    from watercolour.reward import explain

    folder, place = _run_of(painting)
    found = record.read(folder)
    entry = _entry(found, place)
    used = _recipe(found, name)
    rollout = _filled(found, used, entry) if name else entry.rollout
    parts = explain.parts(used, rollout)
    reward = explain.reward(used, rollout)
    if json_:
        ids = {key: getattr(rollout, key) for key in ("step", "group", "index", "subject", "seed")}
        terms = [asdict(part) for part in parts]
        kept = {"reward": reward, "reward_of_the_run": rollout.reward}
        root.print_json({**ids, "recipe": used.name, "terms": terms, **kept})
        return
    click.echo(
        f"{rollout.subject}; step {rollout.step}, group {rollout.group}, member {rollout.index}; "
        f"recipe {used.name}\n"
    )
    click.echo(f"  {'term':20} {'value':>6} {'weight':>7} {'adds':>6}")
    for part in parts:
        if part.weight or part.words:
            value, adds = _number(part.value), _number(part.adds)
            line = f"  {part.term:20} {value:>6} {part.weight:>7.3g} {adds:>6}   {part.words}"
            click.echo(line.rstrip())
    click.echo(f"\n  {'reward':20} {'':6} {'':7} {_number(reward):>6}   {_verdict(entry, reward)}")


def _filled(found: RunRecord, used: Recipe, entry: Entry) -> Rollout:
    """The rollout with the terms of another recipe, as far as sketch and painting show them."""
    from watercolour.gallery import stored

    def member(one: Entry) -> tuple[Rollout, Path | None]:
        return one.rollout, found.folder / one.painting if one.painting else None

    ids = (entry.rollout.step, entry.rollout.group)
    others = [
        member(other)
        for other in found.entries
        if (other.rollout.step, other.rollout.group) == ids and other is not entry
    ]
    return stored.filled(used, member(entry), others)


def _run_of(painting: Path) -> tuple[Path, str]:
    """The run's folder, and the path below it, of a painting or its sketch.

    Raises:
        InputError: it does not lie in a run.
    """
    from watercolour.api.errors import InputError
    from watercolour.api.reasons import Reason

    whole = painting.absolute()
    for folder in whole.parents:
        if (folder / "run.yaml").is_file():
            return folder, whole.relative_to(folder).as_posix()
    raise InputError(
        Reason.INVALID_INPUT,
        f"{painting}: lies in no run's folder.",
        remedy="Name a file like runs/NAME/paintings/00042/3.png.",
        field="painting",
        value=str(painting),
    )


def _entry(found: RunRecord, place: str) -> Entry:
    """The rollout whose painting or sketch lies there.

    Raises:
        InputError: no rollout's does.
    """
    from watercolour.api.errors import InputError
    from watercolour.api.reasons import Reason

    stem = place.rpartition(".")[0]
    for entry in found.entries:
        if any(path and path.rpartition(".")[0] == stem for path in (entry.painting, entry.sketch)):
            return entry
    raise InputError(
        Reason.INVALID_INPUT,
        f"{place}: no rollout of {found.name} has it.",
        remedy=f"Choose one of {found.folder / 'paintings'}.",
        field="painting",
        value=place,
    )


def _recipe(found: RunRecord, name: str | None) -> Recipe:
    """The named recipe, or the run's own."""
    from watercolour.api import spec
    from watercolour.reward import recipes

    if name:
        return resolved(name)
    # Only what is needed: a run of another version may have other fields besides.
    own = (found.spec.get("spec") or {}).get("recipe") or {}
    known = {info.alias or field for field, info in spec.Recipe.model_fields.items()}
    kept = {key: own[key] for key in own if key in known and own[key] is not None}
    return recipes.get(spec.Recipe.model_validate(kept))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _verdict(entry: Entry, reward: float | None) -> str:
    """What there is to say about the sum."""
    rollout = entry.rollout
    said: list[str] = []
    if rollout.unscored_reason is not None:
        said.append(f"unscored: {rollout.unscored_reason}: {rollout.unscored_detail}")
    elif rollout.gate_passed is False:
        said.append("refused by the gate")
    elif reward is not None and rollout.reward is not None and abs(reward - rollout.reward) > 1e-9:
        said.append(f"the run gave {rollout.reward:.3f}")
    elif rollout.reward_adjusted is not None and rollout.reward_adjusted != rollout.reward:
        said.append(f"adjusted for the draw {rollout.reward_adjusted:.3f}")
    if rollout.advantage is not None:
        said.append(f"advantage {rollout.advantage:+.3f}")
    return ", ".join(said)
