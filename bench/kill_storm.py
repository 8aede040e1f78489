"""Painting while browsers, their processes and whole renderers are killed every two seconds.

Ours is the share of jobs that end as a painting during the storm; theirs is what a first attempt
alone would have brought. Every job must end once, as a painting or as a failure of the
infrastructure, never as the sketch's fault; at least 60 % are painted during the storm, and all of
those after it. Exits with 1 if one of this is missed.

    python bench/kill_storm.py [--jobs 300] [--every 2] [--renderers 2] [--slots 1]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The storm is the browser tests' own.
sys.path.insert(0, str(ROOT))

from tests.browser.sketches import HONEST
from tests.browser.storm import (
    Outcome,
    Renderers,
    calm,
    renderers,
    seconds,
    storm,
)

from watercolour.local.processes import renderer_python
from watercolour.render.dispatcher import Outcome as Ending

#: Least share of the jobs that are painted while the storm lasts.
LEAST = 0.6

#: Jobs after the storm, all of which are painted.
AFTER = 30


async def run(among: Renderers, jobs: int, every_s: float, seed: int) -> tuple[Outcome, Outcome]:
    """The storm and what follows it."""
    during = await storm(among, [HONEST] * jobs, seconds(every_s), seed)
    return during, await calm(among, [HONEST] * AFTER)


def first_attempts(storm: Outcome) -> int:
    """Jobs that their first attempt has painted: the others cost one failed attempt or two."""
    failed = storm.counts.attempts[Ending.INFRASTRUCTURE]
    return storm.painted - (failed - 2 * storm.infrastructure.total())


def missed(during: Outcome, after: Outcome, jobs: int) -> list[str]:
    """What did not come out as it has to, in words."""
    wrong: list[str] = []
    for name, each, number in (("during", during, jobs), ("after", after, AFTER)):
        ended = each.counts.ended
        account = (ended[Ending.PAINTED], ended[Ending.INFRASTRUCTURE], each.counts.jobs)
        if each.jobs != number or account != (
            each.painted,
            each.infrastructure.total(),
            number,
        ):
            wrong.append(f"{name} the storm {number} jobs ended {each.jobs} times: {account}")
        if each.faults:
            wrong.append(f"{name} the storm a sketch was blamed: {each.faults[0]}")
    if during.painted < LEAST * jobs:
        wrong.append(f"{during.painted} of {jobs} were painted during the storm")
    if after.painted < AFTER:
        wrong.append(f"{after.painted} of {AFTER} were painted after the storm")
    return wrong


def main() -> int:
    """Start the renderers, let the storm pass, print the table and the line of JSON."""
    parser = argparse.ArgumentParser(description="Kill renderers and their parts as they paint.")
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--every", type=float, default=2.0, help="seconds between two kills")
    parser.add_argument("--renderers", type=int, default=2)
    parser.add_argument("--slots", type=int, default=1, help="of each renderer")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of victims")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="watercolour-storm-") as folder,
        renderers(Path(folder), renderer_python(), options.renderers, options.slots) as among,
    ):
        during, after = asyncio.run(run(among, options.jobs, options.every, options.seed))
        restarts = sum(among.supervisor.restarted.values())
    wrong = missed(during, after, options.jobs)
    conditions = {
        "jobs": options.jobs,
        "painted": during.painted,
        "infrastructure": dict(during.infrastructure),
        "blamed": len(during.faults) + len(after.faults),
        "attempts": {str(name): number for name, number in during.counts.attempts.items()},
        "kills": dict(during.kills),
        "restarts": restarts,
        "seconds": round(during.seconds, 1),
        "after": f"{after.painted} of {AFTER} in {after.seconds:.1f} s",
        "renderers": options.renderers,
        "slots": options.slots,
    }
    for name, value in conditions.items():
        print(f"{name:>14}  {value}")
    for words in wrong:
        print(f"{'missed':>14}  {words}")
    ours, theirs = during.painted / options.jobs, first_attempts(during) / options.jobs
    print(
        json.dumps(
            {
                "bench": "kill_storm",
                "ours": round(ours, 4),
                "theirs": round(theirs, 4),
                "ratio": round(ours / theirs, 4) if theirs else None,
                "unit": "share of jobs painted during the storm",
                "n": options.jobs,
                "conditions": {
                    **conditions,
                    "cores": os.cpu_count(),
                    "python": platform.python_version(),
                },
            }
        )
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
