"""Generation by a server that speaks vLLM's HTTP interface and really generates.

vLLM itself needs a GPU. Here a server answers the three calls that the engine makes: it loads the
adapter from the folder that it is told, by PEFT, and draws tokens with it.
"""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from tests.unit.train.conftest import Stage
from transformers import AutoModelForCausalLM

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.api.spec import WatercolourRun
from watercolour.api.trainer import Decoding
from watercolour.train import correction, engines, served, session
from watercolour.train.correction import Correction
from watercolour.train.progress import Progress

Make = Callable[..., WatercolourRun]


@dataclass
class Vllm:
    """What a server with ``--enable-lora`` does, one request at a time."""

    base: Path
    end: int
    loaded: dict[str, Any] = field(default_factory=dict[str, Any])
    calls: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    lock: threading.Lock = field(default_factory=threading.Lock)
    url: str = ""

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        with self.lock:
            self.calls.append((path, body))
            if path == "/v1/load_lora_adapter":
                model: Any = AutoModelForCausalLM.from_pretrained(self.base)
                adapted = PeftModel.from_pretrained(model, body["lora_path"])
                self.loaded[body["lora_name"]] = adapted.eval()
                return 200, "loaded"
            if path == "/v1/unload_lora_adapter":
                del self.loaded[body["lora_name"]]
                return 200, "unloaded"
            if body["model"] not in self.loaded:
                return 404, {"error": f"The model {body['model']} does not exist."}
            return 200, {"choices": [self._complete(body)]}

    def _complete(self, body: dict[str, Any]) -> dict[str, Any]:
        drawn = Decoding(
            body["max_tokens"],
            body["temperature"],
            body["top_p"],
            max(0, body["top_k"]),
            tuple((int(token), bias) for token, bias in body["logit_bias"].items()),
        )
        ends = frozenset(body["stop_token_ids"])
        _, engine = engines.build("static", self.loaded[body["model"]], drawn, ends, pad=self.end)
        row = engine([body["prompt"]], [body["seed"]], lambda *_: None, lambda: None)[0]
        return {
            "token_ids": row.tokens,
            "logprobs": {"token_logprobs": row.log_probabilities},
            "finish_reason": "length" if row.truncated else "stop",
        }


@pytest.fixture
def vllm(policy_folder: Path, reader: Any) -> Generator[Vllm]:
    state = Vllm(policy_folder, reader.eos_token_id)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            code, reply = state.answer(self.path, body)
            raw = json.dumps(reply).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


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
    assert loads == ["rank0-1", "rank0-2", "rank0-3"]
    assert list(vllm.loaded) == ["rank0-3"]
    left = tmp_path / "served" / served.FOLDER
    assert [path.name for path in left.iterdir()] == ["rank0-3"]
    assert len({body["seed"] for path, body in vllm.calls if path == "/v1/completions"}) == 24


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
