"""The command that rewards stored rollouts again and says where a gain came from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from watercolour.cli import root

if TYPE_CHECKING:
    from watercolour.gallery.stored import Stored
    from watercolour.reward.bands import Band
    from watercolour.reward.gain import Decomposition


@root.cli.command()
@click.argument("rollouts", type=click.Path(path_type=Path))
@click.option("--recipe", "name", help="Another recipe, or a file with one; their own if unset.")
@click.option("--bad", default=0.3, show_default=True, help="A reward below it is a failure.")
@root.as_json
def recompute(rollouts: Path, name: str | None, bad: float, json_: bool) -> None:
    """Reward stored ROLLOUTS again, and split their gain into fewer bad and better good.

    ROLLOUTS is a run (its folder or its name), one of its parquet files, the same as JSON, or a
    table in the columns of the published rollouts.

    \b
    watercolour recompute runs/peony
    watercolour recompute runs/peony --recipe judge-led
    watercolour recompute watercolour-rollouts-hps-only/train.parquet
    """
    from dataclasses import asdict

    from watercolour.gallery import stored
    from watercolour.reward import bands, gain

    found = stored.read(root.run_folder(rollouts))
    recipe, rewards, admitted = rewarded(found, name)
    scored = sum(len(members) for groups in rewards.values() for members in groups)
    first, last = gain.fifths(sorted(rewards))
    before = [members for step in first for members in rewards[step]]
    after = [members for step in last for members in rewards[step]]
    split = gain.decompose(
        gain.by_reward((r for members in before for r in members), bad),
        gain.by_reward((r for members in after for r in members), bad),
    )
    sure = bands.of_gain(before, after)
    if not admitted and any(rollout.gate_passed for rollout in found.rollouts):
        # Refused ones have a value under any recipe; alone they would make a gain of 0.
        split = sure = None
    if json_:
        told = {"recipe": recipe, "rollouts": len(found.rollouts), "scored": scored}
        parts = None if split is None else asdict(split)
        interval = None if sure is None else [sure.low, sure.high]
        root.print_json({**told, "gain": parts, "gain_interval": interval})
        return
    lost = len(found.rollouts) - scored
    click.echo(
        f"{found.name} under {recipe}: {scored} of {len(found.rollouts)} rollouts have a value"
        + (f"; {lost} lack a term that the recipe needs, or were never scored" if lost else "")
    )
    if split is None:
        click.echo("Neither fifth can be told.")
        return
    _show(split, sure, bad)


def rewarded(found: Stored, name: str | None) -> tuple[str, Mapping[int, list[list[float]]], int]:
    """The recipe's name, the rewards of every step, group by group, and how many were admitted.

    The rows of a published table lack terms, but have a reward: it stands where the recipe is the
    one that made it.
    """
    from watercolour.cli import recipes
    from watercolour.gallery import stored
    from watercolour.reward import explain

    recipe = recipes.of_stored(found, name)
    members = [(rollout, found.paintings.get(n)) for n, rollout in enumerate(found.rollouts)]
    groups_of: dict[tuple[int, int], list[int]] = {}
    for place, (rollout, _) in enumerate(members):
        groups_of.setdefault((rollout.step, rollout.group), []).append(place)
    kept = found.kept if name is None or name == found.recipe.get("name") else {}
    rewards: dict[int, dict[int, list[float]]] = {}
    admitted = 0
    for place, rollout in enumerate(found.rollouts):
        group = rewards.setdefault(rollout.step, {}).setdefault(rollout.group, [])
        value = kept.get(place)
        if value is None and recipe is not None:
            if name is not None:
                near = groups_of[rollout.step, rollout.group]
                others = [members[other] for other in near if other != place]
                rollout = stored.filled(recipe, members[place], others)
            value = explain.reward(recipe, rollout)
        if value is not None:
            group.append(value)
            admitted += bool(rollout.gate_passed)
    said = recipe.name if recipe is not None else "their own rewards"
    return said, {step: list(groups.values()) for step, groups in rewards.items()}, admitted


def _show(split: Decomposition, sure: Band | None, bad: float) -> None:
    known = f"   between {sure.low:+.3f} and {sure.high:+.3f} at 95 %" if sure else ""
    click.echo(f"  first → last fifth      {split.before.reward:.3f} → {split.after.reward:.3f}")
    click.echo(
        f"  rewards below {bad:<9g} {1 - split.before.share:.0%} → {1 - split.after.share:.0%}"
    )
    click.echo(f"  the gain                {split.gain:+.3f}{known}")
    click.echo(f"    fewer bad paintings   {split.fewer_bad:+.3f}")
    click.echo(f"    better good ones      {split.better_good:+.3f}")
    click.echo(f"    less bad bad ones     {split.better_bad:+.3f}")
