"""Write docs/img/{rate,pairs,agreement}.webp: the pages of `watercolour pool rate` in a browser.

    .venv/bin/watercolour pool generate /tmp/jellyfish --subject examples/subjects/jellyfish.yaml \
        --count 24 --canvas 384
    .venv/bin/python -m scripts.rate_pictures /tmp/jellyfish

Three raters that are scripts: each has a measurement of the picture for a taste and sorts the pool
into thirds. Two of them rate beforehand, the third one presses the keys.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image
from scripts import measuring_model

from watercolour.gallery import rating
from watercolour.local.processes import renderer_python
from watercolour.reward import pool as pools
from watercolour.reward.ratings import Tier

OUT = Path("docs/img")
CAMERA = Path(__file__).with_name("rate_camera.py")
#: Whose taste is which measurement.
TASTES = {"anna": "aesthetics", "ben": "technique", "clara": "depth"}
THIRDS: tuple[Tier, ...] = ("meh", "okay", "love")
START_SECONDS, VISIT_SECONDS = 120, 400


def main() -> None:
    """Rate the pool and write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pool", type=Path, help="folder of a pool that nobody has rated")
    folder: Path = parser.parse_args().pool
    first, *others = TASTES
    for rater in others:
        found = opinions(folder, TASTES[rater])
        for place, name in enumerate(sorted(found, key=lambda one: found[one])):
            said = THIRDS[3 * place // len(found)]
            rating.rate(folder, rater, f"{rater}-{place:05d}", name, said)
    with tempfile.TemporaryDirectory() as at:
        table = Path(at) / "opinions.json"
        table.write_text(json.dumps(opinions(folder, TASTES[first])), encoding="utf-8")
        visit(folder, first, table, Path(at))
        for name in ("rate", "pairs", "agreement"):
            with Image.open(Path(at) / f"{name}.png") as picture:
                picture.convert("RGB").save(OUT / f"{name}.webp", quality=88, method=6)


def opinions(folder: Path, measure: str) -> dict[str, float]:
    """What a measurement finds in each painting of the pool, by its name."""
    return {
        one.name: measuring_model.MEASURES[measure](
            pools.painting_path(folder, one.name).read_bytes(), one.subject
        )
        for one in pools.read_records(folder)
    }


def visit(folder: Path, rater: str, table: Path, at: Path) -> None:
    """Serve the page and let the camera use it."""
    announced = at / "announced.json"
    command = [sys.executable, "-m", "watercolour.cli", "pool", "rate", str(folder)]
    options = ["--rater", rater, "--no-open", "--announce", str(announced)]
    with subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL) as server:
        try:
            until = time.monotonic() + START_SECONDS
            while not announced.exists() and server.poll() is None and time.monotonic() < until:
                time.sleep(0.05)
            url = json.loads(announced.read_text(encoding="utf-8"))["url"]
            camera = [str(renderer_python()), str(CAMERA), url, str(table), str(at)]
            subprocess.run(camera, check=True, timeout=VISIT_SECONDS)
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
