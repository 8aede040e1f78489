"""What a run will create, take and cost: plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from watercolour.cli import root

if TYPE_CHECKING:
    from watercolour.local.plan import Plan, Step

#: In place of a figure that nobody has measured.
UNKNOWN = "not measured"


@root.cli.command()
@click.option(
    "--file",
    "-f",
    "spec",
    type=click.Path(path_type=Path, allow_dash=True),
    required=True,
    help="The run's specification; - reads standard input.",
)
@click.option("--gpu", default="H200", show_default=True, help="Kind of GPU that the run gets.")
@click.option("--gpu-hour", type=click.FloatRange(min=0), help="Price of a GPU-hour.")
@click.option("--tokens", type=click.IntRange(min=1), help="Tokens of a sketch. [default: 2500]")
@click.option("--sketch", type=click.Choice(["small", "large"]), help="Kind of sketch to paint.")
@click.option("--set", "sets", multiple=True, metavar="PATH=VALUE", help="Any field of the spec.")
@root.as_json
def plan(
    spec: Path,
    gpu: str,
    gpu_hour: float | None,
    tokens: int | None,
    sketch: str | None,
    sets: Sequence[str],
    json_: bool,
) -> None:
    """Say what a run will create, how long it takes and what it costs; start nothing.

    \b
    watercolour plan -f examples/hps-led.yaml --gpu-hour 3.50

    Times come from measured figures alone (docs/sizing.md); for a model or a GPU without any it
    says so.
    """
    from watercolour.api import load
    from watercolour.cli.training import assignment
    from watercolour.local import plan as planning

    wanted = load.run(spec, dict(assignment(text) for text in sets))
    found = planning.make(wanted, planning.Asked(gpu, gpu_hour, tokens, sketch))
    if json_:
        root.print_json(found.plain())
    else:
        click.echo("\n".join(lines(found)))


def lines(plan: Plan) -> Iterator[str]:
    """The plan in words."""
    yield f"{plan.run}: {plan.steps} steps of {plan.rollouts_per_step} rollouts, {plan.model}"
    yield from ("", "What is created")
    yield from _created(plan)
    yield from ("", f"Time, on {plan.time.hardware}")
    yield from _times(plan.time)
    if plan.renderers is not None:
        yield from ("", "Renderers")
        yield from _renderers(plan)
    if plan.scorer_share is not None:
        share = plan.scorer_share
        yield from ("", "Scorer")
        yield (
            f"  works {share:.1%} of the time for this run, so that one answers "
            f"{int(1 / share)} such runs (scorer.sharing: Namespace)"
        )
    if plan.money is not None:
        yield from ("", f"Money, at {plan.money.gpu_hour:g} a GPU-hour")
        yield from _money(plan)


def _created(plan: Plan) -> Iterator[str]:
    from watercolour.local.plan import amounts

    for pods in plan.pods:
        count = f"{pods.most}" if pods.least == pods.most else f"{pods.least} to {pods.most}"
        name = f"  {pods.component:<10} {count:>6} pod{'' if count == '1' else 's'}"
        yield f"{name:<26} {amounts(pods.requests)}; at most {amounts(pods.limits)}"
    for volume in plan.volumes:
        what = f"{volume.size}, made" if volume.made else "exists"
        kept = ", kept when the run is deleted" if volume.made and volume.kept else ""
        kind = f", class {volume.storage_class}" if volume.storage_class else ""
        yield f"  volume     {volume.name}: {what}{kept}{kind}"
    yield f"  GPUs       {plan.gpus} in all"


def _times(time: Step) -> Iterator[str]:
    from watercolour.local.progress import duration

    def shown(seconds: float | None) -> str:
        return UNKNOWN if seconds is None else f"{seconds:.1f} s"

    if time.generate is not None:
        speed = f"{time.tokens:,} tokens a row, {time.tokens_per_second or 0:,.0f} tokens/s in all"
        yield f"  generate   {shown(time.generate):<12} {speed}"
        yield f"  paint      {shown(time.paint):<12} at most: if all rows end at once"
        yield f"  update     {shown(time.update)}"
    yield f"  step       {shown(time.step)}"
    if time.first is not None:
        yield f"  first step {shown(time.first)}"
    yield f"  total      {UNKNOWN if time.total is None else duration(time.total)}"
    if time.memory_gib is not None:
        yield f"  memory     {time.memory_gib:g} GiB at the most"
    for note in time.notes:
        yield f"  {note}"
    if time.sources:
        yield f"  from {', '.join(dict.fromkeys(time.sources))}"


def _renderers(plan: Plan) -> Iterator[str]:
    found = plan.renderers
    assert found is not None
    yield f"  a painting {found.cpu_seconds:g} CPU s: {found.sketch} ({found.source})"
    yield (
        f"  a slot     {found.slot_mib:g} MiB while it paints; a pod's limit of "
        f"{found.pod_mib} MiB bears the largest sketch in each"
    )
    yield f"  slots      {found.slots} at most, one core each"
    keep_up = UNKNOWN if found.to_keep_up is None else str(found.to_keep_up)
    yield f"             {keep_up} keep up with the generation"
    yield f"             {found.for_a_step} paint a whole step at once"


def _money(plan: Plan) -> Iterator[str]:
    money = plan.money
    assert money is not None
    if money.total is None:
        yield f"  {UNKNOWN}: {plan.gpus} GPUs for a time that nobody has measured"
        return
    yield f"  total      {money.total:,.2f} for {money.gpu_hours:,.2f} GPU-hours"
    yield f"  100 steps  {money.per_100_steps:,.2f}"
