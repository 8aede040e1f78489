"""Commands on recipes: list, show and terms; explain has a module of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from watercolour.cli import root

if TYPE_CHECKING:
    from watercolour.gallery.stored import Stored
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
    """List the terms that a recipe may weigh: the shipped ones, and those of packages.

    A package's term that cannot be used is named with its fault; a run that weighs it is refused.
    """
    from watercolour.reward import catalogue

    found, broken = catalogue.usable()
    if json_:
        told = ("name", "meaning", "unit", "source")
        root.print_json(
            {
                "terms": [
                    {name: getattr(term, name) for name in told} | {"needs": sorted(term.needs)}
                    for term in found
                ],
                "broken": [
                    {"name": name, "fault": error.message, "remedy": error.remedy}
                    for name, error in broken.items()
                ],
            }
        )
        return
    for term in found:
        needs = ", ".join(sorted(term.needs)) or "the sketch alone"
        click.echo(f"{term.name}, 0 to 1: {term.meaning}")
        click.echo(f"    unit {term.unit}; needs {needs}; source: {term.source}\n")
    for error in broken.values():
        click.echo(f"{error.message} {error.remedy}", err=True)


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


def of_stored(found: Stored, name: str | None) -> Recipe | None:
    """The named recipe, or the one that stored rollouts were rewarded by; None if nobody says.

    Raises:
        InputError: there is no such recipe, or its file breaks a rule.
    """
    from watercolour.api import spec
    from watercolour.reward import recipes

    if name is not None:
        return resolved(name)
    if not found.recipe:
        return None
    # Only what is needed: a run of another version may have other fields besides.
    known = {info.alias or field for field, info in spec.Recipe.model_fields.items()}
    kept = {key: value for key, value in found.recipe.items() if key in known and value is not None}
    return recipes.get(spec.Recipe.model_validate(kept))
