"""Generation by a server that speaks vLLM's HTTP interface and really generates."""

from __future__ import annotations

import csv
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.train.conftest import Stage
from tests.unit.train.vllm_server import Vllm

from watercolour.api.errors import InfrastructureError, InterruptedRun
from watercolour.api.reasons import Reason
from watercolour.api.spec import WatercolourRun
from watercolour.train import correction, served, session
from watercolour.train.correction import Correction
from watercolour.train.progress import Progress

Make = Callable[..., WatercolourRun]


def rows(out: Path) -> list[dict[str, str]]:
    with (out / "metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_run_by_a_server_is_the_run_by_the_trainers_own_engine(
    wanted: Make, vllm: Vllm, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"steps": 3, "learningRate": 0.02}
    served_run = wanted(**settings, engine="vllm", vllm={"endpoint": vllm.url})
    for run, name in ((served_run, "served"), (wanted(**settings), "own")):
        out = tmp_path / name
        session.run(run, out, Stage(), Progress("test", 3), lambda: False, resume=False)
    for ours, theirs in zip(rows(tmp_path / "served"), rows(tmp_path / "own"), strict=True):
        assert (ours["reward"], ours["tokens"]) == (theirs["reward"], theirs["tokens"])
        assert float(ours["mismatch_max"]) < 1e-3
        # The weights by which vLLM's rounding is corrected are 1 where there is none.
        assert float(ours["grad_norm"]) == pytest.approx(float(theirs["grad_norm"]), rel=1e-3)
    # Each step had its own adapter, and the one before is gone there and here.
    loads = [body["lora_name"] for path, body in vllm.calls if path == "/v1/load_lora_adapter"]
    assert [name.split("-")[::2] for name in loads] == [["rank0", n] for n in "123"]
    assert list(vllm.loaded) == loads[-1:]
    left = tmp_path / "served" / served.FOLDER
    assert [path.name for path in left.iterdir()] == loads[-1:]
    assert len({body["seed"] for path, body in vllm.calls if path == "/v1/completions"}) == 24


def test_another_attempt_and_another_run_share_the_server(
    wanted: Make, vllm: Vllm, tmp_path: Path
) -> None:
    run = wanted(steps=2, engine="vllm", vllm={"endpoint": vllm.url}, checkpointEvery=2)
    more = wanted(steps=4, engine="vllm", vllm={"endpoint": vllm.url}, checkpointEvery=2)
    for given, name, resume in ((run, "a", False), (run, "b", False), (more, "a", True)):
        session.run(given, tmp_path / name, Stage(), Progress("t", 1), lambda: False, resume=resume)
    assert len(rows(tmp_path / "a")) == 4
    loads = [body["lora_name"] for path, body in vllm.calls if path == "/v1/load_lora_adapter"]
    assert len(set(loads)) == 6
    # What the first attempt had left is gone, and the other run's stays.
    assert list(vllm.loaded) == [loads[3], loads[5]]


def test_a_lost_reply_and_a_server_started_anew_do_no_harm(
    wanted: Make, vllm: Vllm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served, "AGAIN_SECONDS", 0.0)
    answer, told = vllm.answer, list[str]()

    def faulty(path: str, body: dict[str, Any]) -> tuple[int, Any]:
        found = answer(path, body)
        if path == "/v1/load_lora_adapter":
            told.append(body["lora_name"])
            if len(told) == 1:
                raise ConnectionAbortedError("the reply is lost")
            if len(told) == 3:
                for name in told[:2]:
                    vllm.loaded.pop(name, None)
        return found

    monkeypatch.setattr(vllm, "answer", faulty)
    run = wanted(steps=2, engine="vllm", vllm={"endpoint": vllm.url})
    session.run(run, tmp_path, Stage(), Progress("t", 1), lambda: False, resume=False)
    assert told[0] == told[1] != told[2]


@pytest.mark.parametrize("path", ["/v1/load_lora_adapter", "/v1/completions"])
def test_a_server_that_hangs_keeps_nobody_from_stopping(
    wanted: Make, vllm: Vllm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    answer, hung, free = vllm.answer, threading.Event(), threading.Event()

    def hangs(where: str, body: dict[str, Any]) -> tuple[int, Any]:
        if where == path:
            hung.set()
            free.wait(60)
        return answer(where, body)

    monkeypatch.setattr(vllm, "answer", hangs)
    run = wanted(steps=1, engine="vllm", vllm={"endpoint": vllm.url})
    try:
        with pytest.raises(InterruptedRun):
            session.run(run, tmp_path, Stage(), Progress("t", 1), hung.is_set, resume=False)
        assert all(one.daemon for one in threading.enumerate() if one.name == "vllm")
    finally:
        free.set()


def test_a_server_that_has_had_its_time_is_not_asked_again(
    wanted: Make, vllm: Vllm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served, "ADAPTER_SECONDS", 0.2)
    free, asked = threading.Event(), list[str]()

    def hangs(where: str, _body: dict[str, Any]) -> tuple[int, Any]:
        asked.append(where)
        free.wait(60)
        return 500, ""

    monkeypatch.setattr(vllm, "answer", hangs)
    run = wanted(steps=1, engine="vllm", vllm={"endpoint": vllm.url})
    try:
        with pytest.raises(InfrastructureError, match="ReadTimeout"):
            session.run(run, tmp_path, Stage(), Progress("t", 1), lambda: False, resume=False)
        assert asked == ["/v1/load_lora_adapter"]
    finally:
        free.set()


def test_a_server_is_told_the_bias_and_draws_by_it(
    wanted: Make, vllm: Vllm, reader: Any, tmp_path: Path
) -> None:
    def completions(name: str, bias: dict[str, float], **trainer: Any) -> list[str]:
        drawn = {"maxCompletionTokens": 60, "topP": 1.0, "topK": 0, "logitBias": bias}
        run, stage = wanted(steps=1, sampling=drawn, **trainer), Stage()
        session.run(run, tmp_path / name, stage, Progress("t", 1), lambda: False, resume=False)
        return sorted(rollout.completion for rollout in stage.seen)

    free = "".join(completions("free", {}))
    # A character that is one token, and part of no other.
    texts = [reader.decode([token]) for token in range(len(reader))]
    banned = next(c for c in sorted(set(free)) if c in texts and sum(c in t for t in texts) == 1)
    bias = {banned: -100.0}
    server: dict[str, Any] = {
        "engine": "vllm",
        "vllm": {"endpoint": vllm.url},
        "grpo": {"vllm_importance_sampling_correction": False},
    }
    assert banned not in "".join(completions("served", bias, **server))
    sent = [body["logit_bias"] for path, body in vllm.calls if path == "/v1/completions"]
    assert sent == [{str(texts.index(banned)): -100.0}] * 8


def test_a_server_that_is_away_or_refuses_ends_the_run_with_its_own_words(
    wanted: Make, vllm: Vllm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served, "AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(vllm, "answer", lambda *_: (400, "LoRA is not enabled"))
    for url, why in ((vllm.url, "400 .*LoRA is not enabled"), ("http://127.0.0.1:9", "Connect")):
        run = wanted(steps=1, engine="vllm", vllm={"endpoint": url})
        with pytest.raises(InfrastructureError, match=why) as caught:
            session.run(run, tmp_path, Stage(), Progress("t", 1), lambda: False, resume=False)
        assert caught.value.reason is Reason.ENGINE_UNAVAILABLE
        assert "--enable-lora" in caught.value.remedy


def test_weights_are_cut_off_or_count_as_nothing_beyond_their_bounds() -> None:
    training = torch.tensor([[0.0, 2.0, -1.0]])
    sampled, mask = torch.zeros(1, 3), torch.tensor([[1, 1, 1]])

    def found(mode: str, least: float | None = None) -> list[float]:
        return correction.weights(Correction(mode, least, 3.0), training, sampled, mask)[0].tolist()

    assert found("token_truncate") == pytest.approx([1.0, 3.0, 0.3679], abs=1e-4)
    assert found("token_mask", 0.5) == pytest.approx([1.0, 0.0, 0.0])
    assert found("sequence_truncate") == pytest.approx([2.7183], abs=1e-4)
    assert found("sequence_mask", 3.0) == [0.0]
    # What is masked, and what the sampler could not tell, is no difference.
    nothing = torch.tensor([[0.0, float("nan"), 5.0]])
    some = correction.weights(
        Correction("token_mask", None, 3.0), training, nothing, torch.tensor([[1, 1, 0]])
    )
    assert some[0].tolist() == [1.0, 1.0, 1.0]
