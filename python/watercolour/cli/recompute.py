"""The command that rewards stored rollouts again and says where a gain came from."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from watercolour.cli import rescoring, root
from watercolour.cli.rescoring import Sources

if TYPE_CHECKING:
    from watercolour.gallery.gains import Gain
    from watercolour.gallery.rescored import Rescored
    from watercolour.gallery.stored import Stored
    from watercolour.reward.bands import Band


@root.cli.command()
@click.argument("rollouts", type=click.Path(path_type=Path))
@click.option("--recipe", "name", help="Another recipe, or a file with one; their own if unset.")
@click.option("--bad", default=0.3, show_default=True, help="A reward below it is a failure.")
@rescoring.sources
@root.as_json
def recompute(rollouts: Path, name: str | None, bad: float, ask: Sources, json_: bool) -> None:
    """Reward stored ROLLOUTS again, and split their gain into fewer bad and better good.

    ROLLOUTS is a run (its folder or its name), one of its parquet files, the same as JSON, or a
    table in the columns of the published rollouts. What another recipe weighs and the run did not
    ask for is read off sketch, painting, group and pool; what cannot be had is named.

    \b
    watercolour recompute runs/peony
    watercolour recompute runs/peony --recipe judge-led
    watercolour recompute runs/peony --recipe bold.yaml --repaint
    watercolour recompute watercolour-rollouts-hps-only/train.parquet
    watercolour recompute train.parquet --recipe hybrid --embedded --pool builtin:flowers
    """
    from watercolour.gallery import gains, stored

    found = stored.read(root.run_folder(rollouts))
    said, done, notes = _rescored(found, name, ask)
    raw = gains.of(done, lambda one: one.reward, bad)
    why_not = gains.unadjusted(done)
    adjusted = None if why_not else gains.of(done, lambda one: one.adjusted, bad)
    missing, unscored = gains.missing(done), gains.unscored(done)
    scored = sum(one.reward is not None for one in done)
    if json_:
        told: dict[str, Any] = {
            "recipe": said,
            "rollouts": len(done),
            "scored": scored,
            **_plain("gain", raw),
            **_plain("adjusted_gain", adjusted),
            "not_adjusted": why_not or None,
            "first_fifth": asdict(raw.first),
            "last_fifth": asdict(raw.last),
            "unscored": unscored,
            "missing": [
                {"terms": terms, "rollouts": count, "cause": lack.cause, "remedy": lack.remedy}
                for terms, lack, count in missing
            ],
            "notes": notes,
        }
        root.print_json(told)
        return
    click.echo(f"{found.name} under {said}: {scored} of {len(done)} rollouts have a value")
    for reason, count in unscored.items():
        click.echo(f"  {count} unscored in the run: {reason}")
    for terms, lack, count in missing:
        click.echo(f"  {count} lack {', '.join(terms)}: {lack.cause}. {lack.remedy}".rstrip())
    for note in notes:
        click.echo(f"  {note}")
    if raw.split is None:
        click.echo("Neither fifth can be told.")
        return
    _show(raw, adjusted, why_not, bad)


def _rescored(
    found: Stored, name: str | None, ask: Sources
) -> tuple[str, list[Rescored], list[str]]:
    """The recipe's name, the rollouts under it, and what to say of how they came to their values.

    The rows of a published table lack terms, but have a reward: it stands where the recipe is the
    one that made it.
    """
    from watercolour.cli import recipes
    from watercolour.gallery import rescored

    recipe = recipes.of_stored(found, name)
    own = name is None or (bool(found.kept) and name == found.recipe.get("name"))
    if recipe is None:
        if ask.any:
            raise click.UsageError("Nobody says which recipe rewarded them: name one by --recipe.")
        return "their own rewards", rescored.as_stored(found, None), []
    if own and not ask.any:
        return recipe.name, rescored.as_stored(found, recipe), []
    return recipe.name, *rescoring.rescored(found, recipe, ask)


def _plain(name: str, found: Gain | None) -> dict[str, Any]:
    split = None if found is None or found.split is None else asdict(found.split)
    sure = None if found is None or found.sure is None else [found.sure.low, found.sure.high]
    return {name: split, f"{name}_interval": sure}


def _show(raw: Gain, adjusted: Gain | None, why_not: str, bad: float) -> None:
    from watercolour.gallery import gains

    split, first, last = raw.split, raw.first, raw.last
    assert split is not None
    click.echo(f"  first → last fifth      {split.before.reward:.3f} → {split.after.reward:.3f}")
    if first.unscored or last.unscored:
        partial = first.partial_groups + last.partial_groups
        within = f"   in {partial} groups some members and not all" if partial else ""
        click.echo(f"  unscored                {first} → {last}{within}")
    click.echo(
        f"  rewards below {bad:<9g} {1 - split.before.share:.0%} → {1 - split.after.share:.0%}"
    )
    click.echo(f"  the gain                {split.gain:+.3f}{_between(raw.sure)}")
    click.echo(f"    fewer bad paintings   {split.fewer_bad:+.3f}")
    click.echo(f"    better good ones      {split.better_good:+.3f}")
    click.echo(f"    less bad bad ones     {split.better_bad:+.3f}")
    if adjusted is not None and adjusted.split is not None:
        gain = adjusted.split.gain
        click.echo(f"  adjusted for the draw   {gain:+.3f}{_between(adjusted.sure)}")
    else:
        click.echo(f"  not adjusted            {why_not}")
    if hint := gains.hint(first, last):
        click.echo(hint)


def _between(sure: Band | None) -> str:
    return f"   between {sure.low:+.3f} and {sure.high:+.3f} at 95 %" if sure else ""
