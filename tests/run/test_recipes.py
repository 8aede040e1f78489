"""Every recipe in the trainer of `make run`, for three steps each, with real parts throughout.

One renderer and one embedded scorer serve all runs, as they would serve one after the other; each
recipe has an environment and a trainer of its own. A vision-language model stands beside them for
the recipe that needs its marks: a server that looks at the picture it is sent and marks what it can
measure there.
"""

from __future__ import annotations

import base64
import csv
import json
import re
import sys
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from scripts import measuring_model
from tests.serving import listening

from watercolour.api import dump, load
from watercolour.api.rollout import Rollout
from watercolour.api.spec import WatercolourRun
from watercolour.env.client import EnvClient
from watercolour.env.server import create_app, neighbours
from watercolour.gallery import record
from watercolour.local.processes import Service, Supervisor, renderer_python
from watercolour.render.paint import decode
from watercolour.reward import likeness, recipes, terms
from watercolour.train import session
from watercolour.train.progress import Progress

STEPS, ROLLOUTS = 3, 4
START_SECONDS = 180.0


def mark(picture: bytes, name: str) -> int:
    """A mark from 1 to 10 out of what the picture measures: its colours, its light, its edges."""
    lab = likeness.to_lab(decode(picture))
    spread = {
        "depth": float(lab[..., 0].std()) / 20,
        "aesthetics": float(abs(lab[..., 1:]).mean()) / 20,
    }
    return 1 + round(9 * min(1.0, spread.get(name, float(lab.std()) / 40)))


class _Model(BaseHTTPRequestHandler):
    """The chat completion of an OpenAI-compatible server, as far as marks need it."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        url = asked["messages"][1]["content"][0]["image_url"]["url"]
        picture = base64.b64decode(url.partition(",")[2])
        names = asked["response_format"]["json_schema"]["schema"]["required"]
        assert isinstance(self.server, Model)
        self.server.prompts.append(asked["messages"][0]["content"])
        said = json.dumps({name: mark(picture, name) for name in names})
        measuring_model.answer(self, said)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Model(ThreadingHTTPServer):
    """The model's server; ``prompts`` are what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Model)
        self.prompts: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


@pytest.fixture(scope="module")
def model() -> Generator[Model]:
    server = Model()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Generator[dict[str, str]]:
    """A renderer and an embedded scorer, as `watercolour run` starts them."""
    programs = {
        "renderer": (str(renderer_python(None)), "-m", "watercolour.render.service"),
        "scorer": (sys.executable, "-m", "watercolour.score.service", "--backend", "embedded"),
    }
    with Supervisor(tmp_path_factory.mktemp("logs")) as supervisor:
        for name, command in programs.items():
            supervisor.start(Service(name, command))
        supervisor.wait_ready(list(programs), START_SECONDS)
        yield {name: supervisor.processes[name].url for name in programs}
        supervisor.stop(list(programs))


def wanted(recipe: dict[str, Any], **spec: Any) -> WatercolourRun:
    settings = {
        "steps": STEPS,
        "rolloutsPerStep": ROLLOUTS,
        "groupSize": ROLLOUTS,
        "checkpointEvery": STEPS,
        "guards": {"probes": 0, "collapse": False},
    }
    return load.from_dict(
        {
            "apiVersion": "watercolour.dev/v1alpha1",
            "kind": "WatercolourRun",
            "metadata": {"name": "test"},
            "spec": {
                "recipe": recipe,
                "renderers": {"size": 96},
                "references": {"perRollout": 2},
                "judge": {"selfCheck": "Off"},
                "trainer": settings,
                **spec,
            },
        }
    )


def train(run: WatercolourRun, servers: dict[str, str], out: Path) -> list[Rollout]:
    """Train with an environment of the run's own; every rollout of it."""
    near = neighbours(
        run.spec,
        renderers=[servers["renderer"]] if recipes.get(run.spec.recipe).paints else [],
        scorer=servers["scorer"],
        judge=servers["scorer"],
    )
    with listening(create_app(run.spec, near)) as url:
        out.mkdir()
        (out / "run.yaml").write_text(dump.to_yaml(run, full=True))
        with EnvClient(url, sessions=ROLLOUTS) as env:
            session.run(run, out, env, Progress("test", STEPS), lambda: False, resume=False)
    return [entry.rollout for entry in record.read(out).entries]


def rows(out: Path) -> list[dict[str, str]]:
    with (out / "metrics.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", recipes.RECIPES)
def test_every_recipe_trains_for_three_steps(
    name: str, servers: dict[str, str], model: Model, tmp_path: Path
) -> None:
    other: dict[str, Any] = {}
    if name == "nine-signal":
        other["scorer"] = {"backend": "vlm-mark", "endpoint": model.url, "model": "measures"}
    run = wanted({"name": name}, **other)
    recipe = recipes.get(run.spec.recipe)
    found = train(run, servers, tmp_path / "run")
    assert [row["step"] for row in rows(tmp_path / "run")] == ["0", "1", "2"]
    assert len(found) == STEPS * ROLLOUTS
    for rollout in found:
        # Every reward is its terms' by the recipe, at that step and for that subject.
        assert rollout.unscored_reason is None, rollout.unscored_detail
        assert rollout.reward is not None
        if not rollout.gate_passed and recipe.gated:
            assert rollout.reward == recipe.failed_gate
            continue
        whole = 0.0
        for term, weight in rollout.weights.items():
            value = rollout.terms[term]
            assert value is not None, term
            whole += weight * (2 * value - 1 if recipe.signed and term != "gate" else value)
        assert rollout.reward == pytest.approx(whole)
        assert (rollout.paint_fraction is not None) is recipe.paints
    assert any(rollout.gate_passed for rollout in found)
    if name == "nine-signal":
        assert any(re.search(r"a loose watercolour of an? \w+", one) for one in model.prompts)
    if name == "hybrid":
        assert all(float(row["kl"]) >= 0 for row in rows(tmp_path / "run"))


def test_weights_and_tiers_move_with_the_steps(servers: dict[str, str], tmp_path: Path) -> None:
    """A recipe of one's own: a schedule, a curriculum, terms that look at sketch and shapes."""
    own = {
        "name": "mine",
        "weights": {"gate": 0.2, "length": 0.8},
        "schedule": {
            "between": "linear",
            "stages": [{"step": 2, "weights": {"gate": 0.2, "area": 0.5, "repetition": 0.3}}],
        },
        "failedGate": -0.5,
    }
    found = train(wanted(own), servers, tmp_path / "run")
    by_step = {rollout.step: rollout for rollout in found if rollout.gate_passed}
    assert by_step[0].weights == pytest.approx({"gate": 0.2, "length": 0.8})
    assert by_step[1].weights == pytest.approx(
        {"gate": 0.2, "length": 0.4, "area": 0.25, "repetition": 0.15}
    )
    assert by_step[2].weights == pytest.approx({"gate": 0.2, "area": 0.5, "repetition": 0.3})
    last = by_step[2]
    assert last.heaviest_shape is not None
    assert last.terms["area"] == pytest.approx(terms.area(last.heaviest_shape))
    assert all(one.reward == -0.5 for one in found if not one.gate_passed)
