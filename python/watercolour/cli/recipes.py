"""Commands on recipes: list, show, explain, recount."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from watercolour.cli import root

if TYPE_CHECKING:
    from watercolour.gallery.record import Entry, RunRecord
    from watercolour.reward.recipes import Recipe


@root.cli.group()
def recipe() -> None:
    """Recipes: how terms become a reward, and how one came about."""


@recipe.command("list")
@root.as_json
def recipe_list(json_: bool) -> None:
    """List the recipes and their weights."""
    from watercolour.reward.recipes import RECIPES, TERMS

    if json_:
        root.print_json({"recipes": {name: dict(one.weights) for name, one in RECIPES.items()}})
        return
    click.echo(f"{'':10}" + "".join(f"{term:>9}" for term in TERMS) + "   failed gate")
    for name, one in RECIPES.items():
        weights = "".join(f"{one.weights[term] or '-':>9}" for term in TERMS)
        click.echo(f"{name:10}{weights}   {one.failed_gate:>11g}")


@recipe.command("show")
@click.argument("name")
@root.as_json
def recipe_show(name: str, json_: bool) -> None:
    """Say what the terms of the recipe NAME are, and what each weighs."""
    from watercolour.api import spec
    from watercolour.reward import recipes

    found = recipes.get(spec.Recipe(name=name))
    least, most = found.range
    if json_:
        weights = dict(found.weights)
        root.print_json({"name": name, "weights": weights, "range": [least, most]})
        return
    click.echo(f"{name}: a reward from {least:g} to {most:g}; a refused sketch earns {least:g}.")
    if found.signed:
        click.echo("All terms but the gate count from -1 to 1.")
    click.echo()
    for term, weight in found.weights.items():
        if weight:
            click.echo(f"  {term:8} {weight:5g}  {recipes.MEANINGS[term]}")


@recipe.command("explain")
@click.argument("painting", type=click.Path(path_type=Path))
@click.option("--recipe", "name", help="Another recipe's view; the run's own if unset.")
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
    rollout = entry.rollout
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
    click.echo(f"  {'term':8} {'value':>6} {'weight':>7} {'adds':>6}")
    for part in parts:
        if part.weight or part.words:
            value, adds = _number(part.value), _number(part.adds)
            line = f"  {part.term:8} {value:>6} {part.weight:>7.3g} {adds:>6}   {part.words}"
            click.echo(line.rstrip())
    click.echo(f"\n  {'reward':8} {'':6} {'':7} {_number(reward):>6}   {_verdict(entry, reward)}")


@recipe.command("recount")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--recipe", "name", help="Another recipe; the run's own if unset.")
@click.option("--bad", default=0.3, show_default=True, help="A reward below it is a failure.")
@root.as_json
def recipe_recount(run: Path, name: str | None, bad: float, json_: bool) -> None:
    """Reward the rollouts of a RUN again, and split its gain into fewer bad and better good.

    \b
    watercolour recipe recount runs/peony
    watercolour recipe recount runs/peony --recipe judge-led
    """
    from dataclasses import asdict

    from watercolour.gallery import record
    from watercolour.reward import explain

    found = record.read(root.run_folder(run))
    used = _recipe(found, name)
    steps = found.by_step()
    values = {
        step: [
            value for entry in entries if (value := explain.reward(used, entry.rollout)) is not None
        ]
        for step, entries in steps.items()
    }
    scored = sum(len(each) for each in values.values())
    gain = explain.gain(*explain.fifths(values), bad)
    if json_:
        counted = {"recipe": used.name, "rollouts": len(found.entries), "scored": scored}
        root.print_json({**counted, "gain": None if gain is None else asdict(gain)})
        return
    lost = len(found.entries) - scored
    click.echo(
        f"{found.name} under {used.name}: {scored} of {len(found.entries)} rollouts have a value"
        + (f"; {lost} lack a term that the recipe needs" if lost else "")
    )
    if gain is None:
        click.echo("Neither fifth can be told.")
        return
    click.echo(f"  first → last fifth      {gain.first:.3f} → {gain.last:.3f}")
    click.echo(f"  rewards below {bad:<9g} {gain.bad_first:.0%} → {gain.bad_last:.0%}")
    click.echo(f"  the gain                {gain.last - gain.first:+.3f}")
    click.echo(f"    fewer bad paintings   {gain.fewer_bad:+.3f}")
    click.echo(f"    better good ones      {gain.better_good:+.3f}")
    click.echo(f"    less bad bad ones     {gain.better_bad:+.3f}")


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
    """The named recipe, or the run's with the run's weights."""
    from watercolour.api import spec
    from watercolour.reward import recipes

    # Only what is needed: a run of another version may have other fields besides.
    own = (found.spec.get("spec") or {}).get("recipe") or {}
    wanted = (
        {"name": name} if name else {key: own[key] for key in ("name", "weights") if key in own}
    )
    return recipes.get(spec.Recipe.model_validate(wanted))


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
