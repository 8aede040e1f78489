"""Compare scaling rules on traces of renders: ours, HPA's and KEDA's.

    python -m watercolour_operator.scaling.simulate [TRACE…]

A TRACE is the name of one that is shipped, or a JSON file of the same form; without any, all
shipped ones are simulated. Times are of the model in ``model.py``; no cluster is needed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from watercolour.api.workers import Scaling
from watercolour_operator.scaling.model import Render, World
from watercolour_operator.scaling.rules import Hpa, Keda, Ours, Rule

#: Seconds after the last painting that still count: what a rule leaves standing is its cost.
AFTER_SECONDS = 600.0
#: Our idleSeconds, the default.
IDLE_SECONDS = Scaling().idle_seconds
#: Seconds of stabilization and cool-down with which HPA and KEDA are tuned for cost.
TUNED_SECONDS = 30.0


@dataclass(frozen=True)
class Trace:
    """Renders that arrived in bursts.

    Attributes:
        name: what it is called.
        made: how it was recorded or made.
        slots: sketches that a pod paints at once.
        max: most pods.
        cold_start: seconds from a pod's creation to its readiness.
        renders: burst, seconds of the arrival, seconds of the painting.
    """

    name: str
    made: str
    slots: int
    max: int
    cold_start: float
    renders: tuple[tuple[int, float, float], ...]

    @property
    def bursts(self) -> int:
        """How many bursts there are."""
        return len({burst for burst, _, _ in self.renders})


@dataclass(frozen=True)
class Outcome:
    """What a rule came to on a trace; means over the bursts, seconds throughout."""

    trace: str
    rule: str
    burst_seconds: float
    p95_wait_seconds: float
    pod_seconds: float
    idle_seconds: float
    busy_kills: int


def shipped() -> list[str]:
    """Names of the traces that come with the package."""
    folder = files("watercolour_operator.scaling") / "traces"
    return sorted(item.name.removesuffix(".json") for item in folder.iterdir())


def load(name: str) -> Trace:
    """A shipped trace, or one in a file.

    Raises:
        ValueError: there is none of that name, or the file is none.
    """
    if name in shipped():
        text = (files("watercolour_operator.scaling") / "traces" / f"{name}.json").read_text()
    else:
        try:
            text = Path(name).read_text(encoding="utf-8")
        except OSError as error:
            known = ", ".join(shipped())
            raise ValueError(f"trace {name}: no such file; shipped are {known}.") from error
    try:
        data: dict[str, Any] = json.loads(text)
        renders = tuple((int(b), float(at), float(secs)) for b, at, secs in data.pop("renders"))
        if not renders:
            raise ValueError("it has no renders")
        return Trace(name=Path(name).stem, renders=renders, **data)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"trace {name}: not of the form of the shipped ones ({error}).") from error


def rules(trace: Trace, idle_seconds: float) -> dict[str, Callable[[], Rule]]:
    """The rules that are compared, by name; each is made anew for a run."""
    scaling = Scaling(min=0, max=trace.max, idle_seconds=idle_seconds)
    slots, most, tuned = trace.slots, trace.max, TUNED_SECONDS
    return {
        "ours": lambda: Ours(scaling, slots),
        "HPA": lambda: Hpa(slots, most),
        "KEDA": lambda: Keda(slots, most),
        "HPA, tuned": lambda: Hpa(slots, most, stabilization=tuned),
        "KEDA, tuned": lambda: Keda(slots, most, cooldown=tuned, stabilization=tuned),
    }


def play(trace: Trace, name: str, rule: Rule, *, announce: float | None, seed: int) -> Outcome:
    """Let a rule scale the renderers of a trace.

    Args:
        trace: the renders.
        name: the rule's.
        rule: looks at the world once a second.
        announce: seconds before a burst's first render at which it is announced; None does not.
        seed: of what the model leaves to chance.
    """
    first: dict[int, float] = {}
    for burst, at, _ in trace.renders:
        first[burst] = min(first.get(burst, at), at)
    renders = [
        Render(at, seconds, None if announce is None else first[burst] - announce)
        for burst, at, seconds in trace.renders
    ]
    world = World(renders, slots=trace.slots, cold_start=trace.cold_start, rng=random.Random(seed))
    until = None
    while until is None or world.now < until:
        rule(world)
        world.step()
        if until is None and world.over:
            until = world.now + AFTER_SECONDS
    waits = sorted((one.started or 0.0) - one.arrives for one in renders)
    last: dict[int, float] = {}
    for (burst, _, _), render in zip(trace.renders, renders, strict=True):
        last[burst] = max(last.get(burst, 0.0), render.ended or 0.0)
    count = trace.bursts
    return Outcome(
        trace=trace.name,
        rule=name,
        burst_seconds=round(sum(last[burst] - first[burst] for burst in first) / count, 1),
        p95_wait_seconds=round(waits[min(len(waits) - 1, int(len(waits) * 0.95))], 1),
        pod_seconds=round(world.pod_seconds / count, 1),
        idle_seconds=round(world.idle_seconds / count, 1),
        busy_kills=world.kills,
    )


def compare(
    names: Sequence[str],
    *,
    idle_seconds: float = IDLE_SECONDS,
    announce: float | None = None,
    seed: int = 1,
) -> list[Outcome]:
    """Every rule on every trace.

    Raises:
        ValueError: a trace is none.
    """
    return [
        play(trace, name, make(), announce=announce, seed=seed)
        for trace in map(load, names)
        for name, make in rules(trace, idle_seconds).items()
    ]


def table(outcomes: Sequence[Outcome]) -> str:
    """For people."""
    head = ("trace", "rule", "burst done", "p95 wait", "pod-s/burst", "idle", "busy kills")
    rows = [
        (
            one.trace,
            one.rule,
            f"{one.burst_seconds:.0f} s",
            f"{one.p95_wait_seconds:.0f} s",
            f"{one.pod_seconds:,.0f}",
            f"{one.idle_seconds:,.0f}",
            str(one.busy_kills),
        )
        for one in outcomes
    ]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (head, *rows)
    ]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line: 0 done, 1 a trace cannot be used."""
    parser = argparse.ArgumentParser(
        prog="python -m watercolour_operator.scaling.simulate",
        description="Compare scaling rules on traces of renders.",
    )
    parser.add_argument("trace", nargs="*", help=f"a JSON file, or one of {', '.join(shipped())}")
    parser.add_argument("--idle", type=float, default=IDLE_SECONDS, help="our idleSeconds")
    parser.add_argument(
        "--announce", type=float, help="seconds before a burst at which it is announced to ours"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the model's chances (default: 1)")
    parser.add_argument("--json", action="store_true", help="print a list of objects instead")
    args = parser.parse_args(arguments)
    try:
        outcomes = compare(
            args.trace or shipped(),
            idle_seconds=args.idle,
            announce=args.announce,
            seed=args.seed,
        )
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    text = json.dumps([asdict(one) for one in outcomes], indent=1) + "\n"
    sys.stdout.write(text if args.json else table(outcomes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
