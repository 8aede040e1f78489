"""Whether the trainer learns what can be learnt, and nothing where there is nothing to learn.

The tiny policy trains by two recipes with the real environment and trainer. ``control`` rewards
eight calls of brush.fill, a function of the text alone; ``random`` rewards a number by chance. Told
is the rise of the adjusted reward from the first to the last fifth of the steps, with its 95 %
interval by a bootstrap over groups. The interval of ``random`` is what chance alone can do: a rise
of another recipe that does not pass it is no learning.

    python bench/recipes_learn.py [--steps 30] [--rollouts 16] [--seed 1] [--out FOLDER]

Two busy cores take some seven minutes. The exit status is 1 when ``control`` has not risen beyond
the noise of ``random``.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# Servers are the tests' own.
sys.path.insert(0, str(ROOT))

import transformers
from tests.serving import listening

from watercolour.api import load
from watercolour.api.spec import WatercolourRun
from watercolour.env.client import EnvClient
from watercolour.env.server import create_app, neighbours
from watercolour.train import session
from watercolour.train.progress import Progress

RECIPES = ("control", "random")
#: Members of a group.
GROUP = 8


@dataclass(frozen=True)
class Learnt:
    """What became of one run.

    Attributes:
        first, last: mean adjusted reward of the first and the last fifth of the steps.
        low, high: the rise's 95 % interval.
        seconds: of the run.
    """

    first: float
    last: float
    low: float
    high: float
    seconds: float

    @property
    def rise(self) -> float:
        """From the first fifth to the last."""
        return self.last - self.first


def wanted(recipe: str, steps: int, rollouts: int, seed: int) -> WatercolourRun:
    """A run as examples/local.yaml has it, but for the recipe and what watches over rewards.

    Without the guard, which would end a collapse that chance has feigned.
    """
    return load.from_dict(
        {
            "apiVersion": "watercolour.dev/v1alpha1",
            "kind": "WatercolourRun",
            "metadata": {"name": recipe},
            "spec": {
                "seed": seed,
                "recipe": {"name": recipe},
                "trainer": {
                    "steps": steps,
                    "rolloutsPerStep": rollouts,
                    "groupSize": min(GROUP, rollouts // 2),
                    "checkpointEvery": steps,
                    "guards": {"probes": 0, "collapse": False},
                },
            },
        }
    )


def train(run: WatercolourRun, out: Path) -> Learnt:
    """Train into a folder, and read what its summary says."""
    spec = run.spec
    # Neither recipe needs a neighbour.
    near = neighbours(spec, renderers=[], scorer=None, judge=None)
    with (
        listening(create_app(run.spec, near)) as url,
        EnvClient(url, sessions=spec.trainer.rollouts_per_step) as env,
    ):
        shown = Progress(run.metadata.name, spec.trainer.steps)
        session.run(run, out, env, shown, lambda: False, resume=False)
    found: dict[str, Any] = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    low, high = found["reward_intervals"]["reward_adjusted"]["gain"]
    first, last = found["reward_adjusted_first_fifth"], found["reward_adjusted_last_fifth"]
    return Learnt(first, last, low, high, found["seconds"])


def main() -> None:
    """Print a table and a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rollouts", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="keep the runs in this folder")
    args = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    warnings.simplefilter("ignore")
    logging.disable(logging.INFO)
    found: dict[str, Learnt] = {}
    print("recipe     first fifth   last fifth     rise   95 % interval   seconds")
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.out or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for recipe in RECIPES:
            run = wanted(recipe, args.steps, args.rollouts, args.seed)
            one = found[recipe] = train(run, folder / recipe)
            print(
                f"{recipe:10} {one.first:11.3f} {one.last:12.3f} {one.rise:+8.3f}"
                f"   {one.low:+.3f} {one.high:+.3f} {one.seconds:9.0f}",
                flush=True,
            )
    control, chance = found["control"], found["random"]
    # As far as chance alone may take a curve up or down, and at least half of its interval.
    noise = max(abs(chance.rise), (chance.high - chance.low) / 2)
    said = {
        "bench": "recipes_learn",
        "ours": control.rise,
        "theirs": noise,
        "ratio": control.rise / noise,
        "unit": "rise of the adjusted reward from the first to the last fifth; theirs is the noise",
        "n": args.steps * args.rollouts,
        "conditions": f"builtin policy, {args.steps} steps of {args.rollouts} rollouts, "
        f"seed {args.seed}; control {control.low:+.3f} to {control.high:+.3f}, "
        f"random {chance.low:+.3f} to {chance.high:+.3f}",
    }
    print(json.dumps(said))
    sys.exit(control.low <= noise)


if __name__ == "__main__":
    main()
