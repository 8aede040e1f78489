"""The command that says how one rollout's reward came about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from watercolour.cli import rescoring, root
from watercolour.cli.recipes import recipe
from watercolour.cli.rescoring import Sources

if TYPE_CHECKING:
    from watercolour.api.rollout import Rollout
    from watercolour.gallery.gains import Scored
    from watercolour.gallery.stored import Stored
    from watercolour.reward.recipe import Recipe

#: A rollout's place: step, group, position in the group.
Id = tuple[int, int, int]


def _id(_context: click.Context, _parameter: click.Parameter, text: str | None) -> Id | None:
    """STEP/GROUP/MEMBER as numbers."""
    if text is None:
        return None
    parts = text.split("/")
    if len(parts) != 3 or not all(part.isascii() and part.isdecimal() for part in parts):
        raise click.BadParameter(f"{text!r} is not STEP/GROUP/MEMBER, such as 42/0/3.")
    step, group, index = map(int, parts)
    return step, group, index


@recipe.command("explain")
@click.argument("painting", type=click.Path(path_type=Path), required=False)
@click.option(
    "--rollout",
    "source",
    type=click.Path(path_type=Path),
    help="A rollout as JSON; or a run, a parquet file or JSON lines, one of which --id names.",
)
@click.option("--id", "wanted", callback=_id, help="Which one, as STEP/GROUP/MEMBER, from 0.")
@click.option("--recipe", "name", help="Another recipe, or its file; the run's own if unset.")
@rescoring.sources
@root.as_json
def recipe_explain(
    painting: Path | None,
    source: Path | None,
    wanted: Id | None,
    name: str | None,
    ask: Sources,
    json_: bool,
) -> None:
    """Say term by term how the reward of a rollout came about.

    It is named by its PAINTING (or sketch) in a run's folder, or by --rollout. A rollout as JSON
    has the columns of a run's parquet files. One that lies in no run's folder tells its weights
    itself; where they do not make its reward, --recipe must say which recipe did.

    \b
    watercolour recipe explain runs/peony/paintings/00042/3.png
    watercolour recipe explain runs/peony/paintings/00042/3.js --recipe judge-led
    watercolour recipe explain --rollout rollout.json
    watercolour recipe explain --rollout runs/peony --id 42/0/3
    watercolour recipe explain --rollout runs/peony/rollouts/00042.parquet --id 42/0/3
    """
    from dataclasses import asdict

    from watercolour.gallery import gains, rescored, stored
    from watercolour.reward import explain

    if (painting is None) == (source is None):
        raise click.UsageError("Name a PAINTING or a --rollout, one of the two.")
    if painting is not None and wanted is not None:
        raise click.UsageError("--id goes with --rollout; a PAINTING is one rollout's already.")
    if painting is not None:
        found, place = _of_painting(painting)
    else:
        assert source is not None
        found = stored.read(root.run_folder(source))
        place = _place(found, source, wanted)
    used = _recipe(found, found.rollouts[place], name)
    notes: list[str] = []
    if name or ask.any:
        (one,), notes = rescoring.rescored(found, used, ask, [place])
    else:
        one = rescored.as_stored(found, used)[place]
    rollout, own = one.rollout, one.recipe or used
    # A rollout of a published table has its reward and not the terms that made it.
    reward = explain.reward(own, rollout)
    parts = explain.parts(own, rollout)
    adjusted = explain.adjusted(own, rollout, reward)
    if json_:
        ids = {key: getattr(rollout, key) for key in ("step", "group", "index", "subject", "seed")}
        told: dict[str, Any] = {
            **ids,
            "recipe": used.name,
            "terms": [asdict(part) for part in parts],
            "reward": reward,
            "reward_of_the_run": rollout.reward,
            "reward_adjusted": adjusted,
            "not_adjusted": _unadjusted(own, rollout, reward, adjusted) or None,
            "missing": [asdict(lack) for lack in one.lacks],
            "notes": notes,
        }
        root.print_json(told)
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
    verdict = _verdict(rollout, reward, gains.Scored.of([_group(found, place)]))
    click.echo(f"\n  {'reward':35} {_number(reward):>6}   {verdict}".rstrip())
    if adjusted is not None and own.slope("judge") and rollout.gate_passed:
        this, mean = rollout.draw_strength, rollout.mean_draw_strength
        draw = f"an okay painting wins {this:.0%} of this draw, {mean:.0%} of the mean one"
        click.echo(f"  {'adjusted for the draw':35} {adjusted:>6.3f}   {draw}")
    elif why := _unadjusted(own, rollout, reward, adjusted):
        click.echo(f"  {'adjusted for the draw':35} {'-':>6}   {why}")
    for terms, lack, _ in gains.missing([one]):
        click.echo(f"  it lacks {', '.join(terms)}: {lack.cause}. {lack.remedy}".rstrip())
    for note in notes:
        click.echo(f"  {note}")


def _unadjusted(own: Recipe, rollout: Rollout, reward: float | None, adjusted: float | None) -> str:
    """Why the draw's difficulty cannot be taken out; empty where it is, or there is no reward."""
    if reward is None or not rollout.gate_passed:
        return ""
    if not own.slope("judge"):
        return "the recipe weighs no wins, which alone hang on how strong a draw is"
    return "" if adjusted is not None else "its draw's strength is not stored"


def _group(found: Stored, place: int) -> list[float | None]:
    """The rewards of a rollout's group in the run."""
    own = found.rollouts[place]
    return [one.reward for one in found.rollouts if (one.step, one.group) == (own.step, own.group)]


def _place(found: Stored, source: Path, wanted: Id | None) -> int:
    """Which of the stored rollouts is meant.

    Raises:
        InputError: there is no such one, or nobody says which.
    """
    from watercolour.api.errors import InputError
    from watercolour.api.reasons import Reason

    ids = [(one.step, one.group, one.index) for one in found.rollouts]
    if wanted is None and len(ids) == 1:
        return 0
    if wanted in ids:
        return ids.index(wanted)
    first, last = ("/".join(map(str, one)) for one in (ids[0], ids[-1]))
    there = f"it holds {len(ids)}, from {first} to {last}" if len(ids) > 1 else f"it holds {first}"
    if wanted is None:
        fault, value = f"{there}, and nobody says which one", str(source)
    else:
        value = "/".join(map(str, wanted))
        fault = f"{value} is no rollout of it; {there}"
    raise InputError(
        Reason.INVALID_INPUT,
        f"{source}: {fault}.",
        remedy="Name one by --id STEP/GROUP/MEMBER.",
        field="id" if wanted else "rollout",
        value=value,
    )


def _recipe(found: Stored, rollout: Rollout, name: str | None) -> Recipe:
    """The named recipe, the run's own, or else the weights that the rollout carries.

    Raises:
        InputError: nobody says which recipe rewarded it.
    """
    from watercolour.api.errors import InputError
    from watercolour.api.reasons import Reason
    from watercolour.cli import recipes
    from watercolour.reward import explain

    used = recipes.of_stored(found, name) or explain.carried(rollout)
    if used is not None:
        return used
    raise InputError(
        Reason.INVALID_INPUT,
        f"{found.name}: lies in no run's folder, and the weights in it do not make its reward.",
        remedy="Say by --recipe which recipe rewarded it.",
        field="recipe",
    )


def _of_painting(painting: Path) -> tuple[Stored, int]:
    """The run that a painting or its sketch lies in, and which rollout's it is.

    Raises:
        InputError: it does not lie in a run, or is no rollout's.
    """
    from watercolour.api.errors import InputError
    from watercolour.api.reasons import Reason
    from watercolour.gallery import record, stored

    whole = painting.absolute()
    folder = next((at for at in whole.parents if (at / "run.yaml").is_file()), None)
    if folder is None:
        raise InputError(
            Reason.INVALID_INPUT,
            f"{painting}: lies in no run's folder.",
            remedy="Name a file like runs/NAME/paintings/00042/3.png.",
            field="painting",
            value=str(painting),
        )
    found = record.read(folder)
    stem = whole.relative_to(folder).with_suffix("").as_posix()
    for place, entry in enumerate(found.entries):
        if any(path and path.rpartition(".")[0] == stem for path in (entry.painting, entry.sketch)):
            return stored.of_run(found), place
    raise InputError(
        Reason.INVALID_INPUT,
        f"{painting}: no rollout of {found.name} has it.",
        remedy=f"Choose one of {found.folder / 'paintings'}.",
        field="painting",
        value=str(painting),
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _verdict(rollout: Rollout, reward: float | None, group: Scored) -> str:
    """What there is to say about the sum."""
    said: list[str] = []
    if rollout.unscored_reason is not None:
        said.append(f"unscored: {rollout.unscored_reason}: {rollout.unscored_detail}")
    elif rollout.gate_passed is False:
        said.append("refused by the gate")
    elif reward is None and rollout.reward is not None:
        said.append("a term has no value here")
    if rollout.reward is not None and (reward is None or abs(reward - rollout.reward) > 1e-9):
        said.append(f"the run gave {rollout.reward:.3f}")
    elif rollout.reward is not None and rollout.advantage is not None:
        said.append(f"advantage {rollout.advantage:+.3f}")
        if group.unscored:
            scored = group.rollouts - group.unscored
            said.append(f"over the mean of {scored} members, as {group.unscored} are unscored")
    return ", ".join(said)
