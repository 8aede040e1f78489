"""Generation by a vLLM server with GPUs of its own, through its own HTTP interface.

Before each rollout the adapter alone is written to storage that both mount, and loaded there under
a new name; the one before is then unloaded. No weights of the base travel, so nothing can drift,
and the trainer needs no vLLM in its environment, with whose transformers that could not share it.
The server draws by its own random numbers; seeds are passed on.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.api.trainer import Decoding, Vllm
from watercolour.train import policy
from watercolour.train.sampling import OnRow, Row, Stop

#: Folder of the adapters, within the run's.
FOLDER = "generation-adapters"
#: Seconds for a whole group's longest row, and between looks at the stop flag.
ROW_SECONDS, LOOK_SECONDS = 1800.0, 0.2
#: Tries of a request that does not reach the server, and seconds between them, doubled each time.
TRIES, AGAIN_SECONDS = 5, 1.0


@dataclass
class Server:
    """One trainer's way to the server; an engine by its ``generate``."""

    spec: Vllm
    run_folder: Path
    model: Any
    sampling: Decoding
    ends: frozenset[int]
    rank: int = 0
    _calls: int = 0
    _loaded: str | None = None
    _http: httpx.Client = field(
        default_factory=lambda: httpx.Client(timeout=ROW_SECONDS, trust_env=False)
    )

    def generate(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[int], on_row: OnRow, stop: Stop
    ) -> list[Row]:
        """Complete every prompt with the adapter as it is now.

        Raises:
            InfrastructureError: the server is away or refuses (EngineUnavailable).
        """
        name = self._load()
        done: dict[int, Row] = {}
        pool = ThreadPoolExecutor(max_workers=len(prompts), thread_name_prefix="vllm")
        try:
            waiting = {
                pool.submit(self._complete, name, prompt, seed): number
                for number, (prompt, seed) in enumerate(zip(prompts, seeds, strict=True))
            }
            while waiting:
                ended = wait(waiting, timeout=LOOK_SECONDS, return_when=FIRST_COMPLETED).done
                stop()
                for future in ended:
                    number = waiting.pop(future)
                    done[number] = future.result()
                    on_row(number, done[number])
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        return [done[number] for number in range(len(prompts))]

    def _load(self) -> str:
        """Write the adapter, have it loaded and the one before unloaded; its name."""
        self._calls += 1
        before, name = self._loaded, f"rank{self.rank}-{self._calls}"
        folder = self.run_folder / FOLDER / name
        self.model.save_pretrained(
            folder,
            selected_adapters=[policy.TRAINED],
            state_dict=policy.adapter_of(self.model),
        )
        there = Path(self.spec.run_folder or self.run_folder) / FOLDER / name
        self._post("/v1/load_lora_adapter", {"lora_name": name, "lora_path": str(there)})
        self._loaded = name
        if before is not None:
            self._post("/v1/unload_lora_adapter", {"lora_name": before})
            shutil.rmtree(self.run_folder / FOLDER / before, ignore_errors=True)
        return name

    def _complete(self, name: str, prompt: Sequence[int], seed: int) -> Row:
        drawn = self.sampling
        reply = self._post(
            "/v1/completions",
            {
                "model": name,
                "prompt": list(prompt),
                "max_tokens": drawn.max_completion_tokens,
                "temperature": drawn.temperature,
                "top_p": drawn.top_p,
                "top_k": drawn.top_k or -1,
                "seed": seed,
                "logit_bias": {str(token): value for token, value in drawn.bias},
                "logprobs": 0,
                "stop_token_ids": sorted(self.ends),
                "return_token_ids": True,
                "skip_special_tokens": False,
            },
        )
        try:
            choice = reply.json()["choices"][0]
            logs: list[float] = choice["logprobs"]["token_logprobs"]
            return Row(tuple(choice["token_ids"]), tuple(logs), choice["finish_reason"] == "length")
        except (ValueError, LookupError, TypeError) as error:
            raise self._unavailable("/v1/completions", f"no completion ({error!r})") from error

    def _post(self, path: str, body: dict[str, Any]) -> httpx.Response:
        for attempt in range(1, TRIES + 1):
            try:
                reply = self._http.post(f"{self.spec.endpoint.rstrip('/')}{path}", json=body)
            except httpx.TransportError as error:
                if attempt == TRIES:
                    raise self._unavailable(path, type(error).__name__) from error
                time.sleep(AGAIN_SECONDS * 2 ** (attempt - 1))
                continue
            if reply.is_success:
                return reply
            raise self._unavailable(path, f"{reply.status_code} {reply.text[:300]}")
        raise AssertionError("unreachable")

    def _unavailable(self, path: str, fault: str) -> InfrastructureError:
        return InfrastructureError(
            Reason.ENGINE_UNAVAILABLE,
            f"spec.trainer.vllm.endpoint={self.spec.endpoint}: {path}: {fault}.",
            remedy="Start vLLM with --enable-lora, --max-lora-rank and "
            "VLLM_ALLOW_RUNTIME_LORA_UPDATING=1, on storage that holds the run's folder.",
        )
