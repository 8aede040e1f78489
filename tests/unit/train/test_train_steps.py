"""Real GRPO steps by TRL on a random policy; only the environment stands in."""

from __future__ import annotations

import csv
import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.disk import largest_file
from tests.unit.train.conftest import SKETCHES, Stage, worth

from watercolour.api.errors import InfrastructureError, InputError, InterruptedRun
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout
from watercolour.api.spec import Sft, WatercolourRun
from watercolour.train import checkpoint, grpo, session
from watercolour.train.progress import Progress
from watercolour.train.rollouts import Painted
from watercolour.train.sampling import Row

Make = Callable[..., WatercolourRun]
#: Columns that time decides.
TIMED = ("step_time", "tokens_per_second", "seconds_")


def train(
    run: WatercolourRun,
    out: Path,
    stage: Stage,
    *,
    resume: bool = False,
    afresh: bool = False,
    stopping: Callable[[], bool] = lambda: False,
) -> Progress:
    progress = Progress("test", run.spec.trainer.steps)
    session.run(run, out, stage, progress, stopping, resume=resume, afresh=afresh)
    return progress


def rows(out: Path) -> list[dict[str, str]]:
    with (out / "metrics.csv").open(newline="") as file:
        return [
            {name: cell for name, cell in row.items() if not name.startswith(TIMED)}
            for row in csv.DictReader(file)
        ]


def weights(out: Path, step: int) -> dict[str, torch.Tensor]:
    return load_file(out / "checkpoints" / f"checkpoint-{step}" / "adapter_model.safetensors")


def equal(one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> bool:
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def optimizer(out: Path, step: int) -> dict[int, Any]:
    file = out / "checkpoints" / f"checkpoint-{step}" / "optimizer.pt"
    return torch.load(file, weights_only=True)["state"]


def test_a_run_writes_all_its_files_and_moves_every_adapted_tensor(
    wanted: Make, stage: Stage, tmp_path: Path
) -> None:
    progress = train(wanted(steps=2, checkpointEvery=1), tmp_path, stage)
    one, two = weights(tmp_path, 1), weights(tmp_path, 2)
    assert len(one) == 2 * 7 * 2
    # B begins at zero, so A has its first gradient in the second step.
    assert all(not torch.equal(one[name], two[name]) for name in one)
    assert all(bool(two[name].any()) for name in two)
    assert [row["step"] for row in rows(tmp_path)] == ["0", "1"]
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["steps"], summary["rollouts"], summary["phantom_zeros"]) == (2, 16, 0)
    assert summary["reward_first_fifth"] == pytest.approx(float(rows(tmp_path)[0]["reward"]))
    assert progress.reply()["step"] == 2
    # One draw a group, subjects in turn, and every member of a group on the same prompt.
    groups = {(r.step, r.group): (r.subject, r.seed) for r in stage.seen}
    assert [subject for subject, _ in groups.values()] == list(wanted().spec.prompts.subjects)
    assert len({seed for _, seed in groups.values()}) == 4


def test_training_leaves_every_bit_of_the_base_as_it_was(
    wanted: Make, stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, held = session.policies.load, list[tuple[torch.Tensor, torch.Tensor]]()

    def loaded(*arguments: Any) -> Any:
        found = load(*arguments)
        held.extend((each, each.detach().clone()) for each in found.model.parameters())
        return found

    monkeypatch.setattr(session.policies, "load", loaded)
    train(wanted(steps=2, checkpointEvery=1), tmp_path, stage)
    assert not equal(weights(tmp_path, 1), weights(tmp_path, 2))
    assert held
    assert all(torch.equal(now, before) for now, before in held)


def test_a_resumed_run_ends_where_a_straight_one_ends(
    wanted: Make, stage: Stage, tmp_path: Path
) -> None:
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    settings: dict[str, Any] = {"checkpointEvery": 1, "keepCheckpoints": 9, "beta": 0.02}
    train(wanted(steps=4, **settings), straight, stage)
    looks = itertools.count()
    with pytest.raises(InterruptedRun):
        # A look a token and one a step: the thirtieth is in the middle of the third step.
        train(wanted(steps=4, **settings), broken, Stage(), stopping=lambda: next(looks) > 29)
    assert [row["step"] for row in rows(broken)] == ["0", "1"]
    train(wanted(steps=4, **settings), broken, Stage(), resume=True)
    assert rows(broken) == rows(straight)
    assert all(float(row["kl"]) >= 0 for row in rows(straight))
    assert equal(weights(broken, 4), weights(straight, 4))
    assert optimizer(broken, 4)[0]["exp_avg"].equal(optimizer(straight, 4)[0]["exp_avg"])
    assert json.loads((broken / "summary.json").read_text())["rollouts"] == 32


def test_an_attempt_after_one_that_left_no_checkpoint_begins_anew(
    wanted: Make, stage: Stage, tmp_path: Path
) -> None:
    """As in a cluster: the first attempt was killed in its third step and had saved nothing."""
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    train(wanted(steps=2), straight, stage)
    train(wanted(steps=3), killed, Stage())
    shutil.rmtree(killed / "checkpoints")
    with pytest.raises(InputError, match="no whole checkpoint"):
        train(wanted(steps=2), killed, Stage(), resume=True)
    progress = train(wanted(steps=2), killed, Stage(), resume=True, afresh=True)
    assert rows(killed) == rows(straight)
    assert equal(weights(killed, 2), weights(straight, 2))
    assert not (killed / "rollouts" / "00002.parquet").exists()
    assert progress.reply()["lastCheckpointStep"] == 2


def test_progress_tells_the_newest_checkpoint_and_where_a_resumed_run_stands(
    wanted: Make, stage: Stage, tmp_path: Path
) -> None:
    first = train(wanted(steps=2, checkpointEvery=1), tmp_path, stage).reply()
    folder = tmp_path / "checkpoints" / "checkpoint-2"
    assert (first["lastCheckpointStep"], first["checkpoint"]) == (2, str(folder))
    progress = Progress("test", 3)
    with pytest.raises(InterruptedRun):
        session.run(wanted(steps=3), tmp_path, Stage(), progress, lambda: True, resume=True)
    assert progress.reply()["step"] == progress.reply()["lastCheckpointStep"] == 2


def taught(run: WatercolourRun, corpus: Path, **sft: Any) -> WatercolourRun:
    """The run with a cold start of few steps."""
    corpus.mkdir(exist_ok=True)
    lines = [json.dumps({"subject": "a red poppy", "sketch": one}) for one in SKETCHES[:8]]
    (corpus / "pairs.jsonl").write_text("\n".join(lines))
    wanted = Sft(corpus=str(corpus), learning_rate=2e-2, **{"batch_size": 4, **sft})
    return run.model_copy(update={"spec": run.spec.model_copy(update={"sft": wanted})})


def test_an_attempt_stopped_after_the_cold_start_goes_on_from_it(
    wanted: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    run = taught(
        wanted(
            steps=2,
            checkpointEvery=1,
            keepCheckpoints=9,
            beta=0.1,
            # Drawn from the random state that the cold start left.
            lora={"r": 4, "alpha": 8, "dropout": 0.1},
            sampling={"maxCompletionTokens": 80, "topP": 1.0, "topK": 0},
            guards={"probes": 2},
        ),
        tmp_path / "corpus",
    )
    train(run, straight, Stage())
    start = broken / "checkpoints" / "checkpoint-0"
    with pytest.raises(InterruptedRun):
        train(run, broken, Stage(), stopping=start.exists)
    assert not (broken / "preflight.json").exists()

    def again(*_: Any, **__: Any) -> None:
        raise AssertionError("the cold start is made again")

    with monkeypatch.context() as patched:
        patched.setattr(session.teaching, "teach", again)
        progress = train(run, broken, Stage(), resume=True)
    assert (broken / "preflight.json").exists()
    assert rows(broken) == rows(straight)
    assert equal(weights(broken, 2), weights(straight, 2))
    assert progress.reply()["lastCheckpointStep"] == 2


def test_a_cold_start_other_than_the_one_asked_for_is_not_gone_on_from(
    wanted: Make, tmp_path: Path
) -> None:
    corpus, out = tmp_path / "corpus", tmp_path / "run"
    start = out / "checkpoints" / "checkpoint-0"
    settings: dict[str, Any] = {"steps": 1, "sampling": {"maxCompletionTokens": 80}}
    with pytest.raises(InterruptedRun):
        train(taught(wanted(**settings), corpus), out, Stage(), stopping=start.exists)
    first = weights(out, 0)
    train(taught(wanted(**settings), corpus, epochs=2), out, Stage(), resume=True)
    assert not equal(weights(out, 0), first)
    assert json.loads((out / "sft.json").read_text())["steps"] == 4


def test_the_kl_term_is_measured_against_what_the_cold_start_left(
    wanted: Make, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"beta": 0.1, "checkpointEvery": 1, "keepCheckpoints": 9}
    settings["sampling"] = {"maxCompletionTokens": 80, "topP": 1.0, "topK": 0}
    train(taught(wanted(steps=2, **settings), tmp_path / "corpus"), tmp_path, Stage())
    kept = [float(row["kl"]) for row in rows(tmp_path)]
    assert kept[0] == pytest.approx(0, abs=1e-6)
    assert kept[1] > 1e-5
    train(taught(wanted(steps=3, **settings), tmp_path / "corpus"), tmp_path, Stage(), resume=True)
    start = weights(tmp_path, 0)
    assert any(bool(weight.any()) for name, weight in start.items() if "lora_B" in name)
    for step in (0, 1, 3):
        folder = tmp_path / "checkpoints" / f"checkpoint-{step}" / "ref"
        assert equal(load_file(folder / "adapter_model.safetensors"), start)


def test_a_wholly_unscored_step_moves_neither_weights_nor_momentum(
    wanted: Make, tmp_path: Path
) -> None:
    stage = Stage(away=lambda step, _group, _index: step == 1)
    train(wanted(steps=3, checkpointEvery=1, keepCheckpoints=9), tmp_path, stage)
    assert equal(weights(tmp_path, 1), weights(tmp_path, 2))
    before, after = optimizer(tmp_path, 1), optimizer(tmp_path, 2)
    assert all(before[i]["exp_avg"].equal(after[i]["exp_avg"]) for i in before)
    assert all(before[i]["step"].equal(after[i]["step"]) for i in before)
    assert not equal(weights(tmp_path, 2), weights(tmp_path, 3))
    line = rows(tmp_path)[1]
    assert (line["reward"], line["unscored"], line["skipped"]) == ("", "1", "1")
    # Both groups were tried twice, with other rows and the same draw.
    tried = [rollout for rollout in stage.seen if rollout.step == 1]
    assert len(tried) == 16
    assert len({(rollout.group, rollout.seed) for rollout in tried}) == 2
    assert tried[0].completion not in {rollout.completion for rollout in tried[8:]}


def test_an_unscored_rollout_counts_as_absent_and_not_as_zero(wanted: Make, tmp_path: Path) -> None:
    stage = Stage(away=lambda _step, group, index: group == 0 and index == 0)
    train(wanted(steps=1), tmp_path, stage)
    scored = [rollout.reward for rollout in stage.seen if rollout.reward is not None]
    assert len(scored) == 7
    line = rows(tmp_path)[0]
    assert float(line["reward"]) == pytest.approx(sum(scored) / 7)
    assert float(line["unscored"]) == pytest.approx(1 / 8)
    advantages = session.summary.parquet.read(tmp_path / "rollouts" / "00000.parquet")
    assert advantages[0]["advantage"] is None
    group = [line["reward"] for line in advantages[1:4]]
    assert advantages[1]["advantage"] == pytest.approx(group[0] - sum(group) / 3, abs=1e-5)


def test_a_step_without_spread_is_not_an_update(wanted: Make, tmp_path: Path) -> None:
    stage = Stage(worth=lambda text: 0.5)
    run = wanted(steps=2, checkpointEvery=1, guards={"probes": 0, "collapse": False})
    train(run, tmp_path, stage)
    assert equal(weights(tmp_path, 1), weights(tmp_path, 2))
    assert [row["skipped"] for row in rows(tmp_path)] == ["1", "1"]


def test_a_broken_rollout_is_unscored_and_training_goes_on(wanted: Make, tmp_path: Path) -> None:
    class Broken(Stage):
        def submit(self, completion: str, **ids: Any) -> Any:
            future = super().submit(completion, **ids)
            if ids["index"] == 0:
                future = type(future)()
                future.set_exception(RuntimeError("a fault of ours"))
            return future

    train(wanted(steps=1), tmp_path, Broken())
    lines = session.summary.parquet.read(tmp_path / "rollouts" / "00000.parquet")
    assert [line["unscored_reason"] for line in lines[:2]] == ["InternalError", None]
    # It was drawn all the same.
    assert all(line["tokens"] and line["completion"] for line in lines)
    drawn = sum(line["tokens"] for line in lines) / len(lines)
    assert float(rows(tmp_path)[0]["completions/mean_length"]) == pytest.approx(drawn)
    cut = sum(line["truncated"] for line in lines) / len(lines)
    assert float(rows(tmp_path)[0]["clipped_ratio"]) == pytest.approx(cut)
    assert lines[4]["group"] == 1


def test_a_dead_infrastructure_ends_the_run_with_a_checkpoint(wanted: Make, tmp_path: Path) -> None:
    stage = Stage(away=lambda step, _group, _index: step >= 1)
    run = wanted(steps=9, guards={"probes": 0, "maxUnscoredSteps": 2})
    with pytest.raises(InfrastructureError, match="2 steps in a row") as caught:
        train(run, tmp_path, stage)
    assert caught.value.reason == Reason.INFRASTRUCTURE_DEGRADED
    assert "RendererUnavailable" in str(caught.value)
    assert checkpoint.step_of(checkpoint.latest(tmp_path)) == 3


def test_a_collapse_brings_the_best_adapter_back_and_then_ends_the_run(
    wanted: Make, tmp_path: Path
) -> None:
    class Falling(Stage):
        def submit(self, completion: str, **ids: Any) -> Any:
            fallen = ids["step"] >= 6
            self.worth = (lambda _: 0.0) if fallen else worth
            return super().submit(completion, **ids)

    run = wanted(
        steps=20,
        rolloutsPerStep=4,
        checkpointEvery=1,
        keepCheckpoints=99,
        sampling={"maxCompletionTokens": 4},
        guards={"probes": 0, "maxRollbacks": 1},
    )
    with pytest.raises(InfrastructureError) as caught:
        train(run, tmp_path, Falling())
    assert caught.value.reason == Reason.POLICY_COLLAPSED
    lines = rows(tmp_path)
    fallen = next(i for i, row in enumerate(lines) if row["rollbacks"] == "1")
    # The adapter that painted the last good step is back, without momentum, at half the rate.
    assert equal(weights(tmp_path, fallen + 1), weights(tmp_path, 5))
    assert optimizer(tmp_path, fallen + 1) == {}
    rates = [float(row["learning_rate"]) for row in lines]
    assert rates[fallen : fallen + 2] == pytest.approx([0.01, 0.005])


def test_a_disk_too_full_for_checkpoints_does_not_stop_the_steps(
    wanted: Make, tmp_path: Path
) -> None:
    # The kernel refuses files of that length; of a run's files only the optimizer's is longer.
    run = wanted(steps=2, checkpointEvery=1, lora={"r": 64, "alpha": 64})
    with largest_file(300_000), pytest.raises(InfrastructureError) as caught:
        train(run, tmp_path, Stage())
    assert caught.value.reason == Reason.DISK_FULL
    assert len(rows(tmp_path)) == 2
    assert json.loads((tmp_path / "summary.json").read_text())["steps"] == 2
    assert not list((tmp_path / "checkpoints").iterdir())


def test_one_generation_may_serve_two_steps(wanted: Make, stage: Stage, tmp_path: Path) -> None:
    run = wanted(steps=4, checkpointEvery=2, keepCheckpoints=9, grpo={"num_iterations": 2})
    train(run, tmp_path, stage)
    assert len(stage.seen) == 16
    lines = rows(tmp_path)
    assert [row["reward"] != "" for row in lines] == [True, False, True, False]
    assert all(float(row["grad_norm"]) > 0 for row in lines)
    assert not equal(weights(tmp_path, 2), weights(tmp_path, 4))
    # The policy's own move from one step to the next is no difference between two engines.
    assert all(float(row["mismatch_max"]) < 1e-4 for row in lines)


def test_a_run_of_reused_rollouts_stops_before_a_generation_and_goes_on_as_a_straight_one(
    wanted: Make, tmp_path: Path
) -> None:
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    grpo_: dict[str, Any] = {"num_iterations": 2}
    run = wanted(steps=6, checkpointEvery=2, keepCheckpoints=9, grpo=grpo_)
    train(run, straight, Stage())

    def one_step_done() -> bool:
        return (broken / "metrics.csv").exists() and len(rows(broken)) > 0

    with pytest.raises(InterruptedRun):
        train(run, broken, Stage(), stopping=one_step_done)
    assert checkpoint.step_of(checkpoint.latest(broken)) == 2
    train(run, broken, Stage(), resume=True)
    assert rows(broken) == rows(straight)
    assert equal(weights(broken, 6), weights(straight, 6))


def test_an_unscored_row_is_masked_and_the_others_are_not() -> None:
    rows = (Row((4, 5), (-1.0, -1.0), False), Row((6,), (-1.0,), True))
    rollouts = (Rollout(reward=0.5), Rollout(unscored_reason=Reason.BROWSER_CRASHED))
    found = grpo.answer(Painted(0, 2, rollouts, rows, ((1,), (1,)), 0.0, 0.0, 1, 3), 9)
    assert found["value"] == [0.5, None]
    assert found["env_mask"] == [[1, 1], [0]]
    assert found["completion_ids"] == [[4, 5], [6]]


def test_a_weak_policy_is_refused_before_the_first_step(wanted: Make, tmp_path: Path) -> None:
    stage = Stage(worth=lambda _: 0.0)
    with pytest.raises(InputError, match=r"0% of 6 probes.*watercolour sft") as caught:
        train(wanted(guards={"probes": 6}), tmp_path, stage)
    assert caught.value.reason == Reason.POLICY_TOO_WEAK
    assert len(stage.seen) == 6


def test_probes_that_nobody_could_evaluate_are_not_the_policys_fault(
    wanted: Make, tmp_path: Path
) -> None:
    stage = Stage(away=lambda *_: True)
    with pytest.raises(InfrastructureError) as caught:
        train(wanted(guards={"probes": 4}), tmp_path, stage)
    assert caught.value.reason == Reason.RENDERER_UNAVAILABLE


def test_an_adapter_that_computes_something_else_than_when_it_was_saved_is_not_gone_on_from(
    wanted: Make, stage: Stage, tmp_path: Path
) -> None:
    train(wanted(steps=2, checkpointEvery=1, learningRate=0.1), tmp_path, stage)
    whole = tmp_path / "checkpoints" / "checkpoint-2"
    file = whole / "adapter_model.safetensors"
    # As a load through another model class left it: every name there, and half of it nothing.
    halved = {
        name: value if number % 2 else torch.zeros_like(value)
        for number, (name, value) in enumerate(load_file(file).items())
    }
    save_file(halved, file, metadata={"format": "pt"})
    assert checkpoint.is_whole(whole)
    with pytest.raises(InputError, match=r"where it gave .* when it was saved") as caught:
        train(wanted(steps=3), tmp_path, Stage(), resume=True)
    assert caught.value.reason == Reason.ARTIFACTS_DAMAGED
