"""The command that says how one rollout's reward came about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from watercolour.cli import root
from watercolour.cli.recipes import recipe

if TYPE_CHECKING:
    from watercolour.api.rollout import Rollout
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
@root.as_json
def recipe_explain(
    painting: Path | None, source: Path | None, wanted: Id | None, name: str | None, json_: bool
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

    from watercolour.gallery import stored
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
    rollout = found.rollouts[place]
    used = _recipe(found, rollout, name)
    if name:
        rollout = _filled(found, used, place)
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
    click.echo(
        f"\n  {'reward':20} {'':6} {'':7} {_number(reward):>6}   {_verdict(rollout, reward)}"
    )


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


def _filled(found: Stored, used: Recipe, place: int) -> Rollout:
    """The rollout with the terms of another recipe, as far as sketch and painting show them."""
    from watercolour.gallery import stored

    own = found.rollouts[place]
    members = [(one, found.paintings.get(n)) for n, one in enumerate(found.rollouts)]
    others = [
        member
        for n, member in enumerate(members)
        if n != place and (member[0].step, member[0].group) == (own.step, own.group)
    ]
    return stored.filled(used, members[place], others)


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


def _verdict(rollout: Rollout, reward: float | None) -> str:
    """What there is to say about the sum."""
    said: list[str] = []
    if rollout.unscored_reason is not None:
        said.append(f"unscored: {rollout.unscored_reason}: {rollout.unscored_detail}")
    elif rollout.gate_passed is False:
        said.append("refused by the gate")
    elif reward is None and rollout.reward is not None:
        said.append(f"a term has no value here; the run gave {rollout.reward:.3f}")
    elif reward is not None and rollout.reward is not None and abs(reward - rollout.reward) > 1e-9:
        said.append(f"the run gave {rollout.reward:.3f}")
    elif rollout.reward_adjusted is not None and rollout.reward_adjusted != rollout.reward:
        said.append(f"adjusted for the draw {rollout.reward_adjusted:.3f}")
    if rollout.advantage is not None:
        said.append(f"advantage {rollout.advantage:+.3f}")
    return ", ".join(said)
