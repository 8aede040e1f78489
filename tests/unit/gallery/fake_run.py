"""A run's folder, written by the trainer's own code; Pillow paints in place of a policy."""

from __future__ import annotations

import io
import json
import math
import random
from collections.abc import Callable
from pathlib import Path

import yaml
from PIL import Image, ImageDraw, ImageFilter

from watercolour.api import Reason, Rollout, Violation, ViolationCode, Vote
from watercolour.train.artifacts import Artifacts

SUBJECTS = ("a peach hibiscus", "a blue iris", "a red poppy", "a yellow daisy")
COLOURS = ((240, 150, 110), (80, 90, 190), (205, 50, 45), (235, 190, 40))
SKETCH = """async function setup() {
  createCanvas(192, 192, WEBGL);
  angleMode(DEGREES);
  noLoop();
}

function draw() {
  background("#f8f3e6"); // paper
  translate(-96, -96);
  brush.fill("#e8a07f", %d);
  for (let petal = 0; petal < 5; petal += 1) {
    brush.circle(96 + 30 * cos(petal * 72), 96 + 30 * sin(petal * 72), 26, true);
  }
}
"""


def flower(colour: tuple[int, int, int], skill: float, chance: random.Random) -> bytes:
    """PNG of five soft petals; with little skill they are hard, muddy and off the middle."""
    sheet = Image.new("RGB", (192, 192), (250, 245, 232))
    x, y = (96 + chance.gauss(0, 30 * (1 - skill)) for _ in range(2))
    for layer in range(3):
        wash = Image.new("RGBA", sheet.size)
        pen = ImageDraw.Draw(wash)
        for petal in range(5):
            angle = math.radians(72 * petal + chance.gauss(0, 25 * (1 - skill)))
            far, size = 34 - 6 * layer, 30 - 6 * layer
            px, py = x + far * math.cos(angle), y + far * math.sin(angle)
            muddy = tuple(int(skill * c + (1 - skill) * 110) for c in colour)
            pen.ellipse((px - size, py - size, px + size, py + size), fill=(*muddy, 90))
        wash = wash.filter(ImageFilter.GaussianBlur(0.5 + 3 * skill))
        sheet.paste(wash, mask=wash)
    out = io.BytesIO()
    sheet.save(out, "PNG")
    return out.getvalue()


def rollout(step: int, group: int, index: int, steps: int, chance: random.Random) -> Rollout:
    """One scored rollout whose chances rise with the step."""
    skill = min(1.0, max(0.0, 0.25 + 0.6 * step / steps + chance.gauss(0, 0.15)))
    subject = (2 * step + group) % len(SUBJECTS)
    passed = chance.random() < 0.6 + 0.38 * step / steps
    sketch = SKETCH % (100 + index)
    seed = step * 10 + group
    draw = 0.35 + 0.3 * random.Random(seed).random()
    reward = 0.1 + 0.7 * skill + 0.3 * (draw - 0.5) if passed else 0.0
    violations = () if passed else (_violation(chance),)
    return Rollout(
        run="fake",
        step=step,
        group=group,
        index=index,
        subject=SUBJECTS[subject],
        seed=seed,
        completion=f"```js\n{sketch}```",
        tokens=180 + index,
        sketch=sketch,
        violations=violations,
        gate_passed=passed,
        paint_fraction=0.3 if passed else None,
        pigment_share=min(1.0, 0.6 + skill / 2) if passed and subject else None,
        shapes=5 if passed else None,
        references=("love_01", "okay_04") if passed else (),
        draw_strength=draw if passed else None,
        votes=(
            Vote(reference="love_01", first="A", second="A", value=1.0),
            Vote(reference="okay_04", first="A", second="B", value=0.5),
        )
        if passed
        else (),
        terms={"gate": 1.0, "length": 0.3, "quality": skill, "judge": skill}
        if passed
        else {"gate": 0.0},
        mu=8 * skill - 4 if passed else None,
        reward=reward,
        reward_adjusted=reward - 0.3 * (draw - 0.5) if passed else reward,
        advantage=reward - 0.4,
        timings={"render": 0.4 + skill, "score": 0.1, "judge": 0.2} if passed else {"gate": 0.01},
        versions={"p5": "2.3.2", "p5.brush": "2.2.1"},
    )


def _violation(chance: random.Random) -> Violation:
    code = chance.choice([ViolationCode.UNKNOWN_BRUSH_METHOD, ViolationCode.SYNTAX_ERROR])
    return Violation(code=code, message="brush.splash is no method of p5.brush.", line=10, column=3)


def unscored(of: Rollout) -> Rollout:
    """The same rollout, had the renderer been away."""
    return of.model_copy(
        update={
            "gate_passed": None,
            "violations": (),
            "reward": None,
            "reward_adjusted": None,
            "advantage": None,
            "terms": {},
            "votes": (),
            "unscored_reason": Reason.RENDERER_UNAVAILABLE,
            "unscored_detail": "3 attempts ended in 503.",
        }
    )


def make(
    folder: Path,
    *,
    steps: int = 6,
    planned: int | None = None,
    size: int = 8,
    change: Callable[[Rollout], Rollout] = lambda rollout: rollout,
    seed: int = 1,
) -> Path:
    """Write a run's folder; ``change`` may alter any rollout before it is stored."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(seed)
    total = planned or steps
    for step in range(steps):
        made = [
            change(rollout(step, index // (size // 2), index % (size // 2), total, chance))
            for index in range(size)
        ]
        Artifacts(folder).add_rollouts(step, [painted(one, chance) for one in made])
    spec = {
        "apiVersion": "watercolour.dev/v1alpha1",
        "kind": "WatercolourRun",
        "metadata": {"name": folder.name},
        "spec": {"seed": seed, "trainer": {"steps": total}},
    }
    (folder / "run.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    if steps == total:
        (folder / "summary.json").write_text(json.dumps({"steps": steps, "seconds": 512.0}))
    return folder


def painted(rollout: Rollout, chance: random.Random) -> Rollout:
    """The rollout with its painting, if the gate admitted it."""
    if not rollout.gate_passed:
        return rollout
    colour = COLOURS[SUBJECTS.index(rollout.subject)]
    picture = flower(colour, rollout.terms.get("quality") or 0.0, chance)
    return rollout.model_copy(update={"painting": picture})
