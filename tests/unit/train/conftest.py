"""A policy small enough to be made in each test session, and an environment without a browser."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.train.vllm_server import Vllm, serving
from transformers import Qwen3Config, Qwen3ForCausalLM

from watercolour.api import load
from watercolour.api.reasons import Reason, ViolationCode
from watercolour.api.rollout import Rollout, Violation
from watercolour.api.spec import WatercolourRun
from watercolour.sketch import prompt
from watercolour.train import tokenizer

# The policies here are so small that a second thread only waits.
torch.set_num_threads(1)

SKETCH = """\
function setup() {
  createCanvas(192, 192, WEBGL);
}
function draw() {
  brush.fill("#c8322e", NUMBER);
  brush.circle(NUMBER, 96, 40);
}
"""
SKETCHES = [SKETCH.replace("NUMBER", str(number)) for number in range(40)]


@pytest.fixture(scope="session")
def reader() -> Any:
    words = [message["content"] for message in prompt.messages("a red poppy", "tiny")]
    return tokenizer.train(words, SKETCHES, 512)


@pytest.fixture(scope="session")
def policy_folder(tmp_path_factory: pytest.TempPathFactory, reader: Any) -> Path:
    """A random two-layer Qwen3 with its tokenizer."""
    folder = tmp_path_factory.mktemp("policy")
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(reader),
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=8,
            max_position_embeddings=512,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=reader.eos_token_id,
            pad_token_id=reader.pad_token_id,
        )
    )
    for weight in model.parameters():
        # Norms off one and logits far apart, so that a wrong formula shows.
        torch.nn.init.uniform_(weight, 0.5, 1.5) if weight.dim() == 1 else torch.nn.init.normal_(
            weight, std=0.2
        )
    model.save_pretrained(folder)
    reader.save_pretrained(folder)
    return folder


@pytest.fixture
def vllm(policy_folder: Path, reader: Any) -> Generator[Vllm]:
    with serving(Vllm(policy_folder, reader.eos_token_id)) as state:
        yield state


def worth(completion: str) -> float:
    """A reward that depends on the text alone, between 0.05 and 1.05."""
    return 0.05 + hashlib.sha256(completion.encode()).digest()[0] / 255


@dataclass
class Stage:
    """An environment that answers at once; ``away`` says which rollouts it cannot score."""

    away: Callable[[int, int, int], bool] = lambda _step, _group, _index: False
    worth: Callable[[str], float] = worth
    seen: list[Rollout] = field(default_factory=list[Rollout])

    def submit(self, completion: str, **ids: Any) -> Future[Rollout]:
        rollout = Rollout(completion=completion, sketch=completion, **ids)
        if self.away(rollout.step, rollout.group, rollout.index):
            update: dict[str, Any] = {"unscored_reason": Reason.RENDERER_UNAVAILABLE}
        else:
            reward = self.worth(completion)
            update = {
                "gate_passed": reward > 0,
                "reward": reward,
                "reward_adjusted": reward,
                "violations": ()
                if reward > 0
                else (Violation(code=ViolationCode.TRUNCATED, message="It ends early."),),
                "terms": {"judge": 0.5, "quality": None},
                "timings": {"render": 0.25},
            }
        self.seen.append(rollout.model_copy(update=update))
        future: Future[Rollout] = Future()
        future.set_result(self.seen[-1])
        return future

    def submit_announcement(
        self, rollouts: int, until: float, due_seconds: float = 0.0
    ) -> Future[bool]:
        future: Future[bool] = Future()
        future.set_result(True)
        return future


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def wanted(policy_folder: Path) -> Callable[..., WatercolourRun]:
    """A run of the tiny policy; keyword arguments replace fields of ``spec.trainer``."""

    def make(**trainer: Any) -> WatercolourRun:
        settings: dict[str, Any] = {
            "steps": 2,
            "rolloutsPerStep": 8,
            "groupSize": 4,
            "learningRate": 0.01,
            "warmupSteps": 0,
            "lora": {"r": 4, "alpha": 8},
            "sampling": {"maxCompletionTokens": 12, "topP": 1.0, "topK": 0},
            "guards": {"probes": 0},
            **trainer,
        }
        return load.from_dict(
            {
                "apiVersion": "watercolour.dev/v1alpha1",
                "kind": "WatercolourRun",
                "metadata": {"name": "test"},
                "spec": {
                    "model": {"id": str(policy_folder)},
                    "prompts": {"system": "tiny"},
                    "trainer": settings,
                },
            }
        )

    return make
