"""What a run will create, take and cost, from measured figures alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.operator.desired.made import build

from watercolour.api import load, sizes
from watercolour.cli import planning, status
from watercolour.local import measured, plan
from watercolour.local.plan import Asked

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
LARGE: dict[str, Any] = {
    "model": {"id": "Qwen/Qwen3.5-35B-A3B"},
    "trainer": {
        "steps": 100,
        "rolloutsPerStep": 8,
        "sampling": {"maxCompletionTokens": 3000},
        "resources": {"limits": {"nvidia.com/gpu": 1}},
    },
    "renderers": {"scaling": {"max": 4}},
    "scorer": {"backend": "hpsv3"},
}


def made(spec: dict[str, Any], **asked: Any) -> plan.Plan:
    run = load.from_dict({"metadata": {"name": "poppies"}, "spec": spec})
    return plan.make(run, Asked(**asked))


def but(**trainer: Any) -> dict[str, Any]:
    """LARGE with other fields of the trainer."""
    return {**LARGE, "trainer": {**LARGE["trainer"], **trainer}}


def test_the_measured_step_is_the_sum_of_its_parts() -> None:
    time = made(LARGE).time
    assert time.generate == pytest.approx(8 * 2500 / 1113)
    assert time.update == pytest.approx(4.5)
    assert time.paint == pytest.approx(2.0)
    # The bench measured 24.5 s for this very step, with its paintings taking two seconds.
    assert time.step == pytest.approx(24.5, abs=0.1)
    assert time.step is not None
    assert time.total == pytest.approx(99 * time.step + 41)
    assert "bench/step_h200.py" in time.sources


def test_tokens_and_rows_make_a_step_longer_as_measured() -> None:
    short = made(LARGE, tokens=1250).time
    assert short.generate == pytest.approx(4 * 2500 / 1113)
    # No row is longer than the specification lets it be.
    assert made(LARGE, tokens=9000).time.tokens == 3000
    wide = made(but(rolloutsPerStep=32)).time
    assert wide.tokens_per_second == 1856
    assert made(but(rolloutsPerStep=16)).time.tokens_per_second == pytest.approx(1360.7, abs=0.1)
    # 8 slots paint 32 sketches in four rounds.
    assert wide.paint == pytest.approx(8.0)


@pytest.mark.parametrize(
    ("spec", "asked", "why"),
    [
        ({**LARGE, "model": {"id": "owner/other"}}, {}, "the model owner/other was not measured"),
        (LARGE, {"gpu": "A100"}, "was not measured on A100"),
        (but(rolloutsPerStep=64), {}, "64 rows at once, only 8 to 32"),
        (but(engine="transformers"), {}, "engine=transformers"),
        (but(lora={"targets": ["q_proj"]}), {}, "lora.targets other than all-linear"),
        (
            but(processes=2, resources={"limits": {"nvidia.com/gpu": 2}}),
            {},
            "several processes",
        ),
        (but(grpo={"per_device_train_batch_size": 4}), {}, "micro-batches of its own size"),
    ],
)
def test_what_nobody_has_measured_is_not_invented(
    spec: dict[str, Any], asked: dict[str, Any], why: str
) -> None:
    if spec.get("trainer", {}).get("rolloutsPerStep") == 64:
        spec = {**spec, "env": {"sessions": 64}}
    found = made(spec, gpu_hour=3.0, **asked)
    assert (found.time.step, found.time.total) == (None, None)
    assert why in " ".join(found.time.notes)
    assert found.money is not None
    assert (found.money.total, found.scorer_share) == (None, None)
    assert "not measured" in "\n".join(planning.lines(found))


def test_money_is_for_every_gpu_for_the_whole_time() -> None:
    found = made(LARGE, gpu_hour=3.0)
    assert found.gpus == 2
    assert found.money is not None
    assert found.time.total is not None
    assert found.money.total == pytest.approx(2 * found.time.total / 3600 * 3.0)
    assert found.money.per_100_steps == found.money.total
    assert made(LARGE).money is None
    # Without a GPU the run costs none.
    tiny = made({}, gpu_hour=3.0)
    assert tiny.money is not None
    assert (tiny.gpus, tiny.money.total) == (0, 0.0)


def test_the_scorers_share_and_the_slots_follow_from_the_generation() -> None:
    found = made(LARGE)
    assert found.time.step is not None
    assert found.scorer_share == pytest.approx(8 / 25.0 / found.time.step)
    assert found.renderers is not None
    # 1,113 / 2,500 sketches a second of 2 CPU seconds each, at 70 %.
    assert (found.renderers.to_keep_up, found.renderers.slots) == (2, 8)
    assert made(LARGE, tokens=250).renderers.to_keep_up == 13  # pyright: ignore[reportOptionalMemberAccess]
    assert (
        made({**LARGE, "scorer": {"backend": "none"}, "recipe": {"name": "control"}}).scorer_share
        is None
    )


def test_the_embedded_default_is_reckoned_by_rollouts() -> None:
    assert made({}).time.step == pytest.approx(4.1)
    half = made({"trainer": {"rolloutsPerStep": 8}}).time
    assert half.step == pytest.approx(2.05)
    assert "scaled from 16 rollouts a step." in half.notes


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_pods_are_those_that_the_operator_makes(path: Path) -> None:
    data = yaml.safe_load(path.read_text())
    if data.get("kind") != "WatercolourRun":
        return
    wanted = {pods.component: pods for pods in sizes.of_run(load.from_dict(data).spec)}
    there: dict[str, Any] = {}
    for manifest in build(data["spec"]):
        if manifest["kind"] in ("Job", "Deployment"):
            component = manifest["metadata"]["labels"]["watercolour.dev/component"]
            (container,) = manifest["spec"]["template"]["spec"]["containers"]
            there[component] = container["resources"]
    assert there.keys() == wanted.keys()
    for component, resources in there.items():
        found = {"requests": wanted[component].requests, "limits": wanted[component].limits}
        assert resources == found, component


def test_every_figure_of_the_table_names_a_command_that_is_there() -> None:
    table = measured.table()
    for row in (*table.training, *table.painting, *table.scorer):
        assert row.source == "make run" or (ROOT / row.source).is_file()
    speeds = {8: 100.0, 32: 300.0}
    assert [measured.between(speeds, n) for n in (7, 8, 20, 32, 33)] == [None, 100, 200, 300, None]


def test_the_command_tells_both_people_and_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump({"metadata": {"name": "poppies"}, "spec": LARGE}))
    assert status(["plan", "-f", str(path), "--gpu-hour", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["gpus"], found["pods"][0]["gpus"]) == (2, 1)
    assert found["time"]["step"] == pytest.approx(24.5, abs=0.1)
    assert status(["plan", "-f", str(path), "--set", "spec.trainer.steps=7"]) == 0
    said = capsys.readouterr().out
    assert "poppies: 7 steps of 8 rollouts" in said
    assert "2 in all" in said
    assert status(["plan", "-f", str(tmp_path / "none.yaml")]) == 1
